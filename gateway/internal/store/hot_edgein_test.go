package store_test

import "cmppgateway/gateway/internal/store"

var (
	_ = isHot("inbound insert", store.InboundInsert, `'{1}','{1}','{1}','{1}','{null}','{1}','{1}','{1}','{1}','{1}','{1}','{1}','{1}','{x}','{x}','{x}','{x}', 1, '{null}'`)
	_ = isHot("inbound compare", store.InboundCompare, `'{1,2}'`, "inbox.id")
	_ = isHot("inbound processed", store.InboundProcessed, `'{1}', '{1}', '{1}', 1`, "message.msg_id", "message_segment.msg_id", "segment_wait.id", "scheduled.app_id")
	_ = isHot("inbound remove", store.InboundRemove, `'{1,2}'`, "inbox.id")
	_ = isHot("inbound backlog", store.InboundBacklog, `'{1,2}', '{10,10}'`, "inbox.enterprise_id")
	_ = isHot("delivery claim", store.DeliveryClaim, `'{1,2}', 7, '{0,0}', 1, '30 s', '{10,10}', '60 s'`, "delivery.app_id", "delivery.id", "node_lease.node")
	_ = isHot("delivery ack", store.DeliveryAck, `'{1,2}'`, "delivery.id")
	_ = isHot("delivery back", store.DeliveryBack, `'{1,2}', '{7,7}', '{1,0}', '{0,1000}'`, "delivery.id")
	_ = isHot("delivery dead", store.DeliveryDead, `'{1,2}', '{7,7}', '{a,b}'`, "delivery.id")
	_ = isHot("delivery shed", store.DeliveryShed, `1, 1000, 200`, "delivery.app_id", "delivery.id")
	_ = isHot("delivery expire", store.DeliveryExpire, `1000, 200, '72 h'`, "delivery.id")
)
