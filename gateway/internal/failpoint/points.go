package failpoint

// The points.
const (
	AfterInboxCommit    = "after_inbox_commit"    // the SUBMIT is durable, SUBMIT_RESP is not written
	AfterWorkflowCommit = "after_workflow_commit" // messages and commands are durable, no edge was told
	BetweenHints        = "between_hints"         // some channels of a batch were hinted
	AfterBarrier        = "after_barrier"         // rows are dispatched, nothing is written
	MidWrite            = "mid_write"             // half of a frame is in the supplier's hands
	BeforeResultCopy    = "before_result_copy"    // SUBMIT_RESP is read, its event nowhere yet
	AfterReceiptCopy    = "after_receipt_copy"    // the receipt is in Redis, DELIVER is not answered
	AfterCallbackCommit = "after_callback_commit" // events are applied, the edge does not know
	AfterDeliver        = "after_deliver"         // DELIVER is written to the customer, no DELIVER_RESP read
)

// Points lists them all.
var Points = []string{
	AfterInboxCommit, AfterWorkflowCommit, BetweenHints, AfterBarrier, MidWrite, BeforeResultCopy, AfterReceiptCopy, AfterCallbackCommit, AfterDeliver,
}
