package store_test

import "cmppgateway/gateway/internal/store"

var (
	_ = isHot("workflow ready", store.WorkflowReady, "'{1,2}', '{0,5}'", "inbox.enterprise_id")
	_ = isHot("workflow claim", store.WorkflowClaim, "'{1,2}', '{0,5}', 256", "inbox.enterprise_id")
	_ = isHot("workflow take", store.WorkflowTake, "'{1,2}'", "inbox.id")
	_ = isHot("workflow funds", store.WorkflowFunds, "'{1,2}'", "account.id")
	_ = isHot("ledger move", store.LedgerMove, "1, 1, 2, 1, 1", "account.id")
)
