package spec

import (
	"fmt"
	"io"
	"maps"
	"math"
	"slices"
	"strings"
	"time"

	"cmppgateway/simulator/ismg"
)

// maxSubmits is how many submits a message gets in all (architecture §3).
const maxSubmits = 3

const (
	statDelivered = "DELIVRD"
	resultFlow    = 8 // the one refusal that is tried elsewhere by default
)

// Expectation is what a scenario must come to if every card of its decks is
// dealt and nothing else happens.
type Expectation struct {
	// Messages are recipients; Turned are those whose SUBMIT is refused at the entrance.
	Messages, Turned int64
	// Intercepted were accepted at the entrance and refused by a rule, by reason word.
	Intercepted map[string]int64
	// Long are messages that customers send in segments.
	Long int64
	// First and Resends are SUBMITs to suppliers.
	First, Resends int64
	// Fates of the messages. Submitted are accepted without a receipt; Refused
	// had no attempt accepted and are failed for the customer.
	Delivered, Submitted, Failed, Refused int64
	FailedBy                              map[string]int64
	// RefusedSubmits are SUBMITs with a result other than 0.
	RefusedSubmits int64
	Early, Twice   int64
	// Unanswered submits become unknown until the statement closes them.
	Unanswered  int64
	Enterprises []ExpectedBooks
}

// ExpectedBooks is one enterprise's money by the outcome table.
type ExpectedBooks struct {
	Enterprise                                    string
	Messages, TopUps                              int64
	ChargedN, RefundedN, ReleasedN                int64
	Opening, Charged, Refunded, Released, Closing int64
}

// Place is the deck and the card of an enterprise's message by its number in
// order of sending. Load plans and Expect share it.
func (s *Scenario) Place(enterprise, ordinal int) ismg.Place {
	block := s.Behaviour.Deck.Block
	if block == 0 {
		block = 1000
	}
	return ismg.Place{Group: uint64(enterprise), Block: uint64(ordinal / block), Index: ordinal % block}
}

// Expect deals every message its fates and applies the outcome table. What faults
// and single channels' own behaviour change comes on top.
func (s *Scenario) Expect() Expectation {
	x := Expectation{FailedBy: map[string]int64{}, Intercepted: map[string]int64{}}
	deck := ismg.NewDeck(s.Seed, s.Behaviour.Deck, func(key uint64) ismg.Place {
		return s.Place(int(key>>32), int(key&math.MaxUint32))
	})
	for i, e := range s.Enterprises {
		b := ExpectedBooks{Enterprise: e.ID, Opening: e.Balance}
		ordinal := 0
		for _, p := range s.Phases {
			for _, kind := range p.Deal(p.Messages(e)) {
				k := &s.Kinds[kind]
				for range k.Recipients {
					b.Messages++
					s.expectOne(deck, uint64(i)<<32|uint64(ordinal), k, &x, &b)
					ordinal++
				}
			}
		}
		for _, f := range s.Faults {
			if f.Fault == TopUp && f.Enterprise == e.ID {
				b.TopUps += f.Value
			}
		}
		b.Closing = b.Opening + b.TopUps - b.Charged + b.Refunded
		x.Messages += b.Messages
		x.Enterprises = append(x.Enterprises, b)
	}
	return x
}

func (s *Scenario) expectOne(deck *ismg.Deck, key uint64, k *Kind, x *Expectation, b *ExpectedBooks) {
	if k.Long != nil {
		x.Long++
	}
	switch {
	case k.Result != 0:
		x.Turned++
		return
	case k.Refused != "":
		x.Intercepted[k.Refused]++
		return
	}
	x.First += k.Parts
	for attempt := range maxSubmits {
		if attempt > 0 {
			x.Resends += k.Parts
		}
		f := deck.Fate(key, attempt)
		if f.Result != 0 {
			x.RefusedSubmits += k.Parts
			if f.Result != resultFlow {
				break
			}
			continue
		}
		b.ChargedN++
		b.Charged += s.Amount(k)
		switch f.Card { //nolint:exhaustive // the other cards change nothing here
		case ismg.ReceiptEarly:
			x.Early += k.Parts
		case ismg.ReceiptTwice:
			x.Twice += k.Parts
		case ismg.RespSilent, ismg.RespWrongSeq:
			x.Unanswered += k.Parts
		case ismg.RespLate:
			if s.Behaviour.LateBy == 0 || s.Behaviour.LateBy > s.Suppliers.Response {
				x.Unanswered += k.Parts
			}
		}
		switch f.Stat {
		case statDelivered:
			x.Delivered++
		case "":
			x.Submitted++
		default:
			x.Failed++
			x.FailedBy[f.Stat]++
			b.RefundedN++
			b.Refunded += s.Amount(k)
		}
		return
	}
	x.Refused++
	b.ReleasedN++
	b.Released += s.Amount(k)
}

// rtt is the middle and the slow round trip of a SUBMIT.
func (s *Scenario) rtt() (middle, slow time.Duration) {
	return s.Behaviour.SubmitRTT.At(math.MaxUint64 / 2), s.Behaviour.SubmitRTT.At(math.MaxUint64 / 100 * 99)
}

// Headroom is one carrier's primary channel against its share of the load.
type Headroom struct {
	Carrier string
	Rate    float64 // SUBMITs per second at the highest phase
	Slots   float64 // in flight by Little's law, at the slow round trip
	Windows int     // connections × window
	Ceiling float64 // SUBMITs per second: windows ÷ round trip, or the rate limit
	Ratio   float64 // ceiling ÷ rate
}

// Headrooms computes every carrier's.
func (s *Scenario) Headrooms() []Headroom {
	peak := 0.0
	for _, p := range s.Phases {
		peak = max(peak, p.TPS(s.Enterprises))
	}
	middle, slow := s.rtt()
	list := make([]Headroom, 0, len(s.Carriers))
	for _, c := range s.Carriers {
		h := Headroom{Carrier: c.Name, Rate: peak * c.Share, Windows: s.Suppliers.Connections * s.Suppliers.Window}
		h.Slots = h.Rate * slow.Seconds()
		h.Ceiling = math.Inf(1)
		if middle > 0 {
			h.Ceiling = float64(h.Windows) / middle.Seconds()
		}
		if s.Suppliers.RateLimit > 0 {
			h.Ceiling = min(h.Ceiling, float64(s.Suppliers.RateLimit))
		}
		h.Ratio = h.Ceiling / h.Rate
		list = append(list, h)
	}
	return list
}

// Measured figures the disk estimate rests on (data §5): octets per message.
const (
	walPerMessage     = 3000
	historyPerMessage = 700
)

// At this share of result 8, and so many on one link within two seconds, the gateway takes a supplier to control the flow
// and halves the pace of the link.
const (
	flowControlShare = 0.1
	flowControlLeast = 4
)

// Warnings are doubts that do not stop a run.
func (s *Scenario) Warnings() []string {
	var w []string
	for _, h := range s.Headrooms() {
		if h.Ratio < 1.2 {
			w = append(w, fmt.Sprintf("%s: the ceiling of its primary channel is only %.2f × its load", h.Carrier, h.Ratio))
		}
		if h.Slots > float64(h.Windows) {
			w = append(w, fmt.Sprintf("%s: %.0f slots needed at the slow round trip, %d there", h.Carrier, h.Slots, h.Windows))
		}
		share := float64(s.Behaviour.Deck.Result8First) / float64(max(s.Behaviour.Deck.Block, 1))
		if perLink := h.Rate * share / float64(s.Suppliers.Connections); share >= flowControlShare && 2*perLink >= flowControlLeast {
			w = append(w, fmt.Sprintf("%s: %.0f%% of the messages meet result 8 at first, %.1f a second on each link: the gateway slows down for that, and the scenario measures it",
				h.Carrier, 100*share, perLink))
		}
	}
	w = append(w, s.injectionWarnings()...)
	if load := s.Load() + s.Behaviour.ReceiptDelay.Max + s.Drain.Stable; load+20*time.Second > s.Limit {
		w = append(w, fmt.Sprintf("limit %s is close to the %s of load, receipts and drain", s.Limit, load))
	}
	for _, o := range s.SLO {
		for _, p := range s.Phases {
			if o.Metric == "first_submit.tps" && o.Min != nil && o.Enterprise == "" && (o.Phase == "" || o.Phase == p.Name) && p.Measure && *o.Min > p.TPS(s.Enterprises) {
				w = append(w, fmt.Sprintf("%s of at least %g cannot be met by phase %s, which offers %g", o.Metric, *o.Min, p.Name, p.TPS(s.Enterprises)))
			}
		}
	}
	return w
}

// Explain writes the arithmetic of a scenario for people.
func (s *Scenario) Explain(w io.Writer) error {
	x := s.Expect()
	var b strings.Builder
	fmt.Fprintf(&b, "%s: %s\n", s.Name, s.About)
	for _, p := range s.Phases {
		n := 0
		for _, e := range s.Enterprises {
			n += p.Messages(e)
		}
		fmt.Fprintf(&b, "  phase %-12s %8s  %8.1f TPS  %8d messages%s\n", p.Name, p.Hold, p.TPS(s.Enterprises), n, map[bool]string{false: "  (not measured)"}[p.Measure])
	}
	fmt.Fprintf(&b, "  messages  %d: delivered %d, submitted without receipt %d, failed %d%s, refused by every supplier %d\n",
		x.Messages, x.Delivered, x.Submitted, x.Failed, byStat(x.FailedBy), x.Refused)
	if x.Turned > 0 || len(x.Intercepted) > 0 {
		fmt.Fprintf(&b, "  refused   at the entrance %d, by a rule%s\n", x.Turned, byStat(x.Intercepted))
	}
	for i := range s.Kinds[1:] {
		fmt.Fprintf(&b, "  kind      %s\n", s.Kinds[i+1].describe())
	}
	if u := &s.Uplinks; u.Count > 0 {
		fmt.Fprintf(&b, "  uplinks   %d in %s, one in %d long, %d replayed per account\n", u.Count, u.Over, u.LongEvery, u.Replay)
	}
	fmt.Fprintf(&b, "  submits   first %d, resends %d, refused %d; receipts early %d, twice %d; unanswered %d\n", x.First, x.Resends, x.RefusedSubmits, x.Early, x.Twice, x.Unanswered)
	for _, e := range x.Enterprises {
		topUps := ""
		if e.TopUps > 0 {
			topUps = fmt.Sprintf(" + top-ups %d", e.TopUps)
		}
		fmt.Fprintf(&b, "  money     %s: opening %d%s − charged %d (%d messages at %d a unit) + refunded %d (%d) = closing %d; released %d (%d)\n",
			e.Enterprise, e.Opening, topUps, e.Charged, e.ChargedN, s.Price, e.Refunded, e.RefundedN, e.Closing, e.Released, e.ReleasedN)
	}
	for _, f := range s.Faults {
		fmt.Fprintf(&b, "  fault     %s at %s for %s; about %.0f SUBMITs outstanding\n", f.Fault, f.At, f.Down, s.OutstandingAt(f.At))
	}
	middle, slow := s.rtt()
	fmt.Fprintf(&b, "  round trip %s in the middle, %s slow (99%%)\n", middle.Round(time.Microsecond), slow.Round(time.Microsecond))
	for _, h := range s.Headrooms() {
		fmt.Fprintf(&b, "  carrier   %-8s %7.1f TPS; slots needed %6.1f of %d; ceiling of one channel %8.1f TPS; headroom %.2f ×\n", h.Carrier, h.Rate, h.Slots, h.Windows, h.Ceiling, h.Ratio)
	}
	fmt.Fprintf(&b, "  disk      WAL about %.1f MB, history about %.1f MB\n", float64(x.Messages)*walPerMessage/1e6, float64(x.Messages)*historyPerMessage/1e6)
	fmt.Fprintf(&b, "  time      %s of load, limit %s\n", s.Load(), s.Limit)
	for _, warning := range s.Warnings() {
		fmt.Fprintf(&b, "  warning   %s\n", warning)
	}
	_, err := io.WriteString(w, b.String())
	return err
}

func byStat(m map[string]int64) string {
	if len(m) == 0 {
		return ""
	}
	parts := make([]string, 0, len(m))
	for _, stat := range slices.Sorted(maps.Keys(m)) {
		parts = append(parts, fmt.Sprintf("%s %d", stat, m[stat]))
	}
	return " (" + strings.Join(parts, ", ") + ")"
}
