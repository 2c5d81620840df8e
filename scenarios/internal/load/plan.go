package load

import (
	"fmt"
	"math"
	"slices"
	"strconv"
	"time"

	"cmppgateway/gateway/sms"
	"cmppgateway/scenarios/internal/spec"
	"cmppgateway/simulator/ismg"
	"cmppgateway/simulator/sp"
)

// Plan is the load of one run.
type Plan struct {
	// Content is the encoded text of every message; Hash is what a supplier
	// records of it.
	Content []byte
	Hash    uint64
	Fmt     uint8
	// Phases in order; Start is counted from the beginning of the load.
	Phases []Phase
	// Total messages.
	Total int

	origin map[uint64]Origin
	deck   func(enterprise, ordinal int) ismg.Place
}

// Phase is the load of one phase: the messages of each enterprise, by due time.
type Phase struct {
	spec.Phase
	Start    time.Duration
	Messages [][]sp.Message
}

// Origin says which message has a number.
type Origin struct {
	Enterprise int    // index in the scenario
	Phase      int    // index in the scenario
	Ordinal    int    // among the enterprise's messages
	Carrier    string // of the number
}

// Offered is how many messages of the phase are due.
func (p *Phase) Offered() int {
	n := 0
	for _, m := range p.Messages {
		n += len(m)
	}
	return n
}

// Build plans the load of a scenario.
func Build(s *spec.Scenario) (*Plan, error) {
	content, err := sms.EncodeText(sms.FmtUCS2, s.Content.Text)
	if err != nil {
		return nil, fmt.Errorf("content of %s: %w", s.Name, err)
	}
	p := &Plan{
		Content: content, Hash: ismg.ContentHash(content), Fmt: uint8(sms.FmtUCS2),
		origin: map[uint64]Origin{}, deck: s.Place,
	}
	numbers := newNumbers(s)
	sent := make([]int, len(s.Enterprises))
	var start time.Duration
	for i, ph := range s.Phases {
		phase := Phase{Phase: ph, Start: start, Messages: make([][]sp.Message, len(s.Enterprises))}
		// Enterprises take turns by due time, so that each gets its share of
		// every carrier.
		type arrival struct {
			due        int64
			enterprise int
		}
		var arrivals []arrival
		for e := range s.Enterprises {
			for _, due := range dues(s, i, e) {
				arrivals = append(arrivals, arrival{due, e})
			}
			phase.Messages[e] = make([]sp.Message, 0, ph.Messages(s.Enterprises[e]))
		}
		slices.SortStableFunc(arrivals, func(a, b arrival) int { return int(a.due - b.due) })
		for _, a := range arrivals {
			number, carrier := numbers[a.enterprise].next()
			key, err := strconv.ParseUint(number, 10, 64)
			if err != nil {
				return nil, fmt.Errorf("number %q: %w", number, err)
			}
			if _, twice := p.origin[key]; twice {
				return nil, fmt.Errorf("number %s would be used twice", number)
			}
			p.origin[key] = Origin{Enterprise: a.enterprise, Phase: i, Ordinal: sent[a.enterprise], Carrier: carrier}
			sent[a.enterprise]++
			phase.Messages[a.enterprise] = append(phase.Messages[a.enterprise], sp.Message{
				Due: a.due, Key: key, Number: number, Content: content, Fmt: p.Fmt, Registered: 1, SrcID: SrcID,
			})
		}
		p.Total += len(arrivals)
		p.Phases = append(p.Phases, phase)
		start += ph.Hold
	}
	return p, nil
}

// SrcID is the customers' Src_Id: the extension that the gateway appends to a
// channel's access number.
const SrcID = "01"

// dues are the due times of an enterprise in a phase.
func dues(s *spec.Scenario, phase, enterprise int) []int64 {
	ph := s.Phases[phase]
	n := ph.Messages(s.Enterprises[enterprise])
	if ph.Arrival == spec.Poisson {
		return sp.Poisson(s.Seed^uint64(phase<<16|enterprise), n, ph.Hold)
	}
	due := sp.Even(n, ph.Hold)
	if n > 0 {
		shift := int64(ph.Hold) / int64(n) * int64(enterprise) / int64(len(s.Enterprises))
		for i := range due {
			due[i] += shift
		}
	}
	return due
}

// Origin says which message has the number; ok is false for a number that is
// not in the plan.
func (p *Plan) Origin(key uint64) (o Origin, ok bool) {
	o, ok = p.origin[key]
	return o, ok
}

// Place is where a number's message sits in the decks, for the suppliers. A
// number that is not in the plan is dealt from a deck of its own.
func (p *Plan) Place(key uint64) ismg.Place {
	o, ok := p.origin[key]
	if !ok {
		return ismg.Place{Group: math.MaxUint64}
	}
	return p.deck(o.Enterprise, o.Ordinal)
}

// Burst is the most messages due within any window.
func (p *Plan) Burst(window time.Duration) int {
	var due []int64
	for _, ph := range p.Phases {
		for _, list := range ph.Messages {
			for i := range list {
				due = append(due, int64(ph.Start)+list[i].Due)
			}
		}
	}
	slices.Sort(due)
	most, from := 0, 0
	for to := range due {
		for due[to]-due[from] >= int64(window) {
			from++
		}
		most = max(most, to-from+1)
	}
	return most
}
