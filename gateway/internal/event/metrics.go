package event

import (
	"github.com/prometheus/client_golang/prometheus"

	"cmppgateway/gateway/internal/settings"
)

type metrics struct {
	batch    prometheus.Histogram
	requests *prometheus.CounterVec
	retries  *prometheus.CounterVec
	refused  *prometheus.CounterVec
	copies   *prometheus.CounterVec
	shadows  *prometheus.CounterVec
	repeats  prometheus.Counter
	late     prometheus.Counter
	full     prometheus.Counter
}

func newMetrics(q *Queue, reg prometheus.Registerer) *metrics {
	counter := func(name, help string, labels ...string) *prometheus.CounterVec {
		c := prometheus.NewCounterVec(prometheus.CounterOpts{Name: name, Help: help}, labels)
		reg.MustRegister(c)
		return c
	}
	m := &metrics{
		batch: prometheus.NewHistogram(prometheus.HistogramOpts{
			Name: "cmppgw_event_batch_events", Help: "Events per batch offered to the core.", Buckets: []float64{1, 2, 5, 10, 20, 50, 75, 100},
		}),
		requests: counter("cmppgw_event_requests_total", "Batches offered to the core, by outcome of the request.", "queue", "outcome"),
		retries:  counter("cmppgw_event_retries_total", "Events offered again.", "queue"),
		refused:  counter("cmppgw_event_refused_total", "Events the core refused for good; it keeps them in dead_letter.", "type"),
		shadows:  counter("cmppgw_event_shadow_total", "Events of shadow batches, by how their answer compares with the one that counted; failed counts batches.", "queue", "outcome"),
		copies:   counter("cmppgw_event_copies_total", "Batches written to the copy in Redis, by outcome.", "outcome"),
	}
	single := counter("cmppgw_event_delivers_total", "DELIVERs that did not simply become an event, by reason.", "reason")
	m.repeats, m.late, m.full = single.WithLabelValues("repeat"), single.WithLabelValues("answer_too_late"), single.WithLabelValues("bound")
	reg.MustRegister(m.batch)
	for _, l := range q.lanes {
		reg.MustRegister(prometheus.NewGaugeFunc(prometheus.GaugeOpts{
			Name: "cmppgw_event_backlog", Help: "Events the core has not accepted yet.", ConstLabels: prometheus.Labels{"queue": l.name},
		}, func() float64 {
			q.mu.Lock()
			defer q.mu.Unlock()
			return float64(l.held)
		}))
	}
	for _, mode := range []settings.CallbackMode{settings.CallbackBatch, settings.CallbackShadow, settings.CallbackSingle} {
		reg.MustRegister(prometheus.NewGaugeFunc(prometheus.GaugeOpts{
			Name: "cmppgw_event_offered", Help: "Events offered in this mode and not accepted yet; a switch is over when the old mode has none.",
			ConstLabels: prometheus.Labels{"mode": mode.String()},
		}, func() float64 { return float64(q.offered(mode)) }))
	}
	gauge := func(name, help string, f func() float64) {
		reg.MustRegister(prometheus.NewGaugeFunc(prometheus.GaugeOpts{Name: name, Help: help}, f))
	}
	gauge("cmppgw_event_retained_bytes", "Octets of the events the core has not accepted yet.", func() float64 {
		q.mu.Lock()
		defer q.mu.Unlock()
		return float64(q.bytes)
	})
	gauge("cmppgw_event_reserved", "Places kept for the results of submits in flight.", func() float64 {
		q.mu.Lock()
		defer q.mu.Unlock()
		return float64(q.reserved)
	})
	gauge("cmppgw_event_retain_ratio", "Fullness of the queues; at 1 dispatching stops and DELIVERs stay unanswered.", q.fullness)
	return m
}
