package sp

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"cmppgateway/simulator/internal/wire"
	"cmppgateway/simulator/simclock"
)

// Config describes one customer account. Zero durations and counts take the
// defaults named.
type Config struct {
	Addr    string // host:port of the gateway
	ID      string // Source_Addr and Msg_src, 1 to 6 octets
	Secret  string
	Version uint8 // 0x20, 0x21 or 0x30; 0 means 0x30
	// Connections kept open; default 1, at most 1024.
	Connections int
	// Window of unanswered SUBMITs per connection; default 16.
	Window int
	// ServiceID of messages that name none.
	ServiceID string
	// MaxOutstanding messages fired and not finished; an arrival beyond it is
	// NotSent. Default 100,000.
	MaxOutstanding int
	// Burst is the most arrivals fired per wake-up of the pacer; default 1000.
	Burst int
	// ResponseTimeout of a SUBMIT; default 60 s.
	ResponseTimeout time.Duration
	// Idle time after which the link is tested; default 30 s. A link that
	// stays silent for three further Idle times is closed.
	Idle time.Duration
	// MinBackoff and MaxBackoff bound the wait before connecting again, which
	// doubles with every failure; default 100 ms and 5 s.
	MinBackoff, MaxBackoff time.Duration
	// Log receives connection events; nil logs nothing.
	Log *slog.Logger
}

func (c Config) withDefaults() Config {
	ints := func(v *int, d int) {
		if *v <= 0 {
			*v = d
		}
	}
	durations := func(v *time.Duration, d time.Duration) {
		if *v <= 0 {
			*v = d
		}
	}
	ints(&c.Connections, 1)
	ints(&c.Window, 16)
	ints(&c.MaxOutstanding, 100_000)
	ints(&c.Burst, 1000)
	durations(&c.ResponseTimeout, time.Minute)
	durations(&c.Idle, 30*time.Second)
	durations(&c.MinBackoff, 100*time.Millisecond)
	durations(&c.MaxBackoff, 5*time.Second)
	if c.Version == 0 {
		c.Version = 0x30
	}
	if c.Log == nil {
		c.Log = slog.New(slog.DiscardHandler)
	}
	return c
}

// Message is one SUBMIT to send.
type Message struct {
	Due        int64    // nanoseconds after the start given to Send
	Key        uint64   // the caller's name for it, kept in the record
	Number     string   // recipient
	Also       []string // further recipients of a group send
	Content    []byte   // encoded; with its header when UDHI is set
	Fmt        uint8
	UDHI       uint8
	PkTotal    uint8 // 0 means 1
	PkNumber   uint8 // 0 means 1
	Registered uint8
	Level      uint8
	SrcID      string
	ServiceID  string // empty means Config.ServiceID
	ValidTime  string
	AtTime     string
	Conn       int    // 0: any connection; n: only the n-th
	Tag        uint16 // what the caller makes of it, kept in the record
}

// perTurn is how many messages a connection gets before it is the next one's
// turn.
const perTurn = 4

// Client is one customer account. Make it with New, keep Run running, and
// Send. All methods may be called concurrently.
type Client struct {
	cfg    Config
	clock  *simclock.Clock
	linkID atomic.Uint64

	mu         sync.Mutex
	links      []*link // by index; nil where there is no live connection
	history    []*link
	turn       int
	waiting    fifo
	pinned     []fifo // by index
	sent       wire.Slab[op]
	receipts   wire.Slab[Receipt]
	uplinks    wire.Slab[Uplink]
	seenID     map[uint64]int // MsgID → receipts
	seenUplink map[uint64]int // DeliverID → uplinks
	refused    []Login
	unexpected int
	counts     Counts
	mute       bool
	slow       throttle
	offline    chan struct{} // not nil while offline; closed to come back
	ended      bool
	waiters    []chan struct{} // closed at the next change
}

// op is a message on record and, until it is done with, the message itself.
type op struct {
	Sent
	msg *Message
}

// fifo is a queue of messages without a slot.
type fifo struct {
	items []*op
	head  int
}

func (f *fifo) len() int { return len(f.items) - f.head }

func (f *fifo) push(o *op) { f.items = append(f.items, o) }

// unshift puts ops in front, in their order.
func (f *fifo) unshift(ops []*op) {
	f.items = slices.Concat(ops, f.items[f.head:])
	f.head = 0
}

func (f *fifo) pop() *op {
	if f.len() == 0 {
		return nil
	}
	o := f.items[f.head]
	f.items[f.head] = nil
	if f.head++; f.head == len(f.items) {
		f.items, f.head = f.items[:0], 0
	} else if f.head > 4096 && f.head > len(f.items)/2 {
		f.items = slices.Delete(f.items, 0, f.head)
		f.head = 0
	}
	return o
}

// New returns a client that is not connected yet.
func New(cfg Config, clock *simclock.Clock) (*Client, error) {
	if len(cfg.ID) == 0 || len(cfg.ID) > 6 {
		return nil, fmt.Errorf("customer id %q must have 1 to 6 octets", cfg.ID)
	}
	if cfg.Connections > 1024 {
		return nil, fmt.Errorf("customer %s: %d connections are more than 1024", cfg.ID, cfg.Connections)
	}
	cfg = cfg.withDefaults()
	return &Client{
		cfg: cfg, clock: clock,
		links: make([]*link, cfg.Connections), pinned: make([]fifo, cfg.Connections),
		seenID: map[uint64]int{}, seenUplink: map[uint64]int{},
	}, nil
}

// Run keeps the connections open, connecting again with backoff, until ctx is
// done. Then it says TERMINATE, waits up to a second for the answers, closes,
// records what still waited as NotSent and returns nil. Call it once.
func (c *Client) Run(ctx context.Context) error {
	var wg sync.WaitGroup
	for i := range c.cfg.Connections {
		wg.Go(func() { c.keep(ctx, i) })
	}
	wg.Wait()
	c.mu.Lock()
	defer c.mu.Unlock()
	c.ended = true
	for o := range c.sent.All() {
		if o.State == Waiting {
			c.drop(o)
		}
	}
	c.changed()
	return nil
}

// keep keeps connection i open.
func (c *Client) keep(ctx context.Context, i int) {
	backoff := c.cfg.MinBackoff
	for ctx.Err() == nil {
		if !c.online(ctx) {
			return
		}
		served, err := c.connect(ctx, i)
		if served {
			backoff = c.cfg.MinBackoff
		} else {
			c.mu.Lock()
			login := Login{At: c.clock.Now(), Index: i, Reason: err.Error()}
			if refused, ok := errors.AsType[*statusError](err); ok {
				login.Status = refused.status
			}
			c.refused = append(c.refused, login)
			c.mu.Unlock()
		}
		timer := time.NewTimer(backoff)
		select {
		case <-timer.C:
		case <-ctx.Done():
			timer.Stop()
		}
		if !served {
			backoff = min(2*backoff, c.cfg.MaxBackoff)
		}
	}
}

// online waits while the client is offline.
func (c *Client) online(ctx context.Context) bool {
	for {
		c.mu.Lock()
		offline := c.offline
		c.mu.Unlock()
		if offline == nil {
			return ctx.Err() == nil
		}
		select {
		case <-offline:
		case <-ctx.Done():
			return false
		}
	}
}

// Send fires every message when it is due, start being the clock's reading that
// Due counts from, and returns when the last was fired; it does not wait for
// answers, see Drain. The messages must be sorted by Due and belong to the
// client until Drain. When ctx ends first, the rest are recorded as NotSent
// and its error is returned.
func (c *Client) Send(ctx context.Context, messages []Message, start int64) error {
	due := make([]int64, len(messages))
	for i := range messages {
		due[i] = start + messages[i].Due
	}
	if !slices.IsSorted(due) {
		return errors.New("send: messages are not sorted by due time")
	}
	pacer := NewPacer(due, c.cfg.Burst)
	timer := time.NewTimer(0)
	defer timer.Stop()
	for {
		next, ok := pacer.Next()
		if !ok {
			return nil
		}
		timer.Reset(c.clock.Until(next))
		select {
		case <-timer.C:
		case <-ctx.Done():
			c.mu.Lock()
			for from := pacer.at; from < len(messages); from++ {
				c.drop(c.record(&messages[from], due[from], 0))
			}
			c.mu.Unlock()
			return fmt.Errorf("send: %w", context.Cause(ctx))
		}
		now := c.clock.Now()
		from, to := pacer.Release(now)
		c.fire(messages[from:to], due[from:to], now)
	}
}

// fire enters messages that are due and gives slots to as many as can have one.
func (c *Client) fire(messages []Message, due []int64, now int64) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for i := range messages {
		m := &messages[i]
		o := c.record(m, due[i], now)
		switch {
		case c.ended || c.counts.Waiting+c.counts.InFlight > c.cfg.MaxOutstanding:
			c.drop(o)
		case m.Conn > 0:
			c.pinned[(m.Conn-1)%len(c.pinned)].push(o)
		default:
			c.waiting.push(o)
		}
	}
	for i := range c.pinned {
		if l := c.links[i]; l != nil {
			l.fill(&c.pinned[i], now)
		}
	}
	// A few messages per connection in turn: the connections share the load,
	// and what is due together still leaves in few writes.
	for idle := 0; c.waiting.len() > 0 && idle < len(c.links); c.turn++ {
		l := c.links[c.turn%len(c.links)]
		if l == nil || l.slots() == 0 {
			idle++
			continue
		}
		idle = 0
		for n := min(perTurn, l.slots(), c.waiting.len()); n > 0; n-- {
			l.take(c.waiting.pop(), now)
		}
	}
	for _, l := range c.links {
		if l != nil && len(l.out) > 0 {
			l.signal()
		}
	}
}

func (c *Client) record(m *Message, due, fire int64) *op {
	o := c.sent.Add()
	o.msg = m
	o.Sent = Sent{
		Key: m.Key, Tag: m.Tag, Number: m.Number, Also: m.Also, Count: 1 + len(m.Also), SrcID: m.SrcID, Registered: m.Registered,
		Due: due, Fire: fire,
	}
	text := m.Content
	if concat, ok := wire.DecodeConcat(m.UDHI, m.Content); ok {
		o.Concat = Concat(concat)
		text = wire.Text(m.UDHI, m.Content)
		o.Text = text
	}
	o.Hash = wire.Hash(text)
	c.counts.Fired++
	c.counts.Waiting++
	return o
}

// move changes the state of o and the counters with it.
func (c *Client) move(o *op, to State) {
	if n := c.counter(o.State); n != nil {
		*n--
	}
	if n := c.counter(to); n != nil {
		*n++
	}
	o.State = to
	if to != Waiting && to != InFlight {
		o.msg = nil
	}
	c.changed()
}

func (c *Client) counter(s State) *int {
	switch s {
	case Waiting:
		return &c.counts.Waiting
	case InFlight:
		return &c.counts.InFlight
	case Answered:
		return &c.counts.Answered
	case TimedOut:
		return &c.counts.TimedOut
	case Unanswered:
		return &c.counts.Unanswered
	case NotSent:
		return &c.counts.NotSent
	}
	return nil
}

func (c *Client) drop(o *op) { c.move(o, NotSent) }

func (c *Client) live() int {
	n := 0
	for _, l := range c.links {
		if l != nil {
			n++
		}
	}
	return n
}

// changed wakes everyone in Wait.
func (c *Client) changed() {
	for _, w := range c.waiters {
		close(w)
	}
	c.waiters = nil
}

// Wait returns when done says so. It is asked at once and after every change
// of the counts, and must not call the client.
func (c *Client) Wait(ctx context.Context, done func(Counts) bool) error {
	for {
		c.mu.Lock()
		n := c.counts
		n.Live = c.live()
		if done(n) {
			c.mu.Unlock()
			return nil
		}
		w := make(chan struct{})
		c.waiters = append(c.waiters, w)
		c.mu.Unlock()
		select {
		case <-w:
		case <-ctx.Done():
			return fmt.Errorf("customer %s: %w, having %+v", c.cfg.ID, context.Cause(ctx), n)
		}
	}
}

// Ready waits until n connections are logged in.
func (c *Client) Ready(ctx context.Context, n int) error {
	return c.Wait(ctx, func(have Counts) bool { return have.Live >= n })
}

// Drain waits until no message waits for a slot or for an answer. It says
// nothing about receipts.
func (c *Client) Drain(ctx context.Context) error {
	return c.Wait(ctx, func(have Counts) bool { return have.Waiting+have.InFlight == 0 })
}

// SetMute leaves DELIVERs unanswered while on; they are still recorded.
func (c *Client) SetMute(on bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.mute = on
}

// SetOffline closes every connection and stays away while on.
func (c *Client) SetOffline(on bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	switch {
	case on && c.offline == nil:
		c.offline = make(chan struct{})
		for _, l := range c.links {
			if l != nil {
				l.terminate()
			}
		}
	case !on && c.offline != nil:
		close(c.offline)
		c.offline = nil
	}
}

// SetSlow reads at most rate octets a second on every connection: 0 reads what
// comes again, a negative rate nothing at all, so that the gateway's writes to
// this customer stand still.
func (c *Client) SetSlow(rate int) { c.slow.set(max(rate, stopReading)) }

// CutAll cuts every live connection, see Cut, and returns how many there were:
// a customer that is told to connect anew all at once.
func (c *Client) CutAll(reset bool) int {
	n := 0
	for i := range c.links {
		if c.Cut(i, reset) {
			n++
		}
	}
	return n
}

// Cut closes the live connection with the index (from 0), by reset or by an
// orderly close; false when there is none. What is unanswered on it is
// Unanswered; the client connects again.
func (c *Client) Cut(index int, reset bool) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if index < 0 || index >= len(c.links) || c.links[index] == nil {
		return false
	}
	l := c.links[index]
	if tcp, ok := l.sock.(interface{ SetLinger(sec int) error }); ok && reset {
		_ = tcp.SetLinger(0)
	}
	l.detach("cut")
	l.shut()
	return true
}
