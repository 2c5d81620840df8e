package sp_test

import (
	"slices"
	"testing"
	"time"

	"cmppgateway/simulator/sp"
)

func TestPacer(t *testing.T) {
	t.Parallel()
	type wake struct {
		now      int64
		from, to int
	}
	for _, c := range []struct {
		name  string
		due   []int64
		burst int
		wakes []wake
	}{
		{"nothing", nil, 10, []wake{{5, 0, 0}}},
		{"one by one", []int64{0, 10, 20}, 10, []wake{{0, 0, 1}, {9, 1, 1}, {10, 1, 2}, {20, 2, 3}, {99, 3, 3}}},
		{"late wake-up releases all", []int64{0, 10, 20, 30}, 10, []wake{{25, 0, 3}, {30, 3, 4}}},
		{"burst leaves the rest late", []int64{0, 0, 0, 0, 0}, 2, []wake{{0, 0, 2}, {0, 2, 4}, {0, 4, 5}}},
		{"equal due times", []int64{7, 7}, 10, []wake{{6, 0, 0}, {7, 0, 2}}},
		{"burst of none is one", []int64{0, 0}, 0, []wake{{0, 0, 1}, {0, 1, 2}}},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			p := sp.NewPacer(c.due, c.burst)
			for i, w := range c.wakes {
				if from, to := p.Release(w.now); from != w.from || to != w.to {
					t.Errorf("wake-up %d at %d: [%d, %d), want [%d, %d)", i, w.now, from, to, w.from, w.to)
				}
				next, ok := p.Next()
				if ok != (w.to < len(c.due)) || ok && next != c.due[w.to] {
					t.Errorf("after wake-up %d: next %d %v", i, next, ok)
				}
			}
		})
	}
}

func TestEven(t *testing.T) {
	t.Parallel()
	got := sp.Even(4, time.Second)
	if want := []int64{0, 250e6, 500e6, 750e6}; !slices.Equal(got, want) {
		t.Errorf("got %v, want %v", got, want)
	}
	// A long phase keeps its rate to the end: no drift by rounding.
	long := sp.Even(300_000, 100*time.Second)
	if gap := long[299_999] - long[299_998]; gap < 333_332 || gap > 333_334 {
		t.Errorf("last gap %d", gap)
	}
}

func TestPoisson(t *testing.T) {
	t.Parallel()
	const n = 10_000
	due := sp.Poisson(1, n, 10*time.Second)
	if !slices.IsSorted(due) || due[0] < 0 || due[n-1] >= int64(10*time.Second) {
		t.Fatalf("not sorted within the phase: %d … %d", due[0], due[n-1])
	}
	if !slices.Equal(due, sp.Poisson(1, n, 10*time.Second)) || slices.Equal(due, sp.Poisson(2, n, 10*time.Second)) {
		t.Error("the times do not follow the seed")
	}
	// Of a Poisson process about 1/e of the 1 ms slots at 1000/s are empty.
	busy := map[int64]bool{}
	for _, d := range due {
		busy[d/int64(time.Millisecond)] = true
	}
	if empty := n - len(busy); empty < 3500 || empty > 3860 {
		t.Errorf("%d of %d slots are empty, want about 3679", empty, n)
	}
}
