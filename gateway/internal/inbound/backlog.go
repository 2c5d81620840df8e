package inbound

import (
	"context"
	"fmt"
	"log/slog"
	"sync/atomic"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"cmppgateway/gateway/internal/store"
)

const backlogEvery = time.Second

// backlog is an estimate of how many inbox rows each application has: counted once a second, no further than it takes to
// find out who is at the limit.
type backlog struct {
	pool *pgxpool.Pool
	log  *slog.Logger
	max  int
	rows atomic.Pointer[map[int32]int]
}

// full says that an application must not add rows.
func (b *backlog) full(app int32) bool {
	rows := b.rows.Load()
	return rows != nil && (*rows)[app] >= b.max
}

func (b *backlog) most() int {
	n := 0
	if rows := b.rows.Load(); rows != nil {
		for _, k := range *rows {
			n = max(n, k)
		}
	}
	return n
}

// run counts for the enterprises that live gives, with the number of their applications. Without PostgreSQL the last counts stay.
func (b *backlog) run(ctx context.Context, live func() map[int32]int) {
	tick := time.NewTicker(backlogEvery)
	defer tick.Stop()
	failing := false
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
		err := b.count(ctx, live())
		if failed := err != nil && ctx.Err() == nil; failed != failing {
			failing = failed
			b.log.Info("inbox backlog counted", slog.Bool("working", !failed), slog.Any("error", err))
		}
	}
}

func (b *backlog) count(ctx context.Context, live map[int32]int) error {
	counts := make(map[int32]int)
	if len(live) > 0 {
		var enterprises []int32
		var limits []int64
		for id, apps := range live {
			enterprises, limits = append(enterprises, id), append(limits, int64(apps)*int64(b.max))
		}
		rows, err := b.pool.Query(ctx, store.InboundBacklog, enterprises, limits)
		if err != nil {
			return fmt.Errorf("count inbox rows: %w", err)
		}
		var app int32
		var n int
		if _, err := pgx.ForEachRow(rows, []any{&app, &n}, func() error {
			counts[app] = n
			return nil
		}); err != nil {
			return fmt.Errorf("count inbox rows: %w", err)
		}
	}
	b.rows.Store(&counts)
	return nil
}
