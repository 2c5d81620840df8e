package outbox

import (
	"context"
	_ "embed" // scripts
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"sync"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/redis/go-redis/v9"

	"cmppgateway/gateway/internal/config"
	"cmppgateway/gateway/internal/message"
	"cmppgateway/gateway/internal/store"
)

//go:embed take.lua
var takeSource string

var takeScript = redis.NewScript(takeSource)

const (
	lanes       = int(message.Marketing) + 1
	boundMin    = 64                    // commands kept per lane, however small the window
	floorMargin = 2 * time.Second       // commits arrive out of order by less than this (data §1.12)
	unwellPull  = 50 * time.Millisecond // between pulls while Redis gives no hints
	unwellRetry = time.Second           // between attempts at a Redis that failed
	pullTimeout = 5 * time.Second       // of one pull; the next one repeats it
	pullRetry   = 50 * time.Millisecond // after a pull that failed; doubles up to Config.Pull
	messageAge  = 8 * 24 * time.Hour    // oldest message a pending row may belong to: leaves are kept this long
	messageSkew = 24 * time.Hour        // and the newest, by clocks that differ
)

// Metrics of all sources of a process.
type Metrics struct {
	publish prometheus.Observer
	taken   *prometheus.CounterVec
	dropped prometheus.Counter
}

// NewMetrics registers on reg.
func NewMetrics(reg prometheus.Registerer) *Metrics {
	publish := prometheus.NewHistogram(prometheus.HistogramOpts{
		Name: "cmppgw_outbox_publish_seconds", Help: "From the issue of a submitId to its arrival at the edge.",
		Buckets: prometheus.ExponentialBuckets(0.0005, 2, 16),
	})
	m := &Metrics{
		publish: publish,
		taken: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "cmppgw_outbox_taken_total", Help: "Commands queued at the edge, by where they came from.",
		}, []string{"from"}),
		dropped: prometheus.NewCounter(prometheus.CounterOpts{
			Name: "cmppgw_outbox_dropped_total", Help: "Hinted commands left to the pull because the lane was full.",
		}),
	}
	reg.MustRegister(publish, m.taken, m.dropped)
	return m
}

// SourceOptions is what a Source needs.
type SourceOptions struct {
	Config  config.Outbox
	Channel int32
	Pool    *pgxpool.Pool // role outbox
	Redis   *redis.Client
	Wake    <-chan struct{}       // nudges of Topic(Channel)
	Notify  func()                // called when commands have arrived; must not block
	Leave   func(c *Command) bool // commands that are not to be sent, left to the core's sweeper; nil = none
	Held    func() []int32        // enterprises whose commands wait: they are not even pulled; nil = none
	Metrics *Metrics
	Log     *slog.Logger
}

// left says whether a command is not for sending: its time has passed, it waited too long, or it is stopped.
func (s *Source) left(c *Command, now time.Time) bool {
	return c.Expired(now) || now.Sub(c.Since()) > s.ages[laneOf(c)] || s.o.Leave != nil && s.o.Leave(c)
}

// Source is the feed of one channel at the edge that owns it. Safe for concurrent use.
//
// A command is known from its arrival until Settle; while known it is not taken in twice.
type Source struct {
	o     SourceOptions
	ages  [lanes]time.Duration
	nudge chan struct{}

	mu     sync.Mutex
	window int  // slots of all links that may send; 0 = nothing is fetched
	anew   bool // the window has just opened: the whole queue is to be walked
	lanes  [lanes]lane
	known  map[int64]struct{}
	stale  []int64 // known because left: until the next walk they must not fill the pulls

	// of Run alone
	lastWalk   time.Time
	redisAfter time.Time // not before this time is Redis asked again
	unwell     bool
	pullAfter  time.Time     // not before this time is PostgreSQL asked again
	pullPause  time.Duration // after the last pull; 0 = it worked
}

// NewSource fetches nothing before Window says that there is room.
func NewSource(o SourceOptions) *Source {
	s := &Source{o: o, ages: Ages(o.Config), nudge: make(chan struct{}, 1), known: make(map[int64]struct{})}
	for i := range s.lanes {
		s.lanes[i] = newLane()
	}
	return s
}

// Window tells how many submits the channel's links may have in flight together. With 0 everything queued is given up: the
// rows stay pending for the next window or for another channel.
func (s *Source) Window(n int) {
	s.mu.Lock()
	changed := n != s.window
	s.anew = s.anew || s.window == 0 && n > 0
	s.window = n
	if n == 0 {
		for i := range s.lanes {
			for c := s.lanes[i].pop(); c != nil; c = s.lanes[i].pop() {
				delete(s.known, c.SubmitID)
			}
			s.lanes[i] = newLane()
		}
	}
	s.mu.Unlock()
	if changed {
		s.poke()
	}
}

// Len is the number of commands queued.
func (s *Source) Len() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	n := 0
	for i := range s.lanes {
		n += s.lanes[i].n
	}
	return n
}

// Take appends at most n commands to dst: by lane, then in turn between enterprises, then by age. Those expired, too old or
// stopped are left to the core's sweeper. Each command taken must be given to Settle or Return.
func (s *Source) Take(dst []*Command, n int, now time.Time) []*Command {
	s.mu.Lock()
	starved := false
	for i := range s.lanes {
		l := &s.lanes[i]
		for n > 0 && l.n > 0 {
			c := l.pop()
			if s.left(c, now) {
				s.stale = append(s.stale, c.SubmitID)
				continue
			}
			dst = append(dst, c)
			n--
		}
		starved = starved || l.starved(s.bound())
	}
	s.mu.Unlock()
	if starved {
		s.poke()
	}
	return dst
}

// Settle forgets commands that are not pending any more.
func (s *Source) Settle(cmds ...*Command) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, c := range cmds {
		delete(s.known, c.SubmitID)
	}
}

// Return queues commands again that were taken and are pending still, before all others.
func (s *Source) Return(cmds ...*Command) {
	s.mu.Lock()
	for _, c := range slices.Backward(cmds) {
		if s.window == 0 {
			delete(s.known, c.SubmitID)
			continue
		}
		s.known[c.SubmitID] = struct{}{}
		s.lanes[laneOf(c)].pushFront(c)
	}
	s.mu.Unlock()
	s.o.Notify()
}

func laneOf(c *Command) int { return min(max(int(c.Lane), 0), lanes-1) }

// bound is the most commands kept per lane. mu is held.
func (s *Source) bound() int { return max(boundMin, 2*s.window) }

func (s *Source) poke() {
	select {
	case s.nudge <- struct{}{}:
	default:
	}
}

// Run fetches until ctx is done, which is no error.
func (s *Source) Run(ctx context.Context) error {
	timer := time.NewTimer(0)
	defer timer.Stop()
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-s.o.Wake:
		case <-s.nudge:
		case <-timer.C:
		}
		wait := s.o.Config.Pull
		if s.open() {
			s.fetch(ctx)
			if s.unwell {
				wait = unwellPull
			}
			wait = min(wait, max(0, s.o.Config.Pull-time.Since(s.lastWalk)))
			wait = max(wait, time.Until(s.pullAfter))
		}
		timer.Reset(wait)
	}
}

func (s *Source) open() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.window > 0
}

// fetch takes the hints there are, and pulls where hints are not enough.
func (s *Source) fetch(ctx context.Context) {
	s.hints(ctx)
	now := time.Now()
	if now.Before(s.pullAfter) {
		return
	}
	walk := s.opened() || now.Sub(s.lastWalk) >= s.o.Config.Pull
	if !walk && !s.unwell && !s.starved() {
		return
	}
	err := s.pull(ctx, walk)
	if failed := err != nil; failed != (s.pullPause > 0) && ctx.Err() == nil {
		s.o.Log.Warn("pulls from postgresql", slog.Int("channel", int(s.o.Channel)), slog.Bool("working", !failed), slog.Any("error", err))
	}
	if err != nil {
		s.pullPause = min(max(2*s.pullPause, pullRetry), s.o.Config.Pull)
		s.pullAfter = time.Now().Add(s.pullPause)
		return
	}
	s.pullPause, s.pullAfter = 0, time.Time{}
	if walk {
		s.lastWalk = now
	}
}

// opened says, once, that the window has just opened.
func (s *Source) opened() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	anew := s.anew
	s.anew = false
	return anew
}

func (s *Source) starved() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	for i := range s.lanes {
		if s.lanes[i].starved(s.bound()) {
			return true
		}
	}
	return false
}

// hints empties the stream. Whatever fails here, the pull makes up for.
func (s *Source) hints(ctx context.Context) {
	start := time.Now()
	if start.Before(s.redisAfter) {
		return
	}
	limited, cancel := context.WithTimeout(ctx, s.o.Config.RedisSlow)
	batches, err := takeScript.Run(limited, s.o.Redis, []string{stream(s.o.Channel)}, s.o.Config.HintEntriesMax).StringSlice()
	cancel()
	if unwell := err != nil && !errors.Is(err, redis.Nil); unwell != s.unwell && ctx.Err() == nil {
		s.unwell = unwell
		s.o.Log.Info("hints over redis", slog.Int("channel", int(s.o.Channel)), slog.Bool("working", !unwell), slog.Any("error", err))
	}
	if s.unwell {
		s.redisAfter = time.Now().Add(unwellRetry)
		return
	}
	arrived := false
	for _, batch := range batches {
		var cmds []Command
		if err := json.Unmarshal([]byte(batch), &cmds); err != nil {
			s.o.Log.Warn("hint not understood", slog.Int("channel", int(s.o.Channel)), slog.Any("error", err))
			continue
		}
		arrived = s.offer(cmds) || arrived
	}
	if arrived {
		s.o.Notify()
	}
	if len(batches) == s.o.Config.HintEntriesMax {
		s.poke()
	}
}

// offer queues hinted commands as far as their lanes have room. A full lane makes room for an enterprise that has less
// queued than the one with the most, at the cost of that one's newest.
func (s *Source) offer(cmds []Command) (arrived bool) {
	now := time.Now()
	s.mu.Lock()
	defer s.mu.Unlock()
	for i := range cmds {
		c := &cmds[i]
		if _, known := s.known[c.SubmitID]; known || s.window == 0 || c.ChannelID != s.o.Channel {
			continue
		}
		l := &s.lanes[laneOf(c)]
		if _, behind := l.behind[c.EnterpriseID]; behind {
			l.miss(c)
			s.o.Metrics.dropped.Inc()
			continue
		}
		if l.n >= s.bound() {
			have := 0
			if share := l.by[c.EnterpriseID]; share != nil {
				have = share.len()
			}
			out := l.popNewest(have + 1)
			if out == nil {
				out = c
			}
			l.miss(out)
			s.o.Metrics.dropped.Inc()
			if out == c {
				continue
			}
			delete(s.known, out.SubmitID)
		}
		s.admit(l, c, now)
		s.o.Metrics.taken.WithLabelValues("hint").Inc()
		arrived = true
	}
	return arrived
}

// admit queues c. mu is held.
func (s *Source) admit(l *lane, c *Command, now time.Time) {
	s.known[c.SubmitID] = struct{}{}
	l.push(c)
	if c.RetryOf == 0 {
		s.o.Metrics.publish.Observe(now.Sub(message.TimeOf(c.SubmitID)).Seconds())
	}
}

// pull reads pending rows that are due, oldest first, into the lanes that have room; from the start of the queue when walk
// is set, else above the floors.
func (s *Source) pull(ctx context.Context, walk bool) error {
	ctx, cancel := context.WithTimeout(ctx, pullTimeout)
	defer cancel()
	now := time.Now()
	lo, hi := message.FirstID(now.Add(-messageAge)), message.FirstID(now.Add(messageSkew))
	held := []int32{}
	if s.o.Held != nil {
		held = append(held, s.o.Held()...)
	}

	var batch pgx.Batch
	var floors [lanes]int64
	var limits [lanes]int
	var asked []int
	s.mu.Lock()
	if walk {
		for _, id := range s.stale {
			delete(s.known, id)
		}
		s.stale = nil
	}
	for i := range s.lanes {
		l := &s.lanes[i]
		room := min(s.bound()-l.n, s.o.Config.PullMax)
		if room <= 0 {
			l.more = true // it is full: whether there are more is for the next pull to say
			continue
		}
		if !walk {
			floors[i] = l.floor
		}
		limits[i] = room + len(s.known) // known rows are pending too and must not fill the answer
		batch.Queue(store.OutboxPull, s.o.Channel, floors[i], limits[i], lo, hi, i, held)
		asked = append(asked, i)
	}
	s.mu.Unlock()
	if len(asked) == 0 {
		return nil
	}
	results := s.o.Pool.SendBatch(ctx, &batch)
	arrived := false
	var err error
	for _, i := range asked {
		var rows pgx.Rows
		if rows, err = results.Query(); err != nil {
			break
		}
		var cmds []*Command
		if cmds, err = pgx.CollectRows(rows, scan); err != nil {
			break
		}
		arrived = s.pulled(i, cmds, len(cmds) == limits[i]) || arrived
	}
	err = errors.Join(err, results.Close())
	if arrived {
		s.o.Notify()
	}
	if err != nil {
		return fmt.Errorf("pull channel %d: %w", s.o.Channel, err)
	}
	return nil
}

func (s *Source) pulled(i int, cmds []*Command, more bool) (arrived bool) {
	now := time.Now()
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.window == 0 {
		return false
	}
	l := &s.lanes[i]
	l.more = more
	if !more {
		clear(l.behind)
	}
	if len(cmds) > 0 {
		last := message.TimeOf(cmds[len(cmds)-1].SubmitID)
		l.floor = max(0, message.FirstID(last.Add(-floorMargin)))
	}
	for _, c := range cmds {
		if _, known := s.known[c.SubmitID]; known {
			continue
		}
		if s.left(c, now) {
			s.known[c.SubmitID] = struct{}{}
			s.stale = append(s.stale, c.SubmitID)
			continue
		}
		if l.n >= s.bound() {
			l.miss(c)
			l.more = true
			continue
		}
		s.admit(l, c, now)
		s.o.Metrics.taken.WithLabelValues("pull").Inc()
		arrived = true
	}
	return arrived
}

func scan(row pgx.CollectableRow) (*Command, error) {
	c := new(Command)
	var until *time.Time
	var segments, outFmt int16
	var ref int32
	err := row.Scan(&c.SubmitID, &c.MessageID, &c.RetryOf, &c.ChannelID, &c.EnterpriseID, &c.AppID, &c.Attempt, &c.Part, &c.Parts, &c.Lane,
		&c.Phone, &c.Fmt, &c.UDHI, &c.PkTotal, &c.PkNumber, &c.Src, &c.Service, &c.Content, &until, &segments, &outFmt, &ref)
	if until != nil {
		c.ValidUntil = *until
	}
	c.Cut(segments, outFmt, ref)
	return c, err
}
