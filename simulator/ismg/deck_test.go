package ismg_test

import (
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"
	"testing"
	"time"

	"cmppgateway/simulator/ismg"
)

func fullDeck() ismg.DeckSpec {
	return ismg.DeckSpec{
		Block: 1000, Result8First: 10, Results: map[uint32]int{13: 4, 1: 3}, NoReceipt: 25,
		ReceiptFailed: map[string]int{"UNDELIV": 3, "EXPIRED": 2},
		ReceiptEarly:  2, ReceiptTwice: 2, ReceiptContradict: 1, ReceiptElsewhere: 6,
		RespLate: 1, RespTwice: 2, RespSilent: 3, RespWrongSeq: 1,
	}
}

var fullCounts = map[string]int{
	"plain": 1000 - 65, "result_8_first": 10, "results 13": 4, "results 1": 3, "no_receipt": 25, "receipt_failed UNDELIV": 3,
	"receipt_failed EXPIRED": 2, "receipt_early": 2, "receipt_twice": 2, "receipt_contradict": 1, "receipt_elsewhere": 6,
	"resp_late": 1, "resp_twice": 2, "resp_silent": 3, "resp_wrong_seq": 1,
}

// TestDeckCounts deals whole blocks of several sizes: the counts are exact.
func TestDeckCounts(t *testing.T) {
	t.Parallel()
	deck := ismg.NewDeck(42, fullDeck(), nil)
	for _, block := range []uint64{0, 1, 7, 13800000} {
		got := map[string]int{}
		for i := range uint64(1000) {
			f := deck.Fate(block*1000+i, 0)
			name := f.Card.String()
			switch f.Card { //nolint:exhaustive // only these carry more
			case ismg.Refused:
				name += fmt.Sprint(" ", f.Result)
			case ismg.ReceiptFailed:
				name += " " + f.Stat
			default:
			}
			got[name]++
		}
		if !maps.Equal(got, fullCounts) {
			t.Errorf("block %d: %v, want %v", block, got, fullCounts)
		}
	}
}

func TestDeckSizes(t *testing.T) {
	t.Parallel()
	for _, size := range []int{1, 2, 3, 9, 100, 999, 1024, 1025} {
		deck := ismg.NewDeck(1, ismg.DeckSpec{Block: size, NoReceipt: size/2 + 1}, nil)
		n := 0
		for i := range size {
			if deck.Fate(uint64(i), 0).Card == ismg.NoReceipt {
				n++
			}
		}
		if n != size/2+1 {
			t.Errorf("block of %d: %d cards, want %d", size, n, size/2+1)
		}
	}
}

func deal(d *ismg.Deck, from, n uint64) []ismg.Fate {
	fates := make([]ismg.Fate, 0, n)
	for k := from; k < from+n; k++ {
		fates = append(fates, d.Fate(k, 0))
	}
	return fates
}

// TestDeckDeterminism: same seed same fates; another seed, block or group
// another shuffle.
func TestDeckDeterminism(t *testing.T) {
	t.Parallel()
	spec := ismg.DeckSpec{NoReceipt: 500}
	first := deal(ismg.NewDeck(1, spec, nil), 5000, 1000)
	if again := deal(ismg.NewDeck(1, spec, nil), 5000, 1000); !slices.Equal(first, again) {
		t.Error("same seed, other fates")
	}
	for name, other := range map[string][]ismg.Fate{
		"seed":  deal(ismg.NewDeck(2, spec, nil), 5000, 1000),
		"block": deal(ismg.NewDeck(1, spec, nil), 6000, 1000),
		"group": deal(ismg.NewDeck(1, spec, func(k uint64) ismg.Place {
			p := ismg.PlaceBy(0, 1000)(k)
			p.Group = 1
			return p
		}), 5000, 1000),
	} {
		same := 0
		for i := range other {
			if other[i] == first[i] {
				same++
			}
		}
		if same < 420 || same > 580 { // 500 by chance, ± five standard deviations
			t.Errorf("another %s: %d of 1000 fates are the same", name, same)
		}
	}
}

func TestDeckAttempts(t *testing.T) {
	t.Parallel()
	deck := ismg.NewDeck(3, ismg.DeckSpec{Block: 10, Result8First: 4, Results: map[uint32]int{13: 6}}, nil)
	for key := range uint64(10) {
		first, second := deck.Fate(key, 0), deck.Fate(key, 1)
		switch first.Card { //nolint:exhaustive // only these are in the deck
		case ismg.Result8First:
			if first.Result != 8 || second.Result != 0 || second.Stat != "DELIVRD" {
				t.Errorf("result_8_first: %+v then %+v", first, second)
			}
		case ismg.Refused:
			if first.Result != 13 || second != first {
				t.Errorf("results: %+v then %+v", first, second)
			}
		default:
			t.Errorf("card %s is not in the deck", first.Card)
		}
	}
}

func TestPlaceBy(t *testing.T) {
	t.Parallel()
	place := ismg.PlaceBy(13800000000, 1000)
	for key, want := range map[uint64]ismg.Place{
		13800000000: {},
		13800000999: {Index: 999},
		13800001000: {Block: 1},
		13800123456: {Block: 123, Index: 456},
	} {
		if got := place(key); got != want {
			t.Errorf("%d: %+v, want %+v", key, got, want)
		}
	}
}

func TestDist(t *testing.T) {
	t.Parallel()
	quantile := func(q float64) uint64 { return uint64(q * math.MaxUint64) }
	near := func(got, want time.Duration) bool {
		return math.Abs(float64(got-want)) <= float64(want)/1000
	}
	lognormal := ismg.Dist{Kind: ismg.Lognormal, P50: 14 * time.Millisecond, P99: 60 * time.Millisecond}
	capped := lognormal
	capped.Max = 30 * time.Millisecond
	for _, c := range []struct {
		name string
		dist ismg.Dist
		at   float64
		want time.Duration
	}{
		{"zero", ismg.Dist{}, 0.5, 0},
		{"fixed", ismg.FixedAt(time.Second), 0.9, time.Second},
		{"lognormal p50", lognormal, 0.5, 14 * time.Millisecond},
		{"lognormal p99", lognormal, 0.99, 60 * time.Millisecond},
		{"lognormal max", capped, 0.99, 30 * time.Millisecond},
		{"uniform", ismg.Dist{Kind: ismg.Uniform, Min: time.Second, Max: 3 * time.Second}, 0.25, 1500 * time.Millisecond},
	} {
		if got := c.dist.At(quantile(c.at)); !near(got, c.want) {
			t.Errorf("%s: %s, want %s", c.name, got, c.want)
		}
	}
	for _, hash := range []uint64{0, 1, math.MaxUint64} {
		if got := lognormal.At(hash); got < 0 || got > time.Hour {
			t.Errorf("lognormal at the edge %x: %s", hash, got)
		}
	}
}

func TestValidate(t *testing.T) {
	t.Parallel()
	p := ismg.Profile{
		Accounts: []ismg.Account{
			{ID: "toolong", Version: 0x10, MaxConnections: -1, Window: -1, RateLimit: -1, GatewayCode: 1 << 22},
			{ID: "900001"},
			{ID: "900001", Behaviour: &ismg.Behaviour{LateBy: -1}},
		},
		Behaviour: ismg.Behaviour{
			SubmitRTT:    ismg.Dist{Kind: ismg.Lognormal, P50: time.Second, P99: time.Millisecond},
			ReceiptDelay: ismg.Dist{Kind: "normal"},
			Deck:         ismg.DeckSpec{Block: 10, NoReceipt: 11, ReceiptFailed: map[string]int{"TOOLONGSTAT": 1}, Results: map[uint32]int{0: 1}},
		},
		Timers: ismg.Timers{DeliverTries: -1},
	}
	want := []string{
		"accounts[0].id", "accounts[0].version", "accounts[0].max_connections", "accounts[0].window", "accounts[0].rate_limit",
		"accounts[0].gateway_code", "accounts[2].behaviour.late_by", "accounts[2].id", "behaviour.submit_rtt", "behaviour.deck",
		"behaviour.deck.results.0", "behaviour.deck.receipt_failed.TOOLONGSTAT", "behaviour.receipt_delay.dist", "timers.deliver_tries",
	}
	var got []string
	for _, f := range p.Validate() {
		got = append(got, f.Path)
	}
	if !slices.Equal(got, want) {
		t.Errorf("got  %s\nwant %s", strings.Join(got, " "), strings.Join(want, " "))
	}
	if f := (&ismg.Profile{Accounts: []ismg.Account{{ID: "900001"}}}).Validate(); len(f) > 0 {
		t.Errorf("a small profile: %v", f)
	}
}
