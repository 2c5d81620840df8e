package inbound

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"net"
	"net/netip"
	"slices"
	"sync"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/prometheus/client_golang/prometheus"

	"cmppgateway/gateway/cmpp"
	"cmppgateway/gateway/internal/config"
	"cmppgateway/gateway/internal/session"
	"cmppgateway/gateway/internal/settings"
	"cmppgateway/gateway/internal/store"
)

// Waker is the part of the wake bus that inbound uses.
type Waker interface {
	Publish(topic string)
}

// Options of a Server; all fields but Enquirer are required.
type Options struct {
	Config        config.Inbound
	DeliverWindow int // DELIVERs a connection may have unanswered
	Pool          *pgxpool.Pool
	Node          *store.Node
	Settings      *settings.Watcher
	Wake          Waker
	Log           *slog.Logger
	Registry      prometheus.Registerer
	Enquirer      Enquirer // answers CANCEL and QUERY; nil: nothing can be taken back, QUERY is not answered
}

// Server is the customers' CMPP server. Create it with New, start it once with Run.
type Server struct {
	Options

	listeners  []net.Listener // plain, then TLS if there is one
	sessions   *Sessions
	batcher    *batcher
	backlog    *backlog
	sets       *sets
	asker      *asker
	metrics    *metrics
	resendTime time.Duration
	quiet      quiet
	places     *places
	guard      *guard
	rates      *rates
	record     *record
	now        func() time.Time // of guard and rates
}

// New listens; connections wait in the kernel until Run.
func New(ctx context.Context, o Options) (*Server, error) {
	s := &Server{
		Options: o, sessions: newSessions(), places: newPlaces(), rates: newRates(), now: time.Now,
		guard:      newGuard(o.Config.LoginFailures, o.Config.LoginBackoff, o.Config.LoginBackoffMax),
		record:     &record{pool: o.Pool, node: o.Node.Number, log: o.Log, seen: make(map[occasion]*occurrence)},
		resendTime: time.Duration(o.Config.Tries) * o.Config.ResponseTimeout,
		backlog:    &backlog{pool: o.Pool, log: o.Log, max: o.Config.BacklogMax, settings: o.Settings},
		sets:       &sets{pool: o.Pool, log: o.Log, most: o.Config.SegmentSetsMax, rowsMost: o.Config.BacklogMax, apps: map[int32]*waitingSets{}},
		asker:      newAsker(o.Enquirer, o.Log),
	}
	if err := s.listen(ctx); err != nil {
		return nil, err
	}
	s.batcher = &batcher{
		cfg: o.Config, pool: o.Pool, node: o.Node, wake: o.Wake, sessions: s.sessions, log: o.Log, ready: make(chan struct{}, 1),
	}
	s.metrics = newMetrics(o.Registry, s)
	s.batcher.metrics = s.metrics
	return s, nil
}

func (s *Server) listen(ctx context.Context) error {
	var secure *tls.Config
	if s.Config.TLSListen != "" {
		var err error
		if secure, err = serverTLS(s.Config.TLSCert, s.Config.TLSKey, s.Log); err != nil {
			return err
		}
	}
	plain, err := new(net.ListenConfig).Listen(ctx, "tcp", s.Config.Listen)
	if err != nil {
		return fmt.Errorf("inbound: %w", err)
	}
	s.listeners = append(s.listeners, plain)
	if secure == nil {
		return nil
	}
	raw, err := new(net.ListenConfig).Listen(ctx, "tcp", s.Config.TLSListen)
	if err != nil {
		_ = plain.Close() // nobody was served
		return fmt.Errorf("inbound: %w", err)
	}
	s.listeners = append(s.listeners, tls.NewListener(raw, secure))
	return nil
}

// Addr is where the server listens without TLS.
func (s *Server) Addr() net.Addr { return s.listeners[0].Addr() }

// TLSAddr is where it listens with TLS; nil: nowhere.
func (s *Server) TLSAddr() net.Addr {
	if len(s.listeners) == 1 {
		return nil
	}
	return s.listeners[1].Addr()
}

// Sessions are the live connections, for the delivery of receipts and uplinks.
func (s *Server) Sessions() *Sessions { return s.sessions }

// Run serves until ctx is done and then stops in order; that is no error.
func (s *Server) Run(ctx context.Context) error {
	intake, endIntake := context.WithCancel(ctx)
	defer endIntake()
	work, endWork := context.WithCancel(context.WithoutCancel(ctx)) // of the sessions, which outlive the intake
	defer endWork()
	s.remember(ctx)
	var helpers, recorder, committer, serving, accepting sync.WaitGroup
	helpers.Go(func() { s.backlog.run(ctx, s.enterprises) })
	helpers.Go(func() { s.sets.run(ctx, s.liveApps) })
	helpers.Go(func() { s.asker.run(ctx, s.asker.cancels) })
	helpers.Go(func() { s.asker.run(ctx, s.asker.queries) })
	helpers.Go(func() { s.watch(ctx) })
	recording, endRecording := context.WithCancel(context.WithoutCancel(ctx))
	defer endRecording()
	recorder.Go(func() { s.record.run(recording) })
	committer.Go(func() { s.batcher.run(context.WithoutCancel(ctx)) })
	// 1. No new connections.
	failed := make(chan error, len(s.listeners))
	for _, l := range s.listeners {
		accepting.Go(func() {
			if err := s.accept(intake, work, l, &serving); err != nil {
				failed <- err
				endIntake() // and the other one
			}
		})
	}
	accepting.Wait()
	// 2. No new SUBMITs, those in the queue are committed and their answers queued.
	s.batcher.close()
	committer.Wait()
	// 3. The sessions write what is queued, say TERMINATE and end.
	endWork()
	serving.Wait()
	endIntake() // before ctx, when a listener failed
	helpers.Wait()
	endRecording() // 4. What is known of logins is stored.
	recorder.Wait()
	select {
	case err := <-failed:
		return err
	default:
		return nil
	}
}

// rememberWait bounds the one query before the first login.
const rememberWait = 10 * time.Second

// remember lets those who have logged in before count as known: a restart under attack must not keep them out.
func (s *Server) remember(ctx context.Context) {
	try, cancel := context.WithTimeout(ctx, rememberWait)
	defer cancel()
	rows, err := s.Pool.Query(try, store.LoginEventKnown, guardMost)
	if err == nil {
		var account string
		var addr netip.Addr
		_, err = pgx.ForEachRow(rows, []any{&account, &addr}, func() error {
			s.guard.succeeded(addr, account)
			return nil
		})
	}
	if err != nil && ctx.Err() == nil {
		s.Log.Warn("earlier logins not read, everybody counts as new", slog.Any("error", err))
	}
}

const (
	acceptPause     = 5 * time.Millisecond
	acceptPauseMost = time.Second
)

// accept takes connections until ctx is done.
func (s *Server) accept(ctx, work context.Context, listener net.Listener, serving *sync.WaitGroup) error {
	stop := context.AfterFunc(ctx, func() {
		_ = listener.Close() // it ends the Accept below, nothing else can be done with it
	})
	defer stop()
	pause := acceptPause
	for {
		nc, err := listener.Accept()
		switch {
		case ctx.Err() != nil:
			if err == nil {
				_ = nc.Close() // never served
			}
			return nil
		case errors.Is(err, net.ErrClosed):
			return fmt.Errorf("inbound: accept: %w", err)
		case err != nil: // out of descriptors, or gone before we took it
			s.Log.Error("connection not accepted", slog.Any("error", err))
			wait(ctx, pause)
			pause = min(2*pause, acceptPauseMost)
			continue
		}
		pause = acceptPause
		st, evicted := s.places.arrive(nc, s.Config.MaxUnauthenticated, time.Now())
		if st == nil || evicted {
			s.quiet.log(ctx, s.Log, "connection closed: too many that have not logged in", slog.String("remote", nc.RemoteAddr().String()), slog.Bool("oldest", evicted))
		}
		if st == nil {
			s.metrics.unwelcome.Inc()
			_ = nc.Close() // refused
			continue
		}
		serving.Go(func() { s.serve(ctx, work, nc, st) })
	}
}

var (
	errReplaced = errors.New("inbound: the link gave no sign of life when a new login needed its place")
	errRevoked  = errors.New("inbound: the login is not valid any more")
)

// serve is one connection from its first octet to its end. A login in progress ends with intake, a session with work.
func (s *Server) serve(intake, work context.Context, nc net.Conn, st *stranger) {
	c := &conn{server: s, attempt: newAttempt(nc, st)}
	link, err := s.shake(intake, nc, c)
	s.places.left(st)
	defer s.places.leave(c)
	if err != nil {
		s.refused(intake, c.attempt, err)
		return
	}
	s.metrics.logins.WithLabelValues(code(statusOK)).Inc()
	s.record.note(c.attempt, statusOK, "", "", time.Now())
	ctx, end := context.WithCancel(work)
	defer end()
	c.session, c.end = link, end
	c.log = s.Log.With(slog.Int("app", int(c.app)), slog.Int64("session", c.id))
	c.log.LogAttrs(ctx, slog.LevelInfo, "customer logged in", append(c.attempt.attrs(), slog.String("layout", link.Version().String()))...)
	s.places.run(c, func() { s.recheck(c) }) // the settings may have changed since the login was decided
	s.sessions.add(c.app, link)
	err = link.Run(ctx, c)
	s.sessions.remove(c.app, link)
	s.places.leave(c) // before anybody learns that it ended
	c.release()
	switch {
	case errors.Is(err, session.ErrSecondConnect):
		s.record.note(c.attempt, statusOther, "second CONNECT on a live link", "", time.Now())
	case errors.Is(err, errReplaced):
		s.record.note(c.attempt, closedStatus, "the link gave no sign of life when a new login needed its place", "", time.Now())
	}
	c.log.LogAttrs(ctx, slog.LevelInfo, "customer session ended", slog.Any("cause", err))
}

// shake is the login.
func (s *Server) shake(ctx context.Context, nc net.Conn, c *conn) (*session.Session, error) {
	ctx, cancel := context.WithTimeout(ctx, s.Config.LoginTimeout)
	defer cancel()
	cfg := session.Config{
		ResponseTimeout: s.Config.ResponseTimeout, IdleInterval: s.Config.IdleInterval, Tries: s.Config.Tries,
		WriteTimeout: s.Config.WriteTimeout, OutQueue: outQueue, Log: s.Log,
	}
	return session.Accept(ctx, nc, cfg, func(ctx context.Context, connect *cmpp.Connect, _ net.Addr) (session.Welcome, error) {
		return s.login(ctx, c, c.attempt, connect)
	})
}

// outQueue is how many answers may wait for a customer who does not read them; beyond, the connection is closed. It is more
// than any window.
const outQueue = 1024

// refused logs and records a connection that did not become a session.
func (s *Server) refused(ctx context.Context, a *attempt, err error) {
	if r, ok := errors.AsType[*session.RefusedError](err); ok {
		s.metrics.logins.WithLabelValues(code(r.Status)).Inc()
		if a.cause == "" {
			a.cause = "CONNECT is not understood"
			if a.connect != nil {
				a.cause = "the login failed within the gateway"
			}
		}
		attrs := append(a.attrs(), slog.Uint64("status", uint64(r.Status)))
		if r.Err != nil {
			a.detail = r.Err.Error()
			attrs = append(attrs, slog.Any("error", r.Err))
		}
		s.record.note(a, int(r.Status), a.cause, a.detail, time.Now())
		s.Log.LogAttrs(ctx, slog.LevelWarn, "login refused", attrs...)
		return
	}
	s.metrics.unwelcome.Inc()
	if ctx.Err() != nil {
		return // the gateway stops
	}
	a.cause, a.detail = stranded(err)
	s.record.note(a, closedStatus, a.cause, a.detail, time.Now())
	s.quiet.log(ctx, s.Log, "connection ended without a login", append(a.attrs(), slog.Any("error", err))...)
}

// watch ends the sessions that new settings do not allow any more.
func (s *Server) watch(ctx context.Context) {
	for {
		changed := s.Settings.Changed()
		s.places.each(s.recheck)
		s.rates.prune(&s.Settings.Current().Limits)
		select {
		case <-ctx.Done():
			return
		case <-changed:
		}
	}
}

// revokeGrace is how long a session that must end may take for saying goodbye.
const revokeGrace = 500 * time.Millisecond

// recheck ends a session that the settings do not allow any more: its SUBMITs are refused from now on, and what it does not
// end itself with TERMINATE_RESP is cut soon. Places are locked.
func (s *Server) recheck(c *conn) {
	if c.closing.Load() {
		return
	}
	cause := c.revoked(s.Settings.Current())
	if cause == "" {
		return
	}
	c.closing.Store(true)
	c.log.Info("customer session is ended", slog.String("cause", cause))
	s.record.note(c.attempt, closedStatus, "session ended: "+cause, "", time.Now())
	c.end()
	c.cut = time.AfterFunc(revokeGrace, func() { c.session.Close(errRevoked) })
}

// enterprises are those with live connections, and how many applications each has.
func (s *Server) enterprises() map[int32]int {
	live := make(map[int32]int)
	s.places.each(func(c *conn) { live[c.enterprise] = 0 })
	for _, app := range s.Settings.Current().Applications {
		if _, ok := live[app.EnterpriseID]; ok {
			live[app.EnterpriseID]++
		}
	}
	return live
}

// liveApps are the applications with live connections.
func (s *Server) liveApps() []int32 {
	live := make(map[int32]bool)
	s.places.each(func(c *conn) { live[c.app] = true })
	return slices.Collect(maps.Keys(live))
}

// quiet logs at most one line a second: whatever scans the port must not fill the log.
type quiet struct {
	mu      sync.Mutex
	last    time.Time
	skipped int
}

func (q *quiet) log(ctx context.Context, log *slog.Logger, msg string, attrs ...slog.Attr) {
	q.mu.Lock()
	now := time.Now()
	if !q.last.IsZero() && now.Sub(q.last) < time.Second {
		q.skipped++
		q.mu.Unlock()
		return
	}
	skipped := q.skipped
	q.last, q.skipped = now, 0
	q.mu.Unlock()
	if skipped > 0 {
		attrs = append(attrs, slog.Int("not_logged", skipped))
	}
	log.LogAttrs(ctx, slog.LevelInfo, msg, attrs...) //nolint:sloglint // msg is a constant at each call
}
