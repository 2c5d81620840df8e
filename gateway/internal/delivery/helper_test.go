package delivery_test

import (
	"context"
	"errors"
	"log/slog"
	"net"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/prometheus/client_golang/prometheus"

	"cmppgateway/gateway/cmpp"
	"cmppgateway/gateway/internal/config"
	"cmppgateway/gateway/internal/delivery"
	"cmppgateway/gateway/internal/inbound"
	"cmppgateway/gateway/internal/session"
	"cmppgateway/gateway/internal/store"
	"cmppgateway/gateway/internal/wake"
	"cmppgateway/testenv"
)

func TestMain(m *testing.M) {
	testenv.Migrated(store.Migrate)
	testenv.Main(m)
}

// bench is a database and what every process needs.
type bench struct {
	*pgxpool.Pool

	cfg config.Delivery
}

func setup(tb testing.TB) *bench {
	tb.Helper()
	pool, err := pgxpool.New(tb.Context(), testenv.DB(tb))
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(pool.Close)
	b := &bench{Pool: pool, cfg: config.Default().Delivery}
	b.cfg.Sweep = 200 * time.Millisecond
	return b
}

func (b *bench) exec(tb testing.TB, sql string, args ...any) {
	tb.Helper()
	if _, err := b.Exec(tb.Context(), sql, args...); err != nil {
		tb.Fatalf("%s: %v", sql, err)
	}
}

func (b *bench) count(tb testing.TB, sql string, args ...any) (n int) {
	tb.Helper()
	if err := b.QueryRow(tb.Context(), sql, args...).Scan(&n); err != nil {
		tb.Fatalf("%s: %v", sql, err)
	}
	return n
}

// logs keeps what was logged.
type logs struct {
	mu   sync.Mutex
	text strings.Builder
}

func (l *logs) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.Write(p)
}

func (l *logs) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.String()
}

// process is one process of the gateway as far as deliveries go: links, barrier, node.
type process struct {
	*bench

	node *store.Node
	reg  *prometheus.Registry
	bus  *wake.Bus
	stop func()
	log  logs

	mu       sync.Mutex
	links    map[int32][]*session.Session
	held     map[cmpp.MsgID]bool
	asked    int // how often the barrier was asked
	onChange func(bool)
	written  func([]cmpp.MsgID)
	stray    func(int32, *cmpp.DeliverResp)
	strays   int // were handed on
}

// boot starts a process.
func (b *bench) boot(tb testing.TB) *process {
	tb.Helper()
	node, err := store.LeaseNode(tb.Context(), b.Pool, config.Node{Lease: time.Minute}, slog.New(slog.DiscardHandler))
	if err != nil {
		tb.Fatal(err)
	}
	return b.bootAs(tb, node)
}

func (b *bench) bootAs(tb testing.TB, node *store.Node) *process {
	tb.Helper()
	p := &process{bench: b, node: node, reg: prometheus.NewRegistry(), links: map[int32][]*session.Session{}, held: map[cmpp.MsgID]bool{}}
	log := slog.New(slog.NewTextHandler(&p.log, nil))
	p.bus = wake.New(nil, log)
	d := delivery.New(delivery.Options{
		Config: b.cfg, Pool: b.Pool, Node: node, Wake: p.bus, Sessions: p, Log: log, Registry: p.reg,
	})
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- d.Run(ctx) }()
	p.stop = sync.OnceFunc(func() {
		cancel()
		if err := <-done; err != nil {
			tb.Error(err)
		}
	})
	tb.Cleanup(func() { p.stop() })
	return p
}

func (p *process) Each(f func(int32, []*session.Session)) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for app, links := range p.links {
		f(app, links)
	}
}

func (p *process) Unwritten(id cmpp.MsgID) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.asked++
	return p.held[id]
}

func (p *process) OnChange(f func(bool)) { p.onChange = f }

func (p *process) OnStray(f func(int32, *cmpp.DeliverResp)) { p.stray = f }

func (p *process) OnWritten(f func([]cmpp.MsgID)) { p.written = f }

func (p *process) hold(id cmpp.MsgID, on bool) {
	p.mu.Lock()
	p.held[id] = on
	p.mu.Unlock()
	if !on {
		p.written([]cmpp.MsgID{id})
	}
}

// value is that of a counter or gauge without labels.
func (p *process) value(tb testing.TB, name string) float64 {
	tb.Helper()
	families, err := p.reg.Gather()
	if err != nil {
		tb.Fatal(err)
	}
	for _, f := range families {
		if f.GetName() == name {
			m := f.GetMetric()[0]
			return m.GetCounter().GetValue() + m.GetGauge().GetValue() // one of them is not there, and 0
		}
	}
	tb.Fatalf("no metric %s", name)
	return 0
}

func (p *process) nudge() { p.bus.Publish(wake.Deliveries) }

// customer is one connection and what came over it.
type customer struct {
	t        testing.TB
	server   *session.Session
	delivers chan deliver
	link     *session.Session
	end      func()
}

type deliver struct {
	seq uint32
	*cmpp.Deliver
}

// handler serves both ends.
type handler struct {
	request func(*session.Session, cmpp.Header, cmpp.PDU)
	stray   func(*cmpp.DeliverResp)
}

func (h handler) OnRequest(s *session.Session, hd cmpp.Header, p cmpp.PDU) { h.request(s, hd, p) }

func (handler) OnBadRequest(*session.Session, cmpp.Header, *cmpp.DecodeError) {}

func (handler) OnLateResponse(_ *session.Session, _ cmpp.Header, p cmpp.PDU, token any) {
	if l, ok := token.(inbound.Late); ok {
		l.OnLate(p)
	}
}

func (h handler) OnStrayResponse(_ *session.Session, _ cmpp.Header, p cmpp.PDU) {
	if resp, ok := p.(*cmpp.DeliverResp); ok && h.stray != nil {
		h.stray(resp)
	}
}

// answers what the customer does with a DELIVER.
type answers func(d deliver) (result uint32, answer bool)

func accept(deliver) (uint32, bool) { return 0, true }

func silence(deliver) (uint32, bool) { return 0, false }

// connect logs a customer of app in; one without answer never reads.
func (p *process) connect(tb testing.TB, app int32, v cmpp.Version, answer answers) *customer {
	tb.Helper()
	return p.connectWith(tb, app, v, session.Config{Window: p.cfg.DeliverWindow}, answer)
}

func (p *process) connectWith(tb testing.TB, app int32, v cmpp.Version, cfg session.Config, answer answers) *customer {
	tb.Helper()
	listener, err := new(net.ListenConfig).Listen(tb.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		tb.Fatal(err)
	}
	defer listener.Close()
	ours, err := new(net.Dialer).DialContext(tb.Context(), "tcp", listener.Addr().String())
	if err != nil {
		tb.Fatal(err)
	}
	theirs, err := listener.Accept()
	if err != nil {
		tb.Fatal(err)
	}
	c := &customer{t: tb, delivers: make(chan deliver, 1<<16)}
	ctx, cancel := context.WithCancel(context.Background())
	var running sync.WaitGroup
	accepted := make(chan *session.Session, 1)
	running.Go(func() {
		s, err := session.Accept(ctx, theirs, cfg, func(context.Context, *cmpp.Connect, net.Addr) (session.Welcome, error) {
			return session.Welcome{Secret: []byte("s"), Version: v}, nil
		})
		accepted <- s
		if err == nil {
			_ = s.Run(ctx, handler{stray: func(resp *cmpp.DeliverResp) {
				p.stray(app, resp)
				p.mu.Lock()
				defer p.mu.Unlock()
				p.strays++
			}})
		}
	})
	c.link, err = session.Login(ctx, ours, session.Config{}, session.Credentials{SourceAddr: "1", Secret: []byte("s"), Version: v})
	if err != nil {
		tb.Fatal(err)
	}
	c.server = <-accepted
	running.Go(func() {
		if answer == nil { // it never reads
			<-ctx.Done()
			return
		}
		_ = c.link.Run(ctx, handler{request: func(_ *session.Session, hd cmpp.Header, q cmpp.PDU) {
			d := deliver{hd.Sequence, q.(*cmpp.Deliver)}
			c.delivers <- d
			if result, ok := answer(d); ok {
				c.reply(d, result)
			}
		}})
	})
	c.server.OnWindow(func() { p.onChange(false) })
	p.mu.Lock()
	p.links[app] = append(p.links[app], c.server)
	p.mu.Unlock()
	p.onChange(true)
	c.end = sync.OnceFunc(func() {
		p.mu.Lock()
		for i, s := range p.links[app] {
			if s == c.server {
				p.links[app] = append(append([]*session.Session(nil), p.links[app][:i]...), p.links[app][i+1:]...)
			}
		}
		if len(p.links[app]) == 0 {
			delete(p.links, app)
		}
		p.mu.Unlock()
		c.link.Close(nil)
		c.server.Close(nil)
		cancel()
		running.Wait()
	})
	tb.Cleanup(func() { c.end() })
	return c
}

func (c *customer) reply(d deliver, result uint32) {
	c.t.Helper()
	if err := c.link.Reply(d.seq, &cmpp.DeliverResp{MsgID: d.MsgID, Result: result}, nil); err != nil && !errors.Is(err, session.ErrClosed) {
		c.t.Errorf("reply: %v", err)
	}
}

const patience = 20 * time.Second

func (c *customer) next() deliver {
	c.t.Helper()
	select {
	case d := <-c.delivers:
		return d
	case <-time.After(patience):
		c.t.Fatal("no DELIVER within 20 s")
		return deliver{}
	}
}

// quiet wants no DELIVER for a moment.
func (c *customer) quiet(d time.Duration) {
	c.t.Helper()
	select {
	case got := <-c.delivers:
		c.t.Fatalf("unexpected DELIVER %d", got.MsgID)
	case <-time.After(d):
	}
}

func eventually(tb testing.TB, what string, ok func() bool) {
	tb.Helper()
	limit := time.Now().Add(patience)
	for !ok() {
		if time.Now().After(limit) {
			tb.Fatalf("not within 20 s: %s", what)
		}
		time.Sleep(2 * time.Millisecond)
	}
}

// receipt inserts a receipt of app accepted by the process and returns its id.
func (p *process) receipt(tb testing.TB, app int32) int64 {
	tb.Helper()
	return p.receiptOf(tb, app, p.node.Number, "1 second")
}

func (p *process) receiptOf(tb testing.TB, app int32, node int16, age string) int64 {
	tb.Helper()
	id, err := p.node.IDs.Next(tb.Context())
	if err != nil {
		tb.Fatal(err)
	}
	p.insert(tb, id, app, node, age)
	return id
}

func (p *process) insert(tb testing.TB, id int64, app int32, node int16, age string) {
	tb.Helper()
	p.exec(tb, `INSERT INTO delivery (id, pos, message_id, msg_id, accept_session, accepted_at, done_at, app_id, kind, accept_node, stat, dest, src, service)
		VALUES ($1, $1, 1, $2, 1, now() - $5::text::interval, now(), $3, 1, $4, 'DELIVRD', '13800000001', '106912', 'svc')`, id, int64(submitOf(cmpp.MsgID(id))), app, node, age)
}

// rows is how many deliveries an application has.
func (b *bench) rows(tb testing.TB, app int32) int {
	tb.Helper()
	return b.count(tb, "SELECT count(*) FROM delivery WHERE app_id = $1", app)
}

// submitOf is the Msg_Id of the SUBMIT that a receipt of these tests is about: another for every receipt.
func submitOf(receipt cmpp.MsgID) cmpp.MsgID { return receipt ^ 1<<62 }
