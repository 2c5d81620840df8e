package supplier

import (
	"slices"
	"time"

	"golang.org/x/time/rate"
)

const (
	slowFor   = 5 * time.Second // a result 8 halves the pace for so long; then it doubles in steps of the same length
	slowest   = 16              // deepest division of the pace
	paceFloor = 1.0             // submits a second a slowed link keeps

	// What makes flow control evident within two seconds: so many refusals, and at least this part of the submits. A
	// single 8 among many accepted submits is resent elsewhere and says nothing about the pace; slowing down for it
	// would keep every link of a supplier with 1 % of them slow for ever.
	evidentMin  = 4
	evidentPart = 10
)

// pace slows one connection when its supplier evidently controls the flow (result 8). Guarded by pool.mu.
type pace struct {
	division int // 1 = not slowed
	until    time.Time
	limiter  *rate.Limiter
	base     float64 // submits a second before the first refusal

	second             int64 // counting window of the two below
	sent, last         int   // submits of this second and of the one before
	refusals, lastRefs int
}

// count notes n submits.
func (p *pace) count(n int, now time.Time) {
	p.roll(now)
	p.sent += n
}

func (p *pace) roll(now time.Time) {
	s := now.Unix()
	if s == p.second {
		return
	}
	p.last, p.lastRefs = 0, 0
	if s == p.second+1 {
		p.last, p.lastRefs = p.sent, p.refusals
	}
	p.second, p.sent, p.refusals = s, 0, 0
}

// refused halves the pace when flow control is evident, at most once per step.
func (p *pace) refused(now time.Time) {
	p.roll(now)
	p.refusals++
	if p.division > 1 && now.Before(p.until) {
		return
	}
	if n := p.refusals + p.lastRefs; n < evidentMin || n*evidentPart < p.sent+p.last {
		return
	}
	if p.division <= 1 {
		p.division = 1
		p.base = max(float64(p.last), float64(p.sent), 2*paceFloor)
	}
	p.division = min(p.division*2, slowest)
	p.until = now.Add(slowFor)
	p.apply()
}

func (p *pace) apply() {
	r := max(paceFloor, p.base/float64(p.division))
	p.limiter = rate.NewLimiter(rate.Limit(r), max(1, int(r)/burstPart))
}

// allow is how many of n may be sent now; wait says when the next one may.
func (p *pace) allow(n int, now time.Time) (got int, wait time.Duration) {
	for p.division > 1 && !now.Before(p.until) {
		p.division /= 2
		p.until = p.until.Add(slowFor)
		p.apply()
	}
	if p.division <= 1 {
		p.limiter = nil
		return n, 0
	}
	tokens := p.limiter.TokensAt(now)
	if tokens < 1 {
		return 0, max(time.Millisecond, time.Duration((1-tokens)/float64(p.limiter.Limit())*float64(time.Second)))
	}
	return min(n, int(tokens)), 0
}

// spend takes n tokens that allow has shown.
func (p *pace) spend(n int, now time.Time) {
	if p.limiter != nil {
		p.limiter.AllowN(now, n)
	}
}

const recent = 64 // round trips remembered per connection

// trips are the recent round trips of a connection. Guarded by pool.mu.
type trips struct {
	ring [recent]time.Duration
	n    int
	p95  time.Duration
}

func (t *trips) add(d time.Duration) {
	t.ring[t.n%recent] = d
	t.n++
	if t.n == 1 || t.n%(recent/4) == 0 {
		sorted := t.ring
		list := sorted[:min(t.n, recent)]
		slices.Sort(list)
		t.p95 = list[(len(list)*95-1)/100]
	}
}
