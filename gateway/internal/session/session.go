package session

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"sync"
	"sync/atomic"
	"time"

	"cmppgateway/gateway/cmpp"
)

// lastID numbers the sessions of this process.
var lastID atomic.Uint64

// Session is one logged-in connection. Every method but Run may be called from
// any goroutine at any time, also before Run and after the end.
type Session struct {
	id      uint64
	conn    net.Conn
	cfg     Config
	version cmpp.Version
	server  bool
	attach  any
	log     *slog.Logger
	start   time.Time // instants below are durations since start

	in   *frameReader  // reader only
	seen atomic.Int64  // instant of the last inbound frame; reader writes, keeper reads
	wake chan struct{} // → writer: something is queued
	kick chan struct{} // → keeper: a deadline earlier than the armed one
	done chan struct{} // closed by end

	oddCommand, oddAnswer bool // reader only: already logged

	probing atomic.Bool // probes is not empty

	mu       sync.Mutex
	life     life
	cause    error
	stopping bool // TERMINATE, or our last answer, is queued: no new calls
	window   int
	free     int // free + reserved + len(pending) = window
	reserved int // acquired, not yet sent
	seq      uint32
	pending  map[key]*call
	inFlight callList      // calls with a running timeout, oldest first
	armed    time.Duration // instant the keeper will look at inFlight next
	late     lateTable
	out      outQueue
	onWindow func()
	probes   []chan struct{} // closed by the next frame of the peer
}

// life is the state of a session: fresh → running → over, or fresh → over.
// end sets over; nothing is queued after it.
type life uint8

const (
	fresh life = iota
	running
	over
)

// key names a call of ours. Requests of the peer are never looked up, so that
// both directions may use one number at the same time.
type key uint64

func keyOf(c cmpp.Command, seq uint32) key { return key(c)<<32 | key(seq) }

func (k key) sequence() uint32 { return uint32(k & 0xFFFFFFFF) }

func newSession(conn net.Conn, cfg Config, in *frameReader) *Session {
	return &Session{
		id:      lastID.Add(1),
		conn:    conn,
		cfg:     cfg,
		log:     cfg.Log,
		start:   time.Now(),
		in:      in,
		wake:    make(chan struct{}, 1),
		kick:    make(chan struct{}, 1),
		done:    make(chan struct{}),
		window:  cfg.Window,
		free:    cfg.Window,
		pending: make(map[key]*call, cfg.Window),
	}
}

func (s *Session) now() time.Duration { return time.Since(s.start) }

// ID is unique among the sessions of this process.
func (s *Session) ID() uint64 { return s.id }

// Version is the layout both sides use, fixed at the handshake.
func (s *Session) Version() cmpp.Version { return s.version }

// Attach returns Welcome.Attach; nil on the client side.
func (s *Session) Attach() any { return s.attach }

// RemoteAddr is the peer's address.
func (s *Session) RemoteAddr() net.Addr { return s.conn.RemoteAddr() }

// Done is closed when the session begins to end; no frame is accepted for
// writing from then on. Outcomes may still follow: Run returns after the last.
func (s *Session) Done() <-chan struct{} { return s.done }

// Cause says why the session ended; nil while it lives.
func (s *Session) Cause() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.cause
}

// Close cuts the connection at once. Only the first cause is kept; nil means ErrClosed.
func (s *Session) Close(cause error) {
	ranNever := s.end(cause)
	_ = s.conn.Close() // the cause is what matters; a second close fails by design
	if ranNever {
		s.settle()
	}
}

// end moves the session to its last state without touching the connection. It
// reports whether Run was never called, in which case nobody else will settle.
func (s *Session) end(cause error) (ranNever bool) {
	if cause == nil {
		cause = ErrClosed
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.life == over {
		return false
	}
	ranNever = s.life == fresh
	s.life = over
	s.cause = cause
	close(s.done)
	return ranNever
}

// Run works the connection until it is over and then completes every pending
// call. It must be called once. A cancelled ctx sends TERMINATE, waits for the
// answer and closes; Run then returns nil, otherwise the cause of the end.
func (s *Session) Run(ctx context.Context, h Handler) error {
	s.mu.Lock()
	switch s.life {
	case fresh:
		s.life = running
	case running:
		s.mu.Unlock()
		return errors.New("session: Run called twice")
	case over:
		defer s.mu.Unlock()
		return s.cause
	}
	s.mu.Unlock()
	s.seen.Store(int64(s.now()))

	var children sync.WaitGroup
	children.Go(func() { s.read(h) })
	children.Go(s.write)
	s.keep(ctx)
	children.Wait()
	_ = s.conn.Close() // already closed unless the end was agreed with the peer
	s.settle()
	if cause := s.Cause(); !errors.Is(cause, ErrStopped) {
		return cause
	}
	return nil
}

// settle tells every call and every reply left over that the session has ended.
// The writer is gone, so no call is in the state writing any more.
func (s *Session) settle() {
	s.mu.Lock()
	calls := make([]*call, 0, len(s.pending))
	for _, c := range s.pending {
		calls = append(calls, c)
	}
	clear(s.pending)
	s.inFlight = callList{}
	s.free += len(calls)
	s.late = lateTable{}
	left := s.out.take()
	notify := s.onWindow
	s.mu.Unlock()

	for _, c := range calls {
		o := Outcome{Token: c.token, Sequence: c.key.sequence(), Err: ErrNotSent}
		if c.state == inFlight {
			o.Err, o.Sent = ErrClosed, true
		}
		c.state = finished
		s.tell(c, o)
	}
	for _, f := range left.frames {
		if f.written != nil {
			s.tellWritten(f.written, ErrNotSent)
		}
	}
	if len(calls) > 0 {
		s.signal(notify)
	}
}

// Free is how many slots Acquire would grant now; 0 once the session stops.
func (s *Session) Free() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.grantable()
}

// InFlight is how many calls wait for their outcome, the queued ones included.
func (s *Session) InFlight() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.pending)
}

func (s *Session) grantable() int {
	if s.life == over || s.stopping {
		return 0
	}
	return s.free
}

// Acquire reserves up to n slots and returns how many. It never waits. Each slot
// is spent by one call of Send or given back by Release.
func (s *Session) Acquire(n int) int {
	s.mu.Lock()
	defer s.mu.Unlock()
	n = max(0, min(n, s.grantable()))
	s.free -= n
	s.reserved += n
	return n
}

// Release gives back n slots acquired and not spent. It does not call the
// OnWindow function: the caller who found nothing to send would be woken for nothing.
func (s *Session) Release(n int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	n = max(0, min(n, s.reserved))
	s.free += n
	s.reserved -= n
}

// OnWindow sets the function called, without blocking, whenever outcomes have
// freed slots. There is one; nil removes it.
func (s *Session) OnWindow(f func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.onWindow = f
}

// Send queues all calls as one run of octets for one write and returns. Slots
// for them must have been acquired. Every call's Done is called exactly once
// whatever Send returns; an error only says why some ended with ErrNotSent at
// once, in which case their Done has run before Send returned.
func (s *Session) Send(calls []Call) error {
	refused, err := s.enqueueAll(calls)
	for _, r := range refused {
		s.tell(&call{done: r.call.Done}, Outcome{Token: r.call.Token, Err: r.err})
	}
	return err
}

// refusal is a call that did not enter the out queue.
type refusal struct {
	call *Call
	err  error
}

func (s *Session) enqueueAll(calls []Call) (refused []refusal, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case len(calls) > s.reserved: // their slots do not exist, so none is given back
		err = ErrWindow
	case s.life == over || s.stopping:
		err = ErrClosed
		s.reserved -= len(calls)
		s.free += len(calls)
	default:
		batch := make([]call, len(calls))
		for i := range calls {
			if fault := s.enqueue(&batch[i], &calls[i]); fault != nil {
				err = fmt.Errorf("%w: %w", ErrNotSent, fault)
				refused = append(refused, refusal{&calls[i], err})
			}
		}
		s.reserved -= len(calls)
		s.free += len(refused)
		poke(s.wake)
		return refused, err
	}
	for i := range calls {
		refused = append(refused, refusal{&calls[i], ErrNotSent})
	}
	return refused, err
}

// enqueue encodes one call at the end of the out queue and registers it. mu is held.
func (s *Session) enqueue(c *call, from *Call) error {
	if from.PDU == nil {
		return errors.New("session: call without a PDU")
	}
	command := from.PDU.Command()
	if command.IsResponse() {
		return fmt.Errorf("session: %v is not a request", command)
	}
	k := s.nextKey(command)
	if err := s.out.append(frame{call: c}, from.PDU, s.version, k.sequence()); err != nil {
		return err
	}
	c.key, c.token, c.done = k, from.Token, from.Done
	s.pending[k] = c
	return nil
}

// nextKey takes the next number that no outstanding call uses, the timed-out
// ones included. Numbers wrap through the whole range. mu is held.
func (s *Session) nextKey(command cmpp.Command) key {
	for {
		s.seq++
		k := keyOf(command, s.seq)
		if s.pending[k] == nil && !s.late.has(k) {
			return k
		}
	}
}

// Reply queues the answer p to the peer's request number seq. written, which may
// be nil, is called exactly once if Reply returns nil: with nil after the whole
// frame was handed to the kernel, with ErrNotSent when the session ended before.
// Reply returns ErrQueueFull or ErrClosed, or an error of encoding, and then
// written is not called.
func (s *Session) Reply(seq uint32, p cmpp.PDU, written func(err error)) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.life == over {
		return ErrClosed
	}
	if s.out.replies >= s.cfg.OutQueue {
		return ErrQueueFull
	}
	if err := s.out.append(frame{kind: reply, written: written}, p, s.version, seq); err != nil {
		return err
	}
	poke(s.wake)
	return nil
}

// control queues a frame of the session's own.
func (s *Session) control(f frame, p cmpp.PDU, seq uint32) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.life == over {
		return ErrClosed
	}
	if f.kind == control && s.out.controls >= maxControls {
		return ErrSlowPeer
	}
	if err := s.out.append(f, p, s.version, seq); err != nil {
		return err
	}
	s.stopping = s.stopping || f.kind == last
	poke(s.wake)
	return nil
}

// tell hands a call its outcome. A panic in it ends the session.
func (s *Session) tell(c *call, o Outcome) {
	if c.done == nil {
		return
	}
	defer s.contain()
	c.done(o)
}

func (s *Session) tellWritten(written func(error), err error) {
	defer s.contain()
	written(err)
}

func (s *Session) signal(f func()) {
	if f == nil {
		return
	}
	defer s.contain()
	f()
}

// contain is deferred around every callback.
func (s *Session) contain() {
	if v := recover(); v != nil {
		s.Close(newPanicError(v))
	}
}

// poke wakes the receiver of a channel of capacity one.
func poke(c chan<- struct{}) {
	select {
	case c <- struct{}{}:
	default:
	}
}
