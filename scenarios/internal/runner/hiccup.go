package runner

import (
	"context"
	"sync"
	"time"

	"cmppgateway/simulator/simclock"
)

// The hiccup meter sleeps 2 ms again and again and notes how much too long it
// slept: what the machine kept from this process, whatever the gateway did.
const (
	hiccupSleep  = 2 * time.Millisecond
	hiccupWindow = 250 * time.Millisecond
	hiccupStall  = 3 * time.Millisecond
)

// hiccups is the worst stall of each window of 250 ms on the shared clock.
type hiccups struct {
	clock *simclock.Clock

	mu      sync.Mutex
	windows map[int64]time.Duration
}

func newHiccups(clock *simclock.Clock) *hiccups {
	return &hiccups{clock: clock, windows: map[int64]time.Duration{}}
}

// run measures until ctx is done.
func (h *hiccups) run(ctx context.Context) {
	timer := time.NewTimer(hiccupSleep)
	defer timer.Stop()
	for {
		begin := h.clock.Now()
		timer.Reset(hiccupSleep)
		select {
		case <-timer.C:
		case <-ctx.Done():
			return
		}
		now := h.clock.Now()
		h.note(now, time.Duration(now-begin)-hiccupSleep)
	}
}

func (h *hiccups) note(at int64, stall time.Duration) {
	h.mu.Lock()
	defer h.mu.Unlock()
	k := at / int64(hiccupWindow)
	h.windows[k] = max(h.windows[k], stall)
}

// between returns how many windows from one reading of the clock to another had a
// stall over 3 ms, and the worst stall.
func (h *hiccups) between(from, to int64) (dirty int64, worst time.Duration) {
	h.mu.Lock()
	defer h.mu.Unlock()
	for k := from / int64(hiccupWindow); k <= to/int64(hiccupWindow); k++ {
		if h.windows[k] > hiccupStall {
			dirty++
		}
		worst = max(worst, h.windows[k])
	}
	return dirty, worst
}
