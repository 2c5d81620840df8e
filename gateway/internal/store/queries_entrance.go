package store

import _ "embed"

// Statements of the customers' entrance: limits, addresses, and the record of logins.
var (
	//go:embed queries/settings_limit_platform.sql
	SettingsLimitPlatform string
	//go:embed queries/settings_limit_enterprise.sql
	SettingsLimitEnterprise string
	//go:embed queries/settings_limit_application.sql
	SettingsLimitApplication string
	//go:embed queries/settings_limit_channel.sql
	SettingsLimitChannel string
	//go:embed queries/settings_address.sql
	SettingsAddress string
	//go:embed queries/login_event_add.sql
	LoginEventAdd string
	//go:embed queries/login_event_sweep.sql
	LoginEventSweep string
	//go:embed queries/login_event_known.sql
	LoginEventKnown string
	//go:embed queries/inbound_backlog_channel.sql
	InboundBacklogChannel string
	//go:embed queries/inbound_backlog_platform.sql
	InboundBacklogPlatform string
	//go:embed queries/login_event_list.sql
	LoginEventList string
)
