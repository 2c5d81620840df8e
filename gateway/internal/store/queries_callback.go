package store

import _ "embed"

// Statements of the callback's modes and of dead letters.
var (
	//go:embed queries/settings_callback.sql
	SettingsCallback string
	//go:embed queries/settings_callback_set.sql
	SettingsCallbackSet string
)
