package workflow

import "github.com/prometheus/client_golang/prometheus"

type metrics struct {
	rows     *prometheus.HistogramVec
	wait     *prometheus.HistogramVec
	apply    prometheus.Histogram
	messages *prometheus.CounterVec
	keywords *prometheus.CounterVec
	failures prometheus.Counter
}

func newMetrics(r prometheus.Registerer) metrics {
	m := metrics{
		rows:     prometheus.NewHistogramVec(prometheus.HistogramOpts{Name: "cmppgw_workflow_batch_rows", Help: "Inbox rows of one enterprise per batch.", Buckets: prometheus.ExponentialBuckets(1, 2, 10)}, []string{"enterprise"}),
		wait:     prometheus.NewHistogramVec(prometheus.HistogramOpts{Name: "cmppgw_workflow_wait_seconds", Help: "Age of an inbox row when its batch claims it.", Buckets: prometheus.ExponentialBuckets(0.0005, 1.6, 24)}, []string{"enterprise"}),
		apply:    prometheus.NewHistogram(prometheus.HistogramOpts{Name: "cmppgw_workflow_seconds", Help: "One batch, from claim to COMMIT.", Buckets: prometheus.ExponentialBuckets(0.0005, 1.6, 24)}),
		messages: prometheus.NewCounterVec(prometheus.CounterOpts{Name: "cmppgw_workflow_messages_total", Help: "Messages made, by reason of refusal; passed for those that go on."}, []string{"reason"}),
		keywords: prometheus.NewCounterVec(prometheus.CounterOpts{Name: "cmppgw_workflow_keywords_total", Help: "Messages in which a keyword was found, by what it does: reject, hold, alert."}, []string{"action"}),
		failures: prometheus.NewCounter(prometheus.CounterOpts{Name: "cmppgw_workflow_failures_total", Help: "Batches that failed and are tried again."}),
	}
	r.MustRegister(m.rows, m.wait, m.apply, m.messages, m.keywords, m.failures)
	return m
}
