package supplier

import (
	"testing"
	"time"

	"cmppgateway/gateway/internal/settings"
)

func TestBreakerOpensAboveThirtyPercentOfAHundred(t *testing.T) {
	t.Parallel()
	now := time.Unix(1000, 0)
	var b breaker
	feed := func(n int, refused func(i int) bool) {
		for i := range n {
			b.answer(refused(i), now)
		}
	}
	feed(99, func(int) bool { return true })
	if b.state != settings.BreakerClosed {
		t.Fatal("open after 99 submits")
	}
	b = breaker{}
	feed(1000, func(i int) bool { return i%10 < 3 })
	if b.state != settings.BreakerClosed {
		t.Fatal("open at thirty percent")
	}
	n := 0
	for ; b.state == settings.BreakerClosed && n < 100; n++ {
		b.answer(true, now)
	}
	if b.state != settings.BreakerOpen || n > 10 || b.trips != 1 || b.reason == "" {
		t.Fatalf("after %d more refusals: %s, %d trips, %q", n, b.state, b.trips, b.reason)
	}
	if feed(500, func(int) bool { return false }); b.state != settings.BreakerOpen {
		t.Fatal("answers of what was queued close it")
	}
	now = now.Add(breakerRest - time.Millisecond)
	if b.tick(now) {
		t.Fatal("half-open too soon")
	}
	now = now.Add(time.Millisecond)
	if !b.tick(now) || b.state != settings.BreakerHalfOpen {
		t.Fatal("not half-open in time")
	}
	// It fails its trial, and rests twice as long.
	if feed(7, func(int) bool { return true }); b.state != settings.BreakerOpen || b.trips != 2 || b.until.Sub(now) != 2*breakerRest {
		t.Fatalf("failed its trial: %s, %d trips, %s", b.state, b.trips, b.until.Sub(now))
	}
	now = b.until
	b.tick(now)
	if feed(19, func(i int) bool { return i < 6 }); b.state != settings.BreakerHalfOpen {
		t.Fatal("decided before its trial was over")
	}
	if !b.answer(false, now) || b.state != settings.BreakerClosed || b.trips != 0 {
		t.Fatalf("passed its trial: %s, %d trips", b.state, b.trips)
	}
	if feed(70, func(int) bool { return true }); b.state != settings.BreakerClosed {
		t.Fatal("old answers count")
	}
	for range 20 { // the rest never grows beyond its bound
		b.state, b.n, b.refused = settings.BreakerHalfOpen, 0, 0
		feed(7, func(int) bool { return true })
		if rest := b.until.Sub(now); rest > breakerRestMost || rest <= 0 {
			t.Fatalf("rests %s after %d trips", rest, b.trips)
		}
	}
}
