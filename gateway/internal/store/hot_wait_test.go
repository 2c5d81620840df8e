package store_test

import "cmppgateway/gateway/internal/store"

var (
	_ = isHot("scheduled due", store.ScheduledDue, "100", "scheduled.due_at", "scheduled.id")
	_ = isHot("segments that wait", store.SegmentWaiting, "'{1,2}', '{3,4}'", "segment_wait.app_id")
	_ = isHot("segments that leave", store.SegmentLeave, "'{1,2}'", "segment_wait.id")
	_ = isHot("segments that wait longer", store.SegmentDue, "'{1,2}', '{2026-01-01,2026-01-02}'", "segment_wait.id")
	_ = isHot("sets that are due", store.SegmentExpiring, "100", "segment_wait.due_at", "inbox.enterprise_id")
	_ = isHot("segments of messages", store.SegmentPieces, "'{1,2}', first_id(0), first_id(2)", "message_segment.message_id")
	_ = isHot("segments of sent messages", store.SegmentSent, "'{1,2}', 5", "message_segment.set_key")
	_ = isHot("cancel in the inbox", store.EnquiryInbox, "1, 2, 3", "inbox.enterprise_id")
	_ = isHot("cancel of messages", store.EnquiryMessages, "1, 2, 3", "message.msg_id", "message_segment.msg_id", "message.id")
	_ = isHot("pending of messages", store.SettlementPending, "'{1,2}', first_id(0), first_id(2)", "message.id", "submit_outbox.channel_id")
	_ = isHot("what waits", store.InboundWaiting, "'{1,2}', 1001, 100000", "segment_wait.app_id", "scheduled.app_id")
	_ = isHot("messages of repeated segments", store.SegmentTargets, "'{1,2}', first_id(0), first_id(2)", "message.id")
)
