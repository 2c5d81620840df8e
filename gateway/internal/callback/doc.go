// Package callback is the core's HTTP endpoint for the edges' events (capacity-plan §6, architecture §3.6, data §1.14,
// §1.15, T4, T5).
//
// A batch of 1–100 events is answered event by event. Events are applied by type, in short transactions; one that fails for
// good is found by applying its neighbours one by one, kept as a dead letter, and refused. Offering a batch again, whole or
// in part, changes nothing: the transitions are guarded. Receipts go to one writer that gives them their place in the log.
//
// Error codes of events, a closed list: BAD_EVENT, UNKNOWN_TYPE and INTERNAL are final and come after the dead letter was
// stored; DB_BUSY and TIMEOUT mean that the event is to be offered again.
//
// Goroutines: the HTTP server's, and the receipt writer, both inside Run, which waits for them. When its context is done
// it takes no new requests, answers those it has, and stops the writer last. Imports config, event (types), message,
// outbox, settings, settlement and store.
package callback
