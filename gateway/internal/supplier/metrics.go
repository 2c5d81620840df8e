package supplier

import "github.com/prometheus/client_golang/prometheus"

type metrics struct {
	barrierSeconds, barrierRows, windowWait, respSeconds prometheus.Histogram
	barrierRetries, blocked, undispatched, resent        prometheus.Counter
	lateAnswers, adopted, late, drained                  prometheus.Counter
	results, logins, breaker                             *prometheus.CounterVec
}

func newMetrics(m *Manager, reg prometheus.Registerer) *metrics {
	seconds := func(name, help string) prometheus.Histogram {
		h := prometheus.NewHistogram(prometheus.HistogramOpts{Name: name, Help: help, Buckets: prometheus.ExponentialBuckets(0.0005, 2, 18)})
		reg.MustRegister(h)
		return h
	}
	counter := func(name, help string) prometheus.Counter {
		c := prometheus.NewCounter(prometheus.CounterOpts{Name: name, Help: help})
		reg.MustRegister(c)
		return c
	}
	vector := func(name, help string, labels ...string) *prometheus.CounterVec {
		c := prometheus.NewCounterVec(prometheus.CounterOpts{Name: name, Help: help}, labels)
		reg.MustRegister(c)
		return c
	}
	x := &metrics{
		barrierSeconds: seconds("cmppgw_supplier_barrier_seconds", "One pass of the dispatch barrier."),
		barrierRows: prometheus.NewHistogram(prometheus.HistogramOpts{
			Name: "cmppgw_supplier_barrier_rows", Help: "Rows per pass of the dispatch barrier.", Buckets: prometheus.ExponentialBuckets(1, 2, 10),
		}),
		windowWait:     seconds("cmppgw_supplier_window_wait_seconds", "Time a channel with commands waited for a free window slot."),
		respSeconds:    seconds("cmppgw_supplier_response_seconds", "From a SUBMIT's write to its answer."),
		barrierRetries: counter("cmppgw_supplier_barrier_retries_total", "Calls repeated because no answer came."),
		blocked:        counter("cmppgw_supplier_barrier_blocked_total", "Commands whose row was not pending any more."),
		undispatched:   counter("cmppgw_supplier_undispatched_total", "Rows made pending again because they were surely not written."),
		resent:         counter("cmppgw_supplier_moved_total", "Submits moved to another connection because they were surely not written."),
		lateAnswers:    counter("cmppgw_supplier_late_answers_total", "Answers that came after their time-out."),
		late:           counter("cmppgw_supplier_rate_held_total", "Submits that passed the barrier sooner than a rate allowed, and waited for it."),
		drained:        counter("cmppgw_supplier_drain_unknown_total", "Submits without an answer when the drain time of their connection ended: they became unknown."),
		adopted:        counter("cmppgw_supplier_orphans_total", "Dispatched rows without a living owner that became unknown."),
		results:        vector("cmppgw_supplier_results_total", "Outcomes of submits.", "channel", "state"),
		breaker:        vector("cmppgw_supplier_breaker_turns_total", "Changes of the breakers of channels, by the new state.", "channel", "state"),
		logins:         vector("cmppgw_supplier_logins_total", "Attempts to log in.", "channel", "outcome"),
	}
	reg.MustRegister(x.barrierRows, collector{m})
	return x
}

var (
	inFlightDesc = prometheus.NewDesc("cmppgw_supplier_inflight", "Submits waiting for their answer.", []string{"channel"}, nil)
	linksDesc    = prometheus.NewDesc("cmppgw_supplier_connections", "Connections by state.", []string{"channel", "state"}, nil)
	channelDesc  = prometheus.NewDesc("cmppgw_supplier_channel_state", "1 for the state the channel is in.", []string{"channel", "state"}, nil)
	breakerDesc  = prometheus.NewDesc("cmppgw_supplier_breaker", "1 for the state of the channel's breaker.", []string{"channel", "state"}, nil)
	backlogDesc  = prometheus.NewDesc("cmppgw_supplier_backlog", "Commands queued at this edge.", []string{"channel"}, nil)
)

// collector reads the gauges from the pools when asked.
type collector struct{ m *Manager }

func (c collector) Describe(ch chan<- *prometheus.Desc) {
	for _, d := range []*prometheus.Desc{inFlightDesc, linksDesc, channelDesc, breakerDesc, backlogDesc} {
		ch <- d
	}
}

func (c collector) Collect(ch chan<- prometheus.Metric) {
	gauge := func(d *prometheus.Desc, v int, labels ...string) {
		ch <- prometheus.MustNewConstMetric(d, prometheus.GaugeValue, float64(v), labels...)
	}
	for _, s := range c.m.Status() {
		id := label(s.Channel)
		gauge(channelDesc, 1, id, s.State.String())
		if s.Breaker != "" {
			gauge(breakerDesc, 1, id, s.Breaker)
		}
		gauge(inFlightDesc, s.InFlight, id)
		gauge(backlogDesc, s.Backlog, id)
		for state := Closed; state <= Draining; state++ {
			n := 0
			for _, l := range s.Connections {
				if l.State == state {
					n++
				}
			}
			gauge(linksDesc, n, id, state.String())
		}
	}
}
