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
