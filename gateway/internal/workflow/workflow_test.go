package workflow_test

import (
	"context"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/prometheus/client_golang/prometheus"
	"golang.org/x/sync/errgroup"

	"cmppgateway/gateway/internal/config"
	"cmppgateway/gateway/internal/ledger"
	"cmppgateway/gateway/internal/message"
	"cmppgateway/gateway/internal/outbox"
	"cmppgateway/gateway/internal/settings"
	"cmppgateway/gateway/internal/store"
	"cmppgateway/gateway/internal/wake"
	"cmppgateway/gateway/internal/workflow"
	"cmppgateway/testenv"
)

func TestMain(m *testing.M) {
	testenv.Migrated(store.Migrate)
	testenv.Main(m)
}

const settingsSQL = `
INSERT INTO enterprise (id, name) VALUES (1, 'a'), (2, 'b'), (3, 'c');
INSERT INTO account (id, available) VALUES (1, 1000000), (2, 1000000), (3, 1000000);
INSERT INTO application (id, enterprise_id, price, sp_id, secret, name) VALUES (11, 1, 325, '100001', 's', 'a'), (12, 2, 325, '100002', 's', 'b'), (13, 3, 325, '100003', 's', 'c');
INSERT INTO supplier_account (id, max_connections, max_window, addr, sp_id, secret, name) VALUES (1, 8, 64, '127.0.0.1:1', '9', 's', 's');
INSERT INTO channel (id, account_id, access_number, name) VALUES (1, 1, '1069', 'p'), (2, 1, '1069', 'b');
INSERT INTO channel_group (id, name) VALUES (1, 'g');
INSERT INTO channel_group_member (group_id, channel_id, priority) VALUES (1, 1, 0), (1, 2, 1);
INSERT INTO application_route (app_id, carrier, group_id) SELECT id, 1, 1 FROM application;`

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

type bench struct {
	*pgxpool.Pool

	ids   *message.IDs
	hints hints
	bus   *wake.Bus
	watch *settings.Watcher
	cfg   config.Workflow
}

func setup(t *testing.T) *bench {
	t.Helper()
	return setupOn(t, testenv.DB(t))
}

func setupOn(t *testing.T, url string) *bench {
	t.Helper()
	pool, err := pgxpool.New(t.Context(), url)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(pool.Close)
	b := &bench{
		Pool: pool, bus: wake.New(nil, slog.New(slog.DiscardHandler)), cfg: config.Default().Workflow,
		ids: message.NewIDs(1, time.Now().Add(-time.Second), time.Now().Add(time.Hour), time.Now),
	}
	b.exec(t, settingsSQL)
	b.watch = settings.NewWatcher(pool, 20*time.Millisecond, slog.New(slog.DiscardHandler))
	return b
}

// start runs a workflow (a process of its own, as far as the database sees) until the test ends.
func (b *bench) start(t *testing.T) {
	t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	w := workflow.New(workflow.Options{
		Config: b.cfg, Pool: b.Pool, IDs: b.ids, Settings: b.watch, Wake: b.bus, Hints: &b.hints,
		Log: slog.New(slog.NewTextHandler(t.Output(), nil)), Registry: prometheus.NewRegistry(),
	})
	var g errgroup.Group
	if err := b.watch.Refresh(t.Context()); err != nil {
		t.Fatal(err)
	}
	g.Go(func() error { return w.Run(ctx) })
	t.Cleanup(func() {
		cancel()
		if err := g.Wait(); err != nil {
			t.Error(err)
		}
	})
}

func (b *bench) exec(t *testing.T, sql string, args ...any) {
	t.Helper()
	if _, err := b.Exec(t.Context(), sql, args...); err != nil {
		t.Fatalf("%s: %v", sql, err)
	}
}

func (b *bench) count(t *testing.T, sql string, args ...any) (n int64) {
	t.Helper()
	if err := b.QueryRow(t.Context(), sql, args...).Scan(&n); err != nil {
		t.Fatalf("%s: %v", sql, err)
	}
	return n
}

const inboxSQL = `INSERT INTO inbox (id, pos, msg_id, enterprise_id, app_id, node, session, seq, weight, registered, fmt, udhi, pk_total, pk_number, dest, src, service, accepted_at, content)
	VALUES ($1, $1, $2, $3, $4, 1, 1, 1, $5, 1, $6, 0, 1, 1, $7, '1069', '', now(), $8)`

// submit puts one SUBMIT of an enterprise's application into the inbox.
func (b *bench) submit(t *testing.T, enterprise int32, msgID int64, fmtCode int16, content string, dest ...string) {
	t.Helper()
	id, err := b.ids.Next(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	b.exec(t, inboxSQL, id, msgID, enterprise, 10+enterprise, len(dest), fmtCode, []byte(strings.Join(dest, ",")), []byte(content))
}

// settled waits until the inbox is empty.
func (b *bench) settled(t *testing.T) {
	t.Helper()
	deadline := time.Now().Add(20 * time.Second)
	for b.count(t, `SELECT count(*) FROM inbox`) > 0 {
		if time.Now().After(deadline) {
			t.Fatal("inbox not empty after 20 s")
		}
		b.bus.Publish(wake.Inbox)
	}
}

func number(i int) string { return fmt.Sprintf("1380000%04d", i) }

func TestMessagesAreFrozenRoutedAndQueued(t *testing.T) {
	t.Parallel()
	b := setup(t)
	for i := range 300 {
		b.submit(t, int32(i%3+1), int64(1000*(i+1)), 0, "hi", number(i))
	}
	b.submit(t, 1, 900_000, 0, strings.Repeat("x", 160), number(1), "+86"+number(2), number(3)) // three recipients of three units
	b.start(t)
	b.settled(t)
	for name, got := range map[string][2]int64{
		"messages":          {b.count(t, `SELECT count(*) FROM message WHERE state = 1 AND bill = 1`), 303},
		"commands":          {b.count(t, `SELECT count(*) FROM submit_outbox WHERE state = 0 AND channel_id = 1 AND attempt = 1`), 303},
		"group Msg_Ids":     {b.count(t, `SELECT count(*) FROM message WHERE msg_id BETWEEN 900000 AND 900002 AND units = 3 AND phone = 13800000000 + msg_id - 900000 + 1`), 3},
		"raw recipient":     {b.count(t, `SELECT count(*) FROM message WHERE dest = '+8613800000002'`), 1},
		"available":         {b.count(t, `SELECT sum(available) FROM account`), 3_000_000 - (300+9)*325},
		"deliveries":        {b.count(t, `SELECT count(*) FROM delivery`), 0},
		"freezes per batch": {b.count(t, `SELECT count(DISTINCT freeze_entry) - (SELECT count(*) FROM account_entry) FROM message`), 0},
	} {
		if got[0] != got[1] {
			t.Errorf("%s: %d, want %d", name, got[0], got[1])
		}
	}
	// The ledger knows no opening balance here: only the balance rule may object.
	r, err := ledger.Verify(t.Context(), b.Pool)
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range r.Faults {
		if f.Rule != "balance" && f.Rule != "below credit" && f.Rule != "replay" {
			t.Errorf("books: %v", f)
		}
	}
	b.hints.mu.Lock()
	defer b.hints.mu.Unlock()
	if len(b.hints.cmds) != 303 {
		t.Errorf("%d commands hinted, want 303", len(b.hints.cmds))
	}
}

func TestRefusalsCostNothingAndAreReported(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.exec(t, `UPDATE enterprise SET status = 2 WHERE id = 2`)
	b.exec(t, `UPDATE account SET available = 1000 WHERE id = 3`)
	b.submit(t, 1, 1, 0, "hi", "12")                                       // FORMAT
	b.submit(t, 1, 2, 0, "hi", "13000000001")                              // ROUTE: unicom without a group
	b.submit(t, 2, 3, 0, "hi", number(1))                                  // STATUS
	b.submit(t, 3, 4, 0, "hi", number(1), number(2), number(3), number(4)) // BALANCE: 4 × 325 > 1000, wholly
	b.submit(t, 3, 10, 0, "hi", number(5))                                 // affordable
	b.submit(t, 9, 11, 0, "hi", number(6))                                 // STATUS: an enterprise that is gone
	b.start(t)
	b.settled(t)
	rows, err := b.Query(t.Context(), `SELECT m.msg_id, m.reason, m.state, m.bill, m.stat, coalesce(d.stat, '') FROM message m LEFT JOIN delivery d ON d.message_id = m.id ORDER BY m.msg_id`)
	if err != nil {
		t.Fatal(err)
	}
	defer rows.Close()
	want := map[int64]string{1: "FORMAT", 2: "ROUTE", 3: "STATUS", 4: "BALANCE", 5: "BALANCE", 6: "BALANCE", 7: "BALANCE", 10: "", 11: "STATUS"}
	seen := 0
	for rows.Next() {
		var id int64
		var reason message.Reason
		var state message.State
		var bill message.Bill
		var stat, told string
		if err := rows.Scan(&id, &reason, &state, &bill, &stat, &told); err != nil {
			t.Fatal(err)
		}
		seen++
		if reason.String() != want[id] {
			t.Errorf("message %d: reason %q, want %q", id, reason, want[id])
		}
		if want[id] == "" {
			if state != message.Checked || bill != message.Frozen {
				t.Errorf("message %d: %s, %s", id, state, bill)
			}
			continue
		}
		if state != message.Rejected || bill != message.BillNone || stat != reason.Stat() || told != stat {
			t.Errorf("message %d: %s, %s, stat %q, receipt %q", id, state, bill, stat, told)
		}
	}
	if err := rows.Err(); err != nil {
		t.Fatal(err)
	}
	if seen != len(want) {
		t.Errorf("%d messages, want %d", seen, len(want))
	}
	if n := b.count(t, `SELECT count(*) FROM submit_outbox`); n != 1 {
		t.Errorf("%d commands, want 1", n)
	}
	if got := b.count(t, `SELECT available FROM account WHERE id = 3`); got != 675 {
		t.Errorf("available %d, want 675", got)
	}
}

func TestARowThatFailsAloneIsRefusedAndHoldsBackNobody(t *testing.T) {
	t.Parallel()
	b := setup(t)
	// A rule of the database that no code knows: stands for any data error.
	b.exec(t, `ALTER TABLE message ADD CONSTRAINT poison CHECK (reason = 12 OR content <> 'poison')`)
	for i := range 40 {
		content := "hi"
		if i == 23 {
			content = "poison"
		}
		b.submit(t, 1, int64(100+i), 0, content, number(i))
	}
	b.start(t)
	b.settled(t)
	if n := b.count(t, `SELECT count(*) FROM submit_outbox`); n != 39 {
		t.Errorf("%d commands, want 39", n)
	}
	if n := b.count(t, `SELECT count(*) FROM message WHERE msg_id = 123 AND state = 6 AND reason = 12 AND bill = 0`); n != 1 {
		t.Error("the failing row is not refused with SYSTEM")
	}
	if n := b.count(t, `SELECT count(*) FROM dead_letter WHERE kind = 'inbox' AND raw = 'poison'`); n != 1 {
		t.Errorf("%d dead letters, want 1", n)
	}
}

func TestTwoProcessesKeepOrderAndTakeEachRowOnce(t *testing.T) {
	t.Parallel()
	b := setup(t)
	const n = 1200
	b.start(t)
	b.start(t)
	for i := range n {
		b.submit(t, int32(i%3+1), int64(i+1), 0, "hi", number(i))
		if i%50 == 0 {
			b.bus.Publish(wake.Inbox)
		}
	}
	b.settled(t)
	if got := b.count(t, `SELECT count(*) FROM message`); got != n {
		t.Fatalf("%d messages of %d rows", got, n)
	}
	// Message ids are given in processing order; per enterprise it must be the order of acceptance.
	if got := b.count(t, `SELECT count(*) FROM (SELECT msg_id < lag(msg_id) OVER (PARTITION BY enterprise_id ORDER BY id) AS back FROM message) x WHERE back`); got != 0 {
		t.Fatalf("%d messages out of order", got)
	}
}

func TestAnEnterpriseLockedByAnotherProcessIsLeftAlone(t *testing.T) {
	t.Parallel()
	b := setup(t)
	other, err := b.Begin(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = other.Rollback(context.Background()) }) // a test that failed still holds it
	if _, err := other.Exec(t.Context(), `SELECT pg_advisory_xact_lock(7, 1)`); err != nil {
		t.Fatal(err)
	}
	for i := range 20 {
		b.submit(t, int32(i%2+1), int64(i+1), 0, "hi", number(i))
	}
	b.start(t)
	for deadline := time.Now().Add(20 * time.Second); b.count(t, `SELECT count(*) FROM message WHERE enterprise_id = 2`) < 10; {
		if time.Now().After(deadline) {
			t.Fatal("the other enterprise is not served")
		}
		b.bus.Publish(wake.Inbox)
	}
	if n := b.count(t, `SELECT count(*) FROM message WHERE enterprise_id = 1`); n != 0 {
		t.Fatalf("%d messages of the locked enterprise", n)
	}
	if err := other.Rollback(t.Context()); err != nil {
		t.Fatal(err)
	}
	b.settled(t)
	if n := b.count(t, `SELECT count(*) FROM message WHERE enterprise_id = 1`); n != 10 {
		t.Fatalf("%d messages after the lock was let go, want 10", n)
	}
}

func TestRowsLeaveTheInboxAllOrNone(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.submit(t, 1, 1, 0, "hi", number(1))
	// The second row is not there: somebody else has made a message of it.
	if _, err := b.Exec(t.Context(), store.WorkflowTake, []int64{b.count(t, `SELECT id FROM inbox`), 1 << 62}); store.Code(err) != store.CodeGuard {
		t.Fatalf("error %v, want the guard's %s", err, store.CodeGuard)
	}
	if n := b.count(t, `SELECT count(*) FROM inbox`); n != 1 {
		t.Fatalf("%d rows left, want 1", n)
	}
}
