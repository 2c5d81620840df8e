package ismg

import (
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"
	"time"
)

// Profile says which supplier accounts exist and how they behave.
type Profile struct {
	// Seed of every draw; the same seed gives the same fates and delays.
	Seed uint64 `yaml:"seed"`
	// Accounts that may log in; at least one.
	Accounts []Account `yaml:"accounts"`
	// Behaviour of accounts without one of their own.
	Behaviour Behaviour `yaml:"behaviour"`
	// Timers of the links; zero fields take their defaults.
	Timers Timers `yaml:"timers"`
}

// Account is one supplier account and the limits the supplier enforces.
type Account struct {
	// ID is the Source_Addr, 1 to 6 octets.
	ID string `yaml:"id"`
	// Secret shared with the peer; any length.
	Secret string `yaml:"secret"`
	// Version is the layout spoken: 0x20, 0x21 or 0x30; 0 follows the peer.
	Version uint8 `yaml:"version"`
	// MaxConnections at a time; more are refused with status 56. 0 means 64.
	MaxConnections int `yaml:"max_connections"`
	// Window is the number of unanswered SUBMITs a connection may have, and of
	// unanswered DELIVERs this side keeps; a SUBMIT beyond it gets result 8 and
	// is recorded as a violation. 0 means 32.
	Window int `yaml:"window"`
	// RateLimit in SUBMITs per second over all connections, judged over a
	// sliding second with 5 % slack; excess gets result 8. 0 means none.
	RateLimit int `yaml:"rate_limit"`
	// GatewayCode of the Msg_Ids given out, 0 to 4,194,303.
	GatewayCode uint32 `yaml:"gateway_code"`
	// Prefixes of the recipients this supplier serves; another recipient is
	// recorded as a violation. Empty serves all.
	Prefixes []string `yaml:"prefixes"`
	// Behaviour replaces the profile's as a whole when set.
	Behaviour *Behaviour `yaml:"behaviour"`
}

// Behaviour is how an account answers.
type Behaviour struct {
	// SubmitRTT is the time from receiving a SUBMIT to writing its answer.
	SubmitRTT Dist `yaml:"submit_rtt"`
	// Deck deals the fates.
	Deck DeckSpec `yaml:"deck"`
	// ReceiptDelay is the time from the answer to the status report.
	ReceiptDelay Dist `yaml:"receipt_delay"`
	// LateBy is added to the RTT of a resp_late card; 0 means 90 s.
	LateBy time.Duration `yaml:"late_by"`
}

// DeckSpec counts the cards in every block of messages; the cards not named
// are plain: accepted, DELIVRD.
type DeckSpec struct {
	// Block is the number of messages a deck is dealt to; 0 means 1000.
	Block int `yaml:"block"`
	// Result8First: the first attempt gets result 8, later ones are plain.
	Result8First int `yaml:"result_8_first"`
	// Results: every attempt gets the result code that is the key.
	Results map[uint32]int `yaml:"results"`
	// NoReceipt: accepted, and no report ever.
	NoReceipt int `yaml:"no_receipt"`
	// ReceiptFailed: accepted, and a report with the Stat that is the key.
	ReceiptFailed map[string]int `yaml:"receipt_failed"`
	// ReceiptEarly: the report is written before the SUBMIT_RESP.
	ReceiptEarly int `yaml:"receipt_early"`
	// ReceiptTwice: the report comes twice, in two DELIVERs.
	ReceiptTwice int `yaml:"receipt_twice"`
	// ReceiptContradict: DELIVRD is followed by UNDELIV.
	ReceiptContradict int `yaml:"receipt_contradict"`
	// ReceiptElsewhere: the report comes on another connection of the account.
	ReceiptElsewhere int `yaml:"receipt_elsewhere"`
	// RespLate: the SUBMIT_RESP comes late_by later than drawn.
	RespLate int `yaml:"resp_late"`
	// RespTwice: the SUBMIT_RESP is written twice.
	RespTwice int `yaml:"resp_twice"`
	// RespSilent: accepted, but no SUBMIT_RESP; the report comes.
	RespSilent int `yaml:"resp_silent"`
	// RespWrongSeq: the SUBMIT_RESP carries a sequence number never used.
	RespWrongSeq int `yaml:"resp_wrong_seq"`
}

// Timers of the links.
type Timers struct {
	// Login is how long a new connection may take to send CONNECT; 0: 10 s.
	Login time.Duration `yaml:"login"`
	// ActiveTest is the silence after which a link is tested; 0: 60 s.
	ActiveTest time.Duration `yaml:"active_test"`
	// ActiveTestTimeout is the wait for any frame after a test; 0: 20 s.
	ActiveTestTimeout time.Duration `yaml:"active_test_timeout"`
	// ActiveTestTries without any frame close the link; 0: 3.
	ActiveTestTries int `yaml:"active_test_tries"`
	// DeliverTimeout is the wait for a DELIVER_RESP before the DELIVER is sent
	// again on any live connection of the account; 0: 10 s.
	DeliverTimeout time.Duration `yaml:"deliver_timeout"`
	// DeliverTries bounds the transmissions of one DELIVER; 0: 20.
	DeliverTries int `yaml:"deliver_tries"`
	// ReportTick is the grid that due times of reports are rounded up to, so
	// that many leave in one write (early reports are not rounded); 0: 10 ms.
	ReportTick time.Duration `yaml:"report_tick"`
	// Drain is how long Serve waits for TERMINATE_RESPs when it stops; 0: 1 s.
	Drain time.Duration `yaml:"drain"`
}

// DistKind names a distribution.
type DistKind string

// The distributions; the zero kind is fixed.
const (
	Fixed     DistKind = "fixed"     // always Value
	Lognormal DistKind = "lognormal" // by P50 and P99
	Uniform   DistKind = "uniform"   // between Min and Max
)

// Dist is a distribution of delays.
type Dist struct {
	Kind  DistKind      `yaml:"dist"`
	Value time.Duration `yaml:"value"`
	P50   time.Duration `yaml:"p50"`
	P99   time.Duration `yaml:"p99"`
	Min   time.Duration `yaml:"min"`
	// Max bounds any kind when it is set.
	Max time.Duration `yaml:"max"`
}

// FixedAt is the distribution that always gives d.
func FixedAt(d time.Duration) Dist { return Dist{Kind: Fixed, Value: d} }

// At returns the delay at the quantile that hash stands for; it is a pure
// function, never negative and at most Max when that is set.
func (d Dist) At(hash uint64) time.Duration {
	u := (float64(hash>>12) + 0.5) / (1 << 52) // inside (0, 1), both ends excluded
	var v time.Duration
	switch d.Kind {
	case Fixed, "":
		v = d.Value
	case Lognormal:
		const z99 = 2.3263478740408408 // standard normal at 0.99
		sigma := math.Log(float64(d.P99)/float64(d.P50)) / z99
		z := math.Sqrt2 * math.Erfinv(2*u-1)
		v = time.Duration(min(float64(d.P50)*math.Exp(sigma*z), float64(math.MaxInt64/2)))
	case Uniform:
		v = d.Min + time.Duration(u*float64(d.Max-d.Min))
	}
	if d.Max > 0 {
		v = min(v, d.Max)
	}
	return max(v, 0)
}

// Fault is one impossible value of a profile.
type Fault struct {
	// Path of the value, such as accounts[0].window.
	Path string
	// Problem with it, the value included.
	Problem string
}

func (f Fault) String() string { return f.Path + ": " + f.Problem }

// FaultsError is every impossible value of a profile.
type FaultsError []Fault

func (f FaultsError) Error() string {
	lines := make([]string, len(f))
	for i := range f {
		lines[i] = f[i].String()
	}
	return strings.Join(lines, "; ")
}

func (f *FaultsError) add(path, format string, args ...any) {
	*f = append(*f, Fault{Path: path, Problem: fmt.Sprintf(format, args...)})
}

// Validate returns every impossible value, in the order of the fields; nil
// when there is none.
func (p *Profile) Validate() FaultsError {
	var f FaultsError
	if len(p.Accounts) == 0 {
		f.add("accounts", "at least one account is needed")
	}
	seen := map[string]bool{}
	for i := range p.Accounts {
		p.Accounts[i].validate(fmt.Sprintf("accounts[%d]", i), &f)
		if id := p.Accounts[i].ID; seen[id] {
			f.add(fmt.Sprintf("accounts[%d].id", i), "%q is used twice", id)
		}
		seen[p.Accounts[i].ID] = true
	}
	p.Behaviour.validate("behaviour", &f)
	p.Timers.validate("timers", &f)
	return f
}

func (a *Account) validate(path string, f *FaultsError) {
	if len(a.ID) == 0 || len(a.ID) > 6 {
		f.add(path+".id", "%q must have 1 to 6 octets", a.ID)
	}
	switch a.Version {
	case 0, 0x20, 0x21, 0x30:
	default:
		f.add(path+".version", "0x%02x is not 0x20, 0x21 or 0x30", a.Version)
	}
	if a.MaxConnections < 0 || a.MaxConnections > 1024 {
		f.add(path+".max_connections", "%d is not in 0…1024", a.MaxConnections)
	}
	if a.Window < 0 || a.Window > 65536 {
		f.add(path+".window", "%d is not in 0…65536", a.Window)
	}
	if a.RateLimit < 0 || a.RateLimit > 1_000_000 {
		f.add(path+".rate_limit", "%d is not in 0…1000000", a.RateLimit)
	}
	if a.GatewayCode > maxGatewayCode {
		f.add(path+".gateway_code", "%d does not fit 22 bits", a.GatewayCode)
	}
	if a.Behaviour != nil {
		a.Behaviour.validate(path+".behaviour", f)
	}
}

// Validate returns every impossible value, with paths that start with path.
func (b *Behaviour) Validate(path string) FaultsError {
	var f FaultsError
	b.validate(path, &f)
	return f
}

func (b *Behaviour) validate(path string, f *FaultsError) {
	b.SubmitRTT.validate(path+".submit_rtt", f)
	b.Deck.validate(path+".deck", f)
	b.ReceiptDelay.validate(path+".receipt_delay", f)
	if b.LateBy < 0 {
		f.add(path+".late_by", "%s is negative", b.LateBy)
	}
}

func (d *Dist) validate(path string, f *FaultsError) {
	for _, v := range []struct {
		name  string
		value time.Duration
	}{{"value", d.Value}, {"p50", d.P50}, {"p99", d.P99}, {"min", d.Min}, {"max", d.Max}} {
		if v.value < 0 || v.value > 24*time.Hour {
			f.add(path+"."+v.name, "%s is not in 0s…24h", v.value)
		}
	}
	switch d.Kind {
	case Fixed, "":
		if d.P50 != 0 || d.P99 != 0 || d.Min != 0 {
			f.add(path, "p50, p99 and min do not belong to fixed")
		}
	case Lognormal:
		if d.P50 <= 0 || d.P99 < d.P50 {
			f.add(path, "lognormal needs 0 < p50 ≤ p99, got %s and %s", d.P50, d.P99)
		}
		if d.Value != 0 || d.Min != 0 {
			f.add(path, "value and min do not belong to lognormal")
		}
	case Uniform:
		if d.Max <= d.Min {
			f.add(path, "uniform needs min < max, got %s and %s", d.Min, d.Max)
		}
		if d.Value != 0 || d.P50 != 0 || d.P99 != 0 {
			f.add(path, "value, p50 and p99 do not belong to uniform")
		}
	default:
		f.add(path+".dist", "%q is not fixed, lognormal or uniform", d.Kind)
	}
}

func (d *DeckSpec) validate(path string, f *FaultsError) {
	if d.Block < 0 || d.Block > maxBlock {
		f.add(path+".block", "%d is not in 0…%d", d.Block, maxBlock)
	}
	sum := 0
	for _, c := range d.cards() {
		if c.count < 0 {
			f.add(path+"."+c.path, "%d is negative", c.count)
		}
		sum += c.count
	}
	if block := d.block(); sum > block {
		f.add(path, "%d cards are more than the block of %d", sum, block)
	}
	for _, code := range slices.Sorted(maps.Keys(d.Results)) {
		if code == 0 || code > 255 {
			f.add(fmt.Sprintf("%s.results.%d", path, code), "a refusal is in 1…255")
		}
	}
	for _, stat := range slices.Sorted(maps.Keys(d.ReceiptFailed)) {
		if stat == "" || len(stat) > 7 || stat == statDelivered {
			f.add(path+".receipt_failed."+stat, "%q is not a failing Stat of 1 to 7 octets", stat)
		}
	}
}

func (t *Timers) validate(path string, f *FaultsError) {
	for _, v := range []struct {
		name  string
		value time.Duration
	}{
		{"login", t.Login},
		{"active_test", t.ActiveTest},
		{"active_test_timeout", t.ActiveTestTimeout},
		{"deliver_timeout", t.DeliverTimeout},
		{"report_tick", t.ReportTick},
		{"drain", t.Drain},
	} {
		if v.value < 0 {
			f.add(path+"."+v.name, "%s is negative", v.value)
		}
	}
	if t.ActiveTestTries < 0 {
		f.add(path+".active_test_tries", "%d is negative", t.ActiveTestTries)
	}
	if t.DeliverTries < 0 {
		f.add(path+".deliver_tries", "%d is negative", t.DeliverTries)
	}
}

func (t Timers) withDefaults() Timers {
	orDuration := func(v *time.Duration, d time.Duration) {
		if *v == 0 {
			*v = d
		}
	}
	orDuration(&t.Login, 10*time.Second)
	orDuration(&t.ActiveTest, 60*time.Second)
	orDuration(&t.ActiveTestTimeout, 20*time.Second)
	orDuration(&t.DeliverTimeout, 10*time.Second)
	orDuration(&t.ReportTick, 10*time.Millisecond)
	orDuration(&t.Drain, time.Second)
	if t.ActiveTestTries == 0 {
		t.ActiveTestTries = 3
	}
	if t.DeliverTries == 0 {
		t.DeliverTries = 20
	}
	return t
}
