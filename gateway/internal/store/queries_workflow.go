package store

import _ "embed"

// Workflow statements (data T2).
var (
	//go:embed queries/workflow_ready.sql
	WorkflowReady string
	//go:embed queries/workflow_owners.sql
	WorkflowOwners string
	//go:embed queries/workflow_lock.sql
	WorkflowLock string
	//go:embed queries/workflow_claim.sql
	WorkflowClaim string
	//go:embed queries/workflow_terms.sql
	WorkflowTerms string
	//go:embed queries/workflow_funds.sql
	WorkflowFunds string
	//go:embed queries/workflow_funds_lock.sql
	WorkflowFundsLock string
	//go:embed queries/workflow_take.sql
	WorkflowTake string
	//go:embed queries/workflow_message.sql
	WorkflowMessage string
	//go:embed queries/workflow_submit.sql
	WorkflowSubmit string
	//go:embed queries/workflow_delivery.sql
	WorkflowDelivery string
	//go:embed queries/workflow_dead_letter.sql
	WorkflowDeadLetter string
)
