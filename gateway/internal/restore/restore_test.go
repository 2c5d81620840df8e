package restore_test

import (
	"context"
	"errors"
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/redis/go-redis/v9"

	"cmppgateway/gateway/internal/config"
	"cmppgateway/gateway/internal/ledger"
	"cmppgateway/gateway/internal/message"
	"cmppgateway/gateway/internal/restore"
	"cmppgateway/gateway/internal/settings"
	"cmppgateway/gateway/internal/store"
	"cmppgateway/testenv"
)

func TestMain(m *testing.M) {
	testenv.Migrated(store.Migrate)
	testenv.Main(m)
}

type bench struct {
	*store.Pools

	rdb *redis.Client
	log *slog.Logger
}

func setup(t *testing.T) *bench {
	t.Helper()
	cfg := config.Default()
	cfg.Postgres.URL = testenv.DB(t)
	pools, err := store.Open(t.Context(), cfg.Postgres, 5*time.Second)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(pools.Close)
	addr, db := testenv.Redis(t)
	rdb := redis.NewClient(&redis.Options{Addr: addr, DB: db})
	t.Cleanup(func() { _ = rdb.Close() })
	return &bench{Pools: pools, rdb: rdb, log: slog.New(slog.NewTextHandler(t.Output(), nil))}
}

func (b *bench) exec(t *testing.T, sql string, args ...any) {
	t.Helper()
	if _, err := b.Admin.Exec(t.Context(), sql, args...); err != nil {
		t.Fatalf("%s: %v", sql, err)
	}
}

func (b *bench) count(t *testing.T, sql string) (n int64) {
	t.Helper()
	if err := b.Admin.QueryRow(t.Context(), sql).Scan(&n); err != nil {
		t.Fatalf("%s: %v", sql, err)
	}
	return n
}

// open is the start of a process: why it has to wait, or "".
func (b *bench) open(t *testing.T) (*restore.Guard, string) {
	t.Helper()
	g, err := restore.Open(t.Context(), b.Admin, b.rdb, b.log)
	if err != nil {
		t.Fatal(err)
	}
	_, reason, err := g.Quarantine(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return g, reason
}

// beats runs a guard until it has told Redis of n beats more.
func (b *bench) beats(t *testing.T, g *restore.Guard, n int64) {
	t.Helper()
	ctx, stop := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- g.Run(ctx) }()
	from := b.count(t, `SELECT beat FROM installation`)
	for b.told(t) < from+n {
		select {
		case err := <-done:
			t.Fatalf("the guard ended: %v", err)
		case <-time.After(10 * time.Millisecond): // nothing announces a beat
		}
	}
	stop()
	if err := <-done; err != nil {
		t.Fatal(err)
	}
}

func (b *bench) told(t *testing.T) int64 {
	t.Helper()
	keys, err := b.rdb.Keys(t.Context(), "{restore:*").Result()
	if err != nil {
		t.Fatal(err)
	}
	if len(keys) == 0 {
		return 0
	}
	score, err := b.rdb.ZScore(t.Context(), keys[0], "beat").Result()
	if err != nil {
		t.Fatal(err)
	}
	return int64(score)
}

func TestOrdinaryStartsAreNoQuarantine(t *testing.T) {
	t.Parallel()
	b := setup(t)
	g, reason := b.open(t)
	if reason != "" {
		t.Fatalf("a new database: %s", reason)
	}
	b.beats(t, g, 2)
	if _, reason := b.open(t); reason != "" {
		t.Errorf("a restart: %s", reason)
	}
	// A Redis that lost everything is no witness, nor is one that is away.
	if err := b.rdb.FlushDB(t.Context()).Err(); err != nil {
		t.Fatal(err)
	}
	if _, reason := b.open(t); reason != "" {
		t.Errorf("an empty Redis: %s", reason)
	}
	away := redis.NewClient(&redis.Options{Addr: "127.0.0.1:1", MaxRetries: -1})
	defer away.Close()
	if g, err := restore.Open(t.Context(), b.Admin, away, b.log); err != nil {
		t.Errorf("no Redis: %v", err)
	} else if since, reason, err := g.Quarantine(t.Context()); err != nil || since != nil {
		t.Errorf("no Redis: %v, %s", err, reason)
	}
}

func TestEachWitnessIsEnough(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct{ sql, want string }{
		"another cluster":  {`UPDATE installation SET system_identifier = system_identifier + 1`, "cluster"},
		"another timeline": {`UPDATE installation SET timeline = timeline + 1`, "timeline"},
		"an older copy":    {`UPDATE installation SET beat = beat - 1`, "beat"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := setup(t)
			g, _ := b.open(t)
			b.beats(t, g, 2)
			b.exec(t, c.sql)
			if _, reason := b.open(t); !strings.Contains(reason, c.want) {
				t.Errorf("reason %q does not say %s", reason, c.want)
			}
			// Going back to how it was does not end it: only an operator does.
			b.exec(t, `UPDATE installation SET beat = beat + 100`)
			if _, reason := b.open(t); reason == "" {
				t.Error("it ended by itself")
			}
		})
	}
}

// A process under which the database goes back ends, also when Redis has forgotten how far it was.
func TestRunningProcessEnds(t *testing.T) {
	t.Parallel()
	b := setup(t)
	g, _ := b.open(t)
	b.beats(t, g, 2)
	if err := b.rdb.FlushDB(t.Context()).Err(); err != nil {
		t.Fatal(err)
	}
	b.exec(t, `UPDATE installation SET beat = 1`)
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	if err := g.Run(ctx); !errors.Is(err, restore.ErrQuarantine) {
		t.Errorf("%v, want %v", err, restore.ErrQuarantine)
	}
	other, err := restore.Open(t.Context(), b.Admin, b.rdb, b.log)
	if err != nil {
		t.Fatal(err)
	}
	if err := other.Run(ctx); !errors.Is(err, restore.ErrQuarantine) {
		t.Errorf("another process goes on: %v", err)
	}
}

const settingsSQL = `
INSERT INTO enterprise (id, name) VALUES (1, 'a');
INSERT INTO account (id, available) VALUES (1, 0);
INSERT INTO application (id, enterprise_id, price, sp_id, secret, name) VALUES (11, 1, 325, '100001', 's', 'a');
INSERT INTO supplier_account (id, max_connections, max_window, addr, sp_id, secret, name) VALUES (1, 8, 64, '127.0.0.1:1', '900001', 's', 's');
INSERT INTO channel (id, account_id, access_number, name) VALUES (1, 1, '1069', 'p');`

// sent makes a checked message with its command, pending (state 0) or dispatched (1).
func (b *bench) sent(t *testing.T, ids *message.IDs, state int) {
	t.Helper()
	list, err := ids.Take(t.Context(), 3)
	if err != nil {
		t.Fatal(err)
	}
	err = store.InTx(t.Context(), b.Admin, func(tx pgx.Tx) error {
		var q pgx.Batch
		q.Queue(`INSERT INTO message (id, msg_id, freeze_entry, price, phone, accept_session, accepted_at, created_at, enterprise_id, app_id, channel_id, units, price_version,
			state, bill, charge_on, refund_on, carrier, registered, fmt, udhi, pk_total, pk_number, accept_node, dest, src, service, content)
			VALUES ($1, $1, $2, 325, 13800000000, 1, '2026-11-30T00:00:00Z', now(), 1, 11, 1, 1, 1, 1, 1, 1, 1, 1, 1, 0, 0, 1, 1, 1, '13800000000', '106977', '', 'text')`, list[0], list[2])
		q.Queue(`INSERT INTO submit_outbox (id, pos, message_id, channel_id, enterprise_id, attempt, part, parts, lane, state, node, batch, at)
			SELECT $1, $1, $2, 1, 1, 1, 1, 1, 1, $3::smallint, CASE WHEN $3 = 1 THEN 9 END, CASE WHEN $3 = 1 THEN 5 END, CASE WHEN $3 = 1 THEN timestamptz '2026-11-30T00:00:07Z' END`,
			list[1], list[0], state)
		ledger.Queue(&q, []ledger.Entry{{ID: list[2], Account: 1, Kind: message.Freeze, N: 1, Amount: 325}})
		return tx.SendBatch(t.Context(), &q).Close()
	})
	if err != nil {
		t.Fatal(err)
	}
}

// Everything that may have been sent becomes unknown with its money frozen; then, and only then, processes go on.
func TestRecover(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.exec(t, settingsSQL)
	node, err := store.LeaseNode(t.Context(), b.Admin, config.Node{Lease: time.Minute}, b.log)
	if err != nil {
		t.Fatal(err)
	}
	if err := store.EnsurePartitions(t.Context(), b.Admin, time.Now(), store.LeafDays); err != nil {
		t.Fatal(err)
	}
	if _, err := ledger.TopUp(t.Context(), b.Admin, node.IDs, 1, 1_000_000, "opening"); err != nil {
		t.Fatal(err)
	}
	for i := range 5 {
		b.sent(t, node.IDs, i%2)
	}
	g, _ := b.open(t)
	b.beats(t, g, 1)
	b.exec(t, `UPDATE installation SET timeline = timeline + 1`)
	waiting, reason := b.open(t)
	if reason == "" {
		t.Fatal("no quarantine")
	}
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	told, ended := make(chan string, 1), make(chan error, 1)
	go func() {
		ended <- waiting.Wait(ctx, func(why string) {
			select {
			case told <- why:
			default:
			}
		})
	}()
	if why := <-told; why != reason {
		t.Errorf("told %q, want %q", why, reason)
	}
	snap, err := settings.Load(t.Context(), b.Admin)
	if err != nil {
		t.Fatal(err)
	}
	drained := 0
	r := restore.Recovery{Node: node, Snapshot: snap, Drain: func(context.Context) error {
		drained++
		b.sent(t, node.IDs, 0) // what the inbox held
		return nil
	}}
	// Not while another process holds a lease.
	other, err := store.LeaseNode(t.Context(), b.Admin, config.Node{Lease: time.Minute}, b.log)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := g.Recover(t.Context(), r); !errors.Is(err, restore.ErrRunning) || drained != 0 {
		t.Fatalf("beside a running process: %v, drained %d times", err, drained)
	}
	if err := other.Release(t.Context(), true); err != nil {
		t.Fatal(err)
	}
	unknown, err := g.Recover(t.Context(), r)
	if err != nil || unknown != 6 || drained != 1 {
		t.Fatalf("%v, %d unknown, drained %d times", err, unknown, drained)
	}
	if err := <-ended; err != nil {
		t.Errorf("a waiting process: %v", err)
	}
	for sql, want := range map[string]int64{
		`SELECT count(*) FROM submit_outbox`:                                                                  0,
		`SELECT count(*) FROM message WHERE state = 3 AND bill = 1`:                                           6, // unknown, frozen
		`SELECT count(*) FROM submit WHERE state = 4 AND dispatched_at < '2026-11-30T00:00:10Z'`:              6,
		`SELECT count(*) FROM unknown_submit WHERE src = '106977' AND dispatched_at = '2026-11-30T00:00:07Z'`: 2,
		`SELECT count(*) FROM unknown_submit WHERE supplier_account = 1`:                                      6,
		`SELECT count(*) FROM installation WHERE quarantined_at IS NULL`:                                      1,
	} {
		if n := b.count(t, sql); n != want {
			t.Errorf("%d of %s, want %d", n, sql, want)
		}
	}
	v, err := ledger.Verify(t.Context(), b.Admin)
	if err != nil || len(v.Faults) > 0 {
		t.Errorf("%v, %+v", err, v.Faults)
	}
	if n, err := g.Recover(t.Context(), r); err != nil || n != 0 || drained != 1 {
		t.Errorf("again: %v, %d unknown, drained %d times", err, n, drained)
	}
	if _, reason := b.open(t); reason != "" {
		t.Errorf("after it: %s", reason)
	}
}
