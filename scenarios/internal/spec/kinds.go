package spec

import (
	"fmt"
	"math"
	"slices"
	"strings"
	"time"
	"unicode/utf16"

	"go.yaml.in/yaml/v4"
)

// Plain is the kind of message that the section content describes.
const Plain = "plain"

// Encodings of a text.
const (
	UCS2  = "ucs2"  // Msg_Fmt 8
	ASCII = "ascii" // Msg_Fmt 0
	GBK   = "gbk"   // Msg_Fmt 15
)

// Kind is a kind of message: what is sent, and what must become of it.
type Kind struct {
	Name string
	// Text; {n} in it is replaced by the message's number in the run, six digits.
	Text string
	// Units each recipient is billed, and SUBMITs to a supplier: constants of the
	// scenario, so that no figure leans on the gateway's own rule.
	Units, Parts int64
	Format       string
	// Unregistered asks for no receipt.
	Unregistered bool
	// Recipients of one SUBMIT, 1 to 99.
	Recipients int
	// Number that every message of the kind goes to; empty is a new one each time.
	Number string
	// SrcID is the customers' Src_Id.
	SrcID string
	// Long, when set, sends the text in segments.
	Long *Long
	// Refused is the reason word the gateway must refuse it with after it was
	// accepted at the entrance; empty is that it passes. Stat is then its receipt's.
	Refused, Stat string
	// Result is what SUBMIT_RESP must say; not 0 is a refusal at the entrance.
	Result int
}

// Long is how a long message is sent.
type Long struct {
	// Reference in bits: 8 or 16.
	Reference int
	// Connections the segments are spread over, in turn.
	Connections int
	// Order of the segments: natural, reversed or random (from the seed).
	Order string
	// Duplicate sends the first segment twice; Missing leaves the last one out;
	// Reused gives every message of the kind the same reference.
	Duplicate, Missing, Reused bool
	// Extra puts another element in front of the concatenation.
	Extra bool
}

// Orders of segments.
const (
	Natural  = "natural"
	Reversed = "reversed"
	Random   = "random"
)

// Share is a kind's part of a phase.
type Share struct {
	Kind  int // index in Scenario.Kinds
	Share float64
}

// Reasons are the reason words of the gateway, with the Stat of the receipt that
// their customers get by default and the code they are stored under: a second
// writing of the gateway's table, on purpose.
var Reasons = map[string]struct {
	Code int16
	Stat string
}{
	"SIGNATURE": {1, "SIGFAIL"}, "TEMPLATE": {2, "TPLFAIL"}, "KEYWORD": {3, "KEYWORD"}, "BLACKLIST": {4, "BLACK"}, "RISK": {5, "RISK"},
	"QUOTA": {6, "QUOTA"}, "BALANCE": {7, "BALANCE"}, "ROUTE": {8, "NOROUTE"}, "STATUS": {9, "STATUS"}, "FORMAT": {10, "FORMAT"}, "EXPIRED": {11, "EXPIRED"},
}

// Deal says of which kind each of an enterprise's n SUBMITs in the phase is: the
// one furthest behind its share comes next.
func (p Phase) Deal(n int) []int {
	kinds := make([]int, n)
	if len(p.Mix) == 0 {
		return kinds
	}
	given := make([]int, len(p.Mix))
	for i := range kinds {
		at, most := 0, math.Inf(-1)
		for k, m := range p.Mix {
			if behind := m.Share*float64(i+1) - float64(given[k]); behind > most+1e-9 {
				at, most = k, behind
			}
		}
		given[at]++
		kinds[i] = p.Mix[at].Kind
	}
	return kinds
}

// Amount is what one message of the kind costs.
func (s *Scenario) Amount(k *Kind) int64 { return s.Price * k.Units }

// kinds decodes the section messages behind the plain kind, which content gives.
func (d *decoder) kinds(n *yaml.Node, path string, s *Scenario) {
	if s.Kinds == nil {
		s.Kinds = []Kind{{Name: Plain}}
	}
	d.each(n, path, func(key, value *yaml.Node, path string) {
		k := Kind{Name: key.Value}
		if !validName(key.Value) || slices.ContainsFunc(s.Kinds, func(o Kind) bool { return o.Name == key.Value }) {
			d.fault(key, path, "%q is taken, or has other characters than small letters, digits and dashes", key.Value)
		}
		parts := int64(0)
		d.mapping(value, path, map[string]field{
			"text": d.text(&k.Text, 12000), "units": number(d, &k.Units, 1, 100), "parts": number(d, &parts, 1, 255),
			"format":       d.word(&k.Format, UCS2, ASCII, GBK),
			"unregistered": d.boolean(&k.Unregistered),
			"recipients":   number(d, &k.Recipients, 1, 99),
			"number":       d.digits(&k.Number, 5, 20),
			"src_id":       d.digits(&k.SrcID, 1, 21),
			"long":         func(n *yaml.Node, path string) { k.Long = d.long(n, path) },
			"refused": func(n *yaml.Node, path string) {
				words := make([]string, 0, len(Reasons))
				for word := range Reasons {
					words = append(words, word)
				}
				slices.Sort(words)
				d.word(&k.Refused, words...)(n, path)
			},
			"stat":   d.text(&k.Stat, 7),
			"result": number(d, &k.Result, 0, 255),
		})
		k.Parts = parts
		s.Kinds = append(s.Kinds, k)
	})
}

func (d *decoder) digits(dst *string, least, most int) field {
	return func(n *yaml.Node, path string) {
		before := len(d.faults)
		d.text(dst, most)(n, path)
		if len(d.faults) == before && (len(*dst) < least || strings.Trim(*dst, "0123456789") != "") {
			d.fault(n, path, "%q is not %d to %d digits", *dst, least, most)
		}
	}
}

func (d *decoder) long(n *yaml.Node, path string) *Long {
	l := &Long{Reference: 8, Connections: 1, Order: Natural}
	d.mapping(n, path, map[string]field{
		"reference": func(n *yaml.Node, path string) {
			before := len(d.faults)
			number(d, &l.Reference, 8, 16)(n, path)
			if len(d.faults) == before && l.Reference != 8 && l.Reference != 16 {
				d.fault(n, path, "%d bits, want 8 or 16", l.Reference)
			}
		},
		"connections": number(d, &l.Connections, 1, 64),
		"order":       d.word(&l.Order, Natural, Reversed, Random),
		"duplicate":   d.boolean(&l.Duplicate),
		"missing":     d.boolean(&l.Missing),
		"reused":      d.boolean(&l.Reused),
		"extra":       d.boolean(&l.Extra),
	})
	return l
}

// finishKinds fills in what a kind does not say and checks what no single value
// shows. n is the section messages, nil without one.
func (d *decoder) finishKinds(n *yaml.Node, path string, s *Scenario) {
	if s.Kinds == nil {
		s.Kinds = []Kind{{Name: Plain}}
	}
	plain := &s.Kinds[0]
	plain.Text, plain.Units = s.Content.Text, s.Content.Units
	for i := range s.Kinds {
		k := &s.Kinds[i]
		at, node := path+"."+k.Name, n
		if i > 0 {
			node = child(resolve(n), k.Name)
		}
		def(&k.Text, s.Content.Text)
		def(&k.Format, UCS2)
		def(&k.SrcID, SrcID)
		def(&k.Recipients, 1)
		if k.Units == 0 {
			k.Units = s.Content.Units
		}
		if k.Parts == 0 {
			k.Parts = k.Units
		}
		if k.Refused != "" {
			def(&k.Stat, Reasons[k.Refused].Stat)
		}
		if i == 0 {
			continue
		}
		switch size := octets(k); {
		case k.Long == nil && size > 140 && k.Format != ASCII, k.Long == nil && size > 160:
			d.fault(node, at+".text", "%d octets do not fit one SUBMIT; long sends segments", size)
		case k.Long != nil && k.Recipients > 1:
			d.fault(node, at+".recipients", "a long message goes to one recipient here")
		case k.Recipients > 1 && k.Number != "":
			d.fault(node, at+".number", "belongs to kinds with one recipient")
		case k.Stat != "" && k.Refused == "":
			d.fault(node, at+".stat", "belongs to refused")
		case k.Refused != "" && k.Result != 0:
			d.fault(node, at+".result", "what is refused at the entrance has no reason")
		}
	}
}

// SrcID is the customers' Src_Id by default: the extension that the gateway appends
// to a channel's access number.
const SrcID = "01"

func def[T comparable](v *T, d T) {
	var zero T
	if *v == zero {
		*v = d
	}
}

// octets is the length of a kind's text as it is sent.
func octets(k *Kind) int {
	text := strings.ReplaceAll(k.Text, "{n}", "000000")
	switch k.Format {
	case ASCII:
		return len(text)
	case GBK:
		n := 0
		for _, r := range text {
			if n++; r >= 0x80 {
				n++
			}
		}
		return n
	}
	return 2 * len(utf16.Encode([]rune(text)))
}

// mix decodes a phase's shares of kinds.
func (d *decoder) mix(n *yaml.Node, path string, s *Scenario, p *Phase) {
	sum := 0.0
	before := len(d.faults)
	d.each(n, path, func(key, value *yaml.Node, path string) {
		m := Share{Kind: slices.IndexFunc(s.Kinds, func(k Kind) bool { return k.Name == key.Value })}
		if m.Kind < 0 {
			d.fault(key, path, "no kind %q in messages", key.Value)
		}
		d.percent(&m.Share, 0.01, 100)(value, path)
		sum += m.Share
		p.Mix = append(p.Mix, m)
	})
	if len(d.faults) == before && math.Abs(sum-1) > 1e-9 {
		d.fault(n, path, "the shares add up to %.6g%%, not to 100%%", 100*sum)
	}
}

// resolvedKinds is the section messages of the resolved file.
func resolvedKinds(list []Kind) map[string]any {
	out := map[string]any{}
	for _, k := range list[1:] {
		m := map[string]any{"text": k.Text, "units": k.Units, "parts": k.Parts, "format": k.Format, "recipients": k.Recipients, "src_id": quoted(k.SrcID)}
		if k.Unregistered {
			m["unregistered"] = true
		}
		if k.Number != "" {
			m["number"] = quoted(k.Number)
		}
		if l := k.Long; l != nil {
			m["long"] = map[string]any{
				"reference": l.Reference, "connections": l.Connections, "order": l.Order, "duplicate": l.Duplicate,
				"missing": l.Missing, "reused": l.Reused, "extra": l.Extra,
			}
		}
		if k.Refused != "" {
			m["refused"], m["stat"] = k.Refused, k.Stat
		}
		if k.Result != 0 {
			m["result"] = k.Result
		}
		out[k.Name] = m
	}
	return out
}

// shares is a phase's mix for the resolved file.
func shares(s *Scenario, list []Share) map[string]string {
	out := map[string]string{}
	for _, m := range list {
		out[s.Kinds[m.Kind].Name] = percent(m.Share)
	}
	return out
}

// Policy is what the gateway is told to let pass, beside its defaults.
type Policy struct {
	// Signatures are approved for every enterprise.
	Signatures []string
	// Signature is off or required; empty leaves the gateway's default.
	Signature string
	// Templates are approved; Template is off, match or force.
	Templates []string
	Template  string
	// Keywords are rejected.
	Keywords []string
	// Blacklist are numbers that want no message from anybody.
	Blacklist []string
	// Most messages of an enterprise to one number; 0 leaves the default, negative is none.
	Minute, Hour, Day int
	// Quota of messages a day of the enterprise; 0 is none.
	Quota int
}

func (d *decoder) policy(n *yaml.Node, path string, p *Policy) {
	texts := func(dst *[]string, most int) field {
		return func(n *yaml.Node, path string) {
			d.list(n, path, func(n *yaml.Node, path string) {
				v := ""
				d.text(&v, most)(n, path)
				*dst = append(*dst, v)
			})
		}
	}
	d.mapping(n, path, map[string]field{
		"signatures": texts(&p.Signatures, 96),
		"signature":  d.word(&p.Signature, "off", "required"),
		"templates":  texts(&p.Templates, 2000),
		"template":   d.word(&p.Template, "off", "match", "force"),
		"keywords":   texts(&p.Keywords, 64),
		"blacklist": func(n *yaml.Node, path string) {
			d.list(n, path, func(n *yaml.Node, path string) {
				v := ""
				d.digits(&v, 5, 15)(n, path)
				p.Blacklist = append(p.Blacklist, v)
			})
		},
		"minute": number(d, &p.Minute, -1, 1000), "hour": number(d, &p.Hour, -1, 1000), "day": number(d, &p.Day, -1, 1000),
		"quota": number(d, &p.Quota, 0, 1<<40),
	})
}

func resolvedPolicy(p Policy) map[string]any {
	m := map[string]any{"minute": p.Minute, "hour": p.Hour, "day": p.Day, "quota": p.Quota}
	for key, list := range map[string][]string{"signatures": p.Signatures, "templates": p.Templates, "keywords": p.Keywords, "blacklist": p.Blacklist} {
		if len(list) > 0 {
			m[key] = quotes(list)
		}
	}
	for key, v := range map[string]string{"signature": p.Signature, "template": p.Template} {
		if v != "" {
			m[key] = v
		}
	}
	return m
}

// Uplinks are messages from handsets that the suppliers send during the load.
type Uplinks struct {
	// Count over Over, from the start of the load.
	Count int
	Over  time.Duration
	// Text of each, {n} its number; LongEvery of them has LongText instead, in segments in reversed order.
	Text, LongText string
	LongEvery      int
	// Extension behind the access number of the channel, as customers use it in Src_Id.
	Extension string
	// Replay repeats so many acknowledged DELIVERs of each account at the end.
	Replay int
}

func (d *decoder) uplinks(n *yaml.Node, path string, u *Uplinks) {
	u.Extension = SrcID
	d.mapping(n, path, map[string]field{
		"count": number(d, &u.Count, 1, 100_000), "over": d.duration(&u.Over, 100*time.Millisecond, time.Hour),
		"text": d.text(&u.Text, 400), "long_text": d.text(&u.LongText, 4000), "long_every": number(d, &u.LongEvery, 0, 100_000),
		"extension": d.digits(&u.Extension, 0, 12), "replay": number(d, &u.Replay, 0, 10_000),
	})
	d.need(n, path, "count", "over", "text")
	if u.LongEvery > 0 && u.LongText == "" {
		d.fault(n, path+".long_text", "missing: long_every asks for it")
	}
}

func resolvedUplinks(u Uplinks) map[string]any {
	m := map[string]any{"count": u.Count, "over": u.Over, "text": u.Text, "long_every": u.LongEvery, "extension": quoted(u.Extension), "replay": u.Replay}
	if u.LongText != "" {
		m["long_text"] = u.LongText
	}
	return m
}

// Longs says whether any uplink goes in segments.
func (u *Uplinks) Longs() bool { return u.LongEvery > 0 }

// describe a kind for people.
func (k *Kind) describe() string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s: %d units, %d parts", k.Name, k.Units, k.Parts)
	if k.Recipients > 1 {
		fmt.Fprintf(&b, ", %d recipients", k.Recipients)
	}
	if k.Long != nil {
		fmt.Fprintf(&b, ", segments in %s order", k.Long.Order)
	}
	if k.Refused != "" {
		fmt.Fprintf(&b, ", refused with %s (%s)", k.Refused, k.Stat)
	}
	if k.Result != 0 {
		fmt.Fprintf(&b, ", refused at the entrance with %d", k.Result)
	}
	return b.String()
}
