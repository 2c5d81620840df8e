package manage

import (
	"encoding/json"
	"fmt"
	"net"
	"net/netip"
	"strconv"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"
)

// Field is one value of a resource, under one name in the API, in seed files and in error messages.
type Field struct {
	Name     string
	Column   string // "" = Name
	Type     Type
	Default  any  // as written by people; nil = none
	Required bool // when a row is made
	Null     bool // null is a value, for "none"
	Fixed    bool // set when a row is made and never again
	ReadOnly bool // never set by a caller
	Secret   bool // taken, never shown, logged or audited
	Hidden   bool // not shown: another resource does
	Unique   bool // no other row of the resource may have it
	Volatile bool // changes by itself: not part of the version of the row
	Doc      string
}

func (f *Field) column() string {
	if f.Column == "" {
		return f.Name
	}
	return f.Column
}

// Type reads, shows and describes the values of a field.
type Type interface {
	// parse is v as stored; allowed says what is allowed, when v is not.
	parse(v any) (stored any, allowed string)
	// show is a stored value as people see it.
	show(stored any) any
	// Schema is the JSON schema of the shown value.
	Schema() map[string]any
}

// integer is a whole number from lo to hi.
type integer struct{ lo, hi int64 }

func (t integer) parse(v any) (any, string) {
	n, ok := whole(v)
	if !ok || n < t.lo || n > t.hi {
		return nil, fmt.Sprintf("%d..%d", t.lo, t.hi)
	}
	return n, ""
}

func (t integer) show(stored any) any { return stored }

func (t integer) Schema() map[string]any {
	return map[string]any{"type": "integer", "minimum": t.lo, "maximum": t.hi}
}

func whole(v any) (int64, bool) {
	switch v := v.(type) {
	case json.Number:
		n, err := v.Int64()
		return n, err == nil
	case int:
		return int64(v), true
	case int64:
		return v, true
	case int32:
		return int64(v), true
	case uint64:
		return int64(v), v <= 1<<63-1
	}
	return 0, false
}

// boolean is true or false.
type boolean struct{}

func (boolean) parse(v any) (any, string) {
	if b, ok := v.(bool); ok {
		return b, ""
	}
	return nil, "true or false"
}

func (boolean) show(stored any) any { return stored }

func (boolean) Schema() map[string]any { return map[string]any{"type": "boolean"} }

// text is lo to hi octets of UTF-8 without control characters, in a form when there is one.
type text struct {
	lo, hi int
	form   form
}

// form is what a text must look like.
type form struct {
	name string
	ok   func(string) bool
	norm func(string) string // nil = as it is
}

var (
	digits   = form{name: "digits", ok: onlyDigits}
	hostPort = form{name: "host:port", ok: func(s string) bool {
		host, port, err := net.SplitHostPort(s)
		n, perr := strconv.ParseUint(port, 10, 16)
		return err == nil && perr == nil && host != "" && n > 0
	}}
	// ascii is what fits the octet strings of CMPP: no blanks, no octets above 126.
	ascii = form{name: "visible ASCII", ok: func(s string) bool {
		return strings.IndexFunc(s, func(r rune) bool { return r <= ' ' || r > '~' }) < 0
	}}
	cidr = form{
		name: "an address or network as in 192.0.2.0/24",
		ok:   func(s string) bool { _, err := parseNetwork(s); return err == nil },
		norm: func(s string) string { p, _ := parseNetwork(s); return p.String() }, // ok came first
	}
)

func onlyDigits(s string) bool { return strings.Trim(s, "0123456789") == "" }

// parseNetwork takes a single address for the network of that address alone.
func parseNetwork(s string) (netip.Prefix, error) {
	if a, err := netip.ParseAddr(s); err == nil {
		return netip.PrefixFrom(a, a.BitLen()), nil
	}
	p, err := netip.ParsePrefix(s)
	return p.Masked(), err
}

func (t text) allowed() string {
	s := fmt.Sprintf("%d..%d octets", t.lo, t.hi)
	if t.form.name != "" {
		s += ", " + t.form.name
	}
	return s
}

func (t text) parse(v any) (any, string) {
	s, ok := v.(string)
	if !ok || len(s) < t.lo || len(s) > t.hi || !utf8.ValidString(s) || strings.IndexFunc(s, unicode.IsControl) >= 0 {
		return nil, t.allowed()
	}
	if s != "" && t.form.ok != nil && !t.form.ok(s) {
		return nil, t.allowed()
	}
	if s != "" && t.form.norm != nil {
		s = t.form.norm(s)
	}
	return s, ""
}

func (t text) show(stored any) any { return stored }

func (t text) Schema() map[string]any {
	return map[string]any{"type": "string", "description": t.allowed()}
}

// Word is one word of an enumeration with the number stored for it.
type Word struct {
	Text string
	N    int64
}

// enum is one of words; only shown are words that rows may have but callers may not set.
type enum struct {
	words     []Word
	onlyShown []Word
}

func (t enum) parse(v any) (any, string) {
	s, ok := v.(string)
	for _, w := range t.words {
		if ok && w.Text == s {
			return w.N, ""
		}
	}
	return nil, "one of " + strings.Join(texts(t.words), ", ")
}

func (t enum) show(stored any) any {
	n, ok := whole(stored)
	for _, list := range [][]Word{t.words, t.onlyShown} {
		for _, w := range list {
			if ok && w.N == n {
				return w.Text
			}
		}
	}
	return fmt.Sprint(stored)
}

func (t enum) Schema() map[string]any {
	return map[string]any{"type": "string", "enum": append(texts(t.words), texts(t.onlyShown)...)}
}

func texts(words []Word) []string {
	list := make([]string, len(words))
	for i, w := range words {
		list[i] = w.Text
	}
	return list
}

// ref is the id of a row of another resource; callers may give its name instead.
type ref struct {
	to   string
	zero string // what 0 means; "" = 0 is not allowed
}

// byName is a reference that still has to be looked up.
type byName string

func (t ref) allowed() string {
	s := "the id or name of one of " + t.to
	if t.zero != "" {
		s += ", or 0 for " + t.zero
	}
	return s
}

func (t ref) parse(v any) (any, string) {
	if s, ok := v.(string); ok && s != "" && len(s) <= 100 {
		return byName(s), ""
	}
	n, ok := whole(v)
	if !ok || n < 0 || n > 1<<31-1 || n == 0 && t.zero == "" {
		return nil, t.allowed()
	}
	return n, ""
}

func (t ref) show(stored any) any { return stored }

func (t ref) Schema() map[string]any {
	return map[string]any{"type": []string{"integer", "string"}, "description": t.allowed()}
}

// instant is a point in time, stored and shown in UTC (P12).
type instant struct{}

func (instant) parse(v any) (any, string) {
	if t, ok := v.(time.Time); ok {
		return t.UTC().Format(time.RFC3339Nano), ""
	}
	s, _ := v.(string)
	t, err := time.Parse(time.RFC3339, s)
	if err != nil {
		return nil, "a time with its zone, as in 2026-01-31T00:00:00+08:00"
	}
	return t.UTC().Format(time.RFC3339Nano), ""
}

func (instant) show(stored any) any {
	s, _ := stored.(string)
	t, err := time.Parse(time.RFC3339Nano, s)
	if err != nil {
		return stored
	}
	return t.UTC().Format(time.RFC3339Nano)
}

func (instant) Schema() map[string]any {
	return map[string]any{"type": "string", "format": "date-time"}
}

// list is up to max values of one type.
type list struct {
	of  Type
	max int
}

func (t list) parse(v any) (any, string) {
	in, ok := v.([]any)
	if !ok {
		return nil, fmt.Sprintf("a list of up to %d", t.max)
	}
	if len(in) > t.max {
		return nil, fmt.Sprintf("at most %d", t.max)
	}
	out := make([]any, len(in))
	for i := range in {
		stored, allowed := t.of.parse(in[i])
		if allowed != "" {
			return nil, "a list of: " + allowed
		}
		out[i] = stored
	}
	return out, ""
}

func (t list) show(stored any) any {
	in, ok := stored.([]any)
	if !ok {
		return []any{}
	}
	out := make([]any, len(in))
	for i := range in {
		out[i] = t.of.show(in[i])
	}
	return out
}

func (t list) Schema() map[string]any {
	return map[string]any{"type": "array", "maxItems": t.max, "items": t.of.Schema()}
}
