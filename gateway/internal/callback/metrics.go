package callback

import "github.com/prometheus/client_golang/prometheus"

type metrics struct {
	request  prometheus.Histogram
	apply    *prometheus.HistogramVec
	events   *prometheus.CounterVec
	outcomes *prometheus.CounterVec
}

func newMetrics(r prometheus.Registerer) *metrics {
	buckets := prometheus.ExponentialBuckets(0.0005, 1.6, 24)
	m := &metrics{
		request:  prometheus.NewHistogram(prometheus.HistogramOpts{Name: "cmppgw_callback_request_seconds", Help: "One batch, from its first octet to its answer.", Buckets: buckets}),
		apply:    prometheus.NewHistogramVec(prometheus.HistogramOpts{Name: "cmppgw_callback_apply_seconds", Help: "The events of one type of one batch.", Buckets: buckets}, []string{"type"}),
		events:   prometheus.NewCounterVec(prometheus.CounterOpts{Name: "cmppgw_callback_events_total", Help: "Events answered, by answer."}, []string{"type", "code"}),
		outcomes: prometheus.NewCounterVec(prometheus.CounterOpts{Name: "cmppgw_callback_results_total", Help: "What submit results did."}, []string{"outcome"}),
	}
	r.MustRegister(m.request, m.apply, m.events, m.outcomes)
	return m
}
