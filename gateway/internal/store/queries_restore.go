package store

import _ "embed"

// Statements about a database that went back in time.
var (
	//go:embed queries/restore_begin.sql
	RestoreBegin string
	//go:embed queries/restore_look.sql
	RestoreLook string
	//go:embed queries/restore_quarantine.sql
	RestoreQuarantine string
	//go:embed queries/restore_beat.sql
	RestoreBeat string
	//go:embed queries/restore_release.sql
	RestoreRelease string
	//go:embed queries/restore_suspects.sql
	RestoreSuspects string
	//go:embed queries/restore_counts.sql
	RestoreCounts string
)
