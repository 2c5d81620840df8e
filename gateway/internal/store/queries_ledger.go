package store

import _ "embed"

// Ledger statements (data §1.8, §2.1).
var (
	//go:embed queries/ledger_charge.sql
	LedgerCharge string
	//go:embed queries/ledger_move.sql
	LedgerMove string
	//go:embed queries/ledger_topup.sql
	LedgerTopUp string
	//go:embed queries/ledger_topup_in.sql
	LedgerTopUpIn string
	//go:embed queries/ledger_account_create.sql
	LedgerAccountCreate string
	//go:embed queries/ledger_verify_accounts.sql
	LedgerVerifyAccounts string
	//go:embed queries/ledger_verify_entries.sql
	LedgerVerifyEntries string
	//go:embed queries/ledger_verify_pointers.sql
	LedgerVerifyPointers string
	//go:embed queries/ledger_verify_bills.sql
	LedgerVerifyBills string
	//go:embed queries/ledger_verify_order.sql
	LedgerVerifyOrder string
)
