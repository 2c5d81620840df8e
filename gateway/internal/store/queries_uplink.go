package store

import _ "embed" // SQL

// Statements of uplinks: from the queue to the customers, and the list of those that are nobody's.
var (
	//go:embed queries/uplink_counts.sql
	UplinkCounts string
	//go:embed queries/uplink_delivery.sql
	UplinkDelivery string
	//go:embed queries/uplink_discard.sql
	UplinkDiscard string
	//go:embed queries/uplink_due.sql
	UplinkDue string
	//go:embed queries/uplink_find.sql
	UplinkFind string
	//go:embed queries/uplink_list.sql
	UplinkList string
	//go:embed queries/uplink_now.sql
	UplinkNow string
	//go:embed queries/uplink_opt_out.sql
	UplinkOptOut string
	//go:embed queries/uplink_outcome.sql
	UplinkOutcome string
	//go:embed queries/uplink_pick.sql
	UplinkPick string
	//go:embed queries/uplink_read.sql
	UplinkRead string
	//go:embed queries/uplink_rematch.sql
	UplinkRematch string
	//go:embed queries/uplink_segment.sql
	UplinkSegment string
	//go:embed queries/uplink_segment_bury.sql
	UplinkSegmentBury string
	//go:embed queries/uplink_segment_leave.sql
	UplinkSegmentLeave string
	//go:embed queries/uplink_senders.sql
	UplinkSenders string
	//go:embed queries/uplink_take.sql
	UplinkTake string
	//go:embed queries/uplink_trim.sql
	UplinkTrim string
	//go:embed queries/uplink_trim_keys.sql
	UplinkTrimKeys string
	//go:embed queries/uplink_trim_unmatched.sql
	UplinkTrimUnmatched string
	//go:embed queries/uplink_unmatched.sql
	UplinkUnmatched string
	//go:embed queries/uplink_waiting.sql
	UplinkWaiting string
)
