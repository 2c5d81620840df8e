package reconcile

import (
	"context"
	"fmt"
	"log/slog"
	"strconv"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/prometheus/client_golang/prometheus"

	"cmppgateway/gateway/internal/store"
)

const watchEvery = time.Minute

// Watch keeps the gauge cmppgw_reconciliation_differing_ratio{account} at the newest stored day of each account, until ctx
// is done: the alert rests on it (docs/alerts.yml).
func Watch(ctx context.Context, pool *pgxpool.Pool, r prometheus.Registerer, log *slog.Logger) error {
	gauge := prometheus.NewGaugeVec(prometheus.GaugeOpts{
		Name: "cmppgw_reconciliation_differing_ratio", Help: "Share of submits that differ from the supplier's statement, newest day compared; an operator is called above 0.001.",
	}, []string{"account"})
	if err := r.Register(gauge); err != nil {
		return fmt.Errorf("reconciliation: %w", err)
	}
	tick := time.NewTicker(watchEvery)
	defer tick.Stop()
	for {
		if err := refresh(ctx, pool, gauge); err != nil && ctx.Err() == nil {
			log.Warn("reconciliation gauge not refreshed", slog.Any("error", err))
		}
		select {
		case <-ctx.Done():
			return nil
		case <-tick.C:
		}
	}
}

func refresh(ctx context.Context, pool *pgxpool.Pool, gauge *prometheus.GaugeVec) error {
	rows, err := pool.Query(ctx, store.ReconcileRatios)
	if err != nil {
		return err
	}
	var account int32
	var ratio float64
	_, err = pgx.ForEachRow(rows, []any{&account, &ratio}, func() error {
		gauge.WithLabelValues(strconv.Itoa(int(account))).Set(ratio)
		return nil
	})
	return err
}
