package inbound

import (
	"strconv"

	"github.com/prometheus/client_golang/prometheus"
)

type metrics struct {
	commitSeconds, batchRows, answerSeconds prometheus.Histogram
	repeats, dropped, resends, unwelcome    prometheus.Counter
	results, logins, limited                *prometheus.CounterVec
}

func newMetrics(reg prometheus.Registerer, s *Server) *metrics {
	histogram := func(name, help string, buckets []float64) prometheus.Histogram {
		h := prometheus.NewHistogram(prometheus.HistogramOpts{Name: name, Help: help, Buckets: buckets})
		reg.MustRegister(h)
		return h
	}
	counter := func(name, help string) prometheus.Counter {
		c := prometheus.NewCounter(prometheus.CounterOpts{Name: name, Help: help})
		reg.MustRegister(c)
		return c
	}
	vector := func(name, help, label string) *prometheus.CounterVec {
		c := prometheus.NewCounterVec(prometheus.CounterOpts{Name: name, Help: help}, []string{label})
		reg.MustRegister(c)
		return c
	}
	gauge := func(name, help string, f func() int) {
		reg.MustRegister(prometheus.NewGaugeFunc(prometheus.GaugeOpts{Name: name, Help: help}, func() float64 { return float64(f()) }))
	}
	seconds := prometheus.ExponentialBuckets(0.0005, 1.6, 24)
	gauge("cmppgw_inbox_queue", "SUBMITs waiting for their commit.", s.batcher.depth)
	gauge("cmppgw_inbound_sessions", "Customer connections that are logged in.", func() int { n, _ := s.places.counts(); return n })
	gauge("cmppgw_inbound_unauthenticated", "Customer connections that are not logged in yet.", func() int { _, n := s.places.counts(); return n })
	gauge("cmppgw_inbound_backlog_rows", "Inbox rows of the application that has most.", s.backlog.most)
	gauge("cmppgw_inbound_backlog_platform_rows", "Rows of inbox and outbox together, counted no further than twice the platform's ceiling; 0 without one.", s.backlog.platform)
	gauge("cmppgw_inbound_backlog_channels_full", "Channels at their ceiling of waiting commands.", s.backlog.stuckChannels)
	gauge("cmppgw_inbound_waiting_sets", "Long messages that are not complete, of the application that has most.", func() int { n, _ := s.sets.waiting(); return n })
	gauge("cmppgw_inbound_scheduled_rows", "SUBMITs that wait for their At_Time, of the application that has most.", func() int { _, n := s.sets.waiting(); return n })
	gauge("cmppgw_inbound_backoff_keys", "Addresses, accounts and pairs of them whose failed logins are remembered, 8192 at most.", s.guard.size)
	return &metrics{
		commitSeconds: histogram("cmppgw_inbox_commit_seconds", "One inbox commit, repetitions included.", seconds),
		batchRows:     histogram("cmppgw_inbox_batch_rows", "Rows per inbox commit.", prometheus.ExponentialBuckets(1, 2, 13)),
		answerSeconds: histogram("cmppgw_inbound_answer_seconds", "From reading a SUBMIT to queueing its result 0.", seconds),
		repeats:       counter("cmppgw_inbox_repeats_total", "Inbox transactions repeated because no answer came."),
		dropped:       counter("cmppgw_inbox_dropped_total", "SUBMITs whose connection was closed without an answer after the commit deadline."),
		resends:       counter("cmppgw_inbound_resends_total", "SUBMITs recognised as resends and not stored again."),
		unwelcome:     counter("cmppgw_inbound_unwelcome_total", "Connections that ended before a login: scanners, other protocols, time-outs, too many."),
		results:       vector("cmppgw_inbound_submits_total", "Answered SUBMITs by result.", "result"),
		limited:       vector("cmppgw_inbound_limited_total", "SUBMITs answered with result 8, by the limit that refused them.", "limit"),
		logins:        vector("cmppgw_inbound_logins_total", "CONNECTs by status.", "status"),
	}
}

// code is a label; results and statuses come from small closed sets.
func code(n uint32) string { return strconv.FormatUint(uint64(n), 10) }
