package observe

import (
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"

	"cmppgateway/gateway/internal/store"
)

// Registry is a new one with the metrics of the Go runtime and of the process.
func Registry() *prometheus.Registry {
	r := prometheus.NewRegistry()
	r.MustRegister(collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}))
	return r
}

// pools reads the statistics of the connection pools when it is asked for them.
type pools struct {
	pools                       []store.Named
	inUse, size, waits, waiting *prometheus.Desc
}

// Pools is a collector of the connection pools, labelled by role.
func Pools(p *store.Pools) prometheus.Collector {
	desc := func(name, help string) *prometheus.Desc {
		return prometheus.NewDesc("cmppgw_pg_pool_"+name, help, []string{"pool"}, nil)
	}
	return &pools{
		pools:   p.All(),
		inUse:   desc("in_use", "Connections of the pool that are in use."),
		size:    desc("max", "Connections the pool may have."),
		waits:   desc("waits_total", "Acquisitions that found no free connection."),
		waiting: desc("wait_seconds_total", "Time that acquisitions waited for a free connection."),
	}
}

func (p *pools) Describe(c chan<- *prometheus.Desc) {
	for _, d := range []*prometheus.Desc{p.inUse, p.size, p.waits, p.waiting} {
		c <- d
	}
}

func (p *pools) Collect(c chan<- prometheus.Metric) {
	for _, n := range p.pools {
		s := n.Pool.Stat()
		c <- prometheus.MustNewConstMetric(p.inUse, prometheus.GaugeValue, float64(s.AcquiredConns()), n.Name)
		c <- prometheus.MustNewConstMetric(p.size, prometheus.GaugeValue, float64(s.MaxConns()), n.Name)
		c <- prometheus.MustNewConstMetric(p.waits, prometheus.CounterValue, float64(s.EmptyAcquireCount()), n.Name)
		c <- prometheus.MustNewConstMetric(p.waiting, prometheus.CounterValue, s.EmptyAcquireWaitTime().Seconds(), n.Name)
	}
}
