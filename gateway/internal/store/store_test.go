package store_test

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"cmppgateway/gateway/internal/config"
	"cmppgateway/gateway/internal/message"
	"cmppgateway/gateway/internal/store"
	"cmppgateway/testenv"
)

func TestMain(m *testing.M) {
	testenv.Migrated(store.Migrate)
	testenv.Main(m)
}

func open(t *testing.T, change ...func(*config.Postgres)) *store.Pools {
	t.Helper()
	c := config.Default().Postgres
	c.URL = testenv.DB(t)
	for _, f := range change {
		f(&c)
	}
	p, err := store.Open(t.Context(), c, 3*time.Second)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(p.Close)
	return p
}

func exec(t *testing.T, db store.DB, sql string, args ...any) {
	t.Helper()
	if _, err := db.Exec(t.Context(), sql, args...); err != nil {
		t.Fatalf("%s: %v", sql, err)
	}
}

func TestMigrateAtOnceAndTwice(t *testing.T) {
	t.Parallel()
	url := testenv.DBWith(t, nil)
	if have, want, err := store.Version(t.Context(), url); err != nil || have != 0 || want == 0 {
		t.Fatalf("before: version %d of %d, %v", have, want, err)
	}
	var wg sync.WaitGroup
	errs := make([]error, 3)
	for i := range errs {
		wg.Go(func() { errs[i] = store.Migrate(t.Context(), url) })
	}
	wg.Wait()
	if err := errors.Join(errors.Join(errs...), store.Migrate(t.Context(), url)); err != nil {
		t.Fatal(err)
	}
	if have, want, err := store.Version(t.Context(), url); err != nil || have != want {
		t.Fatalf("after: version %d of %d, %v", have, want, err)
	}
}

// Every statement is in a file, embedded once, and fits the schema.
func TestEveryQueryPrepares(t *testing.T) {
	t.Parallel()
	conn, err := pgx.Connect(t.Context(), testenv.DB(t))
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close(context.Background()) // the test is over
	files, err := filepath.Glob("queries/*.sql")
	if err != nil || len(files) < 20 {
		t.Fatalf("%d files, %v", len(files), err)
	}
	var embeds strings.Builder
	sources, _ := filepath.Glob("queries_*.go")
	for _, s := range sources {
		text, err := os.ReadFile(s)
		if err != nil {
			t.Fatal(err)
		}
		embeds.Write(text)
	}
	for _, f := range files {
		sql, err := os.ReadFile(f)
		if err != nil {
			t.Fatal(err)
		}
		if n := strings.Count(embeds.String(), "//go:embed "+f+"\n"); n != 1 {
			t.Errorf("%s is embedded %d times", f, n)
		}
		if _, err := conn.Prepare(t.Context(), f, string(sql)); err != nil {
			t.Errorf("%s: %v", f, err)
		}
	}
}

func TestPoolsAreSetUpForTheirRole(t *testing.T) {
	t.Parallel()
	p := open(t)
	show := func(n store.Named, name string) (v string) {
		if err := n.Pool.QueryRow(t.Context(), "SELECT current_setting($1)", name).Scan(&v); err != nil {
			t.Fatal(err)
		}
		return v
	}
	for _, n := range p.All() {
		hot, plan, timeout := "off", "force_generic_plan", "10s"
		switch n.Name {
		case "admin":
			hot, plan, timeout = "on", "auto", "2min"
		case "callback":
			timeout = "3s"
		}
		for name, want := range map[string]string{
			"application_name": "cmppgw/" + n.Name, "synchronous_commit": "on", "idle_in_transaction_session_timeout": "10s",
			"statement_timeout": timeout, "TimeZone": "UTC", "plan_cache_mode": plan,
			"enable_seqscan": hot, "enable_mergejoin": hot, "enable_bitmapscan": hot, "jit": hot,
		} {
			if got := show(n, name); got != want {
				t.Errorf("pool %s: %s is %s, want %s", n.Name, name, got, want)
			}
		}
	}
}

func TestExhaustedPoolGivesUpAndLeavesOthersAlone(t *testing.T) {
	t.Parallel()
	p := open(t, func(c *config.Postgres) { c.Pools.Callback, c.AcquireTimeout = 1, 200*time.Millisecond })
	held, err := p.Callback.Acquire(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer held.Release()
	err = store.InTx(t.Context(), p.Callback, func(pgx.Tx) error { return nil })
	if !errors.Is(err, context.DeadlineExceeded) || !store.IsTransient(err) {
		t.Errorf("error %v, want a transient deadline", err)
	}
	if err := store.InTx(t.Context(), p.Outbox, func(pgx.Tx) error { return nil }); err != nil {
		t.Errorf("outbox: %v", err)
	}
	// The deadline is of the acquisition only, not of what runs on the connection.
	if _, err := p.Outbox.Exec(t.Context(), "SELECT pg_sleep(0.4)"); err != nil {
		t.Errorf("a statement longer than the acquisition's deadline: %v", err)
	}
}

func TestInTx(t *testing.T) {
	t.Parallel()
	p := open(t)
	broken := errors.New("broken")
	for _, fail := range []error{nil, broken} {
		err := store.InTx(t.Context(), p.Admin, func(tx pgx.Tx) error {
			exec(t, tx, "INSERT INTO channel_group (id, name) VALUES ($1, $2)", 1, fmt.Sprint(fail))
			return fail
		})
		if !errors.Is(err, fail) {
			t.Errorf("error %v, want %v", err, fail)
		}
		var n int
		if err := p.Admin.QueryRow(t.Context(), "DELETE FROM channel_group RETURNING 1").Scan(&n); (err == nil) != (fail == nil) {
			t.Errorf("after %v: %v", fail, err)
		}
	}
	if p.Admin.Stat().AcquiredConns() != 0 {
		t.Error("a connection stayed in use")
	}
}

func TestRetry(t *testing.T) {
	t.Parallel()
	p := open(t)
	for _, c := range []struct {
		code  string
		fails int // how often fn fails before it works
		calls int
		want  string
	}{
		{"40001", 2, 3, ""},
		{"40P01", 2, 3, ""},
		{"40001", 9, 3, "40001"},
		{"23514", 9, 1, "23514"},
		{"P0001", 9, 1, "P0001"},
	} {
		calls := 0
		err := store.Retry(t.Context(), p.Admin, func(tx pgx.Tx) error {
			if calls++; calls > c.fails {
				return nil
			}
			_, err := tx.Exec(t.Context(), fmt.Sprintf("DO $$ BEGIN RAISE EXCEPTION 'x' USING ERRCODE = '%s'; END $$", c.code))
			return err
		})
		if calls != c.calls || store.Code(err) != c.want {
			t.Errorf("%s failing %d times: %d calls, %v", c.code, c.fails, calls, err)
		}
	}
}

func TestGuardRaises(t *testing.T) {
	t.Parallel()
	p := open(t)
	exec(t, p.Admin, "SELECT must_be(2, (SELECT count(*) FROM generate_series(1, 2)))")
	_, err := p.Admin.Exec(t.Context(), "SELECT must_be(2, (SELECT count(*) FROM generate_series(1, 3)))")
	if store.Code(err) != store.CodeGuard || store.IsTransient(err) {
		t.Errorf("error %v, want a guard, not transient", err)
	}
}

func TestIsTransient(t *testing.T) {
	t.Parallel()
	pg := func(code string) error { return fmt.Errorf("op: %w", &pgconn.PgError{Code: code}) }
	for _, c := range []struct {
		err  error
		want bool
	}{
		{nil, false},
		{pg("40001"), true},
		{pg("40P01"), true},
		{pg("55P03"), true}, // lock_timeout
		{pg("57014"), true}, // statement_timeout
		{pg("57P01"), true}, // administrator stops the server
		{pg("57P03"), true}, // starting up
		{pg("53300"), true}, // too many connections
		{pg("08006"), true},
		{pg("25006"), true},  // read-only after a fail-over
		{pg("22021"), false}, // a zero byte in a text
		{pg("22003"), false},
		{pg("23505"), false},
		{pg("23514"), false},
		{pg("42P01"), false},
		{pg("P0001"), false},
		{&net.OpError{Op: "read", Err: errors.New("reset")}, true},
		{context.DeadlineExceeded, true},
		{context.Canceled, false},
		{pgx.ErrNoRows, false},
	} {
		if got := store.IsTransient(c.err); got != c.want {
			t.Errorf("%v: transient %t", c.err, got)
		}
	}
}

func TestBounds(t *testing.T) {
	t.Parallel()
	if lo, hi := store.Bounds([]int64{5, -3, 9}); lo != -3 || hi != 9 {
		t.Errorf("bounds %d, %d", lo, hi)
	}
	if lo, hi := store.Bounds(nil); lo <= hi {
		t.Errorf("bounds of nothing hold %d..%d", lo, hi)
	}
}

const insertReceipt = `INSERT INTO receipt (event_id, seq, supplier_msg_id, phone, at, supplier_account, channel_id, shard, stat, submit_time, done_time)
	VALUES ($1, 1, 1, 1, now(), 1, 1, 1, '', '', '')`

func TestPartitions(t *testing.T) {
	t.Parallel()
	p := open(t)
	now := time.Now()
	if missing, err := store.MissingPartitions(t.Context(), p.Admin, now, store.LeafDays); err != nil || len(missing) > 0 {
		t.Fatalf("after the migration: missing %v, %v", missing, err)
	}
	day := time.Date(2031, 2, 27, 0, 0, 0, 0, time.UTC)
	late := day.Add(23*time.Hour + 59*time.Minute).In(time.FixedZone("", 8*3600)) // the next day in China
	if missing, err := store.MissingPartitions(t.Context(), p.Admin, late, 3); err != nil || len(missing) != 12 || missing[0] != "message_20310227" {
		t.Fatalf("missing %v, %v", missing, err)
	}

	// A writer with an open transaction does not stop the keeper, nor the keeper the writer.
	tx, err := p.Inbox.Begin(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	exec(t, tx, insertReceipt, message.FirstID(now))
	keeper, err := p.Admin.Begin(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	exec(t, keeper, "SET LOCAL lock_timeout = '2s'")
	for range 2 { // the second time finds them
		if err := store.EnsurePartitions(t.Context(), keeper, late, 3); err != nil {
			t.Fatal(err)
		}
	}
	exec(t, tx, "SET LOCAL lock_timeout = '2s'")
	exec(t, tx, insertReceipt, message.FirstID(now)+1)
	if err := errors.Join(keeper.Commit(t.Context()), tx.Commit(t.Context())); err != nil {
		t.Fatal(err)
	}

	if missing, err := store.MissingPartitions(t.Context(), p.Admin, late, 3); err != nil || len(missing) > 0 {
		t.Fatalf("missing %v, %v", missing, err)
	}
	for _, c := range []struct {
		id   int64
		want string
	}{
		{message.FirstID(day), "receipt_20310227"},
		{message.FirstID(day.AddDate(0, 0, 1)) - 1, "receipt_20310227"},
		{message.FirstID(day.AddDate(0, 0, 1)), "receipt_20310228"},
		{message.FirstID(day.AddDate(0, 0, 2)), "receipt_20310301"},
		{message.FirstID(day.AddDate(0, 0, 3)), ""},
	} {
		var leaf string
		_, err := p.Admin.Exec(t.Context(), insertReceipt, c.id)
		if err == nil {
			err = p.Admin.QueryRow(t.Context(), "SELECT tableoid::regclass::text FROM receipt WHERE event_id = $1", c.id).Scan(&leaf)
		}
		if leaf != c.want || (err == nil) != (c.want != "") {
			t.Errorf("id %d is in %q (%v), want %q", c.id, leaf, err, c.want)
		}
	}
	var fill string
	if err := p.Admin.QueryRow(t.Context(), "SELECT reloptions::text FROM pg_class WHERE relname = 'message_20310227'").Scan(&fill); err != nil || fill != "{fillfactor=80}" {
		t.Errorf("options %q, %v: a message is updated twice and needs room for it", fill, err)
	}
}
