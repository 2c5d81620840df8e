package inbound

import (
	"sync"
	"time"

	"cmppgateway/gateway/internal/settings"
)

// level is whose limit refuses a SUBMIT.
type level uint8

const (
	levelLink level = iota
	levelApplication
	levelEnterprise
	levelPlatform
	levels
)

// String is the label of the metric.
func (l level) String() string {
	return [levels]string{"link", "application", "enterprise", "platform"}[l]
}

// tooFast is why a SUBMIT is refused, by level.
var tooFast = [levels]string{
	"faster than the rate of a connection", "faster than the rate of the application", "faster than the rate of the enterprise",
	"faster than the rate of the platform",
}

// bucket limits one rate: it holds at most one second's worth, so that after an idle second that much passes at once, and
// never more than the rate on average. A group larger than that passes when the bucket is full, and leaves a debt.
type bucket struct {
	rate   int // 0: no limit
	tokens float64
	at     time.Time
}

// wait fills the bucket up to now at a rate that may be new, and returns how long n must wait; 0: they pass.
func (b *bucket) wait(rate, n int, now time.Time) time.Duration {
	switch {
	case rate == 0:
		b.rate = 0
		return 0
	case b.rate == 0: // new, or not limited until now
		b.tokens, b.at = float64(rate), now
	}
	if d := now.Sub(b.at); d > 0 { // readings of two connections may come in the wrong order
		b.tokens += d.Seconds() * float64(b.rate)
		b.at = now
	}
	b.rate = rate
	b.tokens = min(b.tokens, float64(rate))
	missing := float64(min(n, rate)) - b.tokens
	if missing <= 0 {
		return 0
	}
	return max(time.Duration(missing/float64(rate)*float64(time.Second)), 1)
}

func (b *bucket) take(n int) {
	if b.rate > 0 {
		b.tokens -= float64(n)
	}
}

// rates are the limits above the connection, for this process.
type rates struct {
	mu                sync.Mutex
	apps, enterprises map[int32]*bucket
	platform          bucket
}

func newRates() *rates {
	return &rates{apps: make(map[int32]*bucket), enterprises: make(map[int32]*bucket)}
}

// take lets n messages pass all four levels or none. The level that refuses is the one that would make them wait longest;
// nothing is taken from the others then.
func (r *rates) take(link *bucket, app, enterprise int32, l *settings.Limits, n int, now time.Time) (by level, ok bool) {
	own := l.Applications[app]
	want := [levels]int{own.LinkTPS, own.TPS, l.Enterprises[enterprise], l.TPS}
	r.mu.Lock()
	defer r.mu.Unlock()
	buckets := [levels]*bucket{link, of(r.apps, app, own.TPS), of(r.enterprises, enterprise, want[levelEnterprise]), &r.platform}
	var longest time.Duration
	for i, b := range buckets {
		if b == nil {
			continue
		}
		if wait := b.wait(want[i], n, now); wait > longest {
			longest, by = wait, level(i)
		}
	}
	if longest > 0 {
		return by, false
	}
	for _, b := range buckets {
		if b != nil {
			b.take(n)
		}
	}
	return 0, true
}

// of is the bucket of id; nil when it has no limit and had none.
func of(m map[int32]*bucket, id int32, rate int) *bucket {
	b := m[id]
	if b == nil && rate > 0 {
		b = new(bucket)
		m[id] = b
	}
	return b
}

// prune forgets what has no limit any more.
func (r *rates) prune(l *settings.Limits) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for id := range r.apps {
		if l.Applications[id].TPS == 0 {
			delete(r.apps, id)
		}
	}
	for id := range r.enterprises {
		if l.Enterprises[id] == 0 {
			delete(r.enterprises, id)
		}
	}
}
