package load_test

import (
	"math"
	"slices"
	"strings"
	"testing"
	"time"

	"cmppgateway/scenarios/internal/load"
	"cmppgateway/scenarios/internal/spec"
	"cmppgateway/simulator/ismg"
)

func scenario() *spec.Scenario {
	return &spec.Scenario{
		Name: "test", Seed: 7, Price: 325, Content: spec.Content{Text: "【示例】一", Units: 1},
		Kinds: []spec.Kind{{Name: spec.Plain, Text: "【示例】一", Units: 1, Parts: 1, Format: spec.UCS2, Recipients: 1, SrcID: "01"}},
		Carriers: []spec.Carrier{
			{Name: "mobile", Prefixes: []string{"1380", "1390"}, Share: 0.6},
			{Name: "unicom", Prefixes: []string{"1300"}, Share: 0.25},
			{Name: "telecom", Prefixes: []string{"1890"}, Share: 0.15},
		},
		Behaviour:   ismg.Behaviour{Deck: ismg.DeckSpec{Block: 100, NoReceipt: 7}},
		Enterprises: []spec.Enterprise{{ID: "a", TPS: 100}, {ID: "b", TPS: 50}},
		Phases: []spec.Phase{
			{Name: "warm", Hold: 2 * time.Second, Scale: 0.5, Arrival: spec.Even},
			{Name: "measure", Hold: 4 * time.Second, Scale: 1, Measure: true, Arrival: spec.Even},
		},
	}
}

func TestRatesAndOrder(t *testing.T) {
	t.Parallel()
	p, err := load.Build(scenario())
	if err != nil {
		t.Fatal(err)
	}
	want := [][]int{{100, 50}, {400, 200}}
	for i, ph := range p.Phases {
		for e, list := range ph.Messages {
			if len(list) != want[i][e] {
				t.Errorf("phase %s, enterprise %d: %d messages, want %d", ph.Name, e, len(list), want[i][e])
			}
			for k := 1; k < len(list); k++ {
				if list[k].Due < list[k-1].Due {
					t.Fatalf("phase %s: due times go back at %d", ph.Name, k)
				}
			}
			if last := list[len(list)-1].Due; last >= int64(ph.Hold) {
				t.Errorf("phase %s: last message due at %s of %s", ph.Name, time.Duration(last), ph.Hold)
			}
		}
	}
	if p.Phases[1].Start != 2*time.Second || p.Total != 750 {
		t.Errorf("start %s, total %d", p.Phases[1].Start, p.Total)
	}
	// An open model at 150 TPS has no 100 ms with three times its share.
	if b := p.Burst(100 * time.Millisecond); b > 17 {
		t.Errorf("%d messages due within 100 ms at 150 TPS", b)
	}
}

func TestNumbersAreUniqueAndShared(t *testing.T) {
	t.Parallel()
	s := scenario()
	p, err := load.Build(s)
	if err != nil {
		t.Fatal(err)
	}
	seen := map[string]bool{}
	byCarrier := map[string]int{}
	for _, ph := range p.Phases {
		for e, list := range ph.Messages {
			for i := range list {
				m := &list[i]
				if len(m.Number) != 11 || seen[m.Number] {
					t.Fatalf("number %q, seen %t", m.Number, seen[m.Number])
				}
				seen[m.Number] = true
				o, ok := p.Origin(m.Key)
				if !ok || o.Enterprise != e {
					t.Fatalf("origin of %s is %+v, %t", m.Number, o, ok)
				}
				byCarrier[o.Carrier]++
				for _, c := range s.Carriers {
					if c.Name == o.Carrier && !hasPrefix(m.Number, c.Prefixes) {
						t.Fatalf("%s is none of %s", m.Number, o.Carrier)
					}
				}
			}
		}
	}
	for _, c := range s.Carriers {
		if got, want := float64(byCarrier[c.Name]), c.Share*float64(p.Total); math.Abs(got-want) > 2 {
			t.Errorf("%s has %g of %g messages", c.Name, got, want)
		}
	}
}

func hasPrefix(number string, prefixes []string) bool {
	for _, p := range prefixes {
		if strings.HasPrefix(number, p) {
			return true
		}
	}
	return false
}

// The decks the suppliers deal by number are those of the arithmetic.
func TestDecksAgreeWithTheArithmetic(t *testing.T) {
	t.Parallel()
	s := scenario()
	p, err := load.Build(s)
	if err != nil {
		t.Fatal(err)
	}
	deck := ismg.NewDeck(s.Seed, s.Behaviour.Deck, p.Place)
	silent := int64(0)
	for _, ph := range p.Phases {
		for _, list := range ph.Messages {
			for i := range list {
				if deck.Fate(list[i].Key, 0).Stat == "" {
					silent++
				}
			}
		}
	}
	if x := s.Expect(); x.Submitted != silent || silent < 49 || silent > 56 { // 7 of each of the 7 full blocks, and up to 7 of the half one
		t.Errorf("the plan deals %d without receipt, the arithmetic says %d", silent, x.Submitted)
	}
}

func TestPoissonKeepsTheCount(t *testing.T) {
	t.Parallel()
	s := scenario()
	s.Phases[1].Arrival = spec.Poisson
	a, err := load.Build(s)
	if err != nil {
		t.Fatal(err)
	}
	b, err := load.Build(s)
	if err != nil {
		t.Fatal(err)
	}
	if n := len(a.Phases[1].Messages[0]); n != 400 {
		t.Errorf("%d messages, want 400", n)
	}
	for i := range a.Phases[1].Messages[0] {
		x, y := a.Phases[1].Messages[0][i], b.Phases[1].Messages[0][i]
		if x.Due != y.Due || x.Number != y.Number {
			t.Fatalf("message %d differs between two plans of one scenario", i)
		}
	}
}

// An unknown number does not disturb the decks of the known ones.
func TestUnknownNumber(t *testing.T) {
	t.Parallel()
	p, err := load.Build(scenario())
	if err != nil {
		t.Fatal(err)
	}
	if _, ok := p.Origin(13900000000); ok {
		t.Error("a number outside the plan has an origin")
	}
	if g := p.Place(13900000000).Group; g < 1<<32 {
		t.Errorf("a number outside the plan shares deck group %d", g)
	}
}

// Kinds are sent as they say: segments in their order and over their connections,
// several recipients in one SUBMIT, several texts to one number.
func TestKindsAreSent(t *testing.T) {
	t.Parallel()
	s := scenario()
	long := strings.Repeat("长", 150) // 3 segments
	s.Kinds = append(s.Kinds,
		spec.Kind{Name: "long", Text: long, Units: 3, Parts: 3, Format: spec.UCS2, Recipients: 1, Long: &spec.Long{Reference: 8, Connections: 2, Order: spec.Reversed, Duplicate: true}},
		spec.Kind{Name: "part", Text: long, Units: 3, Parts: 3, Format: spec.UCS2, Recipients: 1, Long: &spec.Long{Reference: 16, Connections: 1, Order: spec.Random, Missing: true, Reused: true}},
		spec.Kind{Name: "group", Text: "g", Units: 1, Parts: 1, Format: spec.ASCII, Recipients: 4, Unregistered: true},
		spec.Kind{Name: "one", Text: "n{n}", Units: 1, Parts: 1, Format: spec.ASCII, Recipients: 1, Number: "13900001111"},
	)
	s.Phases = []spec.Phase{{Name: "p", Hold: time.Second, Scale: 1, Arrival: spec.Even, Mix: []spec.Share{{Kind: 1, Share: 0.25}, {Kind: 2, Share: 0.25}, {Kind: 3, Share: 0.25}, {Kind: 4, Share: 0.25}}}}
	s.Enterprises = s.Enterprises[:1]
	p, err := load.Build(s)
	if err != nil {
		t.Fatal(err)
	}
	if p.Total != 25+25+100+25 {
		t.Errorf("%d messages in all", p.Total)
	}
	byKey := map[uint64][]int{}
	texts := map[string]bool{}
	for i, m := range p.Phases[0].Messages[0] {
		byKey[m.Key] = append(byKey[m.Key], i)
		switch m.Tag {
		case 3:
			if len(m.Also) != 3 || m.Registered != 0 {
				t.Errorf("a group of %d, registered %d", 1+len(m.Also), m.Registered)
			}
		case 4:
			texts[string(m.Content)] = true
			if m.Number != "13900001111" || m.Key == 13900001111 {
				t.Errorf("a message to %s has key %d", m.Number, m.Key)
			}
		}
	}
	if len(texts) != 25 {
		t.Errorf("%d texts to the one number", len(texts))
	}
	for _, list := range byKey {
		first := p.Phases[0].Messages[0][list[0]]
		var got, conns []int
		for _, i := range list {
			m := p.Phases[0].Messages[0][i]
			got, conns = append(got, int(m.PkNumber)), append(conns, m.Conn)
		}
		switch first.Tag {
		case 1:
			if !slices.Equal(got, []int{3, 2, 1, 3}) || !slices.Equal(conns, []int{1, 2, 1, 2}) {
				t.Fatalf("a long message is sent as %v over %v", got, conns)
			}
		case 2:
			if len(got) != 2 || slices.Contains(got, 3) || conns[0] != 0 {
				t.Fatalf("a long message without its last segment is sent as %v over %v", got, conns)
			}
		}
	}
}
