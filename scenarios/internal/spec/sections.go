package spec

import (
	"fmt"
	"math"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode/utf16"

	"go.yaml.in/yaml/v4"

	"cmppgateway/simulator/ismg"
)

// Bounds of a scenario. They bound the harness: what the gateway takes is for
// the gateway to say.
const (
	maxLimit       = 3 * time.Hour
	maxMessages    = 5_000_000 // kept in memory by the records
	oneSMS         = 70        // characters of a UCS2 text in one SUBMIT
	numberDigits   = 11
	supplierLength = 6 // octets of a Source_Addr
	maxEnterprises = 100
)

// harness owns these settings of the gateway: ports, servers and what makes a
// run safe. A scenario cannot give them.
var harness = []string{
	"node.name", "postgres.url", "redis.url", "redis.host", "redis.port", "redis.password", "redis.db",
	"inbound.listen", "callback.listen", "callback.token", "event.url", "admin.listen", "admin.token",
	"supplier.allow_remote", "log.format",
}

// scenario decodes the merged sections of one scenario.
func (d *decoder) scenario(name string, n *yaml.Node, path string) *Scenario {
	s := &Scenario{
		Name: name, Seed: 1, Limit: 10 * time.Minute,
		Drain:   Drain{Stable: 3 * time.Second, Limit: time.Minute},
		Gateway: map[string]any{},
	}
	before := len(d.faults)
	if m := child(resolve(n), "messages"); m != nil {
		d.kinds(m, path+".messages", s) // phases name them, wherever they stand
	}
	d.mapping(n, path, map[string]field{
		"about":            d.text(&s.About, 400),
		"seed":             number(d, &s.Seed, 0, math.MaxInt64),
		"price":            number(d, &s.Price, 0, 1_000_000),
		"allow_zero_price": d.boolean(&s.AllowZeroPrice),
		"limit":            d.duration(&s.Limit, 5*time.Second, maxLimit),
		"policy":           func(n *yaml.Node, path string) { d.policy(n, path, &s.Policy) },
		"uplinks":          func(n *yaml.Node, path string) { d.uplinks(n, path, &s.Uplinks) },
		"messages":         func(*yaml.Node, string) {}, // read above
		"content":          func(n *yaml.Node, path string) { d.content(n, path, &s.Content) },
		"carriers":         func(n *yaml.Node, path string) { d.carriers(n, path, s) },
		"suppliers":        func(n *yaml.Node, path string) { d.suppliers(n, path, &s.Suppliers) },
		"behaviour":        func(n *yaml.Node, path string) { d.behaviour(n, path, &s.Behaviour) },
		"enterprises":      func(n *yaml.Node, path string) { d.enterprises(n, path, s) },
		"phases":           func(n *yaml.Node, path string) { d.phases(n, path, s) },
		"faults":           func(n *yaml.Node, path string) { d.injections(n, path, s) },
		"drain":            func(n *yaml.Node, path string) { d.drain(n, path, &s.Drain) },
		"gateway":          func(n *yaml.Node, path string) { d.gateway(n, path, "", s.Gateway) },
		"slo":              func(n *yaml.Node, path string) { d.objectives(n, path, s) },
	})
	d.finishKinds(child(resolve(n), "messages"), path+".messages", s)
	d.need(n, path, "price", "limit", "content", "carriers", "suppliers", "behaviour", "enterprises", "phases")
	if len(d.faults) == before {
		d.whole(n, path, s)
	}
	return s
}

// whole checks what no single value shows.
func (d *decoder) whole(n *yaml.Node, path string, s *Scenario) {
	if s.Price == 0 && !s.AllowZeroPrice {
		d.fault(child(n, "price"), path+".price", "0 claims capacity without money; allow_zero_price: true accepts an invalid verdict")
	}
	total := 0
	need := make([]int64, len(s.Enterprises))
	for _, p := range s.Phases {
		for i, e := range s.Enterprises {
			for _, kind := range p.Deal(p.Messages(e)) {
				k := &s.Kinds[kind]
				total += k.Recipients
				if k.Refused == "" && k.Result == 0 {
					need[i] += s.Amount(k) * int64(k.Recipients)
				}
			}
		}
	}
	if total == 0 || total > maxMessages {
		d.fault(child(n, "phases"), path+".phases", "%d messages in all, want 1…%d", total, maxMessages)
	}
	for i := range s.Carriers {
		c := &s.Carriers[i]
		room := 0.0
		for _, prefix := range c.Prefixes {
			room += math.Pow10(numberDigits - len(prefix))
		}
		if float64(total)*c.Share > room {
			d.fault(child(n, "carriers"), path+".carriers."+c.Name, "its prefixes have %.0f numbers for %.0f messages", room, float64(total)*c.Share)
		}
	}
	for i, e := range s.Enterprises {
		balance := e.Balance
		for _, f := range s.Faults {
			if f.Fault == TopUp && f.Enterprise == e.ID {
				balance += f.Value
			}
		}
		if balance < need[i] {
			d.fault(resolve(child(n, "enterprises")).Content[i], path+".enterprises."+e.ID, "balance %d is less than the %d its messages freeze", balance, need[i])
		}
	}
	if len(s.Faults) > 0 {
		d.schedule(child(n, "faults"), path+".faults", s)
	}
	d.names(n, path, s)
	if load := s.Load(); load >= s.Limit {
		d.fault(child(n, "limit"), path+".limit", "%s leaves no time besides %s of load", s.Limit, load)
	}
}

func (d *decoder) content(n *yaml.Node, path string, c *Content) {
	d.mapping(n, path, map[string]field{"text": d.text(&c.Text, 1000), "units": number(d, &c.Units, 1, 100)})
	d.need(n, path, "text", "units")
	if len(utf16.Encode([]rune(c.Text))) > oneSMS {
		d.fault(n, path+".text", "more than %d characters do not fit one SUBMIT", oneSMS)
	}
}

func (d *decoder) carriers(n *yaml.Node, path string, s *Scenario) {
	sum := 0.0
	before := len(d.faults)
	d.each(n, path, func(key, value *yaml.Node, path string) {
		switch key.Value {
		case "mobile", "unicom", "telecom", "broadnet":
		default:
			d.fault(key, path, "%q is none of mobile, unicom, telecom, broadnet", key.Value)
			return
		}
		c := Carrier{Name: key.Value}
		d.mapping(value, path, map[string]field{
			"prefixes": func(n *yaml.Node, path string) {
				d.list(n, path, func(n *yaml.Node, path string) {
					prefix := ""
					d.text(&prefix, numberDigits-4)(n, path)
					if prefix != "" && (len(prefix) < 3 || prefix[0] != '1' || strings.Trim(prefix, "0123456789") != "") {
						d.fault(n, path, "%q is not the start of a mainland number (3 to 7 digits, the first 1)", prefix)
					}
					c.Prefixes = append(c.Prefixes, prefix)
				})
			},
			"share": d.percent(&c.Share, 0.001, 100),
		})
		d.need(value, path, "prefixes", "share")
		sum += c.Share
		s.Carriers = append(s.Carriers, c)
	})
	if len(d.faults) == before && math.Abs(sum-1) > 1e-9 {
		d.fault(n, path, "the shares add up to %.6g%%, not to 100%%", 100*sum)
	}
}

func (d *decoder) suppliers(n *yaml.Node, path string, s *Suppliers) {
	s.Response = 60 * time.Second
	d.mapping(n, path, map[string]field{
		"per_carrier": func(n *yaml.Node, path string) {
			d.list(n, path, func(n *yaml.Node, path string) {
				role := ""
				d.text(&role, 20)(n, path)
				s.PerCarrier = append(s.PerCarrier, role)
			})
			if k := len(resolve(n).Content); k < 1 || k > 4 {
				d.fault(n, path, "%d roles, want 1…4", k)
			}
		},
		"connections": number(d, &s.Connections, 1, 8),
		"window":      number(d, &s.Window, 1, 64),
		"rate_limit":  number(d, &s.RateLimit, 0, 1_000_000),
		"response":    d.duration(&s.Response, time.Second, 10*time.Minute),
		"only":        func(n *yaml.Node, path string) { d.only(n, path, s) },
	})
	d.need(n, path, "per_carrier", "connections", "window", "rate_limit")
}

func (d *decoder) enterprises(n *yaml.Node, path string, s *Scenario) {
	seen := map[string]bool{}
	d.list(n, path, func(n *yaml.Node, path string) {
		e := Enterprise{Connections: 1, Window: 16}
		d.mapping(n, path, map[string]field{
			"id":          d.text(&e.ID, 60),
			"tps":         d.real(&e.TPS, 0.1, 100_000),
			"connections": number(d, &e.Connections, 1, 64),
			"window":      number(d, &e.Window, 1, 256),
			"balance":     number(d, &e.Balance, 0, 1<<53),
			"lane":        d.word(&e.Lane, "verification", "notification", "marketing"),
		})
		d.need(n, path, "id", "tps", "balance")
		if seen[e.ID] {
			d.fault(n, path+".id", "%q is used twice", e.ID)
		}
		seen[e.ID] = true
		s.Enterprises = append(s.Enterprises, e)
	})
	if k := len(s.Enterprises); k > maxEnterprises {
		d.fault(n, path, "%d enterprises, at most %d", k, maxEnterprises)
	}
}

func (d *decoder) phases(n *yaml.Node, path string, s *Scenario) {
	seen := map[string]bool{}
	d.list(n, path, func(n *yaml.Node, path string) {
		p := Phase{Measure: true, Scale: 1, Arrival: Even}
		d.mapping(n, path, map[string]field{
			"name":    d.text(&p.Name, 40),
			"hold":    d.duration(&p.Hold, 100*time.Millisecond, time.Hour),
			"measure": d.boolean(&p.Measure),
			"scale":   d.percent(&p.Scale, 0, 100_000),
			"arrival": d.word(&p.Arrival, Even, Poisson, Burst),
			"scales":  func(n *yaml.Node, path string) { d.scales(n, path, &p) },
			"mix":     func(n *yaml.Node, path string) { d.mix(n, path, s, &p) },
			"pool":    func(n *yaml.Node, path string) { p.Pool = new(Pool); d.pool(n, path, p.Pool) },
			"drain":   d.boolean(&p.Drain), "disturbed": d.boolean(&p.Disturbed),
			"hostile": number(d, &p.Hostile, 1, 1000),
		})
		d.need(n, path, "name", "hold")
		if seen[p.Name] {
			d.fault(n, path+".name", "%q is used twice", p.Name)
		}
		seen[p.Name] = true
		s.Phases = append(s.Phases, p)
	})
}

func (d *decoder) drain(n *yaml.Node, path string, x *Drain) {
	d.mapping(n, path, map[string]field{
		"stable": d.duration(&x.Stable, 100*time.Millisecond, time.Minute),
		"limit":  d.duration(&x.Limit, time.Second, time.Hour),
	})
}

// gateway flattens the settings of the gateway to paths.
func (d *decoder) gateway(n *yaml.Node, path, at string, into map[string]any) {
	d.each(n, path, func(_, value *yaml.Node, path string) {
		key := path[strings.LastIndexByte(path, '.')+1:]
		full := join(at, key)
		value = resolve(value)
		if value.Kind == yaml.MappingNode {
			d.gateway(value, path, full, into)
			return
		}
		if slices.Contains(harness, full) {
			d.fault(value, path, "is given by the harness")
			return
		}
		v, ok := d.scalar(value, path, "one value")
		if !ok {
			return
		}
		if leadingZero.MatchString(v) && value.ShortTag() != "!!float" {
			d.fault(value, path, "%s starts with a zero", v)
			return
		}
		var x any
		if err := value.Decode(&x); err != nil {
			d.fault(value, path, "cannot be read: %s", err)
			return
		}
		into[full] = x
	})
}

func (d *decoder) objectives(n *yaml.Node, path string, s *Scenario) {
	d.list(n, path, func(n *yaml.Node, path string) {
		o := SLO{}
		names := make([]string, 0, len(metrics))
		for m := range metrics {
			names = append(names, m)
		}
		var longest time.Duration
		var most, least float64
		m := resolve(n)
		kind := ""
		if x := child(m, "metric"); m.Kind == yaml.MappingNode && x != nil {
			kind = Unit(resolve(x).Value)
		}
		top := d.real(&most, 0, 1_000_000)
		bottom := d.real(&least, 0, 1_000_000)
		switch kind {
		case "ms":
			top = d.duration(&longest, time.Microsecond, time.Hour)
		case "ratio":
			top, bottom = d.percent(&most, 0, 1000), d.percent(&least, 0, 1000)
		}
		d.mapping(n, path, map[string]field{
			"metric": func(n *yaml.Node, path string) {
				if v := resolve(n).Value; strings.HasPrefix(v, channelMetric) {
					o.Metric = v // names looks for it
					return
				}
				d.word(&o.Metric, names...)(n, path)
			},
			"phase": d.text(&o.Phase, 40), "enterprise": d.text(&o.Enterprise, 60),
			"max": top, "min": bottom,
		})
		if m.Kind == yaml.MappingNode {
			hasMax, hasMin := child(m, "max") != nil, child(m, "min") != nil
			switch {
			case o.Metric == "":
			case kind == "ms" && (!hasMax || hasMin):
				d.fault(n, path, "%s is a latency: it needs max, and no min", o.Metric)
			case !hasMax && !hasMin:
				d.fault(n, path, "%s needs min, max or both", o.Metric)
			case kind == "ms":
				o.Max = new(float64(longest) / float64(time.Millisecond))
			default:
				if hasMax {
					o.Max = &most
				}
				if hasMin {
					o.Min = &least
				}
			}
		}
		d.need(n, path, "metric")
		s.SLO = append(s.SLO, o)
	})
}

func (d *decoder) only(n *yaml.Node, path string, s *Suppliers) {
	d.each(n, path, func(key, value *yaml.Node, path string) {
		var x Only
		d.mapping(value, path, map[string]field{
			"rate_limit": func(n *yaml.Node, path string) { x.RateLimit = new(int); number(d, x.RateLimit, 0, 1_000_000)(n, path) },
			"enabled":    func(n *yaml.Node, path string) { x.Enabled = new(bool); d.boolean(x.Enabled)(n, path) },
			"behaviour":  func(n *yaml.Node, path string) { x.Behaviour = &ismg.Behaviour{}; d.behaviour(n, path, x.Behaviour) },
		})
		if s.Only == nil {
			s.Only = map[string]Only{}
		}
		s.Only[key.Value] = x
	})
}

func (d *decoder) scales(n *yaml.Node, path string, p *Phase) {
	p.Scales = map[string]float64{}
	d.each(n, path, func(key, value *yaml.Node, path string) {
		x := 1.0
		d.percent(&x, 0, 100_000)(value, path)
		p.Scales[key.Value] = x
	})
}

var poolText = regexp.MustCompile(`^([1-8])x([1-9]|[1-5][0-9]|6[0-4])$`)

func (d *decoder) pool(n *yaml.Node, path string, p *Pool) {
	v, ok := d.scalar(n, path, "connections x window such as 4x32")
	if !ok {
		return
	}
	m := poolText.FindStringSubmatch(v)
	if m == nil {
		d.fault(n, path, "%q is not connections x window from 1x1 to 8x64", v)
		return
	}
	p.Connections, _ = strconv.Atoi(m[1])
	p.Window, _ = strconv.Atoi(m[2])
}

// names checks that what sections name is there.
func (d *decoder) names(n *yaml.Node, path string, s *Scenario) {
	enterprise := func(id string) bool {
		return slices.ContainsFunc(s.Enterprises, func(e Enterprise) bool { return e.ID == id })
	}
	for i, p := range s.Phases {
		for id := range p.Scales {
			if !enterprise(id) {
				d.fault(child(n, "phases"), fmt.Sprintf("%s.phases[%d].scales", path, i), "no enterprise %q", id)
			}
		}
	}
	for i, o := range s.SLO {
		at := fmt.Sprintf("%s.slo[%d]", path, i)
		if o.Enterprise != "" && !enterprise(o.Enterprise) {
			d.fault(child(n, "slo"), at, "no enterprise %q", o.Enterprise)
		}
		if name, ok := strings.CutPrefix(o.Metric, channelMetric); ok && len(s.Channels(name)) != 1 {
			d.fault(child(n, "slo"), at, "no channel %q; they are carrier-role", name)
		}
		if o.Phase != "" && !slices.ContainsFunc(s.Phases, func(p Phase) bool { return p.Name == o.Phase }) {
			d.fault(child(n, "slo"), at, "no phase %q", o.Phase)
		}
	}
	for name := range s.Suppliers.Only {
		if len(s.Channels(name)) != 1 {
			d.fault(child(n, "suppliers"), path+".suppliers.only", "no channel %q; they are carrier-role", name)
		}
	}
}

func (d *decoder) behaviour(n *yaml.Node, path string, b *ismg.Behaviour) {
	before := len(d.faults)
	d.mapping(n, path, map[string]field{
		"submit_rtt":    func(n *yaml.Node, path string) { d.dist(n, path, &b.SubmitRTT) },
		"deck":          func(n *yaml.Node, path string) { d.deck(n, path, &b.Deck) },
		"receipt_delay": func(n *yaml.Node, path string) { d.dist(n, path, &b.ReceiptDelay) },
		"late_by":       d.duration(&b.LateBy, 0, time.Hour),
	})
	d.need(n, path, "submit_rtt", "deck", "receipt_delay")
	if len(d.faults) > before {
		return
	}
	for _, f := range b.Validate("") {
		d.fault(find(n, strings.TrimPrefix(f.Path, ".")), path+f.Path, "%s", f.Problem)
	}
}

// find is the node of a dotted path, or the closest one above it.
func find(n *yaml.Node, path string) *yaml.Node {
	n = resolve(n)
	for key := range strings.SplitSeq(path, ".") {
		if n.Kind != yaml.MappingNode {
			break
		}
		next := child(n, key)
		if next == nil {
			break
		}
		n = resolve(next)
	}
	return n
}

func (d *decoder) dist(n *yaml.Node, path string, x *ismg.Dist) {
	kind := string(ismg.Fixed)
	d.mapping(n, path, map[string]field{
		"dist":  d.word(&kind, string(ismg.Fixed), string(ismg.Lognormal), string(ismg.Uniform)),
		"value": d.duration(&x.Value, 0, time.Hour),
		"p50":   d.duration(&x.P50, 0, time.Hour),
		"p99":   d.duration(&x.P99, 0, time.Hour),
		"min":   d.duration(&x.Min, 0, time.Hour),
		"max":   d.duration(&x.Max, 0, time.Hour),
	})
	x.Kind = ismg.DistKind(kind)
}

func (d *decoder) deck(n *yaml.Node, path string, x *ismg.DeckSpec) {
	const most = 1 << 20
	d.mapping(n, path, map[string]field{
		"block":              number(d, &x.Block, 1, most),
		"result_8_first":     number(d, &x.Result8First, 0, most),
		"no_receipt":         number(d, &x.NoReceipt, 0, most),
		"receipt_early":      number(d, &x.ReceiptEarly, 0, most),
		"receipt_twice":      number(d, &x.ReceiptTwice, 0, most),
		"receipt_contradict": number(d, &x.ReceiptContradict, 0, most),
		"receipt_elsewhere":  number(d, &x.ReceiptElsewhere, 0, most),
		"resp_late":          number(d, &x.RespLate, 0, most),
		"resp_twice":         number(d, &x.RespTwice, 0, most),
		"resp_silent":        number(d, &x.RespSilent, 0, most),
		"resp_wrong_seq":     number(d, &x.RespWrongSeq, 0, most),
		"receipt_failed": func(n *yaml.Node, path string) {
			x.ReceiptFailed = map[string]int{}
			d.each(n, path, func(key, value *yaml.Node, path string) {
				count := 0
				number(d, &count, 0, most)(value, path)
				x.ReceiptFailed[key.Value] = count
			})
		},
		"results": func(n *yaml.Node, path string) {
			x.Results = map[uint32]int{}
			d.each(n, path, func(key, value *yaml.Node, path string) {
				code, count := uint32(0), 0
				number(d, &code, 1, 255)(key, path)
				number(d, &count, 0, most)(value, path)
				x.Results[code] = count
			})
		},
	})
}
