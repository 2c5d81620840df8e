package workflow

import (
	"context"
	"log/slog"
	"time"

	"github.com/jackc/pgx/v5"

	"cmppgateway/gateway/internal/store"
)

const (
	sweepEvery = 500 * time.Millisecond // how often the waiting places are looked through
	sweepRows  = 200                    // rows of one statement
	sweepMost  = 50                     // statements of one sweep; the next one goes on
)

// sweepLoop moves what waited long enough, until ctx is done.
func (w *Workflow) sweepLoop(ctx context.Context) {
	tick := time.NewTicker(sweepEvery)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
		work := context.WithoutCancel(ctx)
		for name, step := range map[string]func(context.Context) (bool, error){"scheduled": w.sweepScheduled, "segments": w.sweepSegments} {
			more, err := true, error(nil)
			for n := 0; more && err == nil && n < sweepMost && ctx.Err() == nil; n++ {
				more, err = step(work)
			}
			if err != nil {
				w.metrics.failures.Inc()
				w.Log.Error("waiting place not swept, trying again", slog.String("place", name), slog.Any("error", err))
			}
		}
	}
}

// sweepScheduled gives rows whose time has come to the inbox.
func (w *Workflow) sweepScheduled(ctx context.Context) (more bool, err error) {
	tag, err := w.Pool.Exec(ctx, store.ScheduledDue, sweepRows)
	if err != nil {
		return false, err
	}
	return tag.RowsAffected() == sweepRows, nil
}

// sweepSegments looks at sets whose time has come: those that are not complete expire.
func (w *Workflow) sweepSegments(ctx context.Context) (more bool, err error) {
	rows, err := w.Pool.Query(ctx, store.SegmentExpiring, sweepRows)
	if err != nil {
		return false, err
	}
	sets, err := pgx.CollectRows(rows, func(c pgx.CollectableRow) (d dueSet, err error) {
		err = c.Scan(&d.enterprise, &d.app, &d.key)
		return d, err
	})
	if err != nil {
		return false, err
	}
	done := 0
	for _, d := range sets {
		b, err := w.try(ctx, []int32{d.enterprise}, mode{due: &d})
		if err != nil && !store.IsTransient(err) {
			w.Log.Error("segments refused: they fail alone", slog.Int("app", int(d.app)), slog.Any("error", err))
			b, err = w.try(ctx, []int32{d.enterprise}, mode{due: &d, refuse: err})
		}
		if err != nil {
			return false, err
		}
		done += len(b.rows)
	}
	return len(sets) > 0 && done > 0, nil
}
