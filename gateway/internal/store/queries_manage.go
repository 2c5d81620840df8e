package store

import _ "embed" // SQL

// Statements of the administration: people, not messages.
var (
	//go:embed queries/manage_answer_find.sql
	ManageAnswerFind string
	//go:embed queries/manage_answer_keep.sql
	ManageAnswerKeep string
	//go:embed queries/manage_answer_reserve.sql
	ManageAnswerReserve string
	//go:embed queries/manage_audit.sql
	ManageAudit string
	//go:embed queries/manage_credit.sql
	ManageCredit string
	//go:embed queries/manage_delete.sql
	ManageDelete string
	//go:embed queries/manage_get.sql
	ManageGet string
	//go:embed queries/manage_import_numbers.sql
	ManageImportNumbers string
	//go:embed queries/manage_import_opt_outs.sql
	ManageImportOptOuts string
	//go:embed queries/manage_insert.sql
	ManageInsert string
	//go:embed queries/manage_list.sql
	ManageList string
	//go:embed queries/manage_lock.sql
	ManageLock string
	//go:embed queries/manage_logins.sql
	ManageLogins string
	//go:embed queries/manage_members.sql
	ManageMembers string
	//go:embed queries/manage_next_id.sql
	ManageNextID string
	//go:embed queries/manage_now.sql
	ManageNow string
	//go:embed queries/manage_price.sql
	ManagePrice string
	//go:embed queries/manage_price_first.sql
	ManagePriceFirst string
	//go:embed queries/manage_replay.sql
	ManageReplay string
	//go:embed queries/manage_rotate.sql
	ManageRotate string
	//go:embed queries/manage_terms.sql
	ManageTerms string
	//go:embed queries/manage_token.sql
	ManageToken string
	//go:embed queries/manage_token_find.sql
	ManageTokenFind string
	//go:embed queries/manage_token_used.sql
	ManageTokenUsed string
	//go:embed queries/manage_update.sql
	ManageUpdate string
)
