package store

import _ "embed"

// Statements of the callback's modes and of dead letters.
var (
	//go:embed queries/settings_callback.sql
	SettingsCallback string
	//go:embed queries/settings_callback_set.sql
	SettingsCallbackSet string
)

// Statements of dead letters.
var (
	//go:embed queries/dead_letter_list.sql
	DeadLetterList string
	//go:embed queries/dead_letter_find.sql
	DeadLetterFind string
	//go:embed queries/dead_letter_replayed.sql
	DeadLetterReplayed string
	//go:embed queries/dead_letter_delivery.sql
	DeadLetterDelivery string
	//go:embed queries/dead_letter_receipt.sql
	DeadLetterReceipt string
	//go:embed queries/dead_letter_counts.sql
	DeadLetterCounts string
)
