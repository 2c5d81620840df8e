package observe

import (
	"context"
	"fmt"
	"time"

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

// Clock is a server whose clock is compared with this process's (P12).
type Clock struct {
	Name string
	Now  func(ctx context.Context) (time.Time, error)
}

// Apart is how far the server's clock is ahead of ours, halfway between the question and the answer, and how wrong that may
// be: half the time the answer took.
func (c Clock) Apart(ctx context.Context) (ahead, margin time.Duration, err error) {
	asked := time.Now()
	theirs, err := c.Now(ctx)
	if err != nil {
		return 0, 0, fmt.Errorf("clock of %s: %w", c.Name, err)
	}
	half := time.Since(asked) / 2
	return theirs.Sub(asked.Add(half)), half, nil
}

const clockEvery = 15 * time.Second

// KeepClocks compares the clocks regularly until ctx is done, for the gauge cmppgw_clock_ahead_seconds{server}. A server that
// does not answer keeps its last value.
func KeepClocks(ctx context.Context, r prometheus.Registerer, clocks ...Clock) error {
	gauge := prometheus.NewGaugeVec(prometheus.GaugeOpts{
		Name: "cmppgw_clock_ahead_seconds", Help: "How far the server's clock is ahead of this process's.",
	}, []string{"server"})
	if err := r.Register(gauge); err != nil {
		return fmt.Errorf("clocks: %w", err)
	}
	tick := time.NewTicker(clockEvery)
	defer tick.Stop()
	for {
		for _, c := range clocks {
			once, cancel := context.WithTimeout(ctx, probeTimeout)
			if ahead, _, err := c.Apart(once); err == nil {
				gauge.WithLabelValues(c.Name).Set(ahead.Seconds())
			}
			cancel()
		}
		select {
		case <-ctx.Done():
			return nil
		case <-tick.C:
		}
	}
}
