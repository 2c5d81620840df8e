package store_test

import "cmppgateway/gateway/internal/store"

// Statements of the edge towards the suppliers, once per barrier or pull.
var (
	_ = isHot("outbox pull", store.OutboxPull, "1, 0, 64, first_id(-8), first_id(1), 1, '{}'", "submit_outbox.channel_id", "message.id")
	_ = isHot("barrier", store.SupplierBarrier, "'{1,2,3}', 7, 1", "submit_outbox.id")
	_ = isHot("undispatch", store.SupplierUndispatch, "'{1,2,3}', 1, 7", "submit_outbox.id")
)
