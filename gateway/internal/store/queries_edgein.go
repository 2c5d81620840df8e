package store

import _ "embed"

// Statements of inbound (data T1).
var (
	//go:embed queries/inbound_insert.sql
	InboundInsert string
	//go:embed queries/inbound_compare.sql
	InboundCompare string
	//go:embed queries/inbound_processed.sql
	InboundProcessed string
	//go:embed queries/inbound_remove.sql
	InboundRemove string
	//go:embed queries/inbound_backlog.sql
	InboundBacklog string
)

// Statements of delivery (data T7, T8).
var (
	//go:embed queries/delivery_claim.sql
	DeliveryClaim string
	//go:embed queries/delivery_ack.sql
	DeliveryAck string
	//go:embed queries/delivery_back.sql
	DeliveryBack string
	//go:embed queries/delivery_dead.sql
	DeliveryDead string
	//go:embed queries/delivery_expire.sql
	DeliveryExpire string
	//go:embed queries/delivery_free.sql
	DeliveryFree string
	//go:embed queries/delivery_shed.sql
	DeliveryShed string
	//go:embed queries/delivery_waiting.sql
	DeliveryWaiting string
)
