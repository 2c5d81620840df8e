package inbound

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"sync"
	"time"

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

// Options of a Server; all fields are required.
type Options struct {
	Config        config.Inbound
	DeliverWindow int // DELIVERs a connection may have unanswered
	Pool          *pgxpool.Pool
	Node          *store.Node
	Settings      *settings.Watcher
	Wake          Waker
	Log           *slog.Logger
	Registry      prometheus.Registerer
}

// Server is the customers' CMPP server. Create it with New, start it once with Run.
type Server struct {
	Options

	listener   net.Listener
	sessions   *Sessions
	batcher    *batcher
	backlog    *backlog
	metrics    *metrics
	resendTime time.Duration
	quiet      quiet

	mu       sync.Mutex
	strange  int           // connections that have not logged in
	loggedIn int           // places taken in all
	places   map[int32]int // … by application
	conns    map[*conn]login
}

// login is what a session was let in with.
type login struct{ spID, secret string }

// New listens; connections wait in the kernel until Run.
func New(ctx context.Context, o Options) (*Server, error) {
	listener, err := new(net.ListenConfig).Listen(ctx, "tcp", o.Config.Listen)
	if err != nil {
		return nil, fmt.Errorf("inbound: %w", err)
	}
	s := &Server{
		Options: o, listener: listener, sessions: newSessions(), places: make(map[int32]int), conns: make(map[*conn]login),
		resendTime: time.Duration(o.Config.Tries) * o.Config.ResponseTimeout,
		backlog:    &backlog{pool: o.Pool, log: o.Log, max: o.Config.BacklogMax},
	}
	s.batcher = &batcher{
		cfg: o.Config, pool: o.Pool, node: o.Node, wake: o.Wake, sessions: s.sessions, log: o.Log, ready: make(chan struct{}, 1),
	}
	s.metrics = newMetrics(o.Registry, s)
	s.batcher.metrics = s.metrics
	return s, nil
}

// Addr is where the server listens.
func (s *Server) Addr() net.Addr { return s.listener.Addr() }

// Sessions are the live connections, for the delivery of receipts and uplinks.
func (s *Server) Sessions() *Sessions { return s.sessions }

// Run serves until ctx is done and then stops in order; that is no error.
func (s *Server) Run(ctx context.Context) error {
	work, endWork := context.WithCancel(context.WithoutCancel(ctx)) // of the sessions, which outlive the intake
	defer endWork()
	var helpers, committer sync.WaitGroup
	helpers.Go(func() { s.backlog.run(ctx, s.enterprises) })
	helpers.Go(func() { s.watch(ctx) })
	committer.Go(func() { s.batcher.run(context.WithoutCancel(ctx)) })
	var serving sync.WaitGroup
	// 1. No new connections.
	err := s.accept(ctx, work, &serving)
	// 2. No new SUBMITs, those in the queue are committed and their answers queued.
	s.batcher.close()
	committer.Wait()
	// 3. The sessions write what is queued, say TERMINATE and end.
	endWork()
	serving.Wait()
	helpers.Wait()
	return err
}

const (
	acceptPause     = 5 * time.Millisecond
	acceptPauseMost = time.Second
)

// accept takes connections until ctx is done.
func (s *Server) accept(ctx, work context.Context, serving *sync.WaitGroup) error {
	stop := context.AfterFunc(ctx, func() {
		_ = s.listener.Close() // it ends the Accept below, nothing else can be done with it
	})
	defer stop()
	pause := acceptPause
	for {
		nc, err := s.listener.Accept()
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
		if !s.arrive() {
			s.metrics.unwelcome.Inc()
			s.quiet.log(ctx, s.Log, "connection closed: too many that have not logged in", slog.String("remote", nc.RemoteAddr().String()))
			_ = nc.Close() // refused
			continue
		}
		serving.Go(func() { s.serve(ctx, work, nc) })
	}
}

// arrive takes a place among the connections that have not logged in.
func (s *Server) arrive() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.strange >= s.Config.MaxUnauthenticated {
		return false
	}
	s.strange++
	return true
}

// counts are the connections logged in and those not yet.
func (s *Server) counts() (loggedIn, strange int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.loggedIn, s.strange
}

// serve is one connection from its first octet to its end. A login in progress ends with intake, a session with work.
func (s *Server) serve(intake, work context.Context, nc net.Conn) {
	c, a := &conn{server: s}, &attempt{remote: nc.RemoteAddr()}
	var as login
	link, err := s.shake(intake, nc, c, a, &as)
	s.mu.Lock()
	s.strange--
	s.mu.Unlock()
	if c.id != 0 {
		defer s.leave(c.app)
	}
	if err != nil {
		s.refused(intake, a, err)
		return
	}
	s.metrics.logins.WithLabelValues(code(statusOK)).Inc()
	ctx, end := context.WithCancel(work)
	defer end()
	c.session, c.end = link, end
	c.log = s.Log.With(slog.Int("app", int(c.app)), slog.Int64("session", c.id))
	c.log.LogAttrs(ctx, slog.LevelInfo, "customer logged in", append(a.attrs(), slog.String("layout", link.Version().String()))...)
	s.mu.Lock()
	s.conns[c] = as
	s.recheck(c, as) // the settings may have changed since the login was decided
	s.mu.Unlock()
	s.sessions.add(c.app, link)
	err = link.Run(ctx, c)
	s.sessions.remove(c.app, link)
	s.mu.Lock()
	delete(s.conns, c)
	s.mu.Unlock()
	c.log.LogAttrs(ctx, slog.LevelInfo, "customer session ended", slog.Any("cause", err))
}

// shake is the login.
func (s *Server) shake(ctx context.Context, nc net.Conn, c *conn, a *attempt, as *login) (*session.Session, error) {
	ctx, cancel := context.WithTimeout(ctx, s.Config.LoginTimeout)
	defer cancel()
	cfg := session.Config{
		ResponseTimeout: s.Config.ResponseTimeout, IdleInterval: s.Config.IdleInterval, Tries: s.Config.Tries,
		WriteTimeout: s.Config.WriteTimeout, OutQueue: outQueue, Log: s.Log,
	}
	return session.Accept(ctx, nc, cfg, func(ctx context.Context, connect *cmpp.Connect, _ net.Addr) (session.Welcome, error) {
		w, err := s.login(ctx, c, a, connect)
		*as = login{connect.SourceAddr, string(w.Secret)}
		return w, err
	})
}

// outQueue is how many answers may wait for a customer who does not read them; beyond, the connection is closed. It is more
// than any window.
const outQueue = 1024

// refused logs a connection that did not become a session.
func (s *Server) refused(ctx context.Context, a *attempt, err error) {
	if r, ok := errors.AsType[*session.RefusedError](err); ok {
		s.metrics.logins.WithLabelValues(code(r.Status)).Inc()
		attrs := append(a.attrs(), slog.Uint64("status", uint64(r.Status)))
		if r.Err != nil {
			attrs = append(attrs, slog.Any("error", r.Err))
		}
		s.Log.LogAttrs(ctx, slog.LevelWarn, "login refused", attrs...)
		return
	}
	s.metrics.unwelcome.Inc()
	if ctx.Err() == nil {
		s.quiet.log(ctx, s.Log, "connection ended without a login", append(a.attrs(), slog.Any("error", err))...)
	}
}

// watch ends the sessions that new settings do not allow any more.
func (s *Server) watch(ctx context.Context) {
	for {
		changed := s.Settings.Changed()
		s.mu.Lock()
		for c, as := range s.conns {
			s.recheck(c, as)
		}
		s.mu.Unlock()
		select {
		case <-ctx.Done():
			return
		case <-changed:
		}
	}
}

func (s *Server) recheck(c *conn, as login) {
	if cause := c.revoked(s.Settings.Current(), as); cause != "" {
		c.log.Info("customer session is ended", slog.String("cause", cause))
		c.end()
	}
}

// enterprises are those with live connections, and how many applications each has.
func (s *Server) enterprises() map[int32]int {
	live := make(map[int32]int)
	s.mu.Lock()
	for c := range s.conns {
		live[c.enterprise] = 0
	}
	s.mu.Unlock()
	for _, app := range s.Settings.Current().Applications {
		if _, ok := live[app.EnterpriseID]; ok {
			live[app.EnterpriseID]++
		}
	}
	return live
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
