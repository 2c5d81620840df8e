package routing_test

import (
	"math"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"cmppgateway/gateway/internal/routing"
)

func group(candidates ...routing.Candidate) *routing.Group {
	return &routing.Group{ID: 1, Candidates: candidates}
}

func channel(id int32, priority, weight int16) routing.Candidate {
	return routing.Candidate{ChannelID: id, Account: 10 + id, Priority: priority, Weight: weight, Enabled: true}
}

func disabled(c routing.Candidate) routing.Candidate {
	c.Enabled = false
	return c
}

func TestPickLayers(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name  string
		group *routing.Group
		tried []int32
		want  int32 // 0: none left
	}{
		{"primary before backup", group(channel(2, 1, 100), channel(1, 0, 1), channel(3, 2, 100)), nil, 1},
		{"backup when the primary was tried", group(channel(2, 1, 100), channel(1, 0, 1), channel(3, 2, 100)), []int32{1}, 2},
		{"backup when the primary is disabled", group(disabled(channel(1, 0, 1)), channel(2, 1, 1)), nil, 2},
		{"third layer", group(disabled(channel(1, 0, 1)), channel(2, 1, 1), channel(3, 7, 1)), []int32{2}, 3},
		{"the other of a layer before the next layer", group(channel(1, 0, 1), channel(2, 0, 1), channel(3, 1, 1)), []int32{1}, 2},
		{"no weight, but the only one", group(channel(1, 0, 0)), nil, 1},
		{"no weight, and the other was tried", group(channel(1, 0, 0), channel(2, 0, 5), channel(3, 1, 5)), []int32{2}, 1},
		{"negative weight is none", group(channel(1, 0, -5), channel(2, 0, 1)), nil, 2},
		{"layer below 0", group(channel(1, 0, 1), channel(2, -1, 1)), nil, 2},
		{"tried channels of other groups", group(channel(1, 0, 1)), []int32{8, 9}, 1},
		{"empty group", group(), nil, 0},
		{"all disabled", group(disabled(channel(1, 0, 1)), disabled(channel(2, 1, 1))), nil, 0},
		{"all tried", group(channel(1, 0, 1), channel(2, 1, 1)), []int32{2, 1}, 0},
		{"tried or disabled", group(channel(1, 0, 1), disabled(channel(2, 1, 1))), []int32{1}, 0},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			for key := range uint64(200) {
				got, ok := tt.group.Pick(key, tt.tried)
				if ok != (tt.want != 0) || got.ChannelID != tt.want {
					t.Fatalf("key %d: channel %d, %t; want %d", key, got.ChannelID, ok, tt.want)
				}
				if ok && got.Account != 10+got.ChannelID {
					t.Fatalf("key %d: the candidate is not the group's: %+v", key, got)
				}
			}
		})
	}
}

// shares counts the picks of n keys that stride apart, by channel.
func shares(g *routing.Group, n, stride uint64, tried func(key uint64) []int32) map[int32]float64 {
	count := make(map[int32]float64)
	for i := range n {
		key := i * stride
		if c, ok := g.Pick(key, tried(key)); ok {
			count[c.ChannelID]++
		}
	}
	return count
}

func untried(uint64) []int32 { return nil }

func checkShares(t *testing.T, got, weights map[int32]float64) {
	t.Helper()
	var picks, total float64
	for _, n := range got {
		picks += n
	}
	for _, w := range weights {
		total += w
	}
	for id, w := range weights {
		// Five standard deviations of a fair draw.
		want, p := picks*w/total, w/total
		if slack := 5 * math.Sqrt(picks*p*(1-p)); math.Abs(got[id]-want) > slack {
			t.Errorf("channel %d: %.0f of %.0f messages, want %.0f ± %.0f", id, got[id], picks, want, slack)
		}
	}
	if len(got) != len(weights) {
		t.Errorf("picks went to %v, want channels of %v only", got, weights)
	}
}

func TestPickWeights(t *testing.T) {
	t.Parallel()
	g := group(channel(1, 0, 70), channel(2, 0, 20), channel(3, 0, 10), channel(4, 0, 0), channel(5, 1, 100))
	for _, stride := range []uint64{1, 64, 1 << 20, 1 << 42, 1 << 46} { // keys are ids, time in their upper bits
		checkShares(t, shares(g, 100_000, stride, untried), map[int32]float64{1: 70, 2: 20, 3: 10})
	}
	checkShares(t, shares(g, 50_000, 1, func(uint64) []int32 { return []int32{1} }), map[int32]float64{2: 20, 3: 10})
	checkShares(t, shares(g, 50_000, 1, func(uint64) []int32 { return []int32{1, 2, 3, 5} }), map[int32]float64{4: 1})

	even := group(channel(1, 0, 0), channel(2, 0, 0), channel(3, 0, -1))
	checkShares(t, shares(even, 50_000, 1, untried), map[int32]float64{1: 1, 2: 1, 3: 1})
}

// What the first channel refuses is shared out by weight again; it does not all fall on one neighbour.
func TestPickAfterRefusal(t *testing.T) {
	t.Parallel()
	g := group(channel(1, 0, 50), channel(2, 0, 30), channel(3, 0, 20), channel(4, 1, 1), channel(5, 1, 3))
	first := func(key uint64) int32 {
		c, _ := g.Pick(key, nil)
		return c.ChannelID
	}
	second := make(map[int32]float64)
	backup := make(map[int32]float64)
	for key := range uint64(60_000) {
		if first(key) != 1 {
			continue
		}
		c, _ := g.Pick(key, []int32{1})
		second[c.ChannelID]++
		c, _ = g.Pick(key, []int32{1, 2, 3})
		backup[c.ChannelID]++
	}
	checkShares(t, second, map[int32]float64{2: 30, 3: 20})
	checkShares(t, backup, map[int32]float64{4: 1, 5: 3})
}

// The choice must be the same after a restart. The values are the two top bits of SplitMix64 seeded with the key, and may
// change only with a decision to reshuffle all messages.
func TestPickIsStable(t *testing.T) {
	t.Parallel()
	g := group(channel(1, 0, 1), channel(2, 0, 1), channel(3, 0, 1), channel(4, 0, 1))
	var got []int32
	for key := range uint64(12) {
		c, _ := g.Pick(key, nil)
		got = append(got, c.ChannelID)
	}
	if want := []int32{4, 3, 3, 1, 2, 2, 3, 2, 3, 3, 1, 2}; !slices.Equal(got, want) {
		t.Errorf("channels %v, want %v", got, want)
	}
}

func TestPickProperties(t *testing.T) {
	t.Parallel()
	candidates := rapid.Custom(func(t *rapid.T) routing.Candidate {
		return routing.Candidate{
			ChannelID: rapid.Int32Range(1, 9).Draw(t, "channel"),
			Priority:  rapid.Int16Range(0, 3).Draw(t, "priority"),
			Weight:    rapid.OneOf(rapid.Int16Range(-1, 3), rapid.Int16()).Draw(t, "weight"),
			Enabled:   rapid.Bool().Draw(t, "enabled"),
		}
	})
	rapid.Check(t, func(t *rapid.T) {
		g := group(rapid.SliceOfN(candidates, 0, 12).Draw(t, "candidates")...)
		tried := rapid.SliceOfN(rapid.Int32Range(1, 9), 0, 6).Draw(t, "tried")
		key := rapid.Uint64().Draw(t, "key")
		usable := func(c routing.Candidate) bool { return c.Enabled && !slices.Contains(tried, c.ChannelID) }

		got, ok := g.Pick(key, tried)
		if again, _ := g.Pick(key, tried); again != got {
			t.Fatalf("picked %+v, then %+v", got, again)
		}
		if ok != slices.ContainsFunc(g.Candidates, usable) {
			t.Fatalf("Pick found a channel: %t", ok)
		}
		if !ok {
			return
		}
		if !slices.Contains(g.Candidates, got) || !usable(got) {
			t.Fatalf("picked %+v", got)
		}
		for _, c := range g.Candidates {
			if usable(c) && (c.Priority < got.Priority || c.Priority == got.Priority && c.Weight > 0 && got.Weight <= 0) {
				t.Fatalf("picked %+v before %+v", got, c)
			}
		}
	})
}

func TestPickDoesNotAllocate(t *testing.T) {
	g := group(channel(1, 0, 70), channel(2, 0, 20), channel(3, 1, 10))
	tried := []int32{1}
	if n := testing.AllocsPerRun(100, func() { g.Pick(7, tried) }); n != 0 {
		t.Errorf("%v allocations", n)
	}
}

func BenchmarkPick(b *testing.B) {
	g := group(channel(1, 0, 70), channel(2, 0, 20), channel(3, 0, 10), channel(4, 1, 1), channel(5, 1, 1))
	tried := []int32{1}
	b.ReportAllocs()
	var key uint64
	for b.Loop() {
		g.Pick(key, tried)
		key++
	}
}

func TestPickPassesOverWhatIsOutWhileAnotherServes(t *testing.T) {
	t.Parallel()
	with := func(h routing.Health, c routing.Candidate) routing.Candidate {
		c.Health = h
		return c
	}
	out, trial := routing.Out, routing.Trial
	for _, tt := range []struct {
		name  string
		group *routing.Group
		tried []int32
		want  int32
	}{
		{"backup when the primary is out", group(with(out, channel(1, 0, 1)), channel(2, 1, 1)), nil, 2},
		{"the other of the layer", group(with(out, channel(1, 0, 9)), channel(2, 0, 1), channel(3, 1, 1)), nil, 2},
		{"nothing else is left", group(with(out, channel(1, 0, 1)), channel(2, 1, 1)), []int32{2}, 1},
		{"all are out: as if none were", group(with(out, channel(1, 0, 1)), with(out, channel(2, 1, 1))), nil, 1},
		{"on trial and alone", group(with(trial, channel(1, 0, 1))), nil, 1},
		{"disabled stays so", group(disabled(channel(1, 0, 1)), with(out, channel(2, 1, 1))), nil, 2},
	} {
		for key := range uint64(200) {
			if got, ok := tt.group.Pick(key, tt.tried); !ok || got.ChannelID != tt.want {
				t.Fatalf("%s, key %d: channel %d, %t; want %d", tt.name, key, got.ChannelID, ok, tt.want)
			}
		}
	}
	g := group(with(trial, channel(1, 0, 1)), channel(2, 1, 1))
	tries := 0
	for key := range uint64(16_000) {
		if got, _ := g.Pick(key, nil); got.ChannelID == 1 {
			tries++
		}
	}
	if tries < 800 || tries > 1200 {
		t.Errorf("%d of 16,000 try the channel on trial, want about one in 16", tries)
	}
}
