package supplier_test

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/redis/go-redis/v9"

	"cmppgateway/gateway/cmpp"
	"cmppgateway/gateway/internal/config"
	"cmppgateway/gateway/internal/event"
	"cmppgateway/gateway/internal/message"
	"cmppgateway/gateway/internal/outbox"
	"cmppgateway/gateway/internal/session"
	"cmppgateway/gateway/internal/settings"
	"cmppgateway/gateway/internal/store"
	"cmppgateway/gateway/internal/supplier"
	"cmppgateway/gateway/internal/wake"
	"cmppgateway/testenv"
)

func TestMain(m *testing.M) {
	testenv.Migrated(store.Migrate)
	testenv.Main(m)
}

// smsc is a scripted supplier. What it saw is recorded by the text of the message.
type smsc struct {
	addr   string
	listen net.Listener
	wg     sync.WaitGroup

	answer atomic.Pointer[answerFunc] // nil: result 0 at once

	mu     sync.Mutex
	seen   map[string]int // submits by text
	first  []*cmpp.Submit
	peers  map[*peer]struct{}
	most   int // connections at once
	widest int // submits unanswered on one connection at once
	logins int
	acks   map[cmpp.MsgID]int
	serial uint64
}

// answerFunc answers a submit through reply, now or later or never.
type answerFunc func(p *peer, s *cmpp.Submit, reply func(result uint32))

// peer is one connection at the supplier.
type peer struct {
	c      *smsc
	sess   *session.Session
	conn   net.Conn
	open   int
	number int
}

func newSMSC(tb testing.TB) *smsc {
	tb.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		tb.Fatal(err)
	}
	c := &smsc{addr: l.Addr().String(), listen: l, seen: make(map[string]int), peers: make(map[*peer]struct{}), acks: make(map[cmpp.MsgID]int)}
	ctx, cancel := context.WithCancel(context.Background())
	c.wg.Go(func() {
		for {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			c.wg.Go(func() { c.serve(ctx, conn) })
		}
	})
	tb.Cleanup(func() {
		cancel()
		_ = l.Close()
		c.cut()
		c.wg.Wait()
	})
	return c
}

func (c *smsc) serve(ctx context.Context, conn net.Conn) {
	s, err := session.Accept(ctx, conn, session.Config{Window: 64}, func(_ context.Context, p *cmpp.Connect, _ net.Addr) (session.Welcome, error) {
		return session.Welcome{Secret: []byte("secret"), Version: p.Version}, nil
	})
	if err != nil {
		return
	}
	p := &peer{c: c, sess: s, conn: conn}
	c.mu.Lock()
	c.logins++
	p.number = c.logins
	c.peers[p] = struct{}{}
	c.most = max(c.most, len(c.peers))
	c.mu.Unlock()
	_ = s.Run(ctx, p)
	c.mu.Lock()
	delete(c.peers, p)
	c.mu.Unlock()
}

func (p *peer) OnRequest(s *session.Session, hd cmpp.Header, pdu cmpp.PDU) {
	sub, ok := pdu.(*cmpp.Submit)
	if !ok {
		return
	}
	c := p.c
	c.mu.Lock()
	c.seen[string(sub.MsgContent)]++
	c.first = append(c.first, sub)
	c.serial++
	id := cmpp.MsgID(c.serial)
	p.open++
	c.widest = max(c.widest, p.open)
	c.mu.Unlock()
	reply := func(result uint32) {
		c.mu.Lock()
		p.open--
		c.mu.Unlock()
		if result != 0 {
			id = 0
		}
		_ = s.Reply(hd.Sequence, &cmpp.SubmitResp{MsgID: id, Result: result}, nil)
	}
	if f := c.answer.Load(); f != nil {
		(*f)(p, sub, reply)
		return
	}
	reply(0)
}

func (p *peer) OnBadRequest(*session.Session, cmpp.Header, *cmpp.DecodeError) {}
func (p *peer) OnLateResponse(*session.Session, cmpp.Header, cmpp.PDU, any)   {}

func (c *smsc) script(f answerFunc) {
	if f == nil {
		c.answer.Store(nil)
		return
	}
	c.answer.Store(&f)
}

// hold keeps every submit unanswered until the function returned is called.
func (c *smsc) hold() (release func(result uint32)) {
	var mu sync.Mutex
	var waiting []func(uint32)
	c.script(func(_ *peer, _ *cmpp.Submit, reply func(uint32)) {
		mu.Lock()
		defer mu.Unlock()
		waiting = append(waiting, reply)
	})
	return func(result uint32) {
		c.script(nil)
		mu.Lock()
		defer mu.Unlock()
		for _, f := range waiting {
			f(result)
		}
		waiting = nil
	}
}

// cut resets all connections.
func (c *smsc) cut() {
	c.mu.Lock()
	defer c.mu.Unlock()
	for p := range c.peers {
		_ = p.conn.Close()
	}
}

func (c *smsc) total() (submits, distinct int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, n := range c.seen {
		submits += n
	}
	return submits, len(c.seen)
}

func (c *smsc) connections() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return len(c.peers)
}

// deliver sends a DELIVER on one connection and tells when it was answered.
func (c *smsc) deliver(tb testing.TB, d *cmpp.Deliver) <-chan session.Outcome {
	tb.Helper()
	c.mu.Lock()
	defer c.mu.Unlock()
	for p := range c.peers {
		out := make(chan session.Outcome, 1)
		if p.sess.Acquire(1) != 1 {
			tb.Fatal("no window at the supplier")
		}
		if err := p.sess.Send([]session.Call{{PDU: d, Done: func(o session.Outcome) { out <- o }}}); err != nil {
			tb.Fatal(err)
		}
		return out
	}
	tb.Fatal("no connection")
	return nil
}

// core applies results as the callback does: the row goes when its result was accepted.
type core struct {
	*httptest.Server

	pool *pgxpool.Pool
	down atomic.Bool

	mu       sync.Mutex
	results  map[int64][]event.SubmitResult
	receipts []event.Receipt
	uplinks  []event.Uplink
	letters  []event.DeadLetter
}

func newCore(tb testing.TB, pool *pgxpool.Pool) *core {
	tb.Helper()
	c := &core{pool: pool, results: make(map[int64][]event.SubmitResult)}
	c.Server = httptest.NewServer(http.HandlerFunc(c.serve))
	tb.Cleanup(c.Close)
	return c
}

func (c *core) serve(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(r.Body)
	var b event.BatchRequest
	if err != nil || json.Unmarshal(body, &b) != nil || c.down.Load() {
		w.WriteHeader(http.StatusServiceUnavailable)
		return
	}
	answer := event.BatchResponse{BatchID: b.BatchID}
	var ids []int64
	c.mu.Lock()
	for _, e := range b.Events {
		switch e.Type {
		case event.TypeSubmitResult:
			var s event.SubmitResult
			_ = json.Unmarshal(e.Payload, &s)
			c.results[s.SubmitID] = append(c.results[s.SubmitID], s)
			ids = append(ids, s.SubmitID)
		case event.TypeReceipt:
			var s event.Receipt
			_ = json.Unmarshal(e.Payload, &s)
			c.receipts = append(c.receipts, s)
		case event.TypeUplink:
			var s event.Uplink
			_ = json.Unmarshal(e.Payload, &s)
			c.uplinks = append(c.uplinks, s)
		case event.TypeDeadLetter:
			var s event.DeadLetter
			_ = json.Unmarshal(e.Payload, &s)
			c.letters = append(c.letters, s)
		}
		answer.Results = append(answer.Results, event.Result{EventID: e.ID, Accepted: true})
	}
	c.mu.Unlock()
	if _, err := c.pool.Exec(r.Context(), `DELETE FROM submit_outbox WHERE id = ANY($1) AND state = 1`, ids); err != nil {
		w.WriteHeader(http.StatusServiceUnavailable)
		return
	}
	_ = json.NewEncoder(w).Encode(answer)
}

// states counts submits by the last state reported.
func (c *core) states() map[string]int {
	c.mu.Lock()
	defer c.mu.Unlock()
	n := make(map[string]int)
	for _, list := range c.results {
		n[list[len(list)-1].State]++
	}
	return n
}

func (c *core) count() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return len(c.results)
}

// rig is one edge with everything around it.
type rig struct {
	pool  *pgxpool.Pool // of the test
	url   string
	core  *core
	smsc  *smsc
	redis *redis.Options
	rdb   *redis.Client
	cfg   config.Config
	log   *slog.Logger
	ids   *message.IDs
	total int
}

const settingsSQL = `
INSERT INTO enterprise (id, name) VALUES (1, 'a'), (2, 'b');
INSERT INTO application (id, enterprise_id, price, sp_id, secret, name, access_number) VALUES (11, 1, 325, '100001', 's', 'a', '1069'), (12, 2, 325, '100002', 's', 'b', '');`

func newRig(tb testing.TB) *rig {
	tb.Helper()
	addr, db := testenv.Redis(tb)
	r := &rig{url: testenv.DB(tb), redis: &redis.Options{Addr: addr, DB: db, ContextTimeoutEnabled: true}, cfg: config.Default()}
	var err error
	if r.pool, err = pgxpool.New(tb.Context(), r.url); err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(r.pool.Close)
	r.log = slog.New(slog.NewTextHandler(tb.Output(), &slog.HandlerOptions{Level: slog.LevelInfo}))
	r.core = newCore(tb, r.pool)
	r.smsc = newSMSC(tb)
	r.rdb = redis.NewClient(r.redis)
	tb.Cleanup(func() { _ = r.rdb.Close() })
	r.ids = message.NewIDs(200, time.Now().Add(-time.Second), time.Now().Add(time.Hour), time.Now)
	r.cfg.Postgres.URL = r.url
	r.cfg.Node.Lease = time.Second
	r.cfg.Supplier.ReconnectMin, r.cfg.Supplier.ReconnectMax = 10*time.Millisecond, 100*time.Millisecond
	r.cfg.Supplier.LeaseTime = 2 * time.Second
	r.cfg.Outbox.Pull = 100 * time.Millisecond
	r.cfg.Event.RetryMin, r.cfg.Event.RetryMax = 5*time.Millisecond, 50*time.Millisecond
	r.exec(tb, settingsSQL)
	r.account(tb, 1, 8, 64)
	return r
}

func (r *rig) exec(tb testing.TB, sql string, args ...any) {
	tb.Helper()
	if _, err := r.pool.Exec(tb.Context(), sql, args...); err != nil {
		tb.Fatalf("%s: %v", sql, err)
	}
}

func (r *rig) number(tb testing.TB, sql string, args ...any) (n int) {
	tb.Helper()
	if err := r.pool.QueryRow(tb.Context(), sql, args...).Scan(&n); err != nil {
		tb.Fatalf("%s: %v", sql, err)
	}
	return n
}

func (r *rig) account(tb testing.TB, id, connections, window int) {
	tb.Helper()
	r.exec(tb, `INSERT INTO supplier_account (id, max_connections, max_window, addr, sp_id, secret, name) VALUES ($1::int, $2, $3, $4, '901234', 'secret', 'account ' || $1::int)`,
		id, connections, window, r.smsc.addr)
}

// channel adds one on account 1, without warm-up.
func (r *rig) channel(tb testing.TB, id, connections, window int) {
	tb.Helper()
	r.exec(tb, `INSERT INTO channel (id, account_id, desired_connections, window_size, warmup_seconds, drain_seconds, response_seconds, cooldown_seconds, access_number, name)
		VALUES ($1::int, 1, $2, $3, 0, 5, 30, 1, '10690000', 'channel ' || $1::int)`, id, connections, window)
}

func (r *rig) set(tb testing.TB, sql string, args ...any) {
	tb.Helper()
	r.exec(tb, sql, args...)
	r.exec(tb, `UPDATE settings_version SET version = version + 1`)
}

// messages makes n messages with a pending submit each, as the workflow's transaction does.
func (r *rig) messages(tb testing.TB, channel, n int) []outbox.Command {
	tb.Helper()
	cmds := make([]outbox.Command, n)
	ids, err := r.ids.Take(tb.Context(), 2*n)
	if err != nil {
		tb.Fatal(err)
	}
	var messageIDs, submitIDs []int64
	var contents [][]byte
	for i := range cmds {
		r.total++
		cmds[i] = outbox.Command{
			MessageID: ids[2*i], SubmitID: ids[2*i+1], ChannelID: int32(channel), EnterpriseID: 1, AppID: 11, Attempt: 1, Part: 1, Parts: 1, Lane: 1,
			Phone: 13800000000, PkTotal: 1, PkNumber: 1, Src: []byte("106955"), Content: []byte("text " + strconv.Itoa(r.total)),
		}
		messageIDs, submitIDs, contents = append(messageIDs, cmds[i].MessageID), append(submitIDs, cmds[i].SubmitID), append(contents, cmds[i].Content)
	}
	r.exec(tb, `INSERT INTO message (id, msg_id, price, phone, accept_session, accepted_at, created_at, enterprise_id, app_id, channel_id, units, price_version, state, bill, charge_on, refund_on, registered, fmt, udhi, pk_total, pk_number, accept_node, dest, src, service, content)
		SELECT m, m, 325, 13800000000, 1, now(), now(), 1, 11, $2, 1, 1, 1, 1, 1, 1, 1, 0, 0, 1, 1, 1, '13800000000', '106955', '', c FROM unnest($1::bigint[], $3::bytea[]) u(m, c)`,
		messageIDs, channel, contents)
	r.exec(tb, `INSERT INTO submit_outbox (id, pos, message_id, channel_id, enterprise_id, attempt, part, parts, lane)
		SELECT s, s, m, $3, 1, 1, 1, 1, 1 FROM unnest($1::bigint[], $2::bigint[]) u(s, m)`, submitIDs, messageIDs, channel)
	return cmds
}

// first reserves n ids and returns the one before them.
func (r *rig) first(tb testing.TB, n int) int64 {
	tb.Helper()
	id, err := r.ids.Next(tb.Context())
	if err != nil {
		tb.Fatal(err)
	}
	const span = 1 << 14 // ids of a millisecond: these are of milliseconds gone by
	return id - int64(n) - span
}

// edge is one running process.
type edge struct {
	*supplier.Manager

	events *event.Queue
	hints  *outbox.RedisHinter
	node   *store.Node
	watch  *settings.Watcher
	stop   func() // gracefully
	kill   func() // as a killed process would end, as far as others can see
}

func (r *rig) edge(tb testing.TB) *edge {
	tb.Helper()
	pools, err := store.Open(tb.Context(), r.cfg.Postgres, 5*time.Second)
	if err != nil {
		tb.Fatal(err)
	}
	node, err := store.LeaseNode(tb.Context(), r.pool, r.cfg.Node, r.log)
	if err != nil {
		tb.Fatal(err)
	}
	watch := settings.NewWatcher(r.pool, 20*time.Millisecond, r.log)
	if err := watch.Refresh(tb.Context()); err != nil {
		tb.Fatal(err)
	}
	rdb := redis.NewClient(r.redis)
	bus := wake.New(rdb, r.log)
	reg := prometheus.NewRegistry()
	q, err := event.New(event.Options{
		Config: r.cfg.Event, Node: node.Number, NodeEpoch: node.Epoch, IDs: node.IDs, Instance: "edge", Redis: rdb, URL: r.core.URL, Log: r.log, Registerer: reg,
	})
	if err != nil {
		tb.Fatal(err)
	}
	if err := q.Load(tb.Context()); err != nil {
		tb.Fatal(err)
	}
	m := supplier.New(supplier.Options{
		Config: r.cfg.Supplier, Outbox: r.cfg.Outbox, Drain: 5 * time.Second, Pool: testenv.ZonePool(tb, pools.Outbox), Node: node, Settings: watch, Wake: bus, Redis: rdb,
		Events: q, Log: r.log, Registry: reg,
	})
	e := &edge{Manager: m, events: q, node: node, watch: watch, hints: outbox.NewHinter(rdb, bus, r.cfg.Outbox, r.log, reg)}
	around, endAround := context.WithCancel(context.Background())
	life, endLife := context.WithCancel(context.Background())
	feed, endFeed := context.WithCancel(context.Background())
	var back, manager, feeder sync.WaitGroup
	lease, endLease := context.WithCancel(context.Background())
	back.Go(func() { _ = node.Run(lease) })
	back.Go(func() { _ = watch.Run(around) })
	back.Go(func() { _ = bus.Run(around) })
	feeder.Go(func() { _ = q.Run(feed) })
	manager.Go(func() {
		if err := m.Run(life); err != nil {
			r.log.Info("manager", slog.Any("error", err))
		}
	})
	end := func(graceful bool) {
		endLife()
		manager.Wait()
		if graceful {
			ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
			if err := q.Drain(ctx); err != nil && !r.core.down.Load() {
				tb.Error(err)
			}
			cancel()
		}
		endFeed()
		feeder.Wait()
		endAround()
		endLease()
		back.Wait()
		_ = rdb.Close()
		pools.Close()
	}
	var once sync.Once
	e.stop = func() { once.Do(func() { end(true) }) }
	e.kill = func() { once.Do(func() { end(false) }) }
	tb.Cleanup(e.stop)
	return e
}

func eventually(tb testing.TB, what string, f func() bool) {
	tb.Helper()
	deadline := time.Now().Add(30 * time.Second)
	tick := time.NewTicker(2 * time.Millisecond)
	defer tick.Stop()
	for !f() {
		if time.Now().After(deadline) {
			tb.Fatalf("not within 30 s: %s", what)
		}
		<-tick.C
	}
}

// state is the status of one channel.
func (e *edge) state(channel int32) supplier.Status {
	for _, s := range e.Status() {
		if s.Channel == channel {
			return s
		}
	}
	return supplier.Status{}
}

// settings is the version in use.
func (e *edge) settings() int64 { return e.watch.Current().Version }

func (e *edge) active(channel int32) (n int) {
	for _, l := range e.state(channel).Connections {
		if l.State == supplier.Active {
			n++
		}
	}
	return n
}

// onceEach fails unless the supplier saw each of n submits exactly once, save for those it may have lost in a cut.
func (r *rig) onceEach(tb testing.TB, n, lost int) {
	tb.Helper()
	r.smsc.mu.Lock()
	defer r.smsc.mu.Unlock()
	for text, times := range r.smsc.seen {
		if times != 1 {
			tb.Errorf("%q written %d times", text, times)
		}
	}
	if got := len(r.smsc.seen); got < n-lost || got > n {
		tb.Errorf("the supplier saw %d of %d submits, at most %d may be missing", got, n, lost)
	}
}

// pgProxy is a PostgreSQL that loses answers.
type pgProxy struct {
	listen net.Listener
	to     string
	wg     sync.WaitGroup
	every  atomic.Int64 // an answer is lost each time so many were sent; 0 = none
	held   atomic.Bool  // answers wait
	count  atomic.Int64
	lost   atomic.Int64

	mu    sync.Mutex
	conns map[net.Conn]struct{}
}

func newProxy(tb testing.TB, to string) *pgProxy {
	tb.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		tb.Fatal(err)
	}
	p := &pgProxy{listen: l, to: to, conns: make(map[net.Conn]struct{})}
	p.wg.Go(func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			up, err := net.Dial("tcp", to)
			if err != nil {
				_ = c.Close()
				continue
			}
			p.mu.Lock()
			p.conns[c], p.conns[up] = struct{}{}, struct{}{}
			p.mu.Unlock()
			p.wg.Go(func() {
				_, _ = io.Copy(up, c)
				_ = up.Close()
			})
			p.wg.Go(func() { p.answers(c, up) })
		}
	})
	tb.Cleanup(func() {
		_ = l.Close()
		p.held.Store(false)
		p.mu.Lock()
		for c := range p.conns {
			_ = c.Close()
		}
		p.mu.Unlock()
		p.wg.Wait()
	})
	return p
}

func (p *pgProxy) answers(c, up net.Conn) {
	defer func() { _ = c.Close(); _ = up.Close() }()
	buf := make([]byte, 64<<10)
	for {
		n, err := up.Read(buf)
		if err != nil {
			return
		}
		for p.held.Load() {
			<-time.After(time.Millisecond)
		}
		if every := p.every.Load(); every > 0 && p.count.Add(1)%every == 0 {
			p.lost.Add(1)
			return // the statement is committed, its answer never arrives
		}
		if _, err := c.Write(buf[:n]); err != nil {
			return
		}
	}
}

// through is the pool settings of an edge whose PostgreSQL is p.
func (r *rig) through(tb testing.TB, p *pgProxy) {
	tb.Helper()
	c, err := pgxpool.ParseConfig(r.url)
	if err != nil {
		tb.Fatal(err)
	}
	host, port, err := net.SplitHostPort(p.listen.Addr().String())
	if err != nil {
		tb.Fatal(err)
	}
	r.cfg.Postgres.URL = fmt.Sprintf("postgres://%s:%s@%s:%s/%s?sslmode=disable", c.ConnConfig.User, c.ConnConfig.Password, host, port, c.ConnConfig.Database)
}

func (r *rig) postgresAddr(tb testing.TB) string {
	tb.Helper()
	c, err := pgxpool.ParseConfig(r.url)
	if err != nil {
		tb.Fatal(err)
	}
	return net.JoinHostPort(c.ConnConfig.Host, strconv.Itoa(int(c.ConnConfig.Port)))
}
