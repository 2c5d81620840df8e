package spec

import (
	"fmt"
	"maps"
	"slices"
	"time"

	"go.yaml.in/yaml/v4"
)

// Faults that a scenario can inject (scenarios §A4), and changes that people make
// while the gateway runs; each is made, proved from the other side, held, taken back
// and proved to be over.
const (
	// GatewayKill is SIGKILL to the gateway, which is started again.
	GatewayKill = "gateway-kill"
	// PostgresCrash stops PostgreSQL without a checkpoint and starts it again.
	PostgresCrash = "postgres-crash"
	// GatewayFailpoint is SIGKILL to the gateway at its point Point, at the Value'th
	// pass; it is started again.
	GatewayFailpoint = "gateway-failpoint"
	// PostgresRestart stops PostgreSQL in order and starts it again.
	PostgresRestart = "postgres-restart"
	// RedisFreeze stops Redis's process, connections stay open; RedisRestart ends it in
	// order and starts it with its data; RedisEmpty makes it forget everything at once;
	// RedisStale kills it and starts it with what it held Value milliseconds before.
	RedisFreeze  = "redis-freeze"
	RedisRestart = "redis-restart"
	RedisEmpty   = "redis-empty"
	RedisStale   = "redis-stale"
	// CallbackPool keeps every connection of the gateway's callback pool busy.
	CallbackPool = "callback-pool"
	// CallbackTimeout cuts what an edge posts to the core: before the body is there and
	// after its transaction is committed, in turns.
	CallbackTimeout = "callback-timeout"
	// CallbackBadEvent puts events that the core refuses for good into every nth batch.
	CallbackBadEvent = "callback-bad-event"

	// ConnectionRST, ConnectionFIN and ConnectionSilence end the oldest connection of
	// a supplier account: reset, half closed, or open and dead.
	ConnectionRST     = "connection-rst"
	ConnectionFIN     = "connection-fin"
	ConnectionSilence = "connection-silence"
	// Scale goes through the pools of To and back to the first.
	Scale = "scale"
	// ChannelDisabled disables channels.
	ChannelDisabled = "channel-disabled"
	// EnterpriseDisabled stops an enterprise while Value messages of it wait in the inbox.
	EnterpriseDisabled = "enterprise-disabled"
	// TopUp adds Value to an enterprise's account; QuotaRaised gives every enterprise
	// another daily quota. Neither is taken back.
	TopUp       = "top-up"
	QuotaRaised = "quota-raised"

	// What suppliers do to a share of the SUBMITs (one in Every).
	SupplierLate     = "supplier-late" // Value milliseconds
	SupplierTwice    = "supplier-twice"
	SupplierDisorder = "supplier-disorder"
	SupplierSilent   = "supplier-silent"
	SupplierWrongSeq = "supplier-wrong-seq"
	SupplierRejects  = "supplier-rejects" // with result Value
	// SupplierTerminates says TERMINATE on its oldest connection in mid-window;
	// SupplierRefuses answers logins with status Value, after the connection was cut.
	SupplierTerminates = "supplier-terminates"
	SupplierRefuses    = "supplier-refuses"

	// What suppliers do to the reports on a share of the SUBMITs.
	ReceiptEarly      = "receipt-early"
	ReceiptTwice      = "receipt-twice"
	ReceiptContradict = "receipt-contradict"
	ReceiptElsewhere  = "receipt-elsewhere"
	ReceiptNever      = "receipt-never"
	ReceiptWrongSize  = "receipt-wrong-size"
	// Replay sends the last Value acknowledged DELIVERs of every account once more.
	Replay = "replay"

	// What customers do: stay away, acknowledge nothing, read Value octets a second
	// (0: none), have all their connections reset again and again.
	CustomerOffline = "customer-offline"
	CustomerMute    = "customer-mute"
	CustomerSlow    = "customer-slow"
	CustomerStorm   = "customer-storm"
)

// trait is what a kind of fault needs and is.
type trait struct {
	// least SUBMITs unanswered at the suppliers, or it proves nothing about what was
	// on its way.
	least int
	// takes are the further keys it has; those it cannot do without are in needs.
	takes, needs []string
	// process ends a process: its counters begin anew, so it must be inside the
	// measured part.
	process bool
	// changes say that it is a change people make: there is nothing to take back.
	change bool
	// kills ends the gateway; stores breaks PostgreSQL or Redis, which must be processes
	// of the run then; callback needs a wire between edge and core.
	kills, stores, callback bool
	value                   int64 // by default
}

var traits = map[string]trait{
	GatewayKill:        {least: 50, process: true, kills: true},
	GatewayFailpoint:   {least: 50, process: true, kills: true, takes: []string{"point", "value"}, needs: []string{"point"}, value: 10},
	PostgresCrash:      {least: 50, process: true, stores: true},
	PostgresRestart:    {least: 50, process: true, stores: true},
	RedisFreeze:        {least: 20, process: true, stores: true},
	RedisRestart:       {least: 20, process: true, stores: true},
	RedisEmpty:         {least: 20, stores: true},
	RedisStale:         {least: 20, process: true, stores: true, takes: []string{"value"}, value: 1000},
	CallbackPool:       {least: 20},
	CallbackTimeout:    {least: 20, callback: true},
	CallbackBadEvent:   {least: 20, callback: true, takes: []string{"every"}},
	ConnectionRST:      {least: 20, takes: []string{"channel"}},
	ConnectionFIN:      {least: 20, takes: []string{"channel"}},
	ConnectionSilence:  {least: 20, takes: []string{"channel"}},
	Scale:              {takes: []string{"channel", "to"}, needs: []string{"to"}},
	ChannelDisabled:    {takes: []string{"channel"}, needs: []string{"channel"}},
	EnterpriseDisabled: {takes: []string{"enterprise", "value"}, needs: []string{"enterprise"}, value: 9},
	TopUp:              {takes: []string{"enterprise", "value"}, needs: []string{"enterprise", "value"}, change: true},
	QuotaRaised:        {takes: []string{"value"}, change: true},
	SupplierLate:       {takes: []string{"channel", "every", "value"}, value: 5000},
	SupplierTwice:      {takes: []string{"channel", "every"}},
	SupplierDisorder:   {takes: []string{"channel", "value"}, value: 200},
	SupplierSilent:     {takes: []string{"channel", "every"}},
	SupplierWrongSeq:   {takes: []string{"channel", "every"}},
	SupplierRejects:    {takes: []string{"channel", "every", "value"}, value: 8},
	SupplierTerminates: {least: 20, takes: []string{"channel"}},
	SupplierRefuses:    {takes: []string{"channel", "value"}, value: 5},
	ReceiptEarly:       {takes: []string{"channel", "every"}},
	ReceiptTwice:       {takes: []string{"channel", "every"}},
	ReceiptContradict:  {takes: []string{"channel", "every"}},
	ReceiptElsewhere:   {takes: []string{"channel", "every"}},
	ReceiptNever:       {takes: []string{"channel", "every"}},
	ReceiptWrongSize:   {takes: []string{"channel", "every"}},
	Replay:             {takes: []string{"value"}, value: 100, change: true},
	CustomerOffline:    {takes: []string{"enterprise"}},
	CustomerMute:       {takes: []string{"enterprise"}},
	CustomerSlow:       {takes: []string{"enterprise", "value"}},
	CustomerStorm:      {takes: []string{"enterprise"}},
}

// Injection is one fault of a scenario's schedule.
type Injection struct {
	Fault string
	// At is after the start of the first phase.
	At time.Duration
	// Down is how long it is held, proved, before it is reverted.
	Down time.Duration
	// Enterprise whose customer it is about; empty is every one.
	Enterprise string
	// Channel it is about: a name (carrier-role), a role, or empty or All for all.
	Channel string
	// Every nth SUBMIT is affected.
	Every int
	// To are the pools of a scale, each held for an equal part of Down.
	To []Pool
	// Point of the gateway, one of Points.
	Point string
	// Value is what the fault's comment says.
	Value int64
}

// Points are the places where a gateway built with the tag "failpoint" can be killed.
var Points = []string{
	"after_inbox_commit", "after_workflow_commit", "between_hints", "after_barrier", "mid_write", "before_result_copy", "after_receipt_copy",
	"after_callback_commit", "after_deliver",
}

// Least is how many SUBMITs the suppliers must not have answered when it strikes:
// with fewer it proves nothing about what was on its way.
func (x *Injection) Least() int { return traits[x.Fault].least }

// Change says that it stays: nothing is reverted.
func (x *Injection) Change() bool { return traits[x.Fault].change }

// Process says that it ends a process.
func (x *Injection) Process() bool { return traits[x.Fault].process }

// Kills says that it ends the gateway, which has to come back by itself.
func (x *Injection) Kills() bool { return traits[x.Fault].kills }

// All is every channel.
const All = "all"

// Channels lists the channels that a name, a role or nothing stands for, as
// positions in the order carriers × roles.
func (s *Scenario) Channels(name string) []int {
	var list []int
	n := 0
	for _, c := range s.Carriers {
		for _, role := range s.Suppliers.PerCarrier {
			if name == "" || name == All || name == role || name == c.Name+"-"+role {
				list = append(list, n)
			}
			n++
		}
	}
	return list
}

// injections decodes the section faults.
func (d *decoder) injections(n *yaml.Node, path string, s *Scenario) {
	d.list(n, path, func(n *yaml.Node, path string) {
		x := Injection{Down: time.Second, Every: 1}
		hasValue := false
		d.mapping(n, path, map[string]field{
			"fault":      d.word(&x.Fault, slices.Sorted(maps.Keys(traits))...),
			"at":         d.duration(&x.At, 0, time.Hour),
			"down":       d.duration(&x.Down, 0, 10*time.Minute),
			"enterprise": d.text(&x.Enterprise, 60),
			"channel":    d.text(&x.Channel, 60),
			"every":      number(d, &x.Every, 1, 1_000_000),
			"point":      d.word(&x.Point, Points...),
			"value": func(n *yaml.Node, path string) {
				hasValue = true
				number(d, &x.Value, 0, 1<<53)(n, path)
			},
			"to": func(n *yaml.Node, path string) {
				d.list(n, path, func(n *yaml.Node, path string) {
					var p Pool
					d.pool(n, path, &p)
					x.To = append(x.To, p)
				})
			},
		})
		d.need(n, path, "fault", "at")
		t, known := traits[x.Fault]
		if m := resolve(n); known && m.Kind == yaml.MappingNode {
			for _, key := range []string{"enterprise", "channel", "every", "point", "value", "to"} {
				if place := child(m, key); place != nil && !slices.Contains(t.takes, key) {
					d.fault(place, join(path, key), "does not belong to %s", x.Fault)
				}
			}
			d.need(n, path, t.needs...)
		}
		if !hasValue {
			x.Value = t.value
		}
		s.Faults = append(s.Faults, x)
	})
}

// schedule checks the faults against the phases: one after another, within the load;
// what ends a process within one phase, and not before the counters were read for
// what is measured.
func (d *decoder) schedule(n *yaml.Node, path string, s *Scenario) {
	last, points := time.Duration(0), 0
	for i, x := range s.Faults {
		if x.Fault == GatewayFailpoint {
			if points++; points > 1 {
				d.fault(resolve(n).Content[i], fmt.Sprintf("%s[%d]", path, i), "is the second %s: the gateway starts with one point", x.Fault)
			}
		}
		node, at := resolve(resolve(n).Content[i]), fmt.Sprintf("%s[%d]", path, i)
		whole := node
		if place := child(node, "at"); place != nil {
			node, at = place, at+".at"
		}
		if i > 0 && x.At < last {
			d.fault(node, at, "%s is before the end of the fault above, %s", x.At, last)
		}
		last = x.At
		if !x.Change() {
			last += x.Down
		}
		d.targets(whole, path, i, s)
		if x.Process() {
			if first := s.measured() + settle; x.At < first {
				d.fault(node, at, "%s is before %s: measuring must have begun, and the load be steady", x.At, first)
				continue
			}
			if !s.within(x.At, last) {
				d.fault(node, at, "%s…%s does not lie inside a phase; the phases end at %s", x.At, last, s.ends())
			}
			continue
		}
		if last > s.Load() {
			d.fault(node, at, "%s…%s does not lie inside the load; the phases end at %s", x.At, last, s.ends())
		}
	}
	for i, p := range s.Phases {
		if p.Drain && i < len(s.Phases)-1 {
			d.fault(n, path, "phase %s drains: how long that takes is not known, so faults have no time", p.Name)
		}
	}
}

// targets checks that the enterprise and the channel of a fault are there.
func (d *decoder) targets(node *yaml.Node, path string, i int, s *Scenario) {
	x := &s.Faults[i]
	if x.Enterprise != "" && !slices.ContainsFunc(s.Enterprises, func(e Enterprise) bool { return e.ID == x.Enterprise }) {
		d.fault(node, fmt.Sprintf("%s[%d].enterprise", path, i), "no enterprise %q", x.Enterprise)
	}
	if len(s.Channels(x.Channel)) == 0 {
		d.fault(node, fmt.Sprintf("%s[%d].channel", path, i), "no channel or role %q", x.Channel)
	}
}

// settle is how long after the start of the first measured phase a fault may strike.
const settle = time.Second

// measured is the start of the first measured phase; that of the load when there
// is none.
func (s *Scenario) measured() time.Duration {
	start := time.Duration(0)
	for _, p := range s.Phases {
		if p.Measure {
			return start
		}
		start += p.Hold
	}
	return 0
}

// within says whether a phase spans from … to.
func (s *Scenario) within(from, to time.Duration) bool {
	start := time.Duration(0)
	for _, p := range s.Phases {
		if from >= start && to < start+p.Hold {
			return true
		}
		start += p.Hold
	}
	return false
}

// ends lists the ends of the phases for people.
func (s *Scenario) ends() string {
	text, end := "", time.Duration(0)
	for _, p := range s.Phases {
		if end += p.Hold; text != "" {
			text += ", "
		}
		text += end.String()
	}
	return text
}

// Needs says whether the scenario has one of the faults in its schedule.
func (s *Scenario) Needs(faults ...string) bool {
	return slices.ContainsFunc(s.Faults, func(x Injection) bool { return slices.Contains(faults, x.Fault) })
}

// Kills says whether the schedule ends the gateway.
func (s *Scenario) Kills() bool { return s.any(func(t trait) bool { return t.kills }) }

// BreaksStores says whether the schedule breaks PostgreSQL or Redis: then they are
// processes of the run.
func (s *Scenario) BreaksStores() bool { return s.any(func(t trait) bool { return t.stores }) }

// Wired says whether the schedule needs a wire between edge and core.
func (s *Scenario) Wired() bool { return s.any(func(t trait) bool { return t.callback }) }

func (s *Scenario) any(f func(trait) bool) bool {
	return slices.ContainsFunc(s.Faults, func(x Injection) bool { return f(traits[x.Fault]) })
}

// OutstandingAt is how many SUBMITs are unanswered at the suppliers at a time of
// the load by Little's law: the rate times the middle round trip, no more than the
// windows.
func (s *Scenario) OutstandingAt(at time.Duration) float64 {
	start := time.Duration(0)
	middle, _ := s.rtt()
	for _, p := range s.Phases {
		if start += p.Hold; at >= start {
			continue
		}
		n := 0.0
		for _, c := range s.Carriers {
			n += min(p.TPS(s.Enterprises)*c.Share*middle.Seconds(), float64(s.Suppliers.Connections*s.Suppliers.Window))
		}
		return n
	}
	return 0
}

// injectionWarnings are doubts about the schedule.
func (s *Scenario) injectionWarnings() []string {
	var w []string
	for _, x := range s.Faults {
		if n := s.OutstandingAt(x.At); n < float64(x.Least()) {
			w = append(w, fmt.Sprintf("%s at %s meets about %.0f unanswered SUBMITs, %d are needed for a proof", x.Fault, x.At, n, x.Least()))
		}
	}
	return w
}

// schedules is the section for the resolved file.
func schedules(list []Injection) []map[string]any {
	out := make([]map[string]any, len(list))
	for i, x := range list {
		m := map[string]any{"fault": x.Fault, "at": x.At, "down": x.Down}
		for _, key := range traits[x.Fault].takes {
			switch key {
			case "enterprise":
				if x.Enterprise != "" {
					m[key] = x.Enterprise
				}
			case "channel":
				if x.Channel != "" {
					m[key] = x.Channel
				}
			case "every":
				m[key] = x.Every
			case "point":
				m[key] = x.Point
			case "value":
				m[key] = x.Value
			case "to":
				pools := make([]string, len(x.To))
				for i, p := range x.To {
					pools[i] = p.String()
				}
				m[key] = pools
			}
		}
		out[i] = m
	}
	return out
}
