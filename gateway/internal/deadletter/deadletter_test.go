package deadletter_test

import (
	"context"
	"errors"
	"sync"
	"testing"

	"github.com/jackc/pgx/v5/pgxpool"

	"cmppgateway/gateway/internal/deadletter"
	"cmppgateway/gateway/internal/event"
	"cmppgateway/gateway/internal/store"
	"cmppgateway/testenv"
)

func TestMain(m *testing.M) {
	testenv.Migrated(store.Migrate)
	testenv.Main(m)
}

// letters are one of each kind, as their rooms write them.
const letters = `
INSERT INTO dead_letter (id, kind, reason, raw, account) VALUES
  (1, 'event uplink', 'BAD_EVENT', '{"accountId":1}', 1), (2, 'inbox', 'SYSTEM', 'x', 0),
  (3, 'receipt', 'no submit with its Msg_Id', convert_to('{"account":1,"supplierMsgId":"18446744073709551615","phone":13800000000,"stat":"DELIVRD","submitTime":"2612010101","doneTime":"2612010102","src":"1069","at":"2026-12-01T00:00:00Z"}', 'UTF8'), 1),
  (5, 'report', '59 octets', 'x', 1);
INSERT INTO delivery (id, pos, message_id, msg_id, accept_session, accepted_at, app_id, kind, accept_node, attempts, claim, owner, stat, dest, src)
  VALUES (4, 4, 9, 9, 7, now(), 11, 1, 1, 8, 77, 1, 'DELIVRD', '13800000000', '1069');
WITH gone AS (DELETE FROM delivery d WHERE id = 4 RETURNING id, to_jsonb(d) AS raw)
INSERT INTO dead_letter (id, kind, reason, raw) SELECT id, 'delivery', 'spent', convert_to(raw::text, 'UTF8') FROM gone;`

func setup(t *testing.T) *pgxpool.Pool {
	t.Helper()
	pool, err := pgxpool.New(t.Context(), testenv.DB(t))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(pool.Close)
	if _, err := pool.Exec(t.Context(), letters); err != nil {
		t.Fatal(err)
	}
	return pool
}

func count(t *testing.T, pool *pgxpool.Pool, sql string) (n int) {
	t.Helper()
	if err := pool.QueryRow(t.Context(), sql).Scan(&n); err != nil {
		t.Fatal(err)
	}
	return n
}

// core takes events, or not.
type core struct {
	mu      sync.Mutex
	offered []event.Event
	answer  event.Result
	err     error
}

func (c *core) offer(_ context.Context, e event.Event) (event.Result, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.offered = append(c.offered, e)
	return c.answer, c.err
}

func TestReplay(t *testing.T) {
	t.Parallel()
	pool := setup(t)
	c := &core{answer: event.Result{Accepted: true}}
	want := map[int64]error{1: nil, 2: deadletter.ErrKind, 3: nil, 4: nil, 5: deadletter.ErrKind, 6: deadletter.ErrNone}
	outcomes := deadletter.Replay(t.Context(), pool, []int64{6, 5, 4, 4, 3, 2, 1}, c.offer)
	if len(outcomes) != len(want) {
		t.Errorf("%d outcomes, want %d", len(outcomes), len(want))
	}
	for _, o := range outcomes {
		if !errors.Is(o.Err, want[o.ID]) {
			t.Errorf("letter %d: %v, want %v", o.ID, o.Err, want[o.ID])
		}
	}
	if len(c.offered) != 1 || c.offered[0].ID != 1 || c.offered[0].Type != event.TypeUplink || string(c.offered[0].Payload) != `{"accountId":1}` {
		t.Errorf("offered %+v", c.offered)
	}
	for _, sql := range []string{
		`SELECT count(*) FROM receipt_parked WHERE event_id = 3 AND supplier_msg_id = -1 AND phone = 13800000000 AND stat = 'DELIVRD' AND src = '1069' AND at > now() - interval '1 minute'`,
		`SELECT count(*) FROM delivery WHERE id = 4 AND attempts = 0 AND claim IS NULL AND owner IS NULL AND msg_id = 9 AND stat = 'DELIVRD' AND dest = '13800000000'`,
	} {
		if n := count(t, pool, sql); n != 1 {
			t.Errorf("%d of %s", n, sql)
		}
	}
	// Again: nothing is offered twice, also when two people ask at once.
	for _, o := range deadletter.Replay(t.Context(), pool, []int64{1, 3, 4}, c.offer) {
		if !errors.Is(o.Err, deadletter.ErrReplayed) {
			t.Errorf("letter %d again: %v", o.ID, o.Err)
		}
	}
	if n := count(t, pool, `SELECT count(*) FROM delivery`); n != 1 || len(c.offered) != 1 {
		t.Errorf("%d deliveries, %d events offered", n, len(c.offered))
	}
	open, err := deadletter.List(t.Context(), pool, "", false, 10)
	if err != nil || len(open) != 2 || open[0].ID != 5 || open[1].ID != 2 {
		t.Errorf("%v, open %+v", err, open)
	}
	all, err := deadletter.List(t.Context(), pool, "delivery", true, 10)
	if err != nil || len(all) != 1 || all[0].ReplayedAt == nil {
		t.Errorf("%v, deliveries %+v", err, all)
	}
}

// What the core does not take stays as it was.
func TestReplayRefused(t *testing.T) {
	t.Parallel()
	pool := setup(t)
	for _, c := range []*core{{answer: event.Result{ErrorCode: "BAD_EVENT"}}, {err: errors.New("no core")}} {
		if o := deadletter.Replay(t.Context(), pool, []int64{1}, c.offer); len(o) != 1 || o[0].Err == nil || errors.Is(o[0].Err, deadletter.ErrReplayed) {
			t.Errorf("%+v", o)
		}
	}
	if n := count(t, pool, `SELECT count(*) FROM dead_letter WHERE replayed_at IS NULL`); n != 5 {
		t.Errorf("%d letters open, want 5", n)
	}
}
