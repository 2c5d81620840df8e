package review

import (
	"context"
	"log/slog"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/prometheus/client_golang/prometheus"

	"cmppgateway/gateway/internal/message"
	"cmppgateway/gateway/internal/settings"
	"cmppgateway/gateway/internal/store"
	"cmppgateway/gateway/internal/wake"
)

const (
	sweepEvery = time.Second
	countEvery = 5 * time.Second
	sweepRows  = 200 // holds ended in one transaction
	sweepPages = 50  // transactions of one sweep; the next goes on
)

// Publisher is the part of the wake bus that review uses.
type Publisher interface{ Publish(topic string) }

// Options of a Review; all fields are required.
type Options struct {
	Pool     *pgxpool.Pool
	IDs      *message.IDs
	Settings *settings.Watcher
	Wake     Publisher
	Log      *slog.Logger
	Registry prometheus.Registerer
}

// Review decides about held messages. Safe for concurrent use; start it once with Run.
type Review struct {
	Options

	waiting, oldest prometheus.Gauge
	decided         *prometheus.CounterVec
}

// New makes a Review and registers its metrics.
func New(o Options) *Review {
	r := &Review{
		Options: o,
		waiting: prometheus.NewGauge(prometheus.GaugeOpts{Name: "cmppgw_review_holds", Help: "Messages held for review."}),
		oldest:  prometheus.NewGauge(prometheus.GaugeOpts{Name: "cmppgw_review_oldest_seconds", Help: "Age of the oldest message held for review."}),
		decided: prometheus.NewCounterVec(prometheus.CounterOpts{Name: "cmppgw_review_decided_total", Help: "Messages that left the review, by how: approved, or the reason of the refusal."}, []string{"outcome"}),
	}
	o.Registry.MustRegister(r.waiting, r.oldest, r.decided)
	return r
}

// Run ends holds whose time has come, and temporary prefix rules whose end has come, until ctx is done.
func (r *Review) Run(ctx context.Context) error {
	tick := time.NewTicker(sweepEvery)
	defer tick.Stop()
	var counted time.Time
	failing := false
	for {
		err := r.sweep(ctx)
		if err == nil && time.Since(counted) > countEvery {
			counted = time.Now()
			err = r.count(ctx)
		}
		switch {
		case ctx.Err() != nil:
			return nil
		case err != nil && !failing:
			r.Log.Error("the sweep of the review fails, tried again every second", slog.Any("error", err))
		case err == nil && failing:
			r.Log.Info("the sweep of the review works again")
		}
		failing = err != nil
		select {
		case <-ctx.Done():
			return nil
		case <-tick.C:
		}
	}
}

func (r *Review) sweep(ctx context.Context) error {
	gone, err := r.Pool.Exec(ctx, store.SettingsPrefixExpire)
	if err != nil {
		return err
	}
	if gone.RowsAffected() > 0 {
		r.Wake.Publish(wake.Settings)
	}
	for range sweepPages {
		n, err := r.expire(context.WithoutCancel(ctx))
		if err != nil || n < sweepRows || ctx.Err() != nil {
			return err
		}
	}
	return nil
}

func (r *Review) expire(ctx context.Context) (int, error) {
	rows, err := r.Pool.Query(ctx, store.ReviewDue, sweepRows)
	if err != nil {
		return 0, err
	}
	ids, err := pgx.CollectRows(rows, pgx.RowTo[int64])
	if err != nil || len(ids) == 0 {
		return 0, err
	}
	var o Outcome
	err = store.Retry(ctx, r.Pool, func(tx pgx.Tx) (err error) {
		o, err = r.decide(ctx, tx, ids, expire)
		return err
	})
	if err == nil {
		r.Committed(o)
	}
	return len(ids), err
}

func (r *Review) count(ctx context.Context) error {
	var n, age float64
	if err := r.Pool.QueryRow(ctx, store.ReviewWaiting).Scan(&n, &age); err != nil {
		return err
	}
	r.waiting.Set(n)
	r.oldest.Set(age)
	return nil
}
