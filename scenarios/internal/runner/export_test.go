package runner

import (
	"context"
	"time"

	"github.com/jackc/pgx/v5"

	"cmppgateway/chaos/fault"
	"cmppgateway/reports/result"
	"cmppgateway/scenarios/internal/spec"
	"cmppgateway/scenarios/internal/verify"
	"cmppgateway/testenv/stack"
)

// What the tests see of the inside.
type (
	Status  = status
	Drained = drained
)

var (
	Drain        = drain
	NewProgress  = newProgress
	ParseMetrics = parseMetrics
	Between      = between
	Judge        = judge
	MakeDir      = makeDir
	Stale        = stale
	LastLine     = lastLine
	CPUOf        = cpuOf
	Recommend    = recommend
	LimitOf      = limitOf
)

// Inspect has f look at the witness and the database when a run is at rest.
func (o *Options) Inspect(f func(context.Context, *verify.Witness, *pgx.Conn)) { o.inspect = f }

// Show shows a status on a progress.
func Show(p progress, s Status) { p.show(s) }

// Quantile of a histogram in its unit.
func Quantile(before, after metrics, name string, q float64, labels ...string) (float64, bool) {
	return between(before, after, name, labels...).quantile(q)
}

// Mean and count of a histogram.
func Mean(before, after metrics, name string, labels ...string) (mean, n float64) {
	h := between(before, after, name, labels...)
	return h.mean(), h.n
}

// Sum of counters and gauges.
func Sum(m metrics, name string, labels ...string) float64 { return m.sum(name, labels...) }

// Conclude gives the verdict of a run that ended with err.
func Conclude(ctx context.Context, err error) *result.Report {
	r := &run{report: &result.Report{}, s: &spec.Scenario{}}
	r.conclude(ctx, err)
	return r.report
}

// Errors that end runs.
var (
	Unfit     = func(text string) error { return unfit("%s", text) }
	Died      = func(code int) error { return &diedError{code, "load"} }
	ErrLimit  = errLimit
	StartIdle = startChild
)

// StopChild stops a child and returns its exit code.
func StopChild(c *child, limit time.Duration) int {
	c.stop(limit)
	return c.exitCode()
}

// The faults of stores, by name, without the gateway's part in them.
func storeFault(f func(*act)) fault.Slow {
	a := &act{mend: readyLimit}
	f(a)
	return a
}

// RedisFault makes a fault of Redis; a stale one is a millisecond old.
func RedisFault(name string, server *stack.Process) fault.Slow {
	return storeFault(func(a *act) {
		switch name {
		case spec.RedisFreeze:
			redisFreezes(a, server)
		case spec.RedisRestart:
			redisStops(a, server, server.Stop)
		case spec.RedisEmpty:
			redisForgets(a, server)
		case spec.RedisStale:
			redisGoesBack(a, server, time.Millisecond)
		}
	})
}

// PostgresRestart makes the fault of a PostgreSQL that is stopped in order.
func PostgresRestart(server *stack.Process) fault.Slow {
	return storeFault(func(a *act) { postgresStops(a, server, server.Stop) })
}

// Wire is a wire to a core.
type Wire = wire

// NewWire makes one to the core at addr.
func NewWire(ctx context.Context, addr string) (*Wire, error) {
	w, err := newWire(ctx)
	if err == nil {
		w.core.Store(&addr)
	}
	return w, err
}

// URL is what edges post to.
func (w *wire) URL() string { return w.url() }

// SetCut cuts requests or no more, and Spoil adds events to every nth batch.
func (w *wire) SetCut(cut bool) { w.setCut(cut) }
func (w *wire) Spoil(every int) { w.spoil(every) }
func (w *wire) Close() error    { return w.close() }
func (w *wire) Counts() [4]int {
	c := w.counts()
	return [4]int{c.before, c.after, int(c.bad), c.neighbours}
}
func (w *wire) Complaints() []string { return w.counts().held }

// HasPoints says whether a program was built with the tag "failpoint".
var HasPoints = hasPoints
