package supplier

import (
	"context"
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"time"

	"cmppgateway/gateway/internal/settings"
	"cmppgateway/gateway/internal/store"
)

const (
	breakerWindow   = 100 // answers looked at
	breakerPercent  = 30  // more refusals than this open the breaker
	breakerTrial    = 20  // answers that decide while it is half-open
	breakerRest     = 30 * time.Second
	breakerRestMost = 5 * time.Minute
	breakerInterval = 250 * time.Millisecond // between looks at the clock and attempts to publish
)

// breaker takes a channel out of the candidates when its supplier refuses too much, and lets some messages try it again
// later. It stops nothing that is queued for the channel already: what has no other candidate goes on. Guarded by pool.mu.
type breaker struct {
	state  settings.BreakerState
	trips  int // in a row
	until  time.Time
	reason string

	ring       [breakerWindow]bool // refused
	n, refused int

	version, published int // of what other processes are to know
}

// restore goes on where another process, or an earlier life of this one, has stopped.
func (b *breaker) restore(k settings.Breaker) {
	b.state, b.trips, b.until = k.State, k.Trips, k.Until
}

// answer notes a SUBMIT_RESP. It returns whether the state changed.
func (b *breaker) answer(refused bool, now time.Time) bool {
	switch b.state {
	case settings.BreakerClosed:
		at := b.n % breakerWindow
		if b.n >= breakerWindow && b.ring[at] {
			b.refused--
		}
		b.ring[at] = refused
	case settings.BreakerHalfOpen:
	case settings.BreakerOpen:
		return false
	}
	b.n++
	if refused {
		b.refused++
	}
	of := breakerWindow
	if b.state == settings.BreakerHalfOpen {
		of = breakerTrial
	}
	switch {
	case b.refused*100 > of*breakerPercent && (b.n >= of || b.state == settings.BreakerHalfOpen):
		b.trips++
		b.reason = fmt.Sprintf("%d of %d submits refused", b.refused, min(b.n, of))
		b.until = now.Add(min(breakerRest<<min(b.trips-1, 10), breakerRestMost))
		b.turn(settings.BreakerOpen)
	case b.state == settings.BreakerHalfOpen && b.n >= of:
		b.trips, b.reason = 0, ""
		b.turn(settings.BreakerClosed)
	default:
		return false
	}
	return true
}

// tick half-opens the breaker when its time has come. It returns whether the state changed.
func (b *breaker) tick(now time.Time) bool {
	if b.state != settings.BreakerOpen || now.Before(b.until) {
		return false
	}
	b.turn(settings.BreakerHalfOpen)
	return true
}

func (b *breaker) turn(s settings.BreakerState) {
	b.state, b.n, b.refused, b.ring = s, 0, 0, [breakerWindow]bool{}
	b.version++
}

// turned logs and has published a change of the breaker.
func (p *pool) turned(state settings.BreakerState, reason string) {
	p.m.metrics.breaker.WithLabelValues(label(p.id), state.String()).Inc()
	p.m.o.Log.Warn("breaker of a channel", slog.Int("channel", int(p.id)), slog.String("state", state.String()), slog.String("reason", reason))
	poke(p.m.breakers)
}

// publish tells other processes about the breakers of this one's channels, until ctx is done. What cannot be told now is
// told later: until then the other candidates just get less.
func (m *Manager) publish(ctx context.Context) {
	tick := time.NewTicker(breakerInterval)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		case <-m.breakers:
		}
		m.mu.Lock()
		pools := slices.Collect(maps.Values(m.pools))
		m.mu.Unlock()
		for _, p := range pools {
			p.mu.Lock()
			turned := p.breaker.tick(time.Now())
			b := p.breaker
			p.mu.Unlock()
			if turned {
				p.turned(b.state, "its time has come")
			}
			if b.version == b.published {
				continue
			}
			if err := m.tell(ctx, p.id, &b); err != nil {
				if ctx.Err() == nil {
					m.o.Log.Warn("breaker not published", slog.Int("channel", int(p.id)), slog.Any("error", err))
				}
				continue
			}
			p.mu.Lock()
			p.breaker.published = b.version
			p.mu.Unlock()
		}
	}
}

func (m *Manager) tell(ctx context.Context, channel int32, b *breaker) error {
	ctx, cancel := context.WithTimeout(ctx, m.o.Config.LeaseTime/2)
	defer cancel()
	_, err := m.o.Pool.Exec(ctx, store.SupplierBreaker, channel, int16(b.state), b.trips, max(0, time.Until(b.until)), b.reason, m.o.Node.Number, m.o.Node.Epoch)
	return err
}
