// Package workflow turns inbox rows into messages and commands, per enterprise, in micro-batches (architecture §3.2,
// data §1.8–§1.11, §1.17, T2; capacity-plan §15).
//
// One batch is one transaction: lock the enterprises (advisory, for the transaction, across processes) → read their
// oldest rows → policy → freeze and route → delete the inbox rows, insert messages, commands and failed receipts, book
// one freeze per enterprise, the accounts last. Enterprises run in parallel, the batches of one enterprise in order;
// several small enterprises share a transaction up to the weight cap. After COMMIT the commands are hinted to the edges.
//
// A batch that fails for good is halved until the row that fails is alone; that row becomes a refused message with
// reason SYSTEM and a dead letter, so that it holds back nobody. A conflict is retried; an outage waits.
//
// Between claim and policy a batch is divided: SUBMITs before their At_Time move to scheduled, segments of long messages to
// segment_wait until the last one comes (package segment decides which belong together); the complete message is one row of
// the batch, and its segments are rows of message_segment. A sweep twice a second gives what is due back to the inbox, and
// ends sets that are never completed. A row whose ends is set (CANCEL, expiry) becomes a message in that state at once.
//
// Goroutines: config.Workflow.Workers workers and the sweep inside Run, which returns when they have; each finishes the
// batch it is in. Imports config, ledger, message, outbox (commands), policy, routing, segment, settings, sms and store.
package workflow
