package store_test

import "cmppgateway/gateway/internal/store"

// The walk for commands that waited too long or are stopped, once per page.
var _ = isHot("page of what ended", store.SettlementEndedPage, "1, 1000, '{1,1,1}', '{1}', '{1}', false, first_id(-8)", "submit_outbox.id", "message.id")
