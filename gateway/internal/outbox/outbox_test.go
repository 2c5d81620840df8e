package outbox_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync/atomic"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/redis/go-redis/v9"

	"cmppgateway/gateway/internal/config"
	"cmppgateway/gateway/internal/message"
	"cmppgateway/gateway/internal/outbox"
	"cmppgateway/gateway/internal/store"
	"cmppgateway/testenv"
)

func TestMain(m *testing.M) {
	testenv.Migrated(store.Migrate)
	testenv.Main(m)
}

// wake nudges the one source there is.
type wake chan struct{}

func (w wake) Publish(string) {
	select {
	case w <- struct{}{}:
	default:
	}
}

type rig struct {
	pool  *pgxpool.Pool
	rdb   *redis.Client
	cfg   config.Outbox
	wake  wake
	ids   *message.IDs
	told  atomic.Int64
	hints *outbox.RedisHinter
}

func newRig(t *testing.T) *rig {
	t.Helper()
	addr, db := testenv.Redis(t)
	r := &rig{
		rdb: redis.NewClient(&redis.Options{Addr: addr, DB: db, ContextTimeoutEnabled: true}), cfg: config.Default().Outbox, wake: make(wake, 1),
		ids: message.NewIDs(1, time.Now().Add(-time.Second), time.Now().Add(time.Hour), time.Now),
	}
	t.Cleanup(func() { _ = r.rdb.Close() })
	var err error
	if r.pool, err = pgxpool.New(t.Context(), testenv.DB(t)); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(r.pool.Close)
	r.hints = outbox.NewHinter(r.rdb, r.wake, r.cfg, slog.New(slog.DiscardHandler), prometheus.NewRegistry())
	return r
}

func (r *rig) source(t *testing.T, window int) *outbox.Source {
	t.Helper()
	s := outbox.NewSource(outbox.SourceOptions{
		Config: r.cfg, Channel: 1, Pool: r.pool, Redis: r.rdb, Wake: r.wake, Notify: func() { r.told.Add(1) },
		Metrics: outbox.NewMetrics(prometheus.NewRegistry()), Log: slog.New(slog.NewTextHandler(t.Output(), nil)),
	})
	s.Window(window)
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- s.Run(ctx) }()
	t.Cleanup(func() {
		cancel()
		if err := <-done; err != nil {
			t.Error(err)
		}
	})
	return s
}

// commands makes n committed commands of one enterprise and lane.
func (r *rig) commands(t *testing.T, enterprise int32, lane int16, n int) []outbox.Command {
	t.Helper()
	ids, err := r.ids.Take(t.Context(), 2*n)
	if err != nil {
		t.Fatal(err)
	}
	cmds := make([]outbox.Command, n)
	for i := range cmds {
		c := &cmds[i]
		*c = outbox.Command{
			MessageID: ids[2*i], SubmitID: ids[2*i+1], ChannelID: 1, EnterpriseID: enterprise, AppID: 11, Attempt: 1, Part: 1, Parts: 1, Lane: lane,
			Phone: 13800000000, Fmt: 8, UDHI: 1, PkTotal: 2, PkNumber: 1, Src: []byte{0xff, '1'}, Service: []byte("svc"), Content: []byte{0, 1, 2},
		}
		if _, err := r.pool.Exec(t.Context(), `INSERT INTO message (id, msg_id, price, phone, accept_session, accepted_at, created_at, enterprise_id, app_id, channel_id, units, price_version, state, bill, charge_on, refund_on, registered, fmt, udhi, pk_total, pk_number, accept_node, dest, src, service, content)
			VALUES ($1, 1, 325, $2, 1, now(), now(), $3, $4, 1, 1, 1, 1, 1, 1, 1, 1, $5, $6, $7, $8, 1, '', $9, $10, $11)`,
			c.MessageID, c.Phone, enterprise, c.AppID, c.Fmt, c.UDHI, c.PkTotal, c.PkNumber, c.Src, c.Service, c.Content); err != nil {
			t.Fatal(err)
		}
		if _, err := r.pool.Exec(t.Context(), `INSERT INTO submit_outbox (id, pos, message_id, channel_id, enterprise_id, attempt, part, parts, lane)
			VALUES ($1, $1, $2, 1, $3, 1, 1, 1, $4)`, c.SubmitID, c.MessageID, enterprise, lane); err != nil {
			t.Fatal(err)
		}
	}
	return cmds
}

// sent takes commands as the dispatcher and the barrier do, until n rows were dispatched. A command may be offered twice when
// its row was read just before: its row is not pending any more then, and it is let go.
func (r *rig) sent(t *testing.T, s *outbox.Source, n, atOnce int) (got []*outbox.Command) {
	t.Helper()
	deadline := time.Now().Add(20 * time.Second)
	tick := time.NewTicker(time.Millisecond)
	defer tick.Stop()
	for len(got) < n {
		if time.Now().After(deadline) {
			t.Fatalf("%d of %d commands in 20 s", len(got), n)
		}
		batch := s.Take(nil, min(atOnce, n-len(got)), time.Now())
		for _, c := range batch {
			tag, err := r.pool.Exec(t.Context(), `UPDATE submit_outbox SET state = 1 WHERE id = $1 AND state = 0`, c.SubmitID)
			if err != nil {
				t.Fatal(err)
			}
			if tag.RowsAffected() == 1 {
				got = append(got, c)
			}
		}
		s.Settle(batch...)
		if len(batch) == 0 {
			<-tick.C
		}
	}
	return got
}

func TestHintAndPullCarryTheSame(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	r.cfg.Pull = time.Hour
	s := r.source(t, 16)
	hinted := r.commands(t, 1, 1, 1)
	r.hints.Hint(t.Context(), 1, hinted)
	a := r.sent(t, s, 1, 1)[0]
	s.Window(0)
	pulled := r.commands(t, 1, 1, 1)
	s.Window(16)
	b := r.sent(t, s, 1, 1)[0]
	for i, got := range []*outbox.Command{a, b} {
		want := [][]outbox.Command{hinted, pulled}[i][0]
		if fmt.Sprint(*got) != fmt.Sprint(want) {
			t.Errorf("got  %v\nwant %v", *got, want)
		}
	}
	if n, err := r.rdb.XLen(t.Context(), "{ch:1}:submit").Result(); err != nil || n != 0 {
		t.Errorf("%d entries left on the stream, %v", n, err)
	}
}

func TestStreamIsBoundedAndTheRestIsPulled(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	r.cfg.Pull = 50 * time.Millisecond
	for range r.cfg.HintEntriesMax + 5 {
		r.hints.Hint(t.Context(), 1, r.commands(t, 1, 1, 2))
	}
	if n, err := r.rdb.XLen(t.Context(), "{ch:1}:submit").Result(); err != nil || n != int64(r.cfg.HintEntriesMax) {
		t.Fatalf("%d entries on the stream, bound %d, %v", n, r.cfg.HintEntriesMax, err)
	}
	s := r.source(t, 1)
	got := r.sent(t, s, 2*(r.cfg.HintEntriesMax+5), 7)
	for i := 1; i < len(got); i++ {
		if got[i].SubmitID < got[i-1].SubmitID {
			t.Fatalf("command %d came after %d of the same enterprise", got[i].SubmitID, got[i-1].SubmitID)
		}
	}
}

// P11: a flood of one enterprise or of a low lane does not hold up the others.
func TestLanesThenTurnsThenAge(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	s := r.source(t, 8) // at most 64 per lane
	r.hints.Hint(t.Context(), 1, r.commands(t, 1, 2, 200))
	r.hints.Hint(t.Context(), 1, r.commands(t, 2, 2, 10))
	r.hints.Hint(t.Context(), 1, r.commands(t, 1, 0, 5))
	deadline := time.Now().Add(10 * time.Second)
	for s.Len() < 69 && time.Now().Before(deadline) {
		<-time.After(time.Millisecond)
	}
	got := r.sent(t, s, 25, 25)
	for i, c := range got[:5] {
		if c.Lane != 0 {
			t.Fatalf("command %d is of lane %d, the verification codes come first", i, c.Lane)
		}
	}
	turns := map[int32]int{}
	last := map[int32]int64{}
	for _, c := range got[5:] {
		turns[c.EnterpriseID]++
		if c.SubmitID < last[c.EnterpriseID] {
			t.Errorf("enterprise %d: %d after %d", c.EnterpriseID, c.SubmitID, last[c.EnterpriseID])
		}
		last[c.EnterpriseID] = c.SubmitID
	}
	if turns[2] != 10 {
		t.Errorf("turns %v: the small enterprise waits behind the flood", turns)
	}
	r.sent(t, s, 190, 20)
}

func TestExpiredCommandsAreLeftToTheSweeper(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	r.cfg.Pull = 20 * time.Millisecond
	r.commands(t, 1, 1, 150) // more than a lane keeps, and nobody sweeps them
	if _, err := r.pool.Exec(t.Context(), `UPDATE message SET valid_until = now() - interval '1 s'`); err != nil {
		t.Fatal(err)
	}
	cmds := r.commands(t, 1, 1, 2)
	cmds[0].ValidUntil = time.Now().Add(-time.Second)
	if _, err := r.pool.Exec(t.Context(), `UPDATE message SET valid_until = $2 WHERE id = $1`, cmds[0].MessageID, cmds[0].ValidUntil); err != nil {
		t.Fatal(err)
	}
	s := r.source(t, 8)
	r.hints.Hint(t.Context(), 1, cmds)
	if got := r.sent(t, s, 1, 2); got[0].SubmitID != cmds[1].SubmitID {
		t.Fatal("an expired command was offered")
	}
	told := r.told.Load()
	later := r.commands(t, 1, 1, 1)
	if got := r.sent(t, s, 1, 2); got[0].SubmitID != later[0].SubmitID {
		t.Fatal("an expired command was pulled")
	}
	if told == 0 {
		t.Error("nobody was told of the commands")
	}
}

func TestDueIsWaitedFor(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	r.cfg.Pull = 20 * time.Millisecond
	cmds := r.commands(t, 1, 1, 1)
	due := time.Now().Add(300 * time.Millisecond)
	if _, err := r.pool.Exec(t.Context(), `UPDATE submit_outbox SET due = $2 WHERE id = $1`, cmds[0].SubmitID, due); err != nil {
		t.Fatal(err)
	}
	s := r.source(t, 8)
	r.sent(t, s, 1, 1)
	if time.Now().Before(due.Add(-50 * time.Millisecond)) {
		t.Error("sent before it was due")
	}
}

func TestReturnedCommandsComeFirstAndClosedWindowKeepsNothing(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	r.cfg.Pull = time.Hour
	s := r.source(t, 8)
	cmds := r.commands(t, 1, 1, 3)
	r.hints.Hint(t.Context(), 1, cmds)
	deadline := time.Now().Add(10 * time.Second)
	for s.Len() < 3 && time.Now().Before(deadline) {
		<-time.After(time.Millisecond)
	}
	first := s.Take(nil, 2, time.Now())
	s.Return(first...)
	if again := s.Take(nil, 2, time.Now()); again[0] != first[0] || again[1] != first[1] {
		t.Error("returned commands are not the next ones")
	}
	s.Return(first...)
	s.Window(0)
	if n := s.Len(); n != 0 {
		t.Errorf("%d commands kept with no connection", n)
	}
	s.Window(8)
	r.sent(t, s, 3, 3)
}

func TestDeadRedisIsTriedOnceAndThenLeftAlone(t *testing.T) {
	t.Parallel()
	p := testenv.RedisServer(t)
	r := newRig(t)
	rdb := redis.NewClient(&redis.Options{Addr: p.Addr(), ContextTimeoutEnabled: true, MaxRetries: -1})
	t.Cleanup(func() { _ = rdb.Close() })
	reg := prometheus.NewRegistry()
	h := outbox.NewHinter(rdb, r.wake, r.cfg, slog.New(slog.DiscardHandler), reg)
	h.Hint(t.Context(), 1, r.commands(t, 1, 1, 1))
	if err := p.Freeze(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = p.Thaw() })
	for range 20 {
		h.Hint(t.Context(), 1, []outbox.Command{{SubmitID: 1, ChannelID: 1}})
	}
	families, err := reg.Gather()
	if err != nil {
		t.Fatal(err)
	}
	got := make(map[string]float64)
	for _, f := range families {
		for _, m := range f.GetMetric() {
			got[m.GetLabel()[0].GetValue()] = m.GetCounter().GetValue()
		}
	}
	if got["written"] != 1 || got["failed"] != 1 || got["skipped"] != 19 {
		t.Errorf("hints %v, want the first of twenty to fail and the others to be skipped", got)
	}
}

// A PostgreSQL that is away is asked after 50, 100, 200 and 400 ms, and not as fast as a connection can fail.
func TestDeadPostgresIsAskedLessAndLess(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	c, err := pgxpool.ParseConfig("postgres://nobody@127.0.0.1:1/none?sslmode=disable")
	if err != nil {
		t.Fatal(err)
	}
	asked := make(chan time.Time, 1000)
	c.BeforeConnect = func(context.Context, *pgx.ConnConfig) error {
		select {
		case asked <- time.Now():
		default:
		}
		return errors.New("away")
	}
	if r.pool, err = pgxpool.NewWithConfig(t.Context(), c); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(r.pool.Close)
	r.source(t, 8)
	first, last := <-asked, time.Time{}
	for range 4 {
		last = <-asked
	}
	if took := last.Sub(first); took < 750*time.Millisecond {
		t.Errorf("asked five times within %s", took)
	}
}
