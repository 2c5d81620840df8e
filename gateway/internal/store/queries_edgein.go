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
