// Package settlement decides what supplier results and receipts mean for messages and money (architecture §3.7 and §4,
// data §1.4, §1.9, §1.14–§1.18, T4, T6, tables 2.1 and 2.2).
//
// Every transaction here has one form: lock the messages it is about, in ascending order; decide in Go, message by message;
// write what was decided, in the global lock order, the accounts last. Idempotence comes from guarded transitions, never
// from remembered ids: an event that moves nothing changes nothing.
//
//   - [ApplyResults] settles submit results, for package callback.
//   - [Settlement.Run] settles the log of receipts, tries parked receipts again and binds them to unknown submits, and
//     sweeps the waiting places: commands that expired, whose channel is gone, or whose answer is overdue; messages whose
//     receipt is overdue.
//   - [ListUnknown] and [ResolveUnknown] close unknown submits by a supplier's statement.
//
// Goroutines: three inside Run, which waits for them; each finishes the transaction it is in. Several processes may run it:
// advisory locks divide the work. Imports cmpp, config, event (types), ledger, message, outbox (commands), routing, settings
// and store.
package settlement
