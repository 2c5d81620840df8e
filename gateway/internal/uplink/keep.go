package uplink

import (
	"context"
	"fmt"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"cmppgateway/gateway/internal/message"
	"cmppgateway/gateway/internal/store"
)

type metrics struct {
	uplinks                                           *prometheus.CounterVec
	optOuts                                           prometheus.Counter
	queue, oldest, segments, unmatched, unmatchedAsks prometheus.Gauge
}

func newMetrics(reg prometheus.Registerer) *metrics {
	gauge := func(name, help string) prometheus.Gauge {
		return prometheus.NewGauge(prometheus.GaugeOpts{Name: name, Help: help})
	}
	m := &metrics{
		uplinks:       prometheus.NewCounterVec(prometheus.CounterOpts{Name: "cmppgw_uplinks_total", Help: "Uplinks by what became of them, segments counted one by one."}, []string{"outcome"}),
		optOuts:       prometheus.NewCounter(prometheus.CounterOpts{Name: "cmppgw_uplink_opt_outs_total", Help: "Uplinks that asked for no more marketing."}),
		queue:         gauge("cmppgw_uplink_queue", "Uplinks that nobody has worked on yet, counted up to 100,000."),
		oldest:        gauge("cmppgw_uplink_queue_oldest_seconds", "Age of the oldest uplink in the queue."),
		segments:      gauge("cmppgw_uplink_segments", "Segments of long uplinks that wait for others."),
		unmatched:     gauge("cmppgw_uplinks_unmatched", "Uplinks that are nobody's: somebody should look at them."),
		unmatchedAsks: gauge("cmppgw_uplinks_unmatched_opt_outs", "Uplinks that are nobody's and ask for no more messages."),
	}
	reg.MustRegister(m.uplinks, m.optOuts, m.queue, m.oldest, m.segments, m.unmatched, m.unmatchedAsks)
	return m
}

// keep counts and trims from time to time.
func (u *Uplinks) keep(ctx context.Context) error {
	if now := time.Now(); now.Sub(u.counted) >= countEvery {
		u.counted = now
		if err := u.count(ctx); err != nil {
			return err
		}
	}
	if now := time.Now(); now.Sub(u.trimmed) >= trimEvery {
		u.trimmed = now
		return u.trim(ctx)
	}
	return nil
}

func (u *Uplinks) count(ctx context.Context) error {
	var queue, unmatched, asks int64
	var oldest float64
	if err := u.Pool.QueryRow(ctx, store.UplinkCounts, countMax).Scan(&queue, &u.waiting, &unmatched, &asks, &oldest); err != nil {
		return fmt.Errorf("count uplinks: %w", err)
	}
	u.metrics.queue.Set(float64(queue))
	u.metrics.oldest.Set(max(oldest, 0))
	u.metrics.segments.Set(float64(u.waiting))
	u.metrics.unmatched.Set(float64(unmatched))
	u.metrics.unmatchedAsks.Set(float64(asks))
	return nil
}

// trim removes what is too old, or too much.
func (u *Uplinks) trim(ctx context.Context) error {
	now := time.Now()
	for _, t := range []struct {
		sql  string
		args []any
	}{
		{store.UplinkTrimUnmatched, []any{message.FirstID(now.Add(-u.Config.UnmatchedKeep)), u.Config.UnmatchedMax, trimRows}},
		{store.UplinkTrimKeys, []any{u.Config.KeyKeep, trimRows}},
		{store.UplinkTrim, []any{message.FirstID(now.Add(-u.Config.Keep)), trimRows}},
	} {
		for range trimPages {
			tag, err := u.Pool.Exec(ctx, t.sql, t.args...)
			if err != nil {
				return fmt.Errorf("trim uplinks: %w", err)
			}
			if tag.RowsAffected() < trimRows {
				break
			}
		}
	}
	return nil
}
