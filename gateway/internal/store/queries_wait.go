package store

import _ "embed" // SQL

// Statements of the places where SUBMITs wait for their time or for the rest of their message.
var (
	//go:embed queries/scheduled_add.sql
	ScheduledAdd string
	//go:embed queries/scheduled_due.sql
	ScheduledDue string
	//go:embed queries/segment_add.sql
	SegmentAdd string
	//go:embed queries/segment_due.sql
	SegmentDue string
	//go:embed queries/segment_expiring.sql
	SegmentExpiring string
	//go:embed queries/segment_leave.sql
	SegmentLeave string
	//go:embed queries/segment_message.sql
	SegmentMessage string
	//go:embed queries/segment_pieces.sql
	SegmentPieces string
	//go:embed queries/segment_recut.sql
	SegmentRecut string
	//go:embed queries/segment_sent.sql
	SegmentSent string
	//go:embed queries/segment_targets.sql
	SegmentTargets string
	//go:embed queries/segment_waiting.sql
	SegmentWaiting string
	//go:embed queries/settings_cutting.sql
	SettingsCutting string
)

// Statements of what customers ask.
var (
	//go:embed queries/enquiry_count.sql
	EnquiryCount string
	//go:embed queries/enquiry_inbox.sql
	EnquiryInbox string
	//go:embed queries/enquiry_lock.sql
	EnquiryLock string
	//go:embed queries/enquiry_mark.sql
	EnquiryMark string
	//go:embed queries/enquiry_messages.sql
	EnquiryMessages string
	//go:embed queries/enquiry_scheduled.sql
	EnquiryScheduled string
	//go:embed queries/enquiry_segments.sql
	EnquirySegments string
	//go:embed queries/enquiry_unset.sql
	EnquiryUnset string
	//go:embed queries/inbound_waiting.sql
	InboundWaiting string
	//go:embed queries/settlement_pending.sql
	SettlementPending string
)
