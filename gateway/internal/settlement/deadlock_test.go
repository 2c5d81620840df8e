package settlement_test

import (
	"context"
	"log/slog"
	"math/rand/v2"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/prometheus/client_golang/prometheus"
	"golang.org/x/sync/errgroup"

	"cmppgateway/gateway/internal/config"
	"cmppgateway/gateway/internal/event"
	"cmppgateway/gateway/internal/settlement"
)

// recent is the messages that all lanes work on.
type recent struct {
	mu   sync.Mutex
	list []sent
}

func (r *recent) add(m sent) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.list = append(r.list, m); len(r.list) > 50 {
		r.list = r.list[1:]
	}
}

// some is a few of them, in no order.
func (r *recent) some(n int) []sent {
	r.mu.Lock()
	defer r.mu.Unlock()
	list := slices.Clone(r.list)
	rand.Shuffle(len(list), func(i, j int) { list[i], list[j] = list[j], list[i] })
	return list[:min(n, len(list))]
}

// All lanes at once over the same 50 messages: no transaction waits for one that waits for it (data §1.9).
func TestNoDeadlocks(t *testing.T) {
	t.Parallel()
	b := setup(t, func(c *config.Config) {
		c.Settlement.UnknownAfter, c.Settlement.ReceiptWait = 0, time.Second
		c.Postgres.Pools.Settlement = 12
	})
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Second)
	defer cancel()
	var g errgroup.Group
	var messages recent
	lane := func(work func() error) {
		g.Go(func() error {
			for ctx.Err() == nil {
				if err := work(); err != nil {
					return err
				}
			}
			return nil
		})
	}
	for app := range int32(2) { // one enterprise each, as the workflow's workers have
		lane(func() error {
			messages.add(b.queue(t, spec{app: 13 + app, channel: 1 + 2*app, phone: 13800000000 + rand.Int64N(5), valid: time.Duration(rand.IntN(4)) * time.Second}))
			return nil
		})
	}
	lane(func() error { // the barrier
		var pending []int64
		for _, m := range messages.some(20) {
			pending = append(pending, m.submit)
		}
		rows, err := b.Query(t.Context(), `SELECT id FROM submit_outbox WHERE state = 0 ORDER BY id LIMIT 100`)
		if err != nil {
			return err
		}
		var id int64
		for rows.Next() {
			if err := rows.Scan(&id); err != nil {
				return err
			}
			pending = append(pending, id)
		}
		slices.Sort(pending)
		b.dispatch(t, slices.Compact(pending)...)
		return rows.Err()
	})
	for range 2 {
		lane(func() error { // results, the same ones in both lanes
			var results []event.SubmitResult
			for _, m := range messages.some(20) {
				switch rand.IntN(5) {
				case 0:
					results = append(results, b.result(m, event.Rejected, 8, 0))
				case 1:
					results = append(results, b.result(m, event.Rejected, 13, 0))
				case 2:
					results = append(results, b.result(m, event.Unknown, 0, 0))
				default:
					results = append(results, b.result(m, event.Accepted, 0, uint64(m.submit)))
				}
			}
			_, err := b.try(t.Context(), results...)
			return err
		})
	}
	lane(func() error { // the writer of receipts
		for _, m := range messages.some(10) {
			account := int32(1)
			if m.channel > 2 {
				account = 2
			}
			b.report(t, account, uint64(m.submit), m.phone, []string{delivered, "UNDELIV"}[rand.IntN(2)])
		}
		return nil
	})
	for range 2 { // two processes
		other := settlement.New(settlement.Options{
			Config: b.cfg.Settlement, Outbox: b.cfg.Outbox, Pool: b.Pool, Node: b.node, Settings: b.watch, Wake: b.bus, Hints: &b.hints,
			Log: slog.New(slog.NewTextHandler(t.Output(), nil)), Registry: prometheus.NewRegistry(),
		})
		lane(func() error { return other.Settle(t.Context()) })
		lane(func() error {
			if _, err := b.Exec(t.Context(), `UPDATE receipt_parked SET next_try_at = now() WHERE event_id = (SELECT max(event_id) FROM receipt_parked)`); err != nil {
				return err
			}
			return other.Parked(t.Context())
		})
		lane(func() error { return other.Sweep(t.Context()) })
	}
	if err := g.Wait(); err != nil {
		t.Fatal(err)
	}
	b.books(t)
	moved := b.count(t, `SELECT count(*) FROM submit`)
	name := b.Config().ConnConfig.Database
	b.Close() // sessions report what they counted when they end
	pool, err := pgxpool.New(t.Context(), b.cfg.Postgres.URL)
	if err != nil {
		t.Fatal(err)
	}
	defer pool.Close()
	var deadlocks int64
	if err := pool.QueryRow(t.Context(), `SELECT deadlocks FROM pg_stat_database WHERE datname = $1`, name).Scan(&deadlocks); err != nil {
		t.Fatal(err)
	}
	if deadlocks != 0 || moved == 0 {
		t.Errorf("%d deadlocks over %d submits", deadlocks, moved)
	}
}
