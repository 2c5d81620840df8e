package workflow_test

import (
	"context"
	"fmt"
	"log/slog"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/prometheus/client_golang/prometheus"

	"cmppgateway/gateway/internal/config"
	"cmppgateway/gateway/internal/message"
	"cmppgateway/gateway/internal/settings"
	"cmppgateway/gateway/internal/store"
	"cmppgateway/gateway/internal/wake"
	"cmppgateway/gateway/internal/workflow"
	"cmppgateway/testenv"
)

// BenchmarkWorkflow empties an inbox of 10,000 rows of one enterprise, each to another number.
func BenchmarkWorkflow(b *testing.B) {
	const rows = 10_000
	c := config.Default()
	c.Postgres.URL = testenv.DB(b)
	pools, err := store.Open(b.Context(), c.Postgres, 3*time.Second)
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(pools.Close)
	exec := func(pool *pgxpool.Pool, sql string, args ...any) {
		if _, err := pool.Exec(b.Context(), sql, args...); err != nil {
			b.Fatalf("%s: %v", sql, err)
		}
	}
	exec(pools.Admin, settingsSQL+`UPDATE account SET available = 1000000000000;`)
	watch := settings.NewWatcher(pools.Admin, time.Hour, slog.New(slog.DiscardHandler))
	if err := watch.Refresh(b.Context()); err != nil {
		b.Fatal(err)
	}
	ids := message.NewIDs(1, time.Now().Add(-time.Second), time.Now().Add(time.Hour), time.Now)
	bus := wake.New(nil, slog.New(slog.DiscardHandler))
	round := 0
	for b.Loop() {
		b.StopTimer()
		list, dest := make([]int64, 0, rows), make([][]byte, 0, rows)
		for len(list) < rows {
			some, err := ids.Take(b.Context(), 1000)
			if err != nil {
				b.Fatal(err)
			}
			for _, id := range some {
				list, dest = append(list, id), append(dest, fmt.Appendf(nil, "139%08d", round*rows+len(dest)))
			}
		}
		round++
		exec(pools.Admin, `INSERT INTO inbox (id, pos, msg_id, enterprise_id, app_id, node, session, seq, weight, registered, fmt, udhi, pk_total, pk_number, dest, src, service, accepted_at, content)
			SELECT u.id, u.id, u.id, 1, 11, 1, 1, 1, 1, 1, 8, 0, 1, 1, u.dest, '1069', '', now(), $3 FROM unnest($1::bigint[], $2::bytea[]) AS u (id, dest)`,
			list, dest, []byte("\x30\x10\x4e\x2d\x30\x11\x4f\x60\x59\x7d"))
		ctx, cancel := context.WithCancel(b.Context())
		w := workflow.New(workflow.Options{
			Config: c.Workflow, Pool: pools.Workflow, IDs: ids, Settings: watch, Wake: bus, Hints: &hints{},
			Log: slog.New(slog.DiscardHandler), Registry: prometheus.NewRegistry(),
		})
		done := make(chan error, 1)
		b.StartTimer()
		go func() { done <- w.Run(ctx) }()
		for n := 1; n > 0; {
			if err := pools.Admin.QueryRow(b.Context(), `SELECT count(*) FROM (SELECT 1 FROM inbox LIMIT 1) x`).Scan(&n); err != nil {
				b.Fatal(err)
			}
			time.Sleep(2 * time.Millisecond)
		}
		b.StopTimer()
		cancel()
		if err := <-done; err != nil {
			b.Fatal(err)
		}
		b.StartTimer()
	}
	b.ReportMetric(float64(rows)*float64(b.N)/b.Elapsed().Seconds(), "msg/s")
}
