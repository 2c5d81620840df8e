package delivery

import (
	"context"
	"fmt"
	"log/slog"
	"time"

	"github.com/jackc/pgx/v5"

	"cmppgateway/gateway/internal/store"
)

// keepEvery is how many sweeps there are between two looks at what waits: a count reads much when much waits.
const keepEvery = 6

// shedPages are the transactions of one look, for one application; the next look goes on.
const shedPages = 50

// keep counts what waits and moves the oldest deliveries of applications that have too many to the dead letters, until ctx
// is done.
func (d *Delivery) keep(ctx context.Context) {
	tick := time.NewTicker(keepEvery * d.Config.Sweep)
	defer tick.Stop()
	failing := false
	for {
		err := d.look(ctx)
		if failed := err != nil && ctx.Err() == nil; failed != failing {
			failing = failed
			d.Log.Warn("waiting deliveries counted", slog.Bool("working", !failed), slog.Any("error", err))
		}
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
	}
}

func (d *Delivery) look(ctx context.Context) error {
	rows, err := d.Pool.Query(ctx, store.DeliveryWaiting, d.Config.BacklogMax+shedPages*expireMax)
	if err != nil {
		return fmt.Errorf("count deliveries: %w", err)
	}
	var app int32
	var n, all, most int64
	var full []int32
	_, err = pgx.ForEachRow(rows, []any{&app, &n}, func() error {
		all += n
		most = max(most, n)
		if n > int64(d.Config.BacklogMax) {
			full = append(full, app)
		}
		return nil
	})
	if err != nil {
		return fmt.Errorf("count deliveries: %w", err)
	}
	d.metrics.waiting.Set(float64(all))
	d.metrics.most.Set(float64(most))
	for _, app := range full {
		if err := d.shed(ctx, app); err != nil {
			return err
		}
	}
	return nil
}

func (d *Delivery) shed(ctx context.Context, app int32) error {
	total := int64(0)
	for range shedPages {
		tag, err := d.Pool.Exec(ctx, store.DeliveryShed, app, d.Config.BacklogMax, expireMax)
		if err != nil {
			return fmt.Errorf("shed deliveries: %w", err)
		}
		total += tag.RowsAffected()
		if tag.RowsAffected() < expireMax {
			break
		}
	}
	if total > 0 {
		d.Log.Error("deliveries moved to the dead letters: too many wait for the customer", slog.Int("app", int(app)), slog.Int64("rows", total))
		d.metrics.outcomes.WithLabelValues("shed").Add(float64(total))
	}
	return nil
}
