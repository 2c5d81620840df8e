package supplier

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"net"
	"sync/atomic"
	"time"

	"cmppgateway/gateway/cmpp"
	"cmppgateway/gateway/internal/event"
	"cmppgateway/gateway/internal/failpoint"
	"cmppgateway/gateway/internal/session"
	"cmppgateway/gateway/sms"
)

const (
	flowControl  = 8                     // SUBMIT_RESP Result (CMPP 3.0 §8.5.3.2)
	notEncodable = 1                     // reported for a command that no SUBMIT can carry: bad structure
	steadyAfter  = 10 * time.Second      // a session that lived so long does not count as a failed login
	permitRetry  = 50 * time.Millisecond // looks again for a connection the contract allows
	drainCheck   = 20 * time.Millisecond // looks whether a draining connection has its answers
	warmPart     = 4                     // a warming connection begins with this part of its window

	// A process that starts finds its supplier busy with the connections of the one before. Until its first connection is
	// up, and this long, it tries again soon, and refusals are no reason to rest.
	freshFor   = 5 * time.Second
	freshRetry = 200 * time.Millisecond
)

// link is one connection of a pool, through all its sessions. Fields from state on are guarded by pool.mu.
type link struct {
	pool   *pool
	number int
	off    atomic.Bool
	cancel context.CancelFunc // ends waiting and logging in

	state               LinkState
	sess                *session.Session
	window              int // of sess: the contract's when it logged in
	warmFrom            time.Time
	warmFor             time.Duration
	coolUntil           time.Time
	timeouts            int    // in a row
	failures            int    // in a row
	answers, unanswered uint64 // in all sessions
	lastError           string
	pace                pace
	trips               trips
}

// retire lets the connection drain and close; it never comes back.
func (l *link) retire() {
	l.off.Store(true)
	l.cancel()
}

func (l *link) retired() bool { return l.off.Load() }

// usable says that submits may be given to it, now or when a slot is free. pool.mu is held.
func (l *link) usable() bool {
	return l.sess != nil && !l.retired() && (l.state == Active || l.state == Warming)
}

// used is the slots taken, by calls in flight and by flights before the barrier. pool.mu is held.
func (l *link) used() int { return l.window - l.sess.Free() }

// allowance is how many submits it takes now; wait says when that may grow by itself. pool.mu is held.
func (l *link) allowance(now time.Time) (n int, wait time.Duration) {
	if l.sess == nil || l.retired() {
		return 0, 0
	}
	limit := min(l.pool.ch.WindowSize, l.window)
	switch l.state {
	case Warming:
		warm := now.Sub(l.warmFrom)
		if warm >= l.warmFor {
			l.state = Active
			break
		}
		first := max(1, limit/warmPart)
		limit = first + int(int64(limit-first)*int64(warm)/int64(l.warmFor))
	case Active:
	case Closed, Connecting, Cooling, Draining:
		return 0, 0
	}
	free := min(limit, l.window) - l.used()
	if free <= 0 {
		return 0, 0
	}
	return l.pace.allow(free, now)
}

func (l *link) set(s LinkState) {
	l.pool.mu.Lock()
	l.state = s
	l.pool.mu.Unlock()
}

// run keeps the connection up until it is retired, which ends gone. Its session then ends within the drain time.
func (l *link) run(gone context.Context) {
	defer l.pool.forget(l)
	for !l.retired() {
		if !l.backOff(gone) || !l.permit(gone) {
			return
		}
		s, err := l.login(gone)
		<-l.pool.gate
		outcome := "ok"
		if err != nil {
			outcome = "failed"
		}
		l.pool.m.metrics.logins.WithLabelValues(label(l.pool.id), outcome).Inc()
		if err != nil {
			l.closed()
			if !l.retired() {
				l.failed(err)
			}
			continue
		}
		start := time.Now()
		err = l.serve(gone, s)
		if l.retired() {
			return
		}
		if time.Since(start) > steadyAfter {
			l.pool.mu.Lock()
			l.failures = 0
			l.pool.mu.Unlock()
		}
		l.failed(err)
	}
}

// failed counts the failure that the next back-off is for.
func (l *link) failed(err error) {
	l.pool.mu.Lock()
	l.failures++
	failures := l.failures
	l.lastError = err.Error()
	l.pool.mu.Unlock()
	l.pool.m.o.Log.Warn("supplier connection lost", slog.Int("channel", int(l.pool.id)), slog.Int("connection", l.number),
		slog.Int("failures", failures), slog.Any("error", err))
}

// backOff waits before the next login: jittered and doubling, and at least the cooldown after several failures in a row.
func (l *link) backOff(gone context.Context) bool {
	p, c := l.pool, l.pool.m.o.Config
	p.mu.Lock()
	failures, cooldown := l.failures, seconds(p.ch.CooldownSeconds)
	fresh := !p.ever && time.Since(p.m.started) < freshFor
	if failures >= coolAfter && !fresh {
		l.state = Cooling
	}
	if fresh {
		l.failures = 0
	}
	p.mu.Unlock()
	if failures == 0 {
		return true
	}
	if fresh {
		d := min(c.ReconnectMin, freshRetry)
		return pause(gone, d/2+rand.N(d/2+1))
	}
	d := min(c.ReconnectMin<<min(failures-1, 20), c.ReconnectMax)
	if failures >= coolAfter {
		d = max(d, cooldown)
	}
	return pause(gone, d/2+rand.N(d/2+1))
}

// permit waits until this connection may log in: one login at a time, and no more sessions than desired, retired ones
// included. The gate is taken when it returns true.
func (l *link) permit(gone context.Context) bool {
	p := l.pool
	for {
		select {
		case p.gate <- struct{}{}:
		case <-gone.Done():
			return false
		}
		p.mu.Lock()
		ok := p.open < p.ch.DesiredConnections
		if ok {
			p.open++
			l.state = Connecting
		}
		p.mu.Unlock()
		if ok {
			return true
		}
		<-p.gate
		if !pause(gone, permitRetry) {
			return false
		}
	}
}

func (l *link) closed() {
	l.pool.mu.Lock()
	l.pool.open--
	l.state, l.sess = Closed, nil
	l.pool.mu.Unlock()
}

func (l *link) login(gone context.Context) (*session.Session, error) {
	p, c := l.pool, l.pool.m.o.Config
	p.mu.Lock()
	acct, response := p.acct, seconds(p.ch.ResponseSeconds)
	l.window = acct.MaxWindow
	p.mu.Unlock()

	ctx, cancel := context.WithTimeout(gone, 2*c.DialTimeout)
	defer cancel()
	d := net.Dialer{Timeout: c.DialTimeout}
	conn, err := d.DialContext(ctx, "tcp", acct.Addr)
	if err != nil {
		return nil, fmt.Errorf("dial: %w", err)
	}
	return session.Login(ctx, failpoint.Conn(conn), session.Config{
		Window: acct.MaxWindow, ResponseTimeout: response, IdleInterval: c.IdleInterval, Tries: c.Tries,
		WriteTimeout: c.WriteTimeout, Log: p.m.o.Log,
	}, session.Credentials{SourceAddr: acct.SPID, Secret: []byte(acct.Secret), Version: acct.Version})
}

// serve runs the session to its end, which the peer, a fault or the retirement of the connection brings.
func (l *link) serve(gone context.Context, s *session.Session) error {
	p := l.pool
	s.OnWindow(p.kick)
	p.mu.Lock()
	l.sess, l.timeouts, l.pace, l.trips = s, 0, pace{}, trips{}
	l.state, l.warmFrom, l.warmFor = Warming, time.Now(), seconds(p.ch.WarmupSeconds)
	if l.warmFor == 0 {
		l.state = Active
	}
	p.mu.Unlock()
	p.refresh()
	p.m.o.Log.Info("supplier connection up", slog.Int("channel", int(p.id)), slog.Int("connection", l.number), slog.Uint64("session", s.ID()))

	life, end := context.WithCancel(context.WithoutCancel(gone))
	defer end()
	over := make(chan error, 1)
	p.wg.Go(func() { over <- s.Run(life, l) })
	var err error
	select {
	case err = <-over:
	case <-gone.Done():
		l.set(Draining)
		p.refresh()
		err = l.drain(s, over, end)
	}
	l.closed()
	p.refresh()
	if err == nil {
		err = s.Cause()
	}
	return err
}

// drain waits for the answers that are due, within the drain time, and then ends the session with TERMINATE.
func (l *link) drain(s *session.Session, over <-chan error, end context.CancelFunc) error {
	l.pool.mu.Lock()
	limit := min(l.pool.drain, l.pool.m.drainLimit())
	l.pool.mu.Unlock()
	deadline := time.NewTimer(limit)
	defer deadline.Stop()
	check := time.NewTicker(drainCheck)
	defer check.Stop()
	for late := false; !late; {
		l.pool.mu.Lock()
		busy := l.used() > 0
		l.pool.mu.Unlock()
		if !busy {
			break
		}
		select {
		case err := <-over:
			return err
		case <-check.C:
		case <-deadline.C:
			late = true
		}
	}
	if n := s.InFlight(); n > 0 {
		l.pool.m.metrics.drained.Add(float64(n))
		l.pool.m.o.Log.Warn("connection closed with submits unanswered, they become unknown", slog.Int("channel", int(l.pool.id)),
			slog.Int("connection", l.number), slog.Int("submits", n))
	}
	end()
	return <-over
}

// status is for people. pool.mu is held.
func (l *link) status() LinkStatus {
	s := LinkStatus{
		ID:     fmt.Sprintf("%d-%d-%d", l.pool.m.o.Node.Number, l.pool.id, l.number),
		Number: l.number, State: l.state, Window: min(l.pool.ch.WindowSize, l.window), P95: l.trips.p95, Answers: l.answers, Unanswered: l.unanswered,
		Failures: l.failures, LastError: l.lastError,
	}
	if l.pace.division > 1 {
		s.Slowed = l.pace.division
	}
	if l.sess != nil {
		s.Session, s.InFlight = l.sess.ID(), l.sess.InFlight()
	}
	return s
}

// outcome is told how each submit ended.
func outcome(o session.Outcome) {
	f, ok := o.Token.(*flight)
	if !ok {
		return
	}
	p := f.pool
	if o.Err == nil {
		if r, ok := o.Resp.(*cmpp.SubmitResp); ok {
			p.m.metrics.respSeconds.Observe(o.RTT.Seconds())
			p.answered(f.link, o.RTT, r.Result)
			p.reportAnswer(f, r, true)
			return
		}
	}
	switch {
	case errors.Is(o.Err, session.ErrNotSent):
		if fault, ok := errors.AsType[*cmpp.EncodeError](o.Err); ok {
			p.m.o.Log.Error("command cannot be sent", slog.Int64("submit_id", f.cmd.SubmitID), slog.Any("error", fault))
			p.report(f, event.Rejected, notEncodable, 0, true)
			return
		}
		p.resend(f)
		return
	case errors.Is(o.Err, session.ErrTimeout):
		p.timedOut(f.link)
	}
	p.report(f, event.Unknown, 0, 0, true)
}

func (p *pool) reportAnswer(f *flight, r *cmpp.SubmitResp, reserved bool) {
	if r.Result == 0 {
		p.report(f, event.Accepted, 0, r.MsgID, reserved)
		return
	}
	p.report(f, event.Rejected, r.Result, 0, reserved)
}

// OnLateResponse implements [session.Handler]: the submit is unknown by now, and the answer closes it.
func (l *link) OnLateResponse(_ *session.Session, _ cmpp.Header, p cmpp.PDU, token any) {
	f, ok := token.(*flight)
	r, answer := p.(*cmpp.SubmitResp)
	if !ok || !answer {
		return
	}
	l.pool.m.metrics.lateAnswers.Inc()
	l.pool.reportAnswer(f, r, false)
}

// OnBadRequest implements [session.Handler].
func (l *link) OnBadRequest(s *session.Session, hd cmpp.Header, err *cmpp.DecodeError) {
	l.pool.m.o.Log.Warn("DELIVER not understood", slog.Int("channel", int(l.pool.id)), slog.Any("error", err))
	l.reply(s, hd.Sequence, &cmpp.DeliverResp{Result: err.Result})
}

func (l *link) reply(s *session.Session, seq uint32, r *cmpp.DeliverResp) {
	if err := s.Reply(seq, r, nil); err != nil {
		// The supplier repeats the DELIVER, and the repeat is the same event.
		l.pool.m.o.Log.Debug("DELIVER_RESP not queued", slog.Any("error", err))
	}
}

// OnRequest implements [session.Handler]: it takes a DELIVER, which is answered once its event is safe (architecture P4).
func (l *link) OnRequest(s *session.Session, hd cmpp.Header, p cmpp.PDU) {
	d, ok := p.(*cmpp.Deliver)
	if !ok {
		return
	}
	l.pool.mu.Lock()
	account, channel, ch := l.pool.acct.ID, l.pool.id, l.pool.ch
	l.pool.mu.Unlock()
	q, now := l.pool.m.o.Events, time.Now()
	ack := func() { l.reply(s, hd.Sequence, &cmpp.DeliverResp{MsgID: d.MsgID}) }
	if d.RegisteredDelivery == 0 {
		q.Uplink(&event.Uplink{
			AccountID: account, ChannelID: channel, SupplierMsgID: uint64(d.MsgID), Phone: d.SrcTerminalID, Dest: d.DestID,
			Fmt: int16(d.MsgFmt), UDHI: int16(d.TPUDHI), Content: d.MsgContent, At: now,
		}, ack)
		return
	}
	r, err := readReport(ch, d.MsgContent)
	if err != nil {
		q.DeadLetter(&event.DeadLetter{
			AccountID: account, ChannelID: channel, Kind: "report", Reason: err.Error(), Raw: d.MsgContent, At: now,
		}, ack)
		return
	}
	if r.DestTerminalID == "" {
		r.DestTerminalID = d.SrcTerminalID
	}
	phone, err := sms.NormalizeNumber(r.DestTerminalID)
	if err != nil {
		phone = 0 // kept as it was sent; matching goes by the Msg_Id
	}
	q.Receipt(&event.Receipt{
		AccountID: account, ChannelID: channel, SupplierMsgID: uint64(r.MsgID), Phone: int64(phone), Stat: r.Stat,
		SubmitTime: r.SubmitTime, DoneTime: r.DoneTime, Dest: r.DestTerminalID, Src: d.DestID, At: now,
	}, ack)
}
