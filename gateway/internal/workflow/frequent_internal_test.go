package workflow

import (
	"testing"
	"time"

	"cmppgateway/gateway/internal/policy"
)

func TestFrequentForgets(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 3, 5, 4, 0, 0, 0, time.UTC)
	limits := policy.Limits{Enterprise: 1, Minute: 1, Day: 3}
	n := policy.Number{Enterprise: 1, Phone: 13800138000}
	ago := func(d time.Duration) []time.Time { return []time.Time{now.Add(-d)} }
	for _, c := range []struct {
		name   string
		at     []time.Time
		limits policy.Limits
		later  time.Duration
		full   bool
	}{
		{"full", ago(time.Second), limits, 0, true},
		{"not full", ago(time.Minute), limits, 0, false},
		{"until the message leaves its window", ago(20 * time.Second), limits, 40*time.Second - 1, true},
		{"the message has left its window", ago(20 * time.Second), limits, 40 * time.Second, false},
		{"not longer than it is trusted", []time.Time{now, now, now}, limits, frequentTime, false},
		{"other limits", ago(time.Second), policy.Limits{Enterprise: 1, Minute: 1, Day: 4}, 0, false},
	} {
		var f frequent
		f.note(n, limits, c.at, now)
		if got := f.full(n, c.limits, now.Add(c.later)) != nil; got != c.full {
			t.Errorf("%s: %t", c.name, got)
		}
	}
	var f frequent
	for i := range uint64(frequentMost + 5) {
		f.note(policy.Number{Enterprise: 1, Phone: i}, limits, ago(0), now)
	}
	if len(f.numbers) != frequentMost {
		t.Errorf("%d numbers remembered", len(f.numbers))
	}
	later := now.Add(frequentTime)
	f.note(n, limits, []time.Time{later}, later)
	if len(f.numbers) != 1 {
		t.Errorf("%d numbers remembered after the others ended", len(f.numbers))
	}
}
