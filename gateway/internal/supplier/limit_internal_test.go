package supplier

import (
	"math/rand/v2"
	"testing"
	"time"
)

func TestLimitIsPaced(t *testing.T) {
	t.Parallel()
	var l, none limit
	now := time.Unix(1000, 0)
	if got, _ := l.take(500, now); got != 500 {
		t.Fatalf("no rate: %d of 500", got)
	}
	if got, _ := written(&l, &none, 500, now); got != 500 {
		t.Fatalf("no rate: %d of 500 written", got)
	}
	l.set(200)
	total := 0
	for range 1000 { // one second in steps of a millisecond
		now = now.Add(time.Millisecond)
		got, wait := l.take(50, now)
		if got > 2 {
			t.Fatalf("%d tokens at once", got)
		}
		if got == 0 && wait <= 0 {
			t.Fatal("no token and no time for the next one")
		}
		if n, _ := written(&none, &l, got, now); n != got {
			t.Fatalf("%d of %d written", n, got)
		}
		none.ahead = 0
		total += got
	}
	if total < 192 || total > 199 {
		t.Errorf("%d in one second at 200/s less a fortieth", total)
	}
	l.set(0)
	if got, _ := l.take(500, now); got != 500 {
		t.Fatalf("rate taken off: %d of 500", got)
	}
}

func TestUnusedTokensComeBack(t *testing.T) {
	t.Parallel()
	var l limit
	l.set(1000) // bursts of ten
	now := time.Unix(1000, 0)
	got, _ := l.take(10, now)
	l.back(got, now)
	if again, _ := l.take(10, now); again != got || got != 10 {
		t.Errorf("%d tokens, then %d after they were given back", got, again)
	}
}

// A supplier that counts over any second never sees more than the rate, however unevenly the barrier answers; and what the
// contract allows is used.
func TestNoSecondSeesMoreThanTheRate(t *testing.T) {
	t.Parallel()
	const tps, length = 50, 60 * time.Second
	dice := rand.New(rand.NewPCG(1, 2))
	for _, stalls := range []int{0, 20, 200} { // barriers in a thousand that take up to two seconds
		var account, one, two limit
		account.set(tps)
		start := time.Unix(1000, 0)
		var writes []time.Duration
		channels := []*limit{&one, &two} // two channels of one account
		type batch struct {
			n    int
			from int
			at   time.Duration
		}
		var barrier []batch
		waiting := [2]int{}
		stalled := time.Duration(0)
		for at := time.Duration(0); at < length; at += time.Millisecond {
			now := start.Add(at)
			for i, ch := range channels {
				got, _ := ch.take(20, now)
				both, _ := account.take(got, now)
				ch.back(got-both, now)
				if both > 0 {
					if at >= stalled && dice.IntN(1000) < stalls {
						stalled = at + time.Duration(dice.IntN(2000))*time.Millisecond
					}
					barrier = append(barrier, batch{both, i, max(at+time.Millisecond, stalled)})
				}
			}
			for len(barrier) > 0 && barrier[0].at <= at {
				waiting[barrier[0].from] += barrier[0].n
				barrier = barrier[1:]
			}
			for i, ch := range channels {
				n, wait := written(ch, &account, waiting[i], now)
				if n == 0 && waiting[i] > 0 && wait <= 0 {
					t.Fatal("no room and no time when there is")
				}
				waiting[i] -= n
				for range n {
					writes = append(writes, at)
				}
			}
			if ahead := waiting[0] + waiting[1]; ahead > tps/aheadPart {
				t.Fatalf("%d rows dispatched and not written", ahead)
			}
		}
		worst, from := 0, 0
		for to, at := range writes {
			for at-writes[from] >= time.Second {
				from++
			}
			worst = max(worst, to-from+1)
		}
		if worst > tps {
			t.Errorf("%d stalls: %d writes in one second, the contract allows %d", stalls, worst, tps)
		}
		if rate := float64(len(writes)) / length.Seconds(); stalls == 0 && (rate < 48 || rate > 50) {
			t.Errorf("%.1f writes a second, want 48 to 50", rate)
		}
		if account.ahead < 0 || one.ahead < 0 || two.ahead < 0 {
			t.Errorf("ahead %d, %d and %d", account.ahead, one.ahead, two.ahead)
		}
	}
}
