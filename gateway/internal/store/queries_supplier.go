package store

import _ "embed" // SQL

// Statements of the supplier side: what is particular about channels, which are well, what is stopped, the control entry.
var (
	//go:embed queries/settings_particular.sql
	SettingsParticular string
	//go:embed queries/settings_stop.sql
	SettingsStop string
	//go:embed queries/settings_health.sql
	SettingsHealth string
	//go:embed queries/settlement_ended_page.sql
	SettlementEndedPage string
	//go:embed queries/supplier_breaker.sql
	SupplierBreaker string
	//go:embed queries/supplier_control_read.sql
	SupplierControlRead string
	//go:embed queries/supplier_control_account.sql
	SupplierControlAccount string
	//go:embed queries/supplier_control_write.sql
	SupplierControlWrite string
)
