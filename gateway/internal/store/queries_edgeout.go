package store

import _ "embed" // SQL

// Statements of the edge towards the suppliers.
var (
	//go:embed queries/outbox_pull.sql
	OutboxPull string
	//go:embed queries/supplier_barrier.sql
	SupplierBarrier string
	//go:embed queries/supplier_undispatch.sql
	SupplierUndispatch string
	//go:embed queries/supplier_lease.sql
	SupplierLease string
	//go:embed queries/supplier_lease_owner.sql
	SupplierLeaseOwner string
	//go:embed queries/supplier_lease_leave.sql
	SupplierLeaseLeave string
	//go:embed queries/supplier_orphans.sql
	SupplierOrphans string
)
