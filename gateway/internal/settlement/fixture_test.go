package settlement_test

import (
	"context"
	"flag"
	"fmt"
	"log/slog"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/prometheus/client_golang/prometheus"

	"cmppgateway/gateway/cmpp"
	"cmppgateway/gateway/internal/config"
	"cmppgateway/gateway/internal/event"
	"cmppgateway/gateway/internal/ledger"
	"cmppgateway/gateway/internal/message"
	"cmppgateway/gateway/internal/outbox"
	"cmppgateway/gateway/internal/settings"
	"cmppgateway/gateway/internal/settlement"
	"cmppgateway/gateway/internal/store"
	"cmppgateway/gateway/internal/wake"
	"cmppgateway/testenv"
)

func TestMain(m *testing.M) {
	// The same cases every time; -rapid.checks and -rapid.seed=0 look for others.
	for name, value := range map[string]string{"rapid.checks": "40", "rapid.seed": "20261201"} {
		if err := flag.Set(name, value); err != nil {
			panic(err)
		}
	}
	testenv.Migrated(store.Migrate)
	testenv.Main(m)
}

// Applications: 11 charges on accept and refunds, 12 never refunds, 13 charges on delivery, 14 has no route but channel 3.
// Channels 1 and 2 are of supplier account 1, 3 of account 2; 4 serves the other carrier. Code 8 is retried on another
// channel, 20 later on the same, 30 through another carrier's group.
const settingsSQL = `
INSERT INTO enterprise (id, name) VALUES (1, 'a'), (2, 'b');
INSERT INTO account (id, available) VALUES (1, 0), (2, 0);
INSERT INTO application (id, enterprise_id, price, sp_id, secret, name, charge_on, refund_on) VALUES
  (11, 1, 325, '100001', 's', 'a', 1, 1), (12, 1, 325, '100002', 's', 'b', 1, 0), (13, 1, 325, '100003', 's', 'c', 2, 1), (14, 2, 325, '100004', 's', 'd', 1, 1);
INSERT INTO supplier_account (id, max_connections, max_window, addr, sp_id, secret, name) VALUES
  (1, 8, 64, '127.0.0.1:1', '900001', 's', 's'), (2, 8, 64, '127.0.0.1:2', '900002', 's', 't');
INSERT INTO channel (id, account_id, access_number, name) VALUES (1, 1, '1069', 'p'), (2, 1, '1069', 'b'), (3, 2, '1069', 'q'), (4, 2, '1069', 'o');
INSERT INTO channel_group (id, name) VALUES (1, 'g'), (2, 'h'), (3, 'single');
INSERT INTO channel_group_member (group_id, channel_id, priority) VALUES (1, 1, 0), (1, 2, 1), (2, 4, 0), (3, 3, 0);
INSERT INTO application_route (app_id, carrier, group_id) SELECT id, 1, 1 FROM application WHERE id < 14;
INSERT INTO application_route (app_id, carrier, group_id) SELECT id, 2, 2 FROM application WHERE id < 14;
INSERT INTO application_route (app_id, carrier, group_id) VALUES (14, 1, 3);
INSERT INTO result_class VALUES (0, 20, 2), (0, 30, 3);`

// hints records what was offered to the edges.
type hints struct {
	mu   sync.Mutex
	cmds []outbox.Command
}

func (h *hints) Hint(_ context.Context, _ int32, cmds []outbox.Command) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.cmds = append(h.cmds, cmds...)
}

// bench is a database with the settings above and money, and the parts under test.
type bench struct {
	*pgxpool.Pool

	node  *store.Node
	watch *settings.Watcher
	bus   *wake.Bus
	hints hints
	cfg   config.Config
	*settlement.Settlement
	registry *prometheus.Registry
	phones   int64
	t        *testing.T // of the case that runs, where cases share a bench
}

func setup(tb testing.TB, change ...func(*config.Config)) *bench {
	tb.Helper()
	cfg := config.Default()
	cfg.Postgres.URL = testenv.DB(tb)
	cfg.Postgres.Pools.Settlement = 8
	for _, f := range change {
		f(&cfg)
	}
	pools, err := store.Open(tb.Context(), cfg.Postgres, 5*time.Second)
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(pools.Close)
	b := &bench{Pool: testenv.ZonePool(tb, pools.Settlement), cfg: cfg, bus: wake.New(nil, slog.New(slog.DiscardHandler)), registry: prometheus.NewRegistry(), phones: 13800000000}
	b.exec(tb, settingsSQL)
	node, err := store.LeaseNode(tb.Context(), b.Pool, config.Node{Lease: time.Minute}, slog.New(slog.DiscardHandler))
	if err != nil {
		tb.Fatal(err)
	}
	b.node = node
	for account := range int32(2) {
		if _, err := ledger.TopUp(tb.Context(), b.Pool, node.IDs, account+1, 100_000_000, "opening"); err != nil {
			tb.Fatal(err)
		}
	}
	b.watch = settings.NewWatcher(b.Pool, time.Hour, slog.New(slog.DiscardHandler))
	b.refresh(tb)
	b.Settlement = settlement.New(settlement.Options{
		Config: cfg.Settlement, Outbox: cfg.Outbox, Pool: b.Pool, Node: node, Settings: b.watch, Wake: b.bus, Hints: &b.hints,
		Log: slog.New(slog.NewTextHandler(tb.Output(), nil)), Registry: b.registry,
	})
	return b
}

// refresh makes the settings in the database the current ones.
func (b *bench) refresh(tb testing.TB) {
	tb.Helper()
	b.exec(tb, `UPDATE settings_version SET version = version + 1`)
	if err := b.watch.Refresh(tb.Context()); err != nil {
		tb.Fatal(err)
	}
}

func (b *bench) exec(tb testing.TB, sql string, args ...any) {
	tb.Helper()
	if _, err := b.Exec(tb.Context(), sql, args...); err != nil {
		tb.Fatalf("%s: %v", sql, err)
	}
}

func (b *bench) count(tb testing.TB, sql string, args ...any) (n int64) {
	tb.Helper()
	if err := b.QueryRow(tb.Context(), sql, args...).Scan(&n); err != nil {
		tb.Fatalf("%s: %v", sql, err)
	}
	return n
}

func (b *bench) id(tb testing.TB) int64 {
	tb.Helper()
	id, err := b.node.IDs.Next(tb.Context())
	if err != nil {
		tb.Fatal(err)
	}
	return id
}

// sent is one message and the submit of its (first) part that was made last.
type sent struct {
	message, submit, phone int64
	parts                  []int64
	channel                int32
	attempt                int16
}

// spec is what a test wants of a message; zero values are app 11, channel 1, one part, ten hours.
type spec struct {
	app     int32
	channel int32
	parts   int16
	phone   int64
	valid   time.Duration
}

const (
	messageSQL = `INSERT INTO message (id, msg_id, freeze_entry, price, phone, accept_session, accepted_at, created_at, valid_until, enterprise_id, app_id, channel_id,
	units, price_version, state, bill, charge_on, refund_on, parts, carrier, registered, fmt, udhi, pk_total, pk_number, accept_node, dest, src, service, content)
	SELECT $1, $1, $2, a.price, $3, 1, now(), now(), now() + $4::interval, a.enterprise_id, a.id, $5, 1, 1, 1, 1, a.charge_on, a.refund_on, $6, 1, 1, 0, 0, 1, 1, 1,
	$3::bigint::text::bytea, '1069', '', 'text' FROM application a WHERE a.id = $7`
	outboxSQL = `INSERT INTO submit_outbox (id, pos, message_id, retry_of, channel_id, enterprise_id, attempt, part, parts, lane) VALUES ($1, $1, $2, $3, $4, $5, $6, $7, $8, 1)`
)

// queue makes a message with its frozen money and its commands, as the workflow does.
func (b *bench) queue(tb testing.TB, s spec) sent {
	tb.Helper()
	if s.app == 0 {
		s.app = 11
	}
	if s.channel == 0 {
		s.channel = 1
	}
	if s.phone == 0 {
		b.phones++
		s.phone = b.phones
	}
	if s.valid == 0 {
		s.valid = 10 * time.Hour
	}
	s.parts = max(s.parts, 1)
	enterprise := int32(1)
	if s.app == 14 {
		enterprise = 2
	}
	m := sent{message: b.id(tb), phone: s.phone, channel: s.channel, attempt: 1}
	entry := b.id(tb)
	err := store.InTx(tb.Context(), b.Pool, func(tx pgx.Tx) error {
		if _, err := tx.Exec(tb.Context(), messageSQL, m.message, entry, s.phone, s.valid, s.channel, s.parts, s.app); err != nil {
			return err
		}
		for part := range s.parts {
			m.parts = append(m.parts, b.id(tb))
			if _, err := tx.Exec(tb.Context(), outboxSQL, m.parts[part], m.message, 0, s.channel, enterprise, 1, part+1, s.parts); err != nil {
				return err
			}
		}
		var q pgx.Batch
		ledger.Queue(&q, []ledger.Entry{{ID: entry, Account: enterprise, Kind: message.Freeze, N: 1, Amount: 325}})
		return tx.SendBatch(tb.Context(), &q).Close()
	})
	if err != nil {
		tb.Fatal(err)
	}
	m.submit = m.parts[0]
	return m
}

// dispatch runs the barrier over submits.
func (b *bench) dispatch(tb testing.TB, submits ...int64) {
	tb.Helper()
	b.exec(tb, store.SupplierBarrier, submits, b.id(tb), b.node.Number)
}

// send queues and dispatches.
func (b *bench) send(tb testing.TB, s spec) sent {
	tb.Helper()
	m := b.queue(tb, s)
	b.dispatch(tb, m.parts...)
	return m
}

func (b *bench) result(m sent, state string, code uint32, msgID uint64) event.SubmitResult {
	r := event.SubmitResult{
		SubmitID: m.submit, MessageID: m.message, ChannelID: m.channel, AccountID: 1, State: state, Result: code, SupplierMsgID: msgID, Node: b.node.Number, Conn: 1,
		Attempt: m.attempt, Part: 1, Parts: 1, Phone: m.phone, Src: "1069", DispatchedAt: time.Now(),
	}
	if m.channel > 2 {
		r.AccountID = 2
	}
	if state != event.Unknown {
		r.RespAt = time.Now()
	}
	return r
}

// apply applies results as one transaction and announces the outcome.
func (b *bench) apply(tb testing.TB, results ...event.SubmitResult) settlement.Outcome {
	tb.Helper()
	out, err := b.try(tb.Context(), results...)
	if err != nil {
		tb.Fatal(err)
	}
	return out
}

func (b *bench) try(ctx context.Context, results ...event.SubmitResult) (settlement.Outcome, error) {
	var out *settlement.Outcome
	err := store.Retry(ctx, b.Pool, func(tx pgx.Tx) (err error) {
		out, err = settlement.ApplyResults(ctx, tx, b.node.IDs, b.watch.Current(), results)
		return err
	})
	if err != nil {
		return settlement.Outcome{}, err
	}
	out.Announce(ctx, &b.hints, b.bus)
	return *out, nil
}

func (b *bench) accept(tb testing.TB, m sent, msgID uint64) {
	tb.Helper()
	b.apply(tb, b.result(m, event.Accepted, 0, msgID))
}

func (b *bench) reject(tb testing.TB, m sent, code uint32) {
	tb.Helper()
	b.apply(tb, b.result(m, event.Rejected, code, 0))
}

func (b *bench) lose(tb testing.TB, m sent) {
	tb.Helper()
	b.apply(tb, b.result(m, event.Unknown, 0, 0))
}

// next is the command that follows m, dispatched; it fails without one.
func (b *bench) next(tb testing.TB, m sent) sent {
	tb.Helper()
	n, ok := b.follow(tb, m)
	if !ok {
		tb.Fatalf("no command follows submit %d", m.submit)
	}
	b.dispatch(tb, n.submit)
	return n
}

func (b *bench) follow(tb testing.TB, m sent) (sent, bool) {
	tb.Helper()
	rows, err := b.Query(tb.Context(), `SELECT id, channel_id, attempt FROM submit_outbox WHERE message_id = $1 AND state = 0 ORDER BY id`, m.message)
	if err != nil {
		tb.Fatal(err)
	}
	n, found := m, false
	if _, err := pgx.ForEachRow(rows, []any{&n.submit, &n.channel, &n.attempt}, func() error {
		found = true
		return nil
	}); err != nil {
		tb.Fatal(err)
	}
	return n, found
}

const receiptSQL = `INSERT INTO receipt (event_id, seq, supplier_msg_id, phone, at, supplier_account, channel_id, shard, stat, submit_time, done_time, src)
	VALUES ($1, $2, $3, $4, now(), $5, 1, $6, $7, $8, $8, '1069')`

// report puts a report into the log. settle is for the test to call.
func (b *bench) report(tb testing.TB, account int32, msgID uint64, phone int64, stat string) {
	tb.Helper()
	b.exec(tb, receiptSQL, b.id(tb), b.id(tb), int64(msgID), phone, account, b.node.Number, stat, time.Now().In(cmpp.Shanghai).Format("0601021504"))
}

func (b *bench) settle(tb testing.TB) {
	tb.Helper()
	if err := b.Settle(tb.Context()); err != nil {
		tb.Fatal(err)
	}
}

// retry brings the next try of all parked receipts on.
func (b *bench) retry(tb testing.TB) {
	tb.Helper()
	b.exec(tb, `UPDATE receipt_parked SET next_try_at = now() - interval '1 s'`)
	if err := b.Parked(tb.Context()); err != nil {
		tb.Fatal(err)
	}
}

func (b *bench) sweep(tb testing.TB) {
	tb.Helper()
	if err := b.Sweep(tb.Context()); err != nil {
		tb.Fatal(err)
	}
}

// row is what a test looks at of a message.
type row struct {
	State message.State
	Bill  message.Bill
	Stat  string
}

func (r row) String() string { return fmt.Sprintf("%s, %s, %q", r.State, r.Bill, r.Stat) }

func (b *bench) row(tb testing.TB, m sent) (r row) {
	tb.Helper()
	if err := b.QueryRow(tb.Context(), `SELECT state, bill, stat FROM message WHERE id = $1`, m.message).Scan(&r.State, &r.Bill, &r.Stat); err != nil {
		tb.Fatal(err)
	}
	return r
}

func (b *bench) want(tb testing.TB, m sent, state message.State, bill message.Bill, stat string) {
	tb.Helper()
	if got, want := b.row(tb, m), (row{state, bill, stat}); got != want {
		tb.Errorf("message is %s, want %s", got, want)
	}
}

// receipts is how many receipts the customer gets.
func (b *bench) receipts(tb testing.TB, m sent) int64 {
	tb.Helper()
	return b.count(tb, `SELECT count(*) FROM delivery WHERE message_id = $1`, m.message)
}

// books fails unless the ledger is exact.
func (b *bench) books(tb testing.TB) {
	tb.Helper()
	r, err := ledger.Verify(tb.Context(), b.Pool)
	if err != nil {
		tb.Fatal(err)
	}
	for _, f := range r.Faults {
		tb.Errorf("ledger: %s: %s: %s", f.Rule, f.Key, f.Detail)
	}
}
