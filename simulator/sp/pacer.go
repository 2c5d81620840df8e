package sp

import (
	"math/rand/v2"
	"slices"
	"time"
)

// Pacer walks along a list of due times. It is arithmetic only: the caller
// sleeps until Next and calls Release with the time it woke at.
type Pacer struct {
	due   []int64
	burst int
	at    int
}

// NewPacer paces due, which must be sorted, releasing at most burst arrivals
// per wake-up; what is over stays late, visibly. A burst below 1 means 1.
func NewPacer(due []int64, burst int) *Pacer {
	return &Pacer{due: due, burst: max(burst, 1)}
}

// Next returns the due time of the next arrival; ok is false behind the last.
func (p *Pacer) Next() (due int64, ok bool) {
	if p.at == len(p.due) {
		return 0, false
	}
	return p.due[p.at], true
}

// Release returns the range [from, to) of the arrivals that are due at now and
// moves behind them.
func (p *Pacer) Release(now int64) (from, to int) {
	from = p.at
	for p.at < len(p.due) && p.at-from < p.burst && p.due[p.at] <= now {
		p.at++
	}
	return from, p.at
}

// Even returns n due times spread evenly over hold, the first at 0.
func Even(n int, hold time.Duration) []int64 {
	due := make([]int64, n)
	for i := range due {
		due[i] = int64(float64(hold) * float64(i) / float64(n))
	}
	return due
}

// Poisson returns n due times spread over hold like the arrivals of a Poisson
// process of which the count is known: sorted uniforms. The same seed gives the
// same times.
func Poisson(seed uint64, n int, hold time.Duration) []int64 {
	rng := rand.New(rand.NewPCG(seed, uint64(n)))
	due := make([]int64, n)
	for i := range due {
		due[i] = rng.Int64N(max(int64(hold), 1))
	}
	slices.Sort(due)
	return due
}

// Bursts returns n due times over hold in bursts of size, the first at 0: the
// arrivals of a burst are due at the same instant, bursts are evenly spread.
func Bursts(n, size int, hold time.Duration) []int64 {
	size = max(size, 1)
	starts := Even((n+size-1)/size, hold)
	due := make([]int64, n)
	for i := range due {
		due[i] = starts[i/size]
	}
	return due
}
