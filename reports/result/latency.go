package result

import "fmt"

// The smallest sample sizes with a finite two-sided 95% bound for a quantile.
// Below them the number would be the maximum in disguise, so it is not given.
const (
	MinP50 = 1
	MinP95 = 72
	MinP99 = 368
)

// Latency is a distribution in milliseconds. A nil percentile was not measured
// or N is below its minimum; Reason then says which.
type Latency struct {
	N      int64    `json:"n"`
	P50    *float64 `json:"p50_ms"`
	P95    *float64 `json:"p95_ms"`
	P99    *float64 `json:"p99_ms"`
	Reason string   `json:"reason,omitempty"`

	// 95 % intervals within this run, by a moving-block bootstrap over seconds; nil
	// where they were not computed. They say nothing about another run.
	P50In *Interval `json:"p50_interval,omitempty"`
	P95In *Interval `json:"p95_interval,omitempty"`
	P99In *Interval `json:"p99_interval,omitempty"`
}

// Interval is a pair of bounds in the unit of what it bounds.
type Interval struct {
	Low  float64 `json:"low"`
	High float64 `json:"high"`
}

// NewLatency keeps the percentiles (milliseconds) that n samples can carry and
// leaves the others nil with the reason.
func NewLatency(n int64, p50, p95, p99 float64) Latency {
	l := Latency{N: n}
	if n >= MinP50 {
		l.P50 = &p50
	}
	if n >= MinP95 {
		l.P95 = &p95
	}
	if n >= MinP99 {
		l.P99 = &p99
	}
	switch {
	case n < MinP50:
		l.Reason = "no samples"
	case n < MinP95:
		l.Reason = fmt.Sprintf("P95 needs n ≥ %d, P99 needs n ≥ %d", MinP95, MinP99)
	case n < MinP99:
		l.Reason = fmt.Sprintf("P99 needs n ≥ %d", MinP99)
	}
	return l
}
