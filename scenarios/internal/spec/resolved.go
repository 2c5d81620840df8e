package spec

import (
	"fmt"
	"strconv"
	"strings"
	"time"

	"go.yaml.in/yaml/v4"

	"cmppgateway/simulator/ismg"
)

// Resolved is the scenario as a file of its own, with every default and
// override in it: a run is repeated from it.
func (s *Scenario) Resolved() ([]byte, error) {
	m := &yaml.Node{Kind: yaml.MappingNode}
	add := func(key string, v any) error { return put(m, key, v) }
	carriers := &yaml.Node{Kind: yaml.MappingNode}
	for _, c := range s.Carriers {
		if err := put(carriers, c.Name, struct {
			Prefixes []quoted `yaml:"prefixes,flow"`
			Share    string   `yaml:"share"`
		}{quotes(c.Prefixes), percent(c.Share)}); err != nil {
			return nil, err
		}
	}
	gateway := &yaml.Node{Kind: yaml.MappingNode}
	if err := nest(gateway, s.Gateway); err != nil {
		return nil, err
	}
	var uplinks any
	if s.Uplinks.Count > 0 {
		uplinks = resolvedUplinks(s.Uplinks)
	}
	about := s.About
	if about == "" {
		about = s.Name
	}
	for _, section := range []struct {
		key   string
		value any
	}{
		{"about", about},
		{"seed", s.Seed},
		{"price", s.Price},
		{"allow_zero_price", s.AllowZeroPrice},
		{"limit", s.Limit},
		{"content", map[string]any{"text": s.Content.Text, "units": s.Content.Units}},
		{"policy", resolvedPolicy(s.Policy)},
		{"messages", resolvedKinds(s.Kinds)},
		{"carriers", carriers},
		{"suppliers", map[string]any{
			"per_carrier": s.Suppliers.PerCarrier, "connections": s.Suppliers.Connections, "window": s.Suppliers.Window,
			"rate_limit": s.Suppliers.RateLimit, "response": s.Suppliers.Response,
			"only": onlys(s.Suppliers.Only),
		}},
		{"uplinks", uplinks},
		{"behaviour", behaviour(s.Behaviour)},
		{"enterprises", enterprises(s.Enterprises)},
		{"phases", phases(s)},
		{"faults", schedules(s.Faults)},
		{"drain", map[string]any{"stable": s.Drain.Stable, "limit": s.Drain.Limit}},
		{"gateway", gateway},
		{"slo", objectives(s.SLO)},
	} {
		if section.value == nil {
			continue
		}
		if err := add(section.key, section.value); err != nil {
			return nil, err
		}
	}
	return yaml.Marshal(map[string]any{"scenarios": map[string]any{s.Name: m}})
}

// quoted keeps a number that is text in quotes.
type quoted string

// MarshalYAML gives a quoted scalar.
func (q quoted) MarshalYAML() (any, error) {
	return &yaml.Node{Kind: yaml.ScalarNode, Tag: "!!str", Style: yaml.DoubleQuotedStyle, Value: string(q)}, nil
}

func quotes(list []string) []quoted {
	out := make([]quoted, len(list))
	for i := range list {
		out[i] = quoted(list[i])
	}
	return out
}

func percent(x float64) string { return strconv.FormatFloat(100*x, 'g', 12, 64) + "%" }

func put(m *yaml.Node, key string, v any) error {
	n, ok := v.(*yaml.Node)
	if !ok {
		n = &yaml.Node{}
		if err := n.Encode(v); err != nil {
			return fmt.Errorf("resolve %s: %w", key, err)
		}
	}
	m.Content = append(m.Content, &yaml.Node{Kind: yaml.ScalarNode, Tag: "!!str", Value: key}, n)
	return nil
}

// Nested turns settings by path into nested maps.
func Nested(settings map[string]any) map[string]any {
	root := map[string]any{}
	for path, v := range settings {
		at := root
		keys := strings.Split(path, ".")
		for _, key := range keys[:len(keys)-1] {
			next, ok := at[key].(map[string]any)
			if !ok {
				next = map[string]any{}
				at[key] = next
			}
			at = next
		}
		at[keys[len(keys)-1]] = v
	}
	return root
}

func nest(m *yaml.Node, settings map[string]any) error {
	return m.Encode(Nested(settings))
}

func behaviour(b ismg.Behaviour) map[string]any {
	m := map[string]any{"submit_rtt": dist(b.SubmitRTT), "receipt_delay": dist(b.ReceiptDelay)}
	if b.LateBy > 0 {
		m["late_by"] = b.LateBy
	}
	deck := map[string]any{}
	for key, n := range map[string]int{
		"block": b.Deck.Block, "result_8_first": b.Deck.Result8First, "no_receipt": b.Deck.NoReceipt,
		"receipt_early": b.Deck.ReceiptEarly, "receipt_twice": b.Deck.ReceiptTwice, "receipt_contradict": b.Deck.ReceiptContradict,
		"receipt_elsewhere": b.Deck.ReceiptElsewhere, "resp_late": b.Deck.RespLate, "resp_twice": b.Deck.RespTwice,
		"resp_silent": b.Deck.RespSilent, "resp_wrong_seq": b.Deck.RespWrongSeq,
	} {
		if n != 0 {
			deck[key] = n
		}
	}
	if len(b.Deck.Results) > 0 {
		deck["results"] = b.Deck.Results
	}
	if len(b.Deck.ReceiptFailed) > 0 {
		deck["receipt_failed"] = b.Deck.ReceiptFailed
	}
	m["deck"] = deck
	return m
}

func dist(x ismg.Dist) map[string]any {
	m := map[string]any{"dist": string(x.Kind)}
	for key, d := range map[string]time.Duration{"value": x.Value, "p50": x.P50, "p99": x.P99, "min": x.Min, "max": x.Max} {
		if d != 0 {
			m[key] = d
		}
	}
	return m
}

func enterprises(list []Enterprise) []map[string]any {
	out := make([]map[string]any, len(list))
	for i, e := range list {
		out[i] = map[string]any{"id": e.ID, "tps": e.TPS, "connections": e.Connections, "window": e.Window, "balance": e.Balance}
		if e.Lane != "" {
			out[i]["lane"] = e.Lane
		}
	}
	return out
}

func phases(s *Scenario) []map[string]any {
	out := make([]map[string]any, len(s.Phases))
	for i, p := range s.Phases {
		m := map[string]any{
			"name": p.Name, "hold": p.Hold, "measure": p.Measure, "scale": percent(p.Scale), "arrival": p.Arrival,
			"drain": p.Drain, "disturbed": p.Disturbed,
		}
		if len(p.Mix) > 0 {
			m["mix"] = shares(s, p.Mix)
		}
		if p.Pool != nil {
			m["pool"] = p.Pool.String()
		}
		if p.Hostile > 0 {
			m["hostile"] = p.Hostile
		}
		if len(p.Scales) > 0 {
			scales := map[string]string{}
			for id, x := range p.Scales {
				scales[id] = percent(x)
			}
			m["scales"] = scales
		}
		out[i] = m
	}
	return out
}

func onlys(list map[string]Only) map[string]any {
	out := map[string]any{}
	for name, x := range list {
		m := map[string]any{}
		if x.RateLimit != nil {
			m["rate_limit"] = *x.RateLimit
		}
		if x.Enabled != nil {
			m["enabled"] = *x.Enabled
		}
		if x.Behaviour != nil {
			m["behaviour"] = behaviour(*x.Behaviour)
		}
		out[name] = m
	}
	return out
}

func objectives(list []SLO) []map[string]any {
	out := make([]map[string]any, len(list))
	for i, o := range list {
		m := map[string]any{"metric": o.Metric}
		if o.Phase != "" {
			m["phase"] = o.Phase
		}
		if o.Enterprise != "" {
			m["enterprise"] = o.Enterprise
		}
		write := func(key string, v *float64) {
			switch {
			case v == nil:
			case Unit(o.Metric) == "ms":
				m[key] = time.Duration(*v * float64(time.Millisecond))
			case Unit(o.Metric) == "ratio":
				m[key] = percent(*v)
			default:
				m[key] = *v
			}
		}
		write("max", o.Max)
		write("min", o.Min)
		out[i] = m
	}
	return out
}
