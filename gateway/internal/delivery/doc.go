// Package delivery brings receipts and uplinks to the customers' live connections (architecture §2 P7, §3.8; data §1.12,
// §1.19, T7, T8; capacity-plan §13).
//
// # Life of a row
//
//	pending ──claim, lease──▶ claimed ──DELIVER──▶ in flight ──DELIVER_RESP 0──▶ gone (DELETE by id)
//	   ▲                        │                      │
//	   ├─ released, no budget ──┤ parked until the     ├─ session lost: released, no budget
//	   │                        │ SUBMIT_RESP is written
//	   ├─ retry, later ─────────┼──────────────────────┼─ other result, or none within AckTimeout
//	   ├─ lease over ───────────┴──────────────────────┘
//	   └─ after AttemptsMax tries, or KeepMax: dead_letter
//
// One claim statement serves all live applications, each with as many rows as its connections have free slots, so a
// customer who does not answer takes slots of his own only. Releasing and retrying are bound to the claim; an
// acknowledgement deletes the row whatever its claim. The Msg_Id of a DELIVER is the row's id in all tries.
//
// Until AcceptHold has passed since the SUBMIT, only the node that accepted it claims its receipt, because only that node
// knows whether its SUBMIT_RESP is written. A node that was stopped, or that others have begun to adopt, holds nothing.
//
// # When rows are claimed
//
// One claim at a time in a process. A login claims at once. A SUBMIT_RESP that was written, or will never be, gives back the
// receipts that were parked for it, and claims after Merge. A nudge (a receipt was created) claims when Merge has passed
// without another nudge, or MergeCap since the first. While a claim found as many rows as there was room, the next one
// follows when half of the customer's window is free, or after Merge. Every Sweep, and after a retry's delay, all live
// applications are claimed for from the beginning of their queues.
//
// # Bounds
//
//	rows in flight      the windows of the live connections
//	one claim           512 rows
//	tries               AttemptsMax, at 1 s, 2 s, 4 s … 1 min; then dead_letter
//	age                 KeepMax; then dead_letter
//	one application     BacklogMax rows; the oldest go to dead_letter
//	parked              SUBMITs whose answers wait to be written
//
// # Goroutines and stop
//
// Run is the claimer, and starts and waits for two: the finisher that writes outcomes, and the keeper that counts what
// waits and keeps to BacklogMax. Cancelling its context ends claiming;
// outcomes are taken for up to two seconds more and written. What is left keeps its claim until the node number is given
// back or adopted, or the lease ends.
//
// It imports cmpp, config, session, store and the topic names of workflow.
package delivery
