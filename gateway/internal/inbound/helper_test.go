package inbound_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/prometheus/client_golang/prometheus"

	"cmppgateway/gateway/cmpp"
	"cmppgateway/gateway/internal/config"
	"cmppgateway/gateway/internal/inbound"
	"cmppgateway/gateway/internal/settings"
	"cmppgateway/gateway/internal/store"
	"cmppgateway/testenv"
)

func TestMain(m *testing.M) {
	testenv.Migrated(store.Migrate)
	testenv.Main(m)
}

const settingsSQL = `
INSERT INTO enterprise (id, name) VALUES (1, 'a'), (2, 'b');
INSERT INTO enterprise (id, name, status) VALUES (3, 'off', 2);
INSERT INTO account (id, available) VALUES (1, 1000000), (2, 1000000), (3, 1000000);
INSERT INTO application (id, enterprise_id, price, sp_id, secret, access_number, window_size, name) VALUES (11, 1, 325, '100001', 'secret', '1069', 200, 'a'), (12, 2, 325, '12345', 's', '', 4, 'b');
INSERT INTO application (id, enterprise_id, price, sp_id, secret, status, name) VALUES (13, 1, 325, '100003', 's', 2, 'disabled');
INSERT INTO application (id, enterprise_id, price, sp_id, secret, name) VALUES (14, 3, 325, '100004', 's', 'of a disabled enterprise');
INSERT INTO application (id, enterprise_id, price, sp_id, secret, version, name) VALUES (15, 1, 325, '100005', 's', 32, 'pinned to 2.0'), (16, 1, 325, '100006', 's', 48, 'pinned to 3.0');
INSERT INTO application (id, enterprise_id, price, sp_id, secret, max_connections, name) VALUES (17, 1, 325, '100007', 's', 1, 'one connection');`

// nudges counts what was published.
type nudges struct {
	mu sync.Mutex
	n  map[string]int
}

func (n *nudges) Publish(topic string) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.n[topic]++
}

// logs keeps what the server logged.
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

// bench is a database with settings, and what a server needs.
type bench struct {
	*pgxpool.Pool // of the test

	registry *prometheus.Registry
	clock    func() time.Time // of back-off and rates; nil: the real one
	cfg      config.Inbound
	url      string // for the server's pool
	node     *store.Node
	watch    *settings.Watcher
	wake     nudges
	log      logs
	server   *inbound.Server
	stop     func()
}

func setup(tb testing.TB) *bench {
	tb.Helper()
	return setupAt(tb, testenv.DB(tb))
}

func setupAt(tb testing.TB, url string) *bench {
	tb.Helper()
	b := &bench{url: url, cfg: config.Default().Inbound, wake: nudges{n: map[string]int{}}}
	b.cfg.Listen = "127.0.0.1:0"
	b.Pool = newPool(tb, url)
	b.exec(tb, settingsSQL)
	var err error
	if b.node, err = store.LeaseNode(tb.Context(), b.Pool, config.Node{GatewayCode: 1000, Lease: time.Minute}, slog.New(slog.DiscardHandler)); err != nil {
		tb.Fatal(err)
	}
	b.watch = settings.NewWatcher(b.Pool, time.Hour, slog.New(slog.DiscardHandler))
	b.refresh(tb)
	tb.Cleanup(func() {
		if tb.Failed() {
			tb.Log(b.log.String())
		}
	})
	return b
}

func newPool(tb testing.TB, url string) *pgxpool.Pool {
	tb.Helper()
	pool, err := pgxpool.New(tb.Context(), url)
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(pool.Close)
	return pool
}

func (b *bench) refresh(tb testing.TB) {
	tb.Helper()
	if err := b.watch.Refresh(tb.Context()); err != nil {
		tb.Fatal(err)
	}
}

// start runs the server until the test ends or stop is called.
func (b *bench) start(tb testing.TB) {
	tb.Helper()
	var err error
	b.registry = prometheus.NewRegistry()
	b.server, err = inbound.New(tb.Context(), inbound.Options{
		Config: b.cfg, DeliverWindow: 16, Pool: newPool(tb, b.url), Node: b.node, Settings: b.watch, Wake: &b.wake,
		Log: slog.New(slog.NewTextHandler(&b.log, nil)), Registry: b.registry,
		Enquirer: enquirer{new(sync.Map)},
	})
	if err != nil {
		tb.Fatal(err)
	}
	if b.clock != nil {
		inbound.SetClock(b.server, b.clock)
	}
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- b.server.Run(ctx) }()
	b.stop = sync.OnceFunc(func() {
		cancel()
		if err := <-done; err != nil {
			tb.Error(err)
		}
	})
	tb.Cleanup(func() { b.stop() })
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

// lock keeps inserts into the inbox waiting until unlock.
func (b *bench) lock(tb testing.TB) (unlock func()) {
	tb.Helper()
	tx, err := b.Begin(tb.Context())
	if err != nil {
		tb.Fatal(err)
	}
	if _, err := tx.Exec(tb.Context(), "LOCK TABLE inbox IN EXCLUSIVE MODE"); err != nil {
		tb.Fatal(err)
	}
	unlock = sync.OnceFunc(func() { _ = tx.Rollback(context.Background()) })
	tb.Cleanup(unlock)
	return unlock
}

// eventually waits for a condition that nothing announces.
func eventually(tb testing.TB, what string, ok func() bool) {
	tb.Helper()
	limit := time.Now().Add(20 * time.Second)
	for !ok() {
		if time.Now().After(limit) {
			tb.Fatalf("not within 20 s: %s", what)
		}
		time.Sleep(2 * time.Millisecond)
	}
}

// client is a scripted customer.
type client struct {
	t    testing.TB
	conn net.Conn
	in   *cmpp.Reader
	v    cmpp.Version
	seq  uint32
}

// dial opens a connection that has not logged in.
func (b *bench) dial(tb testing.TB) *client {
	tb.Helper()
	conn, err := new(net.Dialer).DialContext(tb.Context(), "tcp", b.server.Addr().String())
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(func() { _ = conn.Close() })
	if err := conn.SetDeadline(time.Now().Add(30 * time.Second)); err != nil {
		tb.Fatal(err)
	}
	return &client{t: tb, conn: conn, in: cmpp.NewReader(conn, cmpp.MaxFrame), v: cmpp.V30}
}

// live answers link tests from now on, and reads nothing else for the test.
func (c *client) live() {
	go func() {
		for {
			hd, _, err := c.in.Next()
			if err != nil {
				return
			}
			if hd.Command == cmpp.CmdActiveTest {
				octets, err := (&cmpp.ActiveTestResp{}).Append(nil, c.v, hd.Sequence)
				if err != nil {
					panic(err)
				}
				_, _ = c.conn.Write(octets) // the end of the connection ends the loop above
			}
		}
	}()
}

// login connects as sp_id and returns the status.
func (c *client) login(spID, secret string, v cmpp.Version) uint32 {
	c.t.Helper()
	c.v = v
	const at = 102030405
	c.send(1, &cmpp.Connect{SourceAddr: spID, AuthenticatorSource: cmpp.AuthSource(spID, []byte(secret), at), Version: v, Timestamp: at})
	c.seq = 1
	_, p := c.receive()
	resp, ok := p.(*cmpp.ConnectResp)
	if !ok {
		c.t.Fatalf("%T instead of CONNECT_RESP", p)
	}
	return resp.Status
}

// customer is a connection of application 11.
func (b *bench) customer(tb testing.TB, v cmpp.Version) *client {
	tb.Helper()
	return b.customerOf(tb, "100001", "secret", v)
}

func (b *bench) customerOf(tb testing.TB, spID, secret string, v cmpp.Version) *client {
	tb.Helper()
	c := b.dial(tb)
	if status := c.login(spID, secret, v); status != 0 {
		tb.Fatalf("login refused with status %d", status)
	}
	return c
}

func (c *client) send(seq uint32, p cmpp.PDU) {
	c.t.Helper()
	octets, err := p.Append(nil, c.v, seq)
	if err != nil {
		c.t.Fatal(err)
	}
	c.raw(octets)
}

func (c *client) raw(octets []byte) {
	c.t.Helper()
	if _, err := c.conn.Write(octets); err != nil {
		c.t.Fatal(err)
	}
}

// next is the next sequence number, used by a SUBMIT.
func (c *client) submit(p *cmpp.Submit) (seq uint32) {
	c.t.Helper()
	c.seq++
	c.send(c.seq, p)
	return c.seq
}

func (c *client) receive() (cmpp.Header, cmpp.PDU) {
	c.t.Helper()
	hd, body, err := c.in.Next()
	if err != nil {
		c.t.Fatalf("receive: %v", err)
	}
	p, err := cmpp.Decode(hd, body, c.v)
	if err != nil {
		c.t.Fatalf("receive %v: %v", hd, err)
	}
	return hd, p
}

// answer is the next SUBMIT_RESP.
func (c *client) answer() (seq uint32, resp *cmpp.SubmitResp) {
	c.t.Helper()
	hd, p := c.receive()
	resp, ok := p.(*cmpp.SubmitResp)
	if !ok {
		c.t.Fatalf("%T instead of SUBMIT_RESP", p)
	}
	return hd.Sequence, resp
}

// accepted submits and wants result 0.
func (c *client) accepted(p *cmpp.Submit) cmpp.MsgID {
	c.t.Helper()
	want := c.submit(p)
	seq, resp := c.answer()
	if seq != want || resp.Result != 0 || resp.MsgID == 0 {
		c.t.Fatalf("sequence %d result %d Msg_Id %d, want an acceptance of %d", seq, resp.Result, resp.MsgID, want)
	}
	return resp.MsgID
}

// closed wants the connection to end without another frame.
func (c *client) closed() {
	c.t.Helper()
	if hd, _, err := c.in.Next(); err == nil {
		c.t.Fatalf("frame %v instead of the end", hd)
	} else if errors.Is(err, os.ErrDeadlineExceeded) {
		c.t.Fatalf("still open: %v", err)
	}
}

// silent wants no frame for a moment; what it cannot see it does not need: the test fails when it comes later, too.
func (c *client) silent(d time.Duration) {
	c.t.Helper()
	if err := c.conn.SetReadDeadline(time.Now().Add(d)); err != nil {
		c.t.Fatal(err)
	}
	one := make([]byte, 1)
	if n, err := c.conn.Read(one); n != 0 || !errors.Is(err, os.ErrDeadlineExceeded) {
		c.t.Fatalf("%d octets, %v, instead of silence", n, err)
	}
	if err := c.conn.SetReadDeadline(time.Now().Add(30 * time.Second)); err != nil {
		c.t.Fatal(err)
	}
}

func sms(dest ...string) *cmpp.Submit {
	if len(dest) == 0 {
		dest = []string{"13800000001"}
	}
	return &cmpp.Submit{
		PkTotal: 1, PkNumber: 1, RegisteredDelivery: 1, ServiceID: "svc", MsgSrc: "100001", SrcID: "106912", DestTerminalID: dest,
		MsgContent: []byte("hello"),
	}
}

func numbers(n int) []string {
	list := make([]string, n)
	for i := range list {
		list[i] = fmt.Sprintf("138000%05d", i)
	}
	return list
}
