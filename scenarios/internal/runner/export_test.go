package runner

import (
	"context"
	"time"

	"github.com/jackc/pgx/v5"

	"cmppgateway/reports/result"
	"cmppgateway/scenarios/internal/spec"
	"cmppgateway/scenarios/internal/verify"
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
