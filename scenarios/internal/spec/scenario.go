package spec

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"cmppgateway/simulator/ismg"
)

// Scenario is one resolved scenario: its own sections over the defaults.
type Scenario struct {
	Name  string
	About string
	// Seed of arrivals, numbers and decks.
	Seed uint64
	// Price per unit in 1/10,000 yuan, the same for every enterprise.
	Price int64
	// AllowZeroPrice lets a run without money pass pre-flight; its verdict can
	// then only be invalid.
	AllowZeroPrice bool
	// Limit is the wall-clock limit of the whole run.
	Limit   time.Duration
	Content Content
	// Kinds of messages; the first is what Content says, and all there is without
	// others.
	Kinds       []Kind
	Policy      Policy
	Uplinks     Uplinks
	Carriers    []Carrier
	Suppliers   Suppliers
	Behaviour   ismg.Behaviour
	Enterprises []Enterprise
	Phases      []Phase
	// Faults are injected during the load, in their order.
	Faults []Injection
	Drain  Drain
	// Gateway holds settings of the gateway's configuration file by path, such
	// as supplier.barrier_rate, over what the harness writes.
	Gateway map[string]any
	SLO     []SLO
}

// Content is the text of every message.
type Content struct {
	// Text is sent as UCS2 (Msg_Fmt 8) and fits one SUBMIT: at most 70 characters.
	Text string
	// Units the text is billed as: a constant of the scenario, so that the
	// third form of the money identity does not lean on the gateway's own rule.
	Units int64
}

// Carrier is a share of the numbers.
type Carrier struct {
	Name     string   // mobile, unicom, telecom or broadnet
	Prefixes []string // numbers are a prefix and further digits up to 11
	Share    float64  // of the messages, 0..1; all together 1
}

// Suppliers says which supplier accounts there are: one channel each.
type Suppliers struct {
	// PerCarrier names the roles in the order of their priority.
	PerCarrier  []string
	Connections int
	Window      int
	// RateLimit in SUBMITs per second, of the account and of its channel; 0 is none.
	RateLimit int
	// Response is how long a SUBMIT may stay unanswered before it is unknown.
	Response time.Duration
	// Only is what is different for single channels, by name (carrier-role).
	Only map[string]Only
}

// Only is what one channel has of its own; nil is as the others.
type Only struct {
	RateLimit *int
	Enabled   *bool
	Behaviour *ismg.Behaviour
}

// Pool is the connections of a channel and the window of each.
type Pool struct{ Connections, Window int }

func (p Pool) String() string { return fmt.Sprintf("%dx%d", p.Connections, p.Window) }

// Pool is what channels start with.
func (s *Suppliers) Pool() Pool { return Pool{s.Connections, s.Window} }

// Contract is the most connections and the largest window that a channel has at any
// time of the scenario: what the suppliers allow.
func (s *Scenario) Contract() Pool {
	most := s.Suppliers.Pool()
	add := func(p Pool) {
		most.Connections, most.Window = max(most.Connections, p.Connections), max(most.Window, p.Window)
	}
	for _, p := range s.Phases {
		if p.Pool != nil {
			add(*p.Pool)
		}
	}
	for _, f := range s.Faults {
		for _, p := range f.To {
			add(p)
		}
	}
	return most
}

// Enterprise is a customer with one application.
type Enterprise struct {
	ID          string
	TPS         float64
	Connections int
	Window      int
	// Balance is the opening balance.
	Balance int64
	// Lane of its messages: verification, notification or marketing; empty is the
	// gateway's default.
	Lane string
}

// Phase is a stretch of load at the enterprises' rates times Scale.
type Phase struct {
	Name    string
	Hold    time.Duration
	Measure bool
	Scale   float64
	// Arrival is even, poisson or burst: all that is due within a second at once.
	Arrival string
	// Scales are further factors for single enterprises; 0 sends nothing.
	Scales map[string]float64
	// Mix of kinds; empty is all plain.
	Mix []Share
	// Pool, when set, is switched to before the phase; the load starts when it is there.
	Pool *Pool
	// Drain waits after the phase until nothing is under way.
	Drain bool
	// Hostile connections to the customers' entrance beside the load.
	Hostile int
	// Disturbed marks a phase in which something happens that the enterprises without
	// Scales in any phase must not feel; Hostile implies it.
	Disturbed bool
}

// Disturbing says whether the phase is one that others must not feel.
func (p *Phase) Disturbing() bool { return p.Disturbed || p.Hostile > 0 }

// Untouched lists the enterprises whose own load is the same in every phase, and that no
// fault of customers or people is about.
func (s *Scenario) Untouched() []int {
	var list []int
	for i, e := range s.Enterprises {
		touched := false
		for _, p := range s.Phases {
			if x, ok := p.Scales[e.ID]; ok && x != 1 {
				touched = true
			}
		}
		for _, f := range s.Faults {
			if slices.Contains(traits[f.Fault].takes, "enterprise") && (f.Enterprise == "" || f.Enterprise == e.ID) {
				touched = true
			}
		}
		if !touched {
			list = append(list, i)
		}
	}
	return list
}

// Drain bounds the wait for everything to be empty.
type Drain struct {
	Stable time.Duration // empty this long without a break
	Limit  time.Duration // then the run goes on and nothing_left says what is there
}

// SLO is an objective for every measured phase.
type SLO struct {
	Metric string
	// Phase and Enterprise narrow it down; empty is all measured phases, and all
	// enterprises together.
	Phase, Enterprise string
	// Max bounds a latency from above, in milliseconds, or a rate or a ratio; Min a
	// rate or ratio from below. A rate is in messages per second.
	Max, Min *float64
}

// Arrivals of a phase.
const (
	Even    = "even"
	Poisson = "poisson"
	Burst   = "burst"
)

// TPSOf is the rate of SUBMITs of an enterprise in the phase.
func (p Phase) TPSOf(e Enterprise) float64 {
	tps := e.TPS * p.Scale
	if x, ok := p.Scales[e.ID]; ok {
		tps *= x
	}
	return tps
}

// Messages is how many SUBMITs the enterprise sends in the phase; a long message
// counts as one.
func (p Phase) Messages(e Enterprise) int {
	return int(p.TPSOf(e)*p.Hold.Seconds() + 0.5)
}

// TPS is the target rate of the phase over all enterprises.
func (p Phase) TPS(all []Enterprise) float64 {
	sum := 0.0
	for _, e := range all {
		sum += p.TPSOf(e)
	}
	return sum
}

// Load is how long the phases last together.
func (s *Scenario) Load() time.Duration {
	var d time.Duration
	for _, p := range s.Phases {
		d += p.Hold
	}
	return d
}

// channelMetric begins the metrics of single channels: SUBMITs per second.
const channelMetric = "channel."

// Unit of a metric: ms, TPS or ratio.
func Unit(metric string) string {
	if strings.HasPrefix(metric, channelMetric) {
		return "TPS"
	}
	return metrics[metric]
}

// metrics that an objective can be about, with their unit.
var metrics = map[string]string{
	"submit_resp.p50": "ms", "submit_resp.p95": "ms", "submit_resp.p99": "ms",
	"first_submit.p50": "ms", "first_submit.p95": "ms", "first_submit.p99": "ms",
	"receipts.p50": "ms", "receipts.p95": "ms", "receipts.p99": "ms",
	"added.p50": "ms", "added.p95": "ms", "added.p99": "ms",
	"first_submit.tps": "TPS", "accepted.tps": "TPS",
	// First SUBMITs per second, and the most SUBMITs unanswered at a time, as a share
	// of what the pools allow: connections × window ÷ round trip, connections × window.
	"pool.rate": "ratio", "pool.inflight": "ratio",
	// SUBMITs that suppliers refused with result 8, as a share of all they got.
	"result_8": "ratio",
	// Of the whole run: the most attempts of a delivery that was acknowledged, and the
	// gateway's peak of goroutines.
	"run.attempts": "count", "run.goroutines": "count",
}
