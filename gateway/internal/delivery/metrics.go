package delivery

import "github.com/prometheus/client_golang/prometheus"

type metrics struct {
	seconds, attempts, claimSeconds, claimRows prometheus.Histogram
	duplicates                                 prometheus.Counter
	outcomes                                   *prometheus.CounterVec
	waiting, most                              prometheus.Gauge
}

func newMetrics(reg prometheus.Registerer, d *Delivery) *metrics {
	histogram := func(name, help string, buckets []float64) prometheus.Histogram {
		h := prometheus.NewHistogram(prometheus.HistogramOpts{Name: name, Help: help, Buckets: buckets})
		reg.MustRegister(h)
		return h
	}
	m := &metrics{
		seconds:      histogram("cmppgw_delivery_seconds", "From the creation of a receipt or uplink to its acknowledgement.", prometheus.ExponentialBuckets(0.005, 2, 20)),
		attempts:     histogram("cmppgw_delivery_attempts", "Tries an acknowledged delivery took.", prometheus.LinearBuckets(1, 1, 10)),
		claimSeconds: histogram("cmppgw_delivery_claim_seconds", "One claim.", prometheus.ExponentialBuckets(0.0005, 1.6, 24)),
		claimRows:    histogram("cmppgw_delivery_claim_rows", "Rows per claim.", prometheus.ExponentialBuckets(1, 2, 10)),
		duplicates:   prometheus.NewCounter(prometheus.CounterOpts{Name: "cmppgw_delivery_duplicates_total", Help: "DELIVERs sent again: the customer may have seen the delivery before."}),
		outcomes:     prometheus.NewCounterVec(prometheus.CounterOpts{Name: "cmppgw_delivery_outcomes_total", Help: "What became of claimed deliveries."}, []string{"outcome"}),
	}
	m.waiting = prometheus.NewGauge(prometheus.GaugeOpts{Name: "cmppgw_delivery_waiting", Help: "Deliveries of all applications that are not acknowledged."})
	m.most = prometheus.NewGauge(prometheus.GaugeOpts{Name: "cmppgw_delivery_waiting_most", Help: "Those of the application that has most; delivery.backlog_max is its bound."})
	reg.MustRegister(m.waiting, m.most, m.duplicates, m.outcomes, prometheus.NewGaugeFunc(
		prometheus.GaugeOpts{Name: "cmppgw_delivery_inflight", Help: "DELIVERs waiting for their answer."}, func() float64 { return float64(d.inFlight()) }),
		prometheus.NewGaugeFunc(prometheus.GaugeOpts{Name: "cmppgw_delivery_parked", Help: "Receipts that wait for their SUBMIT_RESP to be written."},
			func() float64 { return float64(d.parkedCount()) }))
	return m
}
