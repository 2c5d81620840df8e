package supplier

import (
	"sync"
	"time"

	"golang.org/x/time/rate"
)

const (
	burstPart = 100 // a burst is at most this part of a second's tokens, and
	burstMin  = 2   // at least so many, so that a timer that is late costs nothing
	aheadPart = 4   // tokens taken and not yet written are at most this part of a second's, and at least aheadMin
	aheadMin  = 2

	// span is the second in which a supplier counts, and a fortieth more: what we write evenly arrives less evenly.
	span = time.Second + time.Second/40
)

// limit is a rate shared by callers, kept twice: tokens come evenly, with at most a hundredth of a second's worth saved up;
// and whatever happens between a token and its write (a slow barrier, a paused process), no span sees more writes than the
// rate, because the supplier would refuse them with result 8.
//
// A token ends with written or back, and until then counts as ahead. While many are ahead no more are given: else all that
// piled up behind a slow barrier would go on waiting with its row dispatched.
type limit struct {
	mu    sync.Mutex
	tps   int // 0 = none
	l     *rate.Limiter
	ahead int
	sent  []time.Time // writes of the last span, oldest first from head on
	head  int
}

func (p *limit) set(tps int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.tps == tps {
		return
	}
	p.tps = tps
	if tps == 0 {
		p.l, p.sent, p.head = nil, nil, 0
		return
	}
	r, burst := rate.Limit(float64(tps)/span.Seconds()), max(burstMin, tps/burstPart)
	if p.l == nil {
		p.l = rate.NewLimiter(r, burst)
		return
	}
	p.l.SetLimit(r)
	p.l.SetBurst(burst)
}

// take gives up to n tokens, or says how long to wait for the next one.
func (p *limit) take(n int, now time.Time) (got int, wait time.Duration) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.l == nil {
		p.ahead += n
		return n, 0
	}
	room := max(aheadMin, p.tps/aheadPart) - p.ahead
	if room <= 0 {
		return 0, max(time.Millisecond, time.Duration(float64(time.Second)/float64(p.l.Limit())))
	}
	got, wait = takeFrom(p.l, min(n, room), now)
	p.ahead += got
	return got, wait
}

func takeFrom(l *rate.Limiter, n int, now time.Time) (got int, wait time.Duration) {
	tokens := l.TokensAt(now)
	if got = min(n, int(tokens)); got >= 1 && l.AllowN(now, got) {
		return got, 0
	}
	return 0, max(time.Millisecond, time.Duration((1-tokens)/float64(l.Limit())*float64(time.Second)))
}

// back returns tokens that found no use.
func (p *limit) back(n int, now time.Time) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.ahead -= n
	if p.l != nil && n > 0 {
		p.l.AllowN(now, -n)
	}
}

// free is how many writes the span has room for; wait says when it has room for one more. mu is held.
func (p *limit) free(now time.Time) (n int, wait time.Duration) {
	if p.tps == 0 {
		return 1 << 30, 0
	}
	for p.head < len(p.sent) && now.Sub(p.sent[p.head]) >= span {
		p.head++
	}
	if p.head > len(p.sent)/2 {
		p.sent = append(p.sent[:0], p.sent[p.head:]...)
		p.head = 0
	}
	if n = p.tps - (len(p.sent) - p.head); n > 0 {
		return n, 0
	}
	return 0, span - now.Sub(p.sent[p.head-n])
}

// note remembers n writes. mu is held.
func (p *limit) note(n int, now time.Time) {
	p.ahead -= n
	if p.tps > 0 {
		for range n {
			p.sent = append(p.sent, now)
		}
	}
}

// written ends up to n tokens of both limits for writes that follow at once; wait says when the next one may be. The
// locks are taken in this order everywhere.
func written(channel, account *limit, n int, now time.Time) (got int, wait time.Duration) {
	channel.mu.Lock()
	defer channel.mu.Unlock()
	account.mu.Lock()
	defer account.mu.Unlock()
	a, waitA := channel.free(now)
	b, waitB := account.free(now)
	got = min(n, a, b)
	channel.note(got, now)
	account.note(got, now)
	return got, max(waitA, waitB)
}
