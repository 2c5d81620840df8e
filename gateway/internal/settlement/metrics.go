package settlement

import "github.com/prometheus/client_golang/prometheus"

type metrics struct {
	apply    *prometheus.HistogramVec
	receipts *prometheus.CounterVec
	outcomes *prometheus.CounterVec
	swept    *prometheus.CounterVec
	failures *prometheus.CounterVec
	waiting  *prometheus.GaugeVec
	oldest   *prometheus.GaugeVec
	parked   prometheus.Gauge
}

func newMetrics(r prometheus.Registerer) *metrics {
	m := &metrics{
		apply:    prometheus.NewHistogramVec(prometheus.HistogramOpts{Name: "cmppgw_settlement_seconds", Help: "One transaction that settled receipts.", Buckets: prometheus.ExponentialBuckets(0.0005, 1.6, 24)}, []string{"part"}),
		receipts: prometheus.NewCounterVec(prometheus.CounterOpts{Name: "cmppgw_settlement_receipts_total", Help: "Receipts looked at, by what became of them."}, []string{"outcome"}),
		outcomes: prometheus.NewCounterVec(prometheus.CounterOpts{Name: "cmppgw_settlement_outcomes_total", Help: "What settled transactions did."}, []string{"outcome"}),
		swept:    prometheus.NewCounterVec(prometheus.CounterOpts{Name: "cmppgw_settlement_swept_total", Help: "Rows that a sweep took from their waiting place."}, []string{"sweep"}),
		failures: prometheus.NewCounterVec(prometheus.CounterOpts{Name: "cmppgw_settlement_failures_total", Help: "Transactions that failed and are tried again."}, []string{"part"}),
		waiting:  prometheus.NewGaugeVec(prometheus.GaugeOpts{Name: "cmppgw_settlement_waiting", Help: "Submits that are unknown, those of them that are older than settlement.unknown_alert (overdue), refused parts that wait for their siblings, and receipts whose submit is not known yet."}, []string{"place"}),
		oldest:   prometheus.NewGaugeVec(prometheus.GaugeOpts{Name: "cmppgw_settlement_oldest_seconds", Help: "Age of the oldest of them."}, []string{"place"}),
		parked:   prometheus.NewGauge(prometheus.GaugeOpts{Name: "cmppgw_settlement_parked_ratio", Help: "Receipts whose submit is not known yet, of settlement.parked_max. At 1, reports of the accounts that have most are not taken."}),
	}
	r.MustRegister(m.apply, m.receipts, m.outcomes, m.swept, m.failures, m.waiting, m.oldest, m.parked)
	return m
}

func (m *metrics) count(o *Outcome) {
	for name, n := range map[string]int{"repeated": o.Repeated, "contradicted": o.Contradicted, "resent": o.Resent, "ended": o.Ended} {
		m.outcomes.WithLabelValues(name).Add(float64(n))
	}
}
