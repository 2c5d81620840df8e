// Package session runs one CMPP connection, in either role: handshake, window,
// sequence matching, link tests and the end of the link. It knows nothing of
// customers, suppliers, queues or stores, and imports gateway/cmpp only.
//
// # Goroutines
//
// [Login] and [Accept] start none. [Session.Run] starts two and is the third:
//
//	reader   reads frames, answers ACTIVE_TEST and TERMINATE, matches answers,
//	         calls the Handler; never waits for anything but octets
//	writer   takes everything queued since its last write and hands it to the
//	         kernel in ONE Write, then sorts the frames by the octets taken
//	keeper   Run itself: response timeouts, link tests, graceful stop; one timer
//
// Run returns when both children have, the connection is closed, and every call
// and every queued reply has been told its outcome.
//
// # Ownership
//
// One mutex guards the window, the pending table and the out queue; it is held
// for short, non-blocking stretches only and never while a callback runs.
// Callbacks (Handler methods, Call.Done, the written function of a reply,
// OnWindow) run on the session's goroutines and must not block; a panic in one
// ends this session with a [PanicError] and harms no other.
//
// # Life of a call
//
//	queued ──▶ writing ──▶ in flight ──▶ over
//	  │           │             │
//	  │           │             ├─ answer   Resp
//	  │           │             ├─ timeout  ErrTimeout, Sent; the token is kept for a late answer
//	  │           │             └─ close    ErrClosed,  Sent
//	  │           └─ the kernel did not take the whole frame: ErrNotSent, the link is closed
//	  └─ close: ErrNotSent
//
// A frame wholly inside the octets taken by the kernel may have reached the peer
// (Sent); any other frame cannot have been understood by it (data §1, problem 3).
// This holds for connections whose Write reports what was really taken, so no
// buffering writer may sit between the session and the socket.
//
// # Bounds
//
//	calls outstanding    Config.Window; Acquire grants no more
//	replies queued       Config.OutQueue; Reply returns ErrQueueFull
//	link-test answers    1,024 queued; beyond, the peer does not read: ErrSlowPeer, closed
//	one write            Config.WriteTimeout; beyond, closed
//	one frame            Config.MaxFrame octets, Config.FrameTimeout from its first octet; beyond, closed
//	probes waiting       one for each caller of Probe; they share one ACTIVE_TEST
//	timed-out calls      65,536 are remembered; beyond, the oldest is forgotten
//
// # Stop
//
// Cancelling Run's context sends TERMINATE, waits at most five seconds for its
// answer and closes. Close cuts at once.
package session
