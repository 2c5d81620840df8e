package supplier

import (
	"context"
	"log/slog"
	"sync"
	"time"

	"cmppgateway/gateway/cmpp"
	"cmppgateway/gateway/internal/event"
	"cmppgateway/gateway/internal/failpoint"
	"cmppgateway/gateway/internal/outbox"
	"cmppgateway/gateway/internal/session"
	"cmppgateway/gateway/internal/settings"
)

// coolAfter is how many answers in a row may time out before a connection cools.
const coolAfter = 3

// noRoomRetry looks at a full event queue again, besides being told.
const noRoomRetry = time.Second

// flight is one submit on its way: it holds a window slot of sess and a place in the event queue.
type flight struct {
	cmd  *outbox.Command
	pool *pool
	link *link
	sess *session.Session
	pdu  cmpp.Submit
	dest [1]string

	account int32
	batch   int64     // of the barrier
	at      time.Time // dispatched
}

// pool is the connections of one channel and their dispatcher. Lock order: pool.mu before a session's.
type pool struct {
	m       *Manager
	id      int32
	src     *outbox.Source
	owner   int32  // the account
	rate    limit  // the channel's
	account *limit // shared by the channels of the account
	late    late
	wake    chan struct{}
	gate    chan struct{} // one login at a time
	wg      sync.WaitGroup
	stop    context.CancelFunc
	done    chan struct{}

	mu      sync.Mutex
	snap    *settings.Snapshot
	ch      *settings.Channel
	acct    *settings.SupplierAccount
	links   []*link // retired ones too, until they are closed
	open    int     // sessions, retired ones included
	numbers int
	closing bool
	drain   time.Duration
	since   time.Time // without a usable connection since; zero while there is one
	full    time.Time // commands wait for a slot since; zero when none does
	ever    bool      // there was a usable connection
	breaker breaker

	cmds []*outbox.Command // of the dispatcher alone
}

// run serves until ctx is done, then takes the connections down.
func (p *pool) run(ctx context.Context) {
	defer close(p.done)
	feed, end := context.WithCancel(context.WithoutCancel(ctx))
	defer end()
	var feeders, dispatcher sync.WaitGroup
	feeders.Go(func() { _ = p.src.Run(feed) }) // it ends with its context, without an error
	feeders.Go(func() { p.follow(feed) })      // a connection drains only when what holds its slots was written
	dispatcher.Go(func() { p.dispatch(ctx) })
	<-ctx.Done()
	dispatcher.Wait()
	p.close()
	p.wg.Wait()
	end()
	feeders.Wait()
}

func (p *pool) close() {
	p.mu.Lock()
	p.closing = true
	for _, l := range p.links {
		l.retire()
	}
	p.mu.Unlock()
	p.refresh()
}

// apply brings the pool to new settings: windows and rates for new submits, connections one by one. A change of the login
// replaces all connections.
func (p *pool) apply(ctx context.Context, snap *settings.Snapshot, ch *settings.Channel, acct *settings.SupplierAccount) {
	p.rate.set(ch.RateLimit)
	p.account.set(acct.MaxTPS)
	p.mu.Lock()
	if p.closing {
		p.mu.Unlock()
		return
	}
	relogin := p.acct != nil && (p.acct.Addr != acct.Addr || p.acct.SPID != acct.SPID || p.acct.Secret != acct.Secret ||
		p.acct.Version != acct.Version || p.acct.MaxWindow < acct.MaxWindow)
	p.snap, p.ch, p.acct = snap, ch, acct
	p.drain = seconds(ch.DrainSeconds)
	keep := 0
	for _, l := range p.links {
		if l.retired() {
			continue
		}
		if relogin || keep == ch.DesiredConnections {
			l.retire()
			continue
		}
		keep++
	}
	for ; keep < ch.DesiredConnections; keep++ {
		p.numbers++
		gone, cancel := context.WithCancel(context.WithoutCancel(ctx))
		l := &link{pool: p, number: p.numbers, cancel: cancel}
		p.links = append(p.links, l)
		p.wg.Go(func() { l.run(gone) })
	}
	p.mu.Unlock()
	p.refresh()
}

// stopped says that an operator has stopped the channel, or everything: its connections stay. mu is held.
func (p *pool) stopped() bool {
	return p.snap.Stops.Platform != settings.NoStop || p.snap.Stops.Channels[p.id] != settings.NoStop
}

// refresh tells the source the windows of the usable connections, and the dispatcher that something changed.
func (p *pool) refresh() {
	p.mu.Lock()
	window := 0
	if !p.closing {
		for _, l := range p.links {
			if l.usable() {
				window += min(p.ch.WindowSize, l.window)
			}
		}
	}
	turned := p.since.IsZero() != (window > 0)
	switch {
	case window > 0:
		p.since, p.ever = time.Time{}, true
	case p.since.IsZero():
		p.since = time.Now()
	}
	if p.stopped() {
		window = 0
	}
	p.mu.Unlock()
	p.src.Window(window)
	p.kick()
	if turned {
		poke(p.m.news)
	}
}

func (p *pool) kick() { poke(p.wake) }

// down is for how many seconds there has been no usable connection; -1 while there is one.
func (p *pool) down(now time.Time) float64 {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.since.IsZero() {
		return -1
	}
	return now.Sub(p.since).Seconds()
}

// dispatch moves commands from the source to the barrier until ctx is done.
func (p *pool) dispatch(ctx context.Context) {
	timer := time.NewTimer(time.Hour)
	defer timer.Stop()
	for {
		wait := p.step(ctx)
		var due <-chan time.Time
		if wait > 0 {
			timer.Reset(wait)
			due = timer.C
		}
		select {
		case <-ctx.Done():
			return
		case <-p.wake:
		case <-due:
		}
	}
}

// step dispatches what can be dispatched now, and says when to try again; 0 = when woken.
func (p *pool) step(ctx context.Context) time.Duration {
	for ctx.Err() == nil {
		now := time.Now()
		thaw := p.thaw(now)
		n := p.src.Len()
		if n == 0 {
			p.full = time.Time{}
			return thaw
		}
		room, wait := p.room(now)
		if room == 0 {
			if p.full.IsZero() {
				p.full = now
			}
			return sooner(wait, thaw)
		}
		if !p.full.IsZero() {
			p.m.metrics.windowWait.Observe(now.Sub(p.full).Seconds())
			p.full = time.Time{}
		}
		reserved := p.m.o.Events.Reserve(min(n, room))
		if reserved == 0 {
			return noRoomRetry
		}
		granted, wait := p.tokens(reserved, now)
		if granted > 0 {
			p.cmds = p.src.Take(p.cmds[:0], granted, now)
		} else {
			p.cmds = p.cmds[:0]
		}
		flights := p.assign(p.cmds, now)
		if idle := granted - len(flights); idle > 0 {
			p.rate.back(idle, now)
			p.account.back(idle, now)
		}
		if unused := reserved - len(flights); unused > 0 {
			p.m.o.Events.Release(unused)
		}
		if len(flights) > 0 {
			p.m.barrier.add(flights)
		}
		if granted == 0 {
			return wait
		}
		if len(flights) == 0 && len(p.cmds) > 0 {
			return time.Millisecond // the slots seen a moment ago are gone
		}
	}
	return 0
}

// tokens takes up to n from the channel's rate and the account's.
func (p *pool) tokens(n int, now time.Time) (granted int, wait time.Duration) {
	granted, wait = p.rate.take(n, now)
	if granted == 0 {
		return 0, wait
	}
	both, wait := p.account.take(granted, now)
	if granted > both {
		p.rate.back(granted-both, now)
	}
	return both, wait
}

// room is how many submits the connections take now; wait says when that may grow by itself.
func (p *pool) room(now time.Time) (n int, wait time.Duration) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.closing {
		return 0, 0
	}
	for _, l := range p.links {
		got, later := l.allowance(now)
		n += got
		wait = sooner(wait, later)
	}
	return n, wait
}

// thaw ends the cooling of connections whose time has come, and says when the next one's does; 0 = none cools.
func (p *pool) thaw(now time.Time) (next time.Duration) {
	changed := false
	p.mu.Lock()
	for _, l := range p.links {
		switch {
		case l.state != Cooling || l.sess == nil:
		case now.Before(l.coolUntil):
			next = sooner(next, l.coolUntil.Sub(now))
		default:
			l.state, changed = Active, true
		}
	}
	p.mu.Unlock()
	if changed {
		p.refresh()
	}
	return next
}

// sooner is the shorter of two waits, of which 0 is none.
func sooner(a, b time.Duration) time.Duration {
	if a == 0 || b > 0 && b < a {
		return b
	}
	return a
}

// assign gives each command a slot on the connection with the least in flight, then the lowest P95. What finds no slot goes
// back to the source.
func (p *pool) assign(cmds []*outbox.Command, now time.Time) []*flight {
	if len(cmds) == 0 {
		return nil
	}
	p.mu.Lock()
	lots := make([]lot, 0, len(p.links))
	for _, l := range p.links {
		if n, _ := l.allowance(now); n > 0 {
			lots = append(lots, lot{link: l, sess: l.sess, free: n, used: l.used(), p95: l.trips.p95})
		}
	}
	for range cmds {
		best := -1
		for i := range lots {
			if lots[i].free > 0 && (best < 0 || lots[i].before(&lots[best])) {
				best = i
			}
		}
		if best < 0 {
			break
		}
		lots[best].free--
		lots[best].used++
		lots[best].n++
	}
	block := make([]flight, len(cmds))
	flights := make([]*flight, 0, len(cmds))
	for i := range lots {
		lo := &lots[i]
		lo.n = lo.sess.Acquire(lo.n)
		lo.link.pace.count(lo.n, now)
		lo.link.pace.spend(lo.n, now)
		for range lo.n {
			c := cmds[len(flights)]
			f := &block[len(flights)]
			f.cmd, f.pool, f.link, f.sess, f.account = c, p, lo.link, lo.sess, p.acct.ID
			fill(&f.pdu, f.dest[:], c, p.snap, p.ch, p.acct)
			flights = append(flights, f)
		}
	}
	p.mu.Unlock()
	if rest := cmds[len(flights):]; len(rest) > 0 {
		p.src.Return(rest...)
	}
	return flights
}

// lot is what one connection gets of a batch.
type lot struct {
	link          *link
	sess          *session.Session
	free, used, n int
	p95           time.Duration
}

func (a *lot) before(b *lot) bool {
	return a.used < b.used || a.used == b.used && a.p95 < b.p95
}

// blocked lets go of a flight whose row is not pending any more: withdrawn, or dispatched by another edge.
func (p *pool) blocked(f *flight) {
	p.m.metrics.blocked.Inc()
	now := time.Now()
	p.rate.back(1, now)
	p.account.back(1, now)
	p.src.Settle(f.cmd)
	f.sess.Release(1)
	p.m.o.Events.Release(1)
	p.kick()
}

// undone gives a command back whose row is pending again.
func (p *pool) undone(f *flight) {
	p.m.o.Events.Release(1)
	p.src.Return(f.cmd)
}

// send writes flights of one connection.
func send(flights []*flight) {
	calls := make([]session.Call, len(flights))
	for i, f := range flights {
		calls[i] = session.Call{PDU: &f.pdu, Token: f, Done: outcome}
	}
	// Every call is told its outcome, also when Send fails; the error adds nothing.
	_ = flights[0].sess.Send(calls)
}

// resend moves a flight that was surely not written to another connection, or has it undispatched.
func (p *pool) resend(f *flight) {
	if p.move(f) {
		p.m.metrics.resent.Inc()
		send([]*flight{f})
		return
	}
	p.m.barrier.takeBack(f)
}

func (p *pool) move(f *flight) bool {
	now := time.Now()
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.closing {
		return false
	}
	for _, l := range p.links {
		if l == f.link && l.sess == f.sess {
			continue
		}
		if n, _ := l.allowance(now); n > 0 && l.sess.Acquire(1) == 1 {
			l.pace.count(1, now)
			l.pace.spend(1, now)
			f.link, f.sess = l, l.sess
			return true
		}
	}
	return false
}

// report queues the outcome of f. A late answer has no place kept for it.
func (p *pool) report(f *flight, state string, result uint32, id cmpp.MsgID, reserved bool) {
	p.m.metrics.results.WithLabelValues(label(p.id), state).Inc()
	r := event.SubmitResult{
		SubmitID: f.cmd.SubmitID, MessageID: f.cmd.MessageID, ChannelID: p.id, AccountID: f.account, State: state, Result: result,
		SupplierMsgID: uint64(id), Node: p.m.o.Node.Number, Conn: int32(f.sess.ID() & 0x7fffffff), Attempt: f.cmd.Attempt, Part: f.cmd.Part,
		Parts: f.cmd.Parts, Phone: f.cmd.Phone, Src: f.pdu.SrcID, DispatchedAt: f.at,
	}
	if state != event.Unknown {
		r.RespAt = time.Now()
	}
	failpoint.Hit(failpoint.BeforeResultCopy)
	p.m.o.Events.Result(&r, reserved)
}

// answered notes an answer and its round trip; result 8 slows the connection, and refusals open the channel's breaker.
func (p *pool) answered(l *link, rtt time.Duration, result uint32) {
	now := time.Now()
	p.mu.Lock()
	l.trips.add(rtt)
	l.timeouts = 0
	l.answers++
	if result == flowControl {
		l.pace.refused(now)
	}
	turned := p.breaker.answer(result != 0, now)
	b := p.breaker
	p.mu.Unlock()
	if turned {
		p.turned(b.state, b.reason)
	}
}

// timedOut notes an answer that did not come; several in a row cool the connection.
func (p *pool) timedOut(l *link) {
	p.mu.Lock()
	l.timeouts++
	l.unanswered++
	cool := l.timeouts >= coolAfter && (l.state == Active || l.state == Warming)
	if cool {
		l.timeouts = 0
		l.state, l.coolUntil = Cooling, time.Now().Add(seconds(p.ch.CooldownSeconds))
	}
	p.mu.Unlock()
	if cool {
		p.m.o.Log.Warn("connection cools: answers timed out", slog.Int("channel", int(p.id)), slog.Int("connection", l.number))
		p.refresh()
	}
}

// forget drops a closed connection.
func (p *pool) forget(l *link) {
	p.mu.Lock()
	for i, x := range p.links {
		if x == l {
			p.links = append(p.links[:i:i], p.links[i+1:]...)
			break
		}
	}
	p.mu.Unlock()
	p.refresh()
}

func (p *pool) status() Status {
	backlog := p.src.Len()
	p.mu.Lock()
	defer p.mu.Unlock()
	s := Status{Channel: p.id, Name: p.ch.Name, State: Open, Backlog: backlog, Connections: make([]LinkStatus, 0, len(p.links))}
	switch {
	case p.closing:
		s.State = Closing
	case p.stopped():
		s.State, s.Detail = Stopped, "stopped by an operator"
	}
	s.Breaker = p.breaker.state.String()
	if p.breaker.state != settings.BreakerClosed {
		s.Detail = p.breaker.reason
	}
	for _, l := range p.links {
		ls := l.status()
		s.InFlight += ls.InFlight
		s.Connections = append(s.Connections, ls)
	}
	return s
}

func seconds(n int) time.Duration { return time.Duration(n) * time.Second }
