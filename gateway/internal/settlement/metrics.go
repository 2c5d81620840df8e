package settlement

import "github.com/prometheus/client_golang/prometheus"

type metrics struct {
	apply    *prometheus.HistogramVec
	receipts *prometheus.CounterVec
	outcomes *prometheus.CounterVec
	swept    *prometheus.CounterVec
	failures *prometheus.CounterVec
	waiting  *prometheus.GaugeVec
}

func newMetrics(r prometheus.Registerer) *metrics {
	m := &metrics{
		apply:    prometheus.NewHistogramVec(prometheus.HistogramOpts{Name: "cmppgw_settlement_seconds", Help: "One transaction that settled receipts.", Buckets: prometheus.ExponentialBuckets(0.0005, 1.6, 24)}, []string{"part"}),
		receipts: prometheus.NewCounterVec(prometheus.CounterOpts{Name: "cmppgw_settlement_receipts_total", Help: "Receipts looked at, by what became of them."}, []string{"outcome"}),
		outcomes: prometheus.NewCounterVec(prometheus.CounterOpts{Name: "cmppgw_settlement_outcomes_total", Help: "What settled transactions did."}, []string{"outcome"}),
		swept:    prometheus.NewCounterVec(prometheus.CounterOpts{Name: "cmppgw_settlement_swept_total", Help: "Rows that a sweep took from their waiting place."}, []string{"sweep"}),
		failures: prometheus.NewCounterVec(prometheus.CounterOpts{Name: "cmppgw_settlement_failures_total", Help: "Transactions that failed and are tried again."}, []string{"part"}),
		waiting:  prometheus.NewGaugeVec(prometheus.GaugeOpts{Name: "cmppgw_settlement_waiting", Help: "Submits that are unknown, and receipts whose submit is not known yet."}, []string{"place"}),
	}
	r.MustRegister(m.apply, m.receipts, m.outcomes, m.swept, m.failures, m.waiting)
	return m
}

func (m *metrics) count(o *Outcome) {
	for name, n := range map[string]int{"repeated": o.Repeated, "contradicted": o.Contradicted, "resent": o.Resent, "ended": o.Ended} {
		m.outcomes.WithLabelValues(name).Add(float64(n))
	}
}
