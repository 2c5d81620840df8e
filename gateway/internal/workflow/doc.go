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
// Goroutines: config.Workflow.Workers workers inside Run, which returns when they have; each finishes the batch it is
// in. Imports config, ledger, message, outbox (commands), policy, routing, settings, sms and store.
package workflow
