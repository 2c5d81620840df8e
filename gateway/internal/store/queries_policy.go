package store

import _ "embed"

// Statements of policy and routing: what is loaded with the settings, and what each batch looks up.
var (
	//go:embed queries/settings_policy_limits.sql
	SettingsPolicyLimits string
	//go:embed queries/settings_policy_modes.sql
	SettingsPolicyModes string
	//go:embed queries/settings_policy_signature.sql
	SettingsPolicySignature string
	//go:embed queries/settings_policy_number.sql
	SettingsPolicyNumber string
	//go:embed queries/settings_policy_template.sql
	SettingsPolicyTemplate string
	//go:embed queries/settings_policy_keyword.sql
	SettingsPolicyKeyword string
	//go:embed queries/settings_policy_stat.sql
	SettingsPolicyStat string
	//go:embed queries/settings_policy_demand.sql
	SettingsPolicyDemand string

	//go:embed queries/workflow_use.sql
	WorkflowUse string
	//go:embed queries/workflow_use_add.sql
	WorkflowUseAdd string
	//go:embed queries/workflow_recent.sql
	WorkflowRecent string
	//go:embed queries/workflow_repeated.sql
	WorkflowRepeated string
	//go:embed queries/workflow_opt_out.sql
	WorkflowOptOut string
	//go:embed queries/workflow_override.sql
	WorkflowOverride string
	//go:embed queries/workflow_held.sql
	WorkflowHeld string
	//go:embed queries/workflow_hold.sql
	WorkflowHold string
	//go:embed queries/settings_prefix_expire.sql
	SettingsPrefixExpire string

	//go:embed queries/review_now.sql
	ReviewNow string
	//go:embed queries/review_take.sql
	ReviewTake string
	//go:embed queries/review_messages.sql
	ReviewMessages string
	//go:embed queries/review_submit.sql
	ReviewSubmit string
	//go:embed queries/review_use.sql
	ReviewUse string
	//go:embed queries/review_due.sql
	ReviewDue string
	//go:embed queries/review_waiting.sql
	ReviewWaiting string
	//go:embed queries/review_list.sql
	ReviewList string
)
