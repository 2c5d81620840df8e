// Package supplier sends to the suppliers: a pool of connections per channel, the dispatch barrier over all channels, and
// the adoption of what dead nodes left.
//
// A command goes out in this order (data §1.3): source → place in the event queue → rate token → window slot on the
// connection with the least in flight → barrier → one write. The barrier is one goroutine over all channels and marks the
// rows dispatched in PostgreSQL; only what it returns is written, and nothing waits between its answer and the write, so
// that a submitId reaches a connection at most once ever (architecture P2).
//
// States of a connection:
//
//	closed → connecting → warming → active ⇄ cooling
//	any of them → draining → closed
//
// A warming connection takes a window that grows to the whole one. A cooling one takes no submits: its last answers timed
// out, or its last logins failed. A draining one waits for its answers and says TERMINATE.
//
// States of a channel: waiting (its lease is held by another process), refused (a setting out of range or over the
// contract; the gateway lives on), open, closing.
//
// Goroutines: [Manager.Run] starts and waits for the barrier, the adopter, and per channel a dispatcher, a source and its
// connections; a connection is one goroutine and its session's. Stopping takes the pools down first, each connection after
// its answers or the drain time, then the barrier, then the leases.
//
// It imports cmpp, config, event, message, outbox, session, settings, sms and store.
package supplier
