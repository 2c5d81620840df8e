// Package reconcile compares what the gateway recorded of its submits with the daily statement of a supplier: per channel,
// day and carrier, and submit by submit. A line belongs to the submit with its Msg_Id and recipient; what is left is matched
// by Msg_Id alone, then by recipient and time. Differences are listed and stored; unknown submits are closed by the evidence
// (package settlement does that). Nothing else is changed: money follows results and receipts, never a statement.
//
// The comparison is one join in PostgreSQL over a temporary table, so that a day of millions of lines needs no memory here;
// only what has no partner is held, and that is bounded.
package reconcile
