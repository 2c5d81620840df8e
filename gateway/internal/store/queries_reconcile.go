package store

import _ "embed"

// Statements of the reconciliation with suppliers' statements.
var (
	//go:embed queries/reconcile_format.sql
	ReconcileFormat string
	//go:embed queries/reconcile_format_set.sql
	ReconcileFormatSet string
	//go:embed queries/reconcile_save.sql
	ReconcileSave string
	//go:embed queries/reconcile_drop.sql
	ReconcileDrop string
	//go:embed queries/reconcile_cell.sql
	ReconcileCell string
	//go:embed queries/reconcile_kind.sql
	ReconcileKind string
	//go:embed queries/reconcile_difference.sql
	ReconcileDifference string
	//go:embed queries/reconcile_list.sql
	ReconcileList string
	//go:embed queries/reconcile_find.sql
	ReconcileFind string
	//go:embed queries/reconcile_cells.sql
	ReconcileCells string
	//go:embed queries/reconcile_kinds.sql
	ReconcileKinds string
	//go:embed queries/reconcile_differences.sql
	ReconcileDifferences string
	//go:embed queries/reconcile_ratios.sql
	ReconcileRatios string
)

// The comparison itself runs on a temporary table of its transaction, so neither can be prepared against the schema.
var (
	//go:embed queries/temporary/reconcile_theirs.sql
	ReconcileTheirs string
	//go:embed queries/temporary/reconcile_compare.sql
	ReconcileCompare string
)
