package store_test

import "cmppgateway/gateway/internal/store"

// Statements of callback and settlement, once per batch of events or page of a sweep.
var (
	_ = isHot("results", store.SettlementResults, "'{1,2}'", "submit_outbox.id")
	_ = isHot("late answers", store.SettlementLate, "'{1,2}', first_id(0), first_id(1), '{2,3}', '{0,8}', '{5,0}', '{null,null}'", "submit.id")
	_ = isHot("submits", store.SettlementSubmits, "'{1,2}', first_id(0), first_id(1)", "submit.id")
	_ = isHot("lock messages", store.SettlementMessages, "'{1,2}', first_id(0), first_id(1)", "message.id")
	_ = isHot("move messages", store.SettlementMove,
		"'{1,2}', first_id(0), first_id(1), 1, 1, 2, 2, 9, 0, 1, 0, 1, 0, 0, '', false", "message.id")
	_ = isHot("parts", store.SettlementPart, "'{1,2}', first_id(0), first_id(1), 'a'", "submit.id")
	_ = isHot("ready shards", store.SettlementCursorReady, "", "receipt.shard", "receipt_cursor.shard")
	_ = isHot("receipts", store.SettlementReceipts, "1, 256", "receipt.shard", "receipt_cursor.shard")
	_ = isHot("match", store.SettlementMatch, "'{1,2}', first_id(0)", "submit.supplier_msg_id")
	_ = isHot("match alias", store.SettlementMatchAlias, "'{1,2}'", "submit_alias.supplier_msg_id")
	_ = isHot("move cursor", store.SettlementCursorMove, "1, 2", "receipt_cursor.shard")
	_ = isHot("parked", store.SettlementParked, "200", "receipt_parked.next_try_at")
	_ = isHot("parked later", store.SettlementParkedLater, "'{1,2}', 500, 1", "receipt_parked.event_id")
	_ = isHot("parked same", store.SettlementParkedSame, "'{1,2}'", "receipt_parked.supplier_msg_id")
	_ = isHot("nudge parked", store.SettlementParkedNudge, "'{1,2}'", "receipt_parked.supplier_msg_id", "receipt_parked.event_id")
	_ = isHot("hold parked", store.SettlementParkedHold, "'{1,2}'", "receipt_parked.event_id")
	_ = isHot("refused parts", store.SettlementRefused, "'{1,2}'", "part_refused.message_id")
	_ = isHot("refused parts go on", store.SettlementRefusedDrop, "'{1,2}', 2", "part_refused.message_id")
	_ = isHot("rivals of unknown", store.SettlementRivals, "'{13800000001,13800000002}', now()", "message.phone")
	_ = isHot("parked drop", store.SettlementParkedDrop, "'{1,2}'", "receipt_parked.event_id")
	_ = isHot("find unknown", store.SettlementUnknownFind, "'{1,1}', '{13800000001,13800000002}'", "unknown_submit.supplier_account")
	_ = isHot("withdraw", store.SettlementWithdraw, "'{1,2}'", "submit_outbox.id")
	_ = isHot("hold stale", store.SettlementStale, "'{1,2}', '{1,1}', '{now,now}'", "submit_outbox.id")
	_ = isHot("page of the queue", store.SettlementOutboxPage, "1, 1000, first_id(-8)", "submit_outbox.id", "message.id", "node_lease.node")
	_ = isHot("channels of the queue", store.SettlementChannels, "", "submit_outbox.channel_id")
	_ = isHot("page of a channel", store.SettlementReroutePage, "1, 0::smallint, 0, 200, first_id(-8)", "submit_outbox.channel_id", "message.id")
	_ = isHot("page of messages", store.SettlementOverduePage, "first_id(0), first_id(1), 1000", "message.id")
)
