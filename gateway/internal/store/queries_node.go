package store

import _ "embed" // SQL

// Statements of the node lease and of the partition keeper.
var (
	//go:embed queries/partition_ensure.sql
	PartitionEnsure string
	//go:embed queries/partition_missing.sql
	PartitionMissing string
	//go:embed queries/node_lock.sql
	NodeLock string
	//go:embed queries/node_free.sql
	NodeFree string
	//go:embed queries/node_new.sql
	NodeNew string
	//go:embed queries/node_take.sql
	NodeTake string
	//go:embed queries/node_processes.sql
	NodeProcesses string
	//go:embed queries/node_bury.sql
	NodeBury string
	//go:embed queries/node_renew.sql
	NodeRenew string
	//go:embed queries/node_dead.sql
	NodeDead string
	//go:embed queries/node_dispatched.sql
	NodeDispatched string
	//go:embed queries/node_free_up.sql
	NodeFreeUp string
	//go:embed queries/node_leave.sql
	NodeLeave string
)
