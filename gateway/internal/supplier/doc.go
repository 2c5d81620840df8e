// Package supplier sends to the suppliers: a pool of connections per channel, the dispatch barrier over all channels, and
// the adoption of what dead nodes left.
//
// A command goes out in this order (data §1.3): source → place in the event queue → rate token → window slot on the
// connection with the least in flight → barrier → one write. The barrier is one goroutine over all channels and marks the
// rows dispatched in PostgreSQL; only what it returns is written, so that a submitId reaches a connection at most once ever
// (architecture P2). Between its answer and the write only one thing may wait, for a second at most: what a rate allows no
// more of, because the barrier gave back at once what it had taken one after the other (limit, late).
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
// contract; the gateway lives on), open, stopped (by an operator; its connections stay), closing. Its breaker (closed, open,
// half-open) is for the choice of candidates alone and stops nothing that is queued.
//
// [Manager.Control] is the control entry of a running gateway: six settings of a channel, checked and stored.
//
// Goroutines: [Manager.Run] starts and waits for the barrier, the adopter, the publisher of breakers, and per channel a
// dispatcher, a source, the writer of late flights and its connections; a connection is one goroutine and its session's. Stopping takes the pools down first, each connection after
// its answers or the drain time, then the barrier, then the leases.
//
// It imports cmpp, config, event, message, outbox, session, settings, sms and store.
package supplier
