package spec

import (
	"fmt"
	"time"

	"go.yaml.in/yaml/v4"
)

// Faults that a scenario can inject (scenarios §A4).
const (
	// GatewayKill is SIGKILL to the gateway, which is started again.
	GatewayKill = "gateway-kill"
	// PostgresCrash stops PostgreSQL without a checkpoint and starts it again.
	PostgresCrash = "postgres-crash"
)

// MinOutstanding is how many SUBMITs the suppliers must not have answered when a
// fault strikes: with fewer it proves nothing about what was on its way.
const MinOutstanding = 50

// Injection is one fault of a scenario's schedule.
type Injection struct {
	Fault string
	// At is after the start of the first phase.
	At time.Duration
	// Down is how long it is held, proved, before it is reverted.
	Down time.Duration
}

// injections decodes the section faults.
func (d *decoder) injections(n *yaml.Node, path string, s *Scenario) {
	d.list(n, path, func(n *yaml.Node, path string) {
		x := Injection{Down: time.Second}
		d.mapping(n, path, map[string]field{
			"fault": d.word(&x.Fault, GatewayKill, PostgresCrash),
			"at":    d.duration(&x.At, 0, time.Hour),
			"down":  d.duration(&x.Down, 0, time.Minute),
		})
		d.need(n, path, "fault", "at")
		s.Faults = append(s.Faults, x)
	})
}

// schedule checks the faults against the phases: each within one phase, one after
// another, and not before the counters were read for what is measured.
func (d *decoder) schedule(n *yaml.Node, path string, s *Scenario) {
	last := time.Duration(0)
	for i, x := range s.Faults {
		node, at := resolve(resolve(n).Content[i]), fmt.Sprintf("%s[%d]", path, i)
		if place := child(node, "at"); place != nil {
			node, at = place, at+".at"
		}
		if i > 0 && x.At < last {
			d.fault(node, at, "%s is before the end of the fault above, %s", x.At, last)
		}
		last = x.At + x.Down
		if first := s.measured() + settle; x.At < first {
			d.fault(node, at, "%s is before %s: measuring must have begun, and the load be steady", x.At, first)
			continue
		}
		if !s.within(x.At, last) {
			d.fault(node, at, "%s…%s does not lie inside a phase; the phases end at %s", x.At, last, s.ends())
		}
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

// Needs says whether the scenario has the fault in its schedule.
func (s *Scenario) Needs(fault string) bool {
	for _, x := range s.Faults {
		if x.Fault == fault {
			return true
		}
	}
	return false
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
		if n := s.OutstandingAt(x.At); n < MinOutstanding {
			w = append(w, fmt.Sprintf("%s at %s meets about %.0f unanswered SUBMITs, %d are needed for a proof", x.Fault, x.At, n, MinOutstanding))
		}
	}
	return w
}

// schedules is the section for the resolved file.
func schedules(list []Injection) []map[string]any {
	out := make([]map[string]any, len(list))
	for i, x := range list {
		out[i] = map[string]any{"fault": x.Fault, "at": x.At, "down": x.Down}
	}
	return out
}
