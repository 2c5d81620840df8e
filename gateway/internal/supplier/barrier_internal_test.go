package supplier

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/prometheus/client_golang/prometheus"

	"cmppgateway/gateway/internal/config"
	"cmppgateway/gateway/internal/store"
	"cmppgateway/testenv"
)

func rows(tb testing.TB, pool *pgxpool.Pool, first, n int) []int64 {
	tb.Helper()
	if _, err := pool.Exec(tb.Context(), `INSERT INTO submit_outbox (id, pos, message_id, channel_id, enterprise_id, attempt, part, parts, lane)
		SELECT i, i, i, 1, 1, 1, 1, 1, 1 FROM generate_series($1::int, $2::int) i`, first, first+n-1); err != nil {
		tb.Fatal(err)
	}
	ids := make([]int64, n)
	for i := range ids {
		ids[i] = int64(first + i)
	}
	return ids
}

func pools(tb testing.TB) *pgxpool.Pool {
	tb.Helper()
	c := config.Default().Postgres
	c.URL = testenv.DB(tb)
	p, err := store.Open(tb.Context(), c, time.Second)
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(p.Close)
	return p.Outbox
}

func TestBarrierGivesARowToOneCallerOnly(t *testing.T) {
	t.Parallel()
	pool := pools(t)
	ids := rows(t, pool, 1, 500)
	var mu sync.Mutex
	owners := make(map[int64][]int64)
	var wg sync.WaitGroup
	for caller := range int64(4) {
		wg.Go(func() {
			b := &barrier{pool: pool, node: int16(caller + 1)}
			for part := range slices.Chunk(ids, 50) {
				moved, err := b.dispatch(context.Background(), part, caller+1)
				if err != nil {
					t.Error(err)
				}
				again, err := b.dispatch(context.Background(), part, caller+1)
				if err != nil || len(again) != len(moved) {
					t.Errorf("caller %d: the same call gave %d rows, then %d (%v)", caller, len(moved), len(again), err)
				}
				mu.Lock()
				for _, d := range moved {
					owners[d.ID] = append(owners[d.ID], caller)
				}
				mu.Unlock()
			}
		})
	}
	wg.Wait()
	for _, id := range ids {
		if len(owners[id]) != 1 {
			t.Errorf("row %d was given to callers %v", id, owners[id])
		}
	}
}

func TestOnlyTheOwnerUndispatches(t *testing.T) {
	t.Parallel()
	pool := pools(t)
	ids := rows(t, pool, 1, 3)
	b := &barrier{pool: pool, node: 1}
	if moved, err := b.dispatch(t.Context(), ids, 7); err != nil || len(moved) != 3 {
		t.Fatalf("%d rows, %v", len(moved), err)
	}
	pending := func() (n int) {
		if err := pool.QueryRow(t.Context(), `SELECT count(*) FROM submit_outbox WHERE state = 0 AND node IS NULL AND batch IS NULL AND at IS NULL`).Scan(&n); err != nil {
			t.Fatal(err)
		}
		return n
	}
	for _, other := range []struct {
		node  int16
		batch int64
		want  int
	}{{2, 7, 0}, {1, 8, 0}, {1, 7, 3}} {
		if _, err := pool.Exec(t.Context(), store.SupplierUndispatch, ids, other.node, other.batch); err != nil {
			t.Fatal(err)
		}
		if got := pending(); got != other.want {
			t.Errorf("node %d, batch %d: %d rows pending, want %d", other.node, other.batch, got, other.want)
		}
	}
	if moved, err := b.dispatch(t.Context(), ids, 9); err != nil || len(moved) != 3 {
		t.Fatalf("after undispatch %d rows pass, %v", len(moved), err)
	}
}

func BenchmarkBarrier(b *testing.B) {
	for _, n := range []int{10, 100, 500} {
		b.Run(fmt.Sprintf("rows=%d", n), func(b *testing.B) {
			pool := pools(b)
			x := newBarrier(pool, config.Default().Supplier, 1, nil, newMetrics(&Manager{}, prometheus.NewRegistry()))
			ids := rows(b, pool, 1, n*b.N)
			b.ResetTimer()
			for i := range b.N {
				moved, err := x.dispatch(b.Context(), ids[i*n:(i+1)*n], int64(i+1))
				if err != nil || len(moved) != n {
					b.Fatalf("%d of %d rows, %v", len(moved), n, err)
				}
			}
			b.ReportMetric(float64(n*b.N)/b.Elapsed().Seconds(), "rows/s")
		})
	}
}
