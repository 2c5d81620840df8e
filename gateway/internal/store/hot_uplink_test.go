package store_test

import "cmppgateway/gateway/internal/store"

var (
	_ = isHot("uplinks that wait", store.UplinkPick, "100", "uplink_queue.pos")
	_ = isHot("uplinks of the queue", store.UplinkRead, "'{1,2}'", "uplink.event_id", "uplink_queue.event_id")
	_ = isHot("segments of uplinks that are due", store.UplinkDue, "100", "uplink_segment.due_at")
	_ = isHot("segments of uplinks under keys", store.UplinkWaiting, "'{1,2}'", "uplink_segment.set_key")
	_ = isHot("uplinks of segments", store.UplinkFind, "'{1,2}'", "uplink.event_id")
	_ = isHot("who wrote to a phone", store.UplinkSenders, "'{13800000001,13800000002}', now() - interval '1 day', first_id(0), first_id(1), 50", "message.phone")
	_ = isHot("uplinks leave the queue", store.UplinkTake, "'{1,2}', 2", "uplink_queue.event_id")
	_ = isHot("outcomes of uplinks", store.UplinkOutcome, "'{1,2}', '{1,1}', '{1,1}', '{0,0}', '{f,f}'", "uplink.event_id")
	_ = isHot("segments of uplinks leave", store.UplinkSegmentLeave, "'{1,2}'", "uplink_segment.event_id")
)
