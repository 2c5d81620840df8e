package supplier

import (
	"context"
	"sync"
	"time"
)

// late is the flights of a channel that passed the barrier sooner than its rates allow: after a slow barrier several come
// at once. Their rows are dispatched; what is left when the pool closes is taken back, for it was surely not written. Their
// number is bounded by the tokens that the limits let be ahead.
type late struct {
	wake chan struct{}

	mu   sync.Mutex
	list []*flight
	over bool
}

// depart writes flights that passed the barrier, all of p, as far as the rates allow; the others follow in order.
func (p *pool) depart(flights []*flight) {
	l := &p.late
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.over {
		p.giveBack(flights)
		return
	}
	if len(l.list) == 0 {
		n, _ := written(&p.rate, p.account, len(flights), time.Now())
		p.write(flights[:n])
		flights = flights[n:]
		p.kick() // fewer are ahead
	}
	if len(flights) > 0 {
		p.m.metrics.late.Add(float64(len(flights)))
		l.list = append(l.list, flights...)
		poke(l.wake)
	}
}

// follow writes the late flights as their times come, until ctx is done.
func (p *pool) follow(ctx context.Context) {
	l := &p.late
	timer := time.NewTimer(time.Hour)
	defer timer.Stop()
	for {
		l.mu.Lock()
		n, wait := written(&p.rate, p.account, len(l.list), time.Now())
		p.write(l.list[:n])
		if l.list = l.list[n:]; len(l.list) == 0 {
			l.list = nil
		}
		left := len(l.list)
		l.mu.Unlock()
		if n > 0 {
			p.kick()
		}
		var due <-chan time.Time
		if left > 0 {
			timer.Reset(max(wait, time.Millisecond))
			due = timer.C
		}
		select {
		case <-ctx.Done():
			l.mu.Lock()
			p.giveBack(l.list)
			l.list, l.over = nil, true
			l.mu.Unlock()
			return
		case <-l.wake:
		case <-due:
		}
	}
}

// write sends flights, one run of octets per connection.
func (p *pool) write(flights []*flight) {
	for len(flights) > 0 {
		n := 1
		for n < len(flights) && flights[n].sess == flights[0].sess {
			n++
		}
		send(flights[:n])
		flights = flights[n:]
	}
}

// giveBack has flights undispatched that were not written.
func (p *pool) giveBack(flights []*flight) {
	now := time.Now()
	p.rate.back(len(flights), now)
	p.account.back(len(flights), now)
	for _, f := range flights {
		f.sess.Release(1)
		p.m.barrier.takeBack(f)
	}
}
