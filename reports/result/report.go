package result

import (
	"errors"
	"fmt"
	"time"
)

// Schema is the version of report.json this package writes and reads.
const Schema = 1

// Report is report.json: everything a run came to.
type Report struct {
	Schema   int       `json:"schema"`
	Scenario string    `json:"scenario"`
	Seed     uint64    `json:"seed"`
	Verdict  Verdict   `json:"verdict"`
	Reason   string    `json:"reason"` // one sentence, also for pass
	Started  time.Time `json:"started"`
	Finished time.Time `json:"finished,omitzero"`

	Environment Environment `json:"environment"`
	Harness     Harness     `json:"harness,omitzero"`
	Validity    *Validity   `json:"validity,omitempty"` // nil = not assessed

	Steps      []Step       `json:"steps"`
	Totals     Totals       `json:"totals"`
	Submits    Submits      `json:"submits"`
	Channels   []Channel    `json:"channels"`
	Workflow   []Workflow   `json:"workflow"`
	Outbox     Outbox       `json:"outbox"`
	Callback   Callback     `json:"callback"`
	Deliveries Deliveries   `json:"deliveries"`
	PG         PG           `json:"pg"`
	Redis      Redis        `json:"redis"`
	Protolog   Protolog     `json:"protolog"`
	CPU        CPU          `json:"cpu_us_per_message"`
	Billing    []Billing    `json:"billing"`
	Identities []Identity   `json:"identities"`
	Checks     []Check      `json:"checks"`
	SLO        []SLO        `json:"slo,omitempty"`
	Faults     []Fault      `json:"faults"`
	Stages     []Stage      `json:"stages"`
	Limit      Limit        `json:"limiting_stage,omitempty"` // of the whole run; the knee has its own
	Knee       *Knee        `json:"knee"`                     // null = no knee was looked for
	Recommend  *Recommended `json:"recommendation"`           // null = no ground for one

	Conservation []ConservationSample `json:"conservation_samples,omitempty"`
	Queues       []Queue              `json:"queues,omitempty"`
	Processes    []Process            `json:"processes,omitempty"`
	Little       []Little             `json:"little,omitempty"`
	Gate         []GateMetric         `json:"gate,omitempty"`
	Baseline     *Baseline            `json:"baseline,omitempty"`   // the other side of the gate
	Comparison   []Difference         `json:"comparison,omitempty"` // capacity variables that differ between the sides
	Trend        []TrendPoint         `json:"trend,omitempty"`      // nightly medians
}

// Environment is what the run ran on. Runs with different durability settings
// are never compared.
type Environment struct {
	CPU         string            `json:"cpu"`
	Cores       int               `json:"cores"`
	Go          string            `json:"go"`
	Postgres    string            `json:"postgres"`
	Redis       string            `json:"redis"`
	Provisioner string            `json:"provisioner"` // urls | containers | processes
	Durability  map[string]string `json:"durability"`
	Gateway     GatewayProcess    `json:"gateway"`
	Kernel      string            `json:"kernel,omitempty"`
	MemoryBytes int64             `json:"memory_bytes,omitempty"`
	Filesystem  string            `json:"filesystem,omitempty"`
	Settings    map[string]string `json:"settings,omitempty"` // effective, read back from the running gateway
}

// GatewayProcess identifies the program under test.
type GatewayProcess struct {
	PID     int    `json:"pid"`
	SHA256  string `json:"sha256"` // of the binary, lower-case hex
	Version string `json:"version,omitempty"`
}

// Harness identifies what drove the run and how to repeat it.
type Harness struct {
	Version        string `json:"version,omitempty"`
	SHA256         string `json:"sha256,omitempty"`
	ScenarioSHA256 string `json:"scenario_sha256,omitempty"` // of scenario.resolved.yaml
	Repro          string `json:"repro,omitempty"`           // one command line
}

// Validity says whether the clocks of a run or step can be believed. Counts and
// identities stay valid on a noisy machine.
type Validity struct {
	OK               bool     `json:"ok"`
	GeneratorP99     *float64 `json:"generator_lateness_p99_ms"` // fire − due
	SimulatorP99     *float64 `json:"simulator_lateness_p99_ms,omitempty"`
	NotSent          int64    `json:"not_sent"`
	OfferedVsPlanned *float64 `json:"offered_vs_planned"` // ratio, 1 = as planned
	Hiccups          int64    `json:"hiccups"`            // 250 ms windows with a stall over 3 ms
	Steal            *float64 `json:"steal"`              // share of CPU time, 0..1
	ForeignCPU       *float64 `json:"foreign_cpu"`        // share of CPU time, 0..1
	OwnCPU           *float64 `json:"own_cpu"`            // harness, in cores
	CanaryDrift      *float64 `json:"canary_drift,omitempty"`
	Notes            []string `json:"notes,omitempty"`
}

// Step is one phase of load at one target rate.
type Step struct {
	Name        string      `json:"name"`
	TargetTPS   float64     `json:"target_tps"`
	Offered     int64       `json:"offered"` // messages whose due time came
	Valid       bool        `json:"valid"`   // its clocks can be believed
	SubmitResp  SubmitResp  `json:"submit_resp"`
	FirstSubmit FirstSubmit `json:"first_submit"`
	Receipts    Receipts    `json:"receipts"`
	Added       Latency     `json:"added"` // the gateway's own share: supplier hold subtracted

	Warmup         bool             `json:"warmup,omitempty"` // loaded and balanced, but not judged
	DurationS      float64          `json:"duration_s,omitempty"`
	OfferedTPS     *float64         `json:"offered_tps,omitempty"`
	AcceptedTPS    *float64         `json:"accepted_tps,omitempty"` // SUBMIT_RESP 0 per second
	FinalTPS       *float64         `json:"final_tps,omitempty"`    // messages with a final fate per second
	SubmitRespFire *Latency         `json:"submit_resp_from_fire,omitempty"`
	DrainedS       *float64         `json:"drained_s,omitempty"` // end of load → everything empty
	Validity       *Validity        `json:"validity,omitempty"`
	Limit          Limit            `json:"limit,omitempty"`
	Stopped        string           `json:"stopped,omitempty"` // the stop condition that fired here
	Enterprises    []StepEnterprise `json:"enterprises,omitempty"`

	// What the channels' pools allow (connections × window ÷ round trip, and connections
	// × window), and how much of it was reached; SUBMITs refused with result 8.
	Pool         string   `json:"pool,omitempty"`
	PoolRate     *float64 `json:"pool_rate,omitempty"`
	PoolInflight *float64 `json:"pool_inflight,omitempty"`
	Result8      *float64 `json:"result_8,omitempty"`
	// SUBMITs per second by channel, first to last.
	ChannelTPS map[string]float64 `json:"channel_tps,omitempty"`

	// Forward is from the customer's write to the supplier's read of the first SUBMIT.
	Forward *Latency `json:"forward,omitempty"`
	Clean   *Clean   `json:"clean,omitempty"` // nil = no clean windows were sought
	// Spectrum of SUBMIT_RESP and of added, for the plot of percentiles.
	Spectrum      []Quantile `json:"spectrum,omitempty"`
	AddedSpectrum []Quantile `json:"added_spectrum,omitempty"`
	// Run is the directory of the run that the step was, below the report's own; empty
	// for a phase of this run.
	Run        string    `json:"run,omitempty"`
	Billed     *Billed   `json:"billed,omitempty"`     // money of a step that was a run of its own
	Saturation []string  `json:"saturation,omitempty"` // the signs of saturation that the step showed
	Canaries   []Canary  `json:"canaries,omitempty"`
	Attempts   int       `json:"attempts,omitempty"` // runs of the step, when it was repeated
	Rates      []float64 `json:"rates,omitempty"`    // full-chain TPS of each
}

// Clean is what remains when the windows of 250 ms are left out in which the machine
// stalled for a reason outside the gateway, each with both its neighbours.
type Clean struct {
	Share      float64 `json:"share"` // of the windows, 0..1
	SubmitResp Latency `json:"submit_resp"`
	Forward    Latency `json:"forward"`
	Added      Latency `json:"added"`
}

// Quantile is one point of a percentile spectrum.
type Quantile struct {
	Q  float64 `json:"q"` // 0..1
	MS float64 `json:"ms"`
}

// Billed is the money of a step over all enterprises, in 1/10,000 yuan.
type Billed struct {
	Units    int64 `json:"units"`
	Charged  int64 `json:"charged"`
	Released int64 `json:"released"`
	Refunded int64 `json:"refunded"`
	// Identities and checks that hold, of all that were examined.
	Hold int64 `json:"hold"`
	Of   int64 `json:"of"`
}

// Canary counts the messages of a step that a rule had to stop, and those that it did
// stop with the reason expected.
type Canary struct {
	Rule    string `json:"rule"`
	Sent    int64  `json:"sent"`
	Stopped int64  `json:"stopped"`
	OK      bool   `json:"ok"`
	Detail  string `json:"detail,omitempty"`
}

// SubmitResp is what customers were answered, from the intended start.
type SubmitResp struct {
	Latency

	OK             int64 `json:"ok"`
	Rejected       int64 `json:"rejected"`
	Missing        int64 `json:"missing"`
	DuplicateMsgID int64 `json:"duplicate_msg_id"`
}

// FirstSubmit is the full chain: first, non-resend SUBMITs in the supplier's
// record, latency from the intended start.
type FirstSubmit struct {
	Latency

	TPS               *float64 `json:"tps"`          // the smaller of the next two: the one judged
	TPSInterval       *float64 `json:"tps_interval"` // (n−1) ÷ (last − first)
	TPSPhase          *float64 `json:"tps_phase"`    // n ÷ phase length
	DuplicateSubmitID int64    `json:"duplicate_submit_id"`
}

// Receipts is the relay of status reports: supplier sent → customer received.
type Receipts struct {
	Latency

	Duplicates int64 `json:"duplicates"`
}

// StepEnterprise is one enterprise's part of a step.
type StepEnterprise struct {
	Enterprise  string      `json:"enterprise"`
	Offered     int64       `json:"offered"`
	SubmitResp  SubmitResp  `json:"submit_resp"`
	FirstSubmit FirstSubmit `json:"first_submit"`
}

// Totals counts messages by fate over the whole run.
type Totals struct {
	Messages         int64            `json:"messages"`
	Delivered        int64            `json:"delivered"`
	Failed           int64            `json:"failed"`
	Submitted        int64            `json:"submitted"` // accepted upstream, no receipt
	Unknown          int64            `json:"unknown"`
	Expired          int64            `json:"expired"`
	Cancelled        int64            `json:"cancelled"`
	RejectedByReason map[string]int64 `json:"rejected_by_reason"`
}

// Submits counts SUBMITs sent to suppliers.
type Submits struct {
	First    int64 `json:"first"`
	Resend   int64 `json:"resend"`
	Accepted int64 `json:"accepted"`
	Rejected int64 `json:"rejected"`
	Timeout  int64 `json:"timeout"`
	Unknown  int64 `json:"unknown"`
}

// Channel is one supplier account.
type Channel struct {
	ID          string       `json:"id"`
	Connections []Connection `json:"connections"`
	Window      int          `json:"window,omitempty"` // per connection
	RateLimit   float64      `json:"rate_limit,omitempty"`
}

// Connection is one link of a channel, as the supplier saw it.
type Connection struct {
	ID           string   `json:"id"`
	Submits      int64    `json:"submits"`
	InflightPeak int64    `json:"inflight_peak"`
	P50          *float64 `json:"p50_ms,omitempty"`
	P95          *float64 `json:"p95_ms"`
	P99          *float64 `json:"p99_ms,omitempty"`
}

// Workflow is one enterprise's batches.
type Workflow struct {
	Enterprise string   `json:"enterprise"`
	Batches    int64    `json:"batches"`
	Mean       float64  `json:"mean"` // messages per batch
	Max        int64    `json:"max"`
	WaitP50    *float64 `json:"wait_p50_ms"`
	WaitP95    *float64 `json:"wait_p95_ms"`
	DrainedS   *float64 `json:"drained_s"`
}

// Outbox is the delay between commit and publish.
type Outbox struct {
	PublishP95 *float64 `json:"publish_p95_ms"`
	PublishMax *float64 `json:"publish_max_ms"`
}

// Callback is the edge→core hop.
type Callback struct {
	Requests    int64   `json:"requests"`
	Events      int64   `json:"events"`
	BatchMean   float64 `json:"batch_mean"`
	Retries     int64   `json:"retries"`
	BacklogPeak int64   `json:"backlog_peak"`
}

// Deliveries is the receipts' way to customers.
type Deliveries struct {
	MaxAttempts   int64   `json:"max_attempts"`
	Duplicates    int64   `json:"duplicates"`
	AttemptsAtAck []int64 `json:"attempts_at_ack,omitempty"` // [i] = deliveries acknowledged at attempt i+1
}

// PG is PostgreSQL during the measured steps.
type PG struct {
	PoolWaitP95          *float64 `json:"pool_wait_p95_ms"`
	LockWaitMax          *float64 `json:"lock_wait_max_ms"`
	IdleInTransactionMax *float64 `json:"idle_in_transaction_max_ms"`
	SlowStatements       int64    `json:"slow_statements"`
	StatementsPerMessage *float64 `json:"statements_per_message"`
	CommitsPerMessage    *float64 `json:"commits_per_message"`
	WALBytesPerMessage   *float64 `json:"wal_bytes_per_message"`
	SlowestStatement     string   `json:"slowest_statement,omitempty"`
	SlowestStatementMean *float64 `json:"slowest_statement_mean_ms,omitempty"`
}

// Redis is Redis during the measured steps.
type Redis struct {
	CommandsPerMessage *float64 `json:"commands_per_message"`
	StreamLagMax       int64    `json:"stream_lag_max"`
	StreamPendingMax   int64    `json:"stream_pending_max"`
	MemoryPeakBytes    int64    `json:"memory_peak_bytes,omitempty"`
}

// Protolog counts protocol-log events: published + sampled out + spilled = events.
type Protolog struct {
	Events     int64 `json:"events"`
	Published  int64 `json:"published"`
	SampledOut int64 `json:"sampled_out"`
	Spilled    int64 `json:"spilled"`
}

// CPU is processor time per message in microseconds, by process.
type CPU struct {
	Gateway  *float64 `json:"gateway"`
	Postgres *float64 `json:"postgres"`
	Redis    *float64 `json:"redis"`
	Harness  *float64 `json:"harness"`
}

// Process is the footprint of one process.
type Process struct {
	Name         string `json:"name"`
	RSSPeakBytes int64  `json:"rss_peak_bytes"`
	OpenFiles    int64  `json:"open_files_peak"`
	Goroutines   int64  `json:"goroutines_peak,omitempty"`
}

// Billing is one enterprise's account over the run. Amounts, price and balances
// are in 1/10,000 yuan.
type Billing struct {
	Enterprise     string `json:"enterprise"`
	Price          int64  `json:"price"`
	Units          int64  `json:"units"`
	Opening        int64  `json:"opening"`
	Closing        int64  `json:"closing"`
	TopUps         int64  `json:"top_ups,omitempty"`
	ChargedN       int64  `json:"charged_n"`
	ChargedAmount  int64  `json:"charged_amount"`
	RefundedN      int64  `json:"refunded_n"`
	RefundedAmount int64  `json:"refunded_amount"`
	ReleasedN      int64  `json:"released_n"`
	ReleasedAmount int64  `json:"released_amount"`
	FrozenN        int64  `json:"frozen_n"`
	FrozenAmount   int64  `json:"frozen_amount,omitempty"`
}

// Names of the identities.
const (
	IdentityBalanceEqBilling  = "balance_eq_billing"
	IdentityBillingEqSupplier = "billing_eq_supplier"
	IdentityConservation      = "conservation"
	IdentityChargedAmount     = "charged_amount"
	IdentityReleasedAmount    = "released_amount"
	IdentityRefundedAmount    = "refunded_amount"
)

// Identity is an equality between two witnesses; both sides in 1/10,000 yuan.
// Enterprise is empty for the sum over all.
type Identity struct {
	ID         string   `json:"id"`
	Enterprise string   `json:"enterprise"`
	OK         bool     `json:"ok"` // follows Status; [Report.Seal] sets it
	Status     Status   `json:"status"`
	Left       int64    `json:"left"`
	Right      int64    `json:"right"`
	Difference int64    `json:"difference"` // Left − Right; [Report.Seal] sets it
	NLeft      int64    `json:"n_left"`     // items examined, not violations
	NRight     int64    `json:"n_right"`
	Witnesses  []string `json:"witnesses"` // of C, S, D, R, M, L
	Detail     string   `json:"detail,omitempty"`
	Offenders  []string `json:"offenders,omitempty"` // traces of the first offending keys
}

// Check is a named invariant that is not a sum of money.
type Check struct {
	ID        string   `json:"id"`
	OK        bool     `json:"ok"` // follows Status; [Report.Seal] sets it
	Status    Status   `json:"status"`
	NLeft     int64    `json:"n_left"` // items examined, not violations
	NRight    int64    `json:"n_right"`
	Count     int64    `json:"count"` // violations
	Detail    string   `json:"detail"`
	Witnesses []string `json:"witnesses,omitempty"`
	Offenders []string `json:"offenders,omitempty"`
}

// SLO is one objective of the scenario. Value nil = not measured = not OK.
type SLO struct {
	Metric     string `json:"metric"`
	Step       string `json:"step,omitempty"`
	Enterprise string `json:"enterprise,omitempty"`

	Op     string   `json:"op"`    // "<=" or ">="
	Limit  float64  `json:"limit"` // in the metric's unit
	Unit   string   `json:"unit,omitempty"`
	Value  *float64 `json:"value"`
	Low    *float64 `json:"low,omitempty"` // interval within this run
	High   *float64 `json:"high,omitempty"`
	N      int64    `json:"n"`
	OK     bool     `json:"ok"`
	Reason string   `json:"reason,omitempty"` // why there is no value
}

// Fault is one injected fault, proved from the other side.
type Fault struct {
	ID          string     `json:"id"`
	Injected    bool       `json:"injected"`  // proved to have bitten
	Recovered   bool       `json:"recovered"` // proved to have ended
	Outstanding int64      `json:"outstanding_at_injection"`
	At          *time.Time `json:"at"`
	Until       *time.Time `json:"until"`
	Proof       string     `json:"proof,omitempty"`
}

// Names of the stages of the waterfall, in order.
const (
	StageInboxCommit   = "inbox_commit"
	StageInboxWait     = "inbox_wait"
	StageWorkflow      = "workflow"
	StageOutboxPublish = "outbox_publish"
	StageStreamWait    = "stream_wait"
	StageWindowWait    = "window_wait"
	StageSupplier      = "supplier"
	StageCallback      = "callback"
	StageSettlement    = "settlement"
	StageDelivery      = "delivery"
)

// Stage is one stage of the waterfall.
type Stage struct {
	Name string `json:"name"`

	Latency
}

// Knee brackets the capacity: full-chain rates.
type Knee struct {
	SustainedTPS *float64 `json:"sustained_tps"` // highest step that held
	SaturatedTPS *float64 `json:"saturated_tps"` // lowest step that did not; null = not reached
	Limit        Limit    `json:"limit"`
	// Offered rates of the two steps, how often each was run, and why the search ended.
	SustainedAt *float64 `json:"sustained_offered_tps,omitempty"`
	SaturatedAt *float64 `json:"saturated_offered_tps,omitempty"`
	Repeats     int      `json:"repeats,omitempty"`
	Detail      string   `json:"detail,omitempty"`
}

// Recommended is the production limit: floor(0.75 × highest sustained full-chain rate).
type Recommended struct {
	TotalTPS    int64                   `json:"total_tps"`
	Enterprises []RecommendedEnterprise `json:"enterprises"`
	EvidenceS   float64                 `json:"evidence_s"` // length of the measurement behind it
	Detail      string                  `json:"detail,omitempty"`
}

// RecommendedEnterprise is one enterprise's share of the limit.
type RecommendedEnterprise struct {
	Enterprise string `json:"enterprise"`
	TPS        int64  `json:"tps"`
}

// ConservationSample is the conservation identity at one moment, recomputed from
// account entries: opening + top-ups = available + frozen + charged − refunded.
type ConservationSample struct {
	AtS        float64 `json:"at_s"` // seconds since Started
	Enterprise string  `json:"enterprise,omitempty"`
	Opening    int64   `json:"opening"`
	TopUps     int64   `json:"top_ups"`
	Available  int64   `json:"available"`
	Frozen     int64   `json:"frozen"`
	Charged    int64   `json:"charged"`
	Refunded   int64   `json:"refunded"`
	Difference int64   `json:"difference"` // 0 = holds
}

// Queue is one place polled at the end for nothing_left.
type Queue struct {
	Name     string `json:"name"`
	Left     int64  `json:"left"`
	Expected int64  `json:"expected"`
	OK       bool   `json:"ok"`
	Detail   string `json:"detail,omitempty"`
}

// Little compares in-flight counted by a witness with λ × W from the generator.
type Little struct {
	Step    string  `json:"step"`
	Witness string  `json:"witness"` // "gateway gauge" or "simulator"
	L       float64 `json:"l"`
	LambdaW float64 `json:"lambda_w"`
	OK      bool    `json:"ok"` // within 5 %
}

// GateMetric is one metric of the interleaved comparison with a baseline binary.
type GateMetric struct {
	Metric    string    `json:"metric"`
	Baseline  []float64 `json:"baseline"`  // one value a run
	Candidate []float64 `json:"candidate"` // one value a run
	Ratio     *float64  `json:"ratio"`     // of the medians
	P         *float64  `json:"p"`         // one-sided, after Holm
	Shift     *float64  `json:"shift"`     // Hodges-Lehmann
	WorseBy   float64   `json:"worse_by"`
	Floor     float64   `json:"floor"`
	// Kind is count, cpu or clock; Gates says that the metric may fail the gate, which a
	// noisy machine (aa) or a shown-only metric may not.
	Kind   string   `json:"kind,omitempty"`
	Gates  bool     `json:"gates,omitempty"`
	CV     *float64 `json:"cv,omitempty"` // spread of the baseline's runs
	KS     *float64 `json:"ks,omitempty"` // Kolmogorov-Smirnov distance, of distributions
	Status Status   `json:"status"`
	Detail string   `json:"detail,omitempty"`
}

// Baseline identifies the program that a candidate was compared with.
type Baseline struct {
	SHA256  string `json:"sha256"` // of the binary, lower-case hex
	Version string `json:"version,omitempty"`
	// Spectrum of its SUBMIT_RESP and added, pooled over its runs.
	Spectrum      []Quantile `json:"spectrum,omitempty"`
	AddedSpectrum []Quantile `json:"added_spectrum,omitempty"`
}

// Difference is one capacity variable that two runs do not share.
type Difference struct {
	Variable  string `json:"variable"`
	Baseline  string `json:"baseline"`
	Candidate string `json:"candidate"`
}

// TrendPoint is one night's median of one metric.
type TrendPoint struct {
	At      time.Time `json:"at"`
	Version string    `json:"version"`
	Metric  string    `json:"metric"`
	Median  float64   `json:"median"`
	// Change marks the first point of a level that differs from the one before.
	Change bool `json:"change,omitempty"`
}

// Seal sets the fields that follow from others: Schema, Difference of identities,
// OK of identities and checks from their Status, and empty lists instead of null
// where the format promises a list. [Save] calls it.
func (r *Report) Seal() {
	r.Schema = Schema
	for i := range r.Identities {
		x := &r.Identities[i]
		x.OK = x.Status.OK()
		x.Difference = x.Left - x.Right
		x.Witnesses = orEmpty(x.Witnesses)
	}
	for i := range r.Checks {
		r.Checks[i].OK = r.Checks[i].Status.OK()
	}
	for i := range r.Channels {
		r.Channels[i].Connections = orEmpty(r.Channels[i].Connections)
	}
	if r.Environment.Durability == nil {
		r.Environment.Durability = map[string]string{}
	}
	if r.Totals.RejectedByReason == nil {
		r.Totals.RejectedByReason = map[string]int64{}
	}
	if r.Recommend != nil {
		r.Recommend.Enterprises = orEmpty(r.Recommend.Enterprises)
	}
	r.Steps = orEmpty(r.Steps)
	r.Channels = orEmpty(r.Channels)
	r.Workflow = orEmpty(r.Workflow)
	r.Billing = orEmpty(r.Billing)
	r.Identities = orEmpty(r.Identities)
	r.Checks = orEmpty(r.Checks)
	r.Faults = orEmpty(r.Faults)
	r.Stages = orEmpty(r.Stages)
}

func orEmpty[T any](s []T) []T {
	if s == nil {
		return []T{}
	}
	return s
}

// Validate returns every contradiction: a foreign schema, an unknown verdict or
// status, an ok that does not follow from its status, an identity that holds
// although its sides differ, a pass although something does not hold.
func (r *Report) Validate() error {
	var errs []error
	if r.Schema != Schema {
		errs = append(errs, fmt.Errorf("schema %d: this program reads schema %d", r.Schema, Schema))
	}
	if !r.Verdict.Known() {
		errs = append(errs, &UnknownValueError{Kind: "verdict", Value: string(r.Verdict)})
	}
	holds := func(kind, id string, ok bool, s Status) {
		switch {
		case !s.Known():
			errs = append(errs, fmt.Errorf("%s %s: %w", kind, id, &UnknownValueError{Kind: "status", Value: string(s)}))
		case ok != s.OK():
			errs = append(errs, fmt.Errorf("%s %s: ok is %t but status is %s", kind, id, ok, s))
		case !ok && r.Verdict == VerdictPass:
			errs = append(errs, fmt.Errorf("%s %s is %s but the verdict is pass", kind, id, s))
		}
	}
	for _, x := range r.Identities {
		holds("identity", x.ID, x.OK, x.Status)
		if x.Status == StatusOK && x.Left != x.Right {
			errs = append(errs, fmt.Errorf("identity %s: status is ok but %d ≠ %d", x.ID, x.Left, x.Right))
		}
	}
	for _, x := range r.Checks {
		holds("check", x.ID, x.OK, x.Status)
	}
	for _, x := range r.Conservation {
		if x.Difference != 0 && r.Verdict == VerdictPass {
			errs = append(errs, fmt.Errorf("conservation broke at %g s but the verdict is pass", x.AtS))
			break
		}
	}
	for _, x := range r.SLO {
		if !x.OK && r.Verdict == VerdictPass {
			errs = append(errs, fmt.Errorf("objective %s is missed but the verdict is pass", x.Metric))
		}
	}
	return errors.Join(errs...)
}

// Headline is the pair of rates of the banner and the step they come from.
type Headline struct {
	Accepted  *float64 // accepted at the entrance, TPS
	FullChain *float64 // first supplier submits, TPS
	Step      string
}

// Headline is the knee's sustained rate when a knee was found. Otherwise it is the
// step with the highest full-chain rate among those that are valid, judged and not
// stopped, else among those that are not warm-up.
func (r *Report) Headline() Headline {
	if k := r.Knee; k != nil && k.SustainedTPS != nil {
		h := Headline{FullChain: k.SustainedTPS}
		for _, s := range r.Steps {
			if tps := s.FirstSubmit.TPS; tps != nil && *tps == *k.SustainedTPS {
				h.Accepted, h.Step = s.AcceptedTPS, s.Name
			}
		}
		return h
	}
	h := r.fastest(func(s Step) bool { return s.Valid && !s.Warmup && s.Stopped == "" })
	if h.FullChain == nil {
		h = r.fastest(func(s Step) bool { return !s.Warmup })
	}
	return h
}

func (r *Report) fastest(eligible func(Step) bool) Headline {
	var h Headline
	for _, s := range r.Steps {
		tps := s.FirstSubmit.TPS
		if tps != nil && eligible(s) && (h.FullChain == nil || *tps > *h.FullChain) {
			h = Headline{Accepted: s.AcceptedTPS, FullChain: tps, Step: s.Name}
		}
	}
	return h
}
