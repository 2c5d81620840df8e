package load

import (
	"cmp"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"
	"time"

	"cmppgateway/gateway/sms"
	"cmppgateway/scenarios/internal/spec"
	"cmppgateway/simulator/ismg"
	"cmppgateway/simulator/sp"
)

// Plan is the load of one run.
type Plan struct {
	// Phases in order; Start is counted from the beginning of the load.
	Phases []Phase
	// Total messages: recipients, a long message counted once.
	Total int

	origin map[uint64]Origin
	deck   func(enterprise, ordinal int) ismg.Place
}

// Phase is the load of one phase: the SUBMITs of each enterprise, by due time.
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

// Offered is how many SUBMITs of the phase are due.
func (p *Phase) Offered() int {
	n := 0
	for _, m := range p.Messages {
		n += len(m)
	}
	return n
}

// builder makes a plan.
type builder struct {
	s       *spec.Scenario
	p       *Plan
	numbers []*numbers
	sent    []int // messages by enterprise
	order   *rand.Rand
	fixed   map[string]uint64 // messages so far to a number that is given
	longs   int
}

// Build plans the load of a scenario.
func Build(s *spec.Scenario) (*Plan, error) {
	p := &Plan{origin: map[uint64]Origin{}, deck: s.Place}
	b := &builder{
		s: s, p: p, numbers: newNumbers(s), sent: make([]int, len(s.Enterprises)),
		order: rand.New(rand.NewPCG(s.Seed, 11)), fixed: map[string]uint64{},
	}
	var start time.Duration
	for i, ph := range s.Phases {
		phase := Phase{Phase: ph, Start: start, Messages: make([][]sp.Message, len(s.Enterprises))}
		// Enterprises take turns by due time, so that each gets its share of
		// every carrier.
		type arrival struct {
			due              int64
			enterprise, kind int
		}
		var arrivals []arrival
		for e := range s.Enterprises {
			kinds := ph.Deal(ph.Messages(s.Enterprises[e]))
			for k, due := range dues(s, i, e) {
				arrivals = append(arrivals, arrival{due, e, kinds[k]})
			}
			phase.Messages[e] = make([]sp.Message, 0, len(kinds))
		}
		slices.SortStableFunc(arrivals, func(a, b arrival) int { return cmp.Compare(a.due, b.due) })
		for _, a := range arrivals {
			list, err := b.message(i, a.enterprise, a.kind, a.due)
			if err != nil {
				return nil, err
			}
			phase.Messages[a.enterprise] = append(phase.Messages[a.enterprise], list...)
		}
		p.Phases = append(p.Phases, phase)
		start += ph.Hold
	}
	return p, nil
}

// message makes the SUBMITs of one message, or of one to several recipients.
func (b *builder) message(phase, enterprise, kind int, due int64) ([]sp.Message, error) {
	k := &b.s.Kinds[kind]
	m := sp.Message{Due: due, Tag: uint16(kind), Registered: 1, SrcID: k.SrcID}
	if k.Unregistered {
		m.Registered = 0
	}
	for i := range k.Recipients {
		number, key, err := b.number(k, phase, enterprise)
		if err != nil {
			return nil, err
		}
		if i == 0 {
			m.Number, m.Key = number, key
		} else {
			m.Also = append(m.Also, number)
		}
	}
	if err := b.content(k, &m); err != nil {
		return nil, err
	}
	if k.Long == nil {
		return []sp.Message{m}, nil
	}
	return b.segments(k, m)
}

// number gives the next recipient and the key of its message.
func (b *builder) number(k *spec.Kind, phase, enterprise int) (number string, key uint64, err error) {
	o := Origin{Enterprise: enterprise, Phase: phase, Ordinal: b.sent[enterprise]}
	number = k.Number
	if number == "" {
		number, o.Carrier = b.numbers[enterprise].next()
	}
	if key, err = strconv.ParseUint(number, 10, 64); err != nil {
		return "", 0, fmt.Errorf("number %q: %w", number, err)
	}
	b.sent[enterprise]++
	b.p.Total++
	if _, twice := b.p.origin[key]; twice && k.Number == "" {
		return "", 0, fmt.Errorf("number %s would be used twice", number)
	} else if !twice {
		b.p.origin[key] = o
	}
	if k.Number != "" { // its messages are told apart by their text
		b.fixed[number]++
		key |= b.fixed[number] << keyShift
	}
	return number, key, nil
}

// keyShift is above every number of 11 digits: keys of messages to a number that is
// given have their count there.
const keyShift = 40

var formats = map[string]sms.Fmt{spec.UCS2: sms.FmtUCS2, spec.ASCII: sms.FmtASCII, spec.GBK: sms.FmtGB18030}

// content encodes the text.
func (b *builder) content(k *spec.Kind, m *sp.Message) error {
	format := formats[k.Format]
	text := strings.ReplaceAll(k.Text, "{n}", fmt.Sprintf("%06d", b.p.Total))
	content, err := sms.EncodeText(format, text)
	if err != nil {
		return fmt.Errorf("text of %s: %w", k.Name, err)
	}
	m.Content, m.Fmt = content, uint8(format)
	return nil
}

// segments cuts a long message into its SUBMITs.
func (b *builder) segments(k *spec.Kind, m sp.Message) ([]sp.Message, error) {
	unit := 1
	if k.Format != spec.ASCII {
		unit = 2
	}
	b.longs++
	ref := sp.Reference{Value: uint16(b.longs * 7919), Wide: k.Long.Reference == 16, Extra: k.Long.Extra}
	if k.Long.Reused {
		ref.Value = 77
	}
	parts, err := sp.Split(m.Content, unit, ref)
	if err != nil {
		return nil, fmt.Errorf("text of %s: %w", k.Name, err)
	}
	var order []int
	for i := range parts {
		order = append(order, i)
	}
	if k.Long.Missing {
		order = order[:len(order)-1]
	}
	switch k.Long.Order {
	case spec.Reversed:
		slices.Reverse(order)
	case spec.Random:
		b.order.Shuffle(len(order), func(i, j int) { order[i], order[j] = order[j], order[i] })
	}
	if k.Long.Duplicate {
		order = append(order, order[0])
	}
	list := make([]sp.Message, len(order))
	for i, part := range order {
		s := m
		s.Content, s.UDHI, s.PkTotal, s.PkNumber = parts[part], 1, uint8(len(parts)), uint8(part+1)
		if k.Long.Connections > 1 {
			s.Conn = i%k.Long.Connections + 1
		}
		list[i] = s
	}
	return list, nil
}

// dues are the due times of an enterprise in a phase.
func dues(s *spec.Scenario, phase, enterprise int) []int64 {
	ph := s.Phases[phase]
	n := ph.Messages(s.Enterprises[enterprise])
	switch ph.Arrival {
	case spec.Poisson:
		return sp.Poisson(s.Seed^uint64(phase<<16|enterprise), n, ph.Hold)
	case spec.Burst:
		return sp.Bursts(n, max(1, int(float64(n)/ph.Hold.Seconds())), ph.Hold)
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
