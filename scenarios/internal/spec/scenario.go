package spec

import (
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
	Limit       time.Duration
	Content     Content
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
}

// Enterprise is a customer with one application.
type Enterprise struct {
	ID          string
	TPS         float64
	Connections int
	Window      int
	// Balance is the opening balance.
	Balance int64
}

// Phase is a stretch of load at the enterprises' rates times Scale.
type Phase struct {
	Name    string
	Hold    time.Duration
	Measure bool
	Scale   float64
	// Arrival is even or poisson.
	Arrival string
}

// Drain bounds the wait for everything to be empty.
type Drain struct {
	Stable time.Duration // empty this long without a break
	Limit  time.Duration // then the run goes on and nothing_left says what is there
}

// SLO is an objective for every measured phase.
type SLO struct {
	Metric string
	// Max bounds a latency from above, in milliseconds; Min a rate from below,
	// in messages per second. Exactly one is set.
	Max, Min *float64
}

// Arrivals of a phase.
const (
	Even    = "even"
	Poisson = "poisson"
)

// Messages is how many messages the enterprise sends in the phase.
func (p Phase) Messages(e Enterprise) int {
	return int(e.TPS*p.Scale*p.Hold.Seconds() + 0.5)
}

// TPS is the target rate of the phase over all enterprises.
func (p Phase) TPS(all []Enterprise) float64 {
	sum := 0.0
	for _, e := range all {
		sum += e.TPS * p.Scale
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

// Amount is what one message costs.
func (s *Scenario) Amount() int64 { return s.Price * s.Content.Units }

// metrics that an objective can be about, with their unit.
var metrics = map[string]string{
	"submit_resp.p50": "ms", "submit_resp.p95": "ms", "submit_resp.p99": "ms",
	"first_submit.p50": "ms", "first_submit.p95": "ms", "first_submit.p99": "ms",
	"receipts.p50": "ms", "receipts.p95": "ms", "receipts.p99": "ms",
	"added.p50": "ms", "added.p95": "ms", "added.p99": "ms",
	"first_submit.tps": "TPS", "accepted.tps": "TPS",
}
