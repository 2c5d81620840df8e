package store

import _ "embed" // SQL

// Statements that load the settings.
var (
	//go:embed queries/settings_bump.sql
	SettingsBump string
	//go:embed queries/settings_version.sql
	SettingsVersion string
	//go:embed queries/settings_enterprise.sql
	SettingsEnterprise string
	//go:embed queries/settings_application.sql
	SettingsApplication string
	//go:embed queries/settings_resend.sql
	SettingsResend string
	//go:embed queries/settings_route.sql
	SettingsRoute string
	//go:embed queries/settings_account.sql
	SettingsAccount string
	//go:embed queries/settings_channel.sql
	SettingsChannel string
	//go:embed queries/settings_group.sql
	SettingsGroup string
	//go:embed queries/settings_prefix.sql
	SettingsPrefix string
	//go:embed queries/settings_class.sql
	SettingsClass string
)
