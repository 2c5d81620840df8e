package spec

import (
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"go.yaml.in/yaml/v4"
)

// decoder turns nodes into values and keeps every fault. Going over the nodes
// by hand is what gives each value its place, also where the value is a number
// out of range and not only a word that does not parse.
type decoder struct {
	source string
	// override gives the source of nodes that came from the command line.
	override map[*yaml.Node]string
	faults   FaultsError
}

// field decodes the node of one key.
type field func(n *yaml.Node, path string)

func (d *decoder) fault(n *yaml.Node, path, format string, args ...any) {
	f := Fault{Source: d.source, Line: n.Line, Column: n.Column, Path: path, Problem: fmt.Sprintf(format, args...)}
	if from, ok := d.override[n]; ok {
		f.Source, f.Line, f.Column = from, 0, 0
	}
	d.faults = append(d.faults, f)
}

func resolve(n *yaml.Node) *yaml.Node {
	for n.Kind == yaml.AliasNode {
		n = n.Alias
	}
	return n
}

func join(path, key string) string {
	if path == "" {
		return key
	}
	return path + "." + key
}

// mapping decodes the keys of n; keys without a field and repeated keys are faults.
func (d *decoder) mapping(n *yaml.Node, path string, fields map[string]field) {
	d.each(n, path, func(key, value *yaml.Node, path string) {
		f, ok := fields[key.Value]
		if !ok {
			d.fault(key, path, "unknown key; known are %s", strings.Join(slices.Sorted(maps.Keys(fields)), ", "))
			return
		}
		f(value, path)
	})
}

func (d *decoder) each(n *yaml.Node, path string, f func(key, value *yaml.Node, path string)) {
	n = resolve(n)
	if n.Kind != yaml.MappingNode {
		d.fault(n, path, "want keys with values")
		return
	}
	seen := map[string]bool{}
	for i := 0; i+1 < len(n.Content); i += 2 {
		key := n.Content[i]
		at := join(path, key.Value)
		if seen[key.Value] {
			d.fault(key, at, "given twice")
			continue
		}
		seen[key.Value] = true
		f(key, n.Content[i+1], at)
	}
}

// need makes a fault for each key that is not there.
func (d *decoder) need(n *yaml.Node, path string, keys ...string) {
	n = resolve(n)
	if n.Kind != yaml.MappingNode {
		return
	}
	for _, key := range keys {
		if child(n, key) == nil {
			d.fault(n, join(path, key), "missing")
		}
	}
}

func child(n *yaml.Node, key string) *yaml.Node {
	for i := 0; i+1 < len(n.Content); i += 2 {
		if n.Content[i].Value == key {
			return n.Content[i+1]
		}
	}
	return nil
}

func (d *decoder) list(n *yaml.Node, path string, f func(n *yaml.Node, path string)) {
	n = resolve(n)
	if n.Kind != yaml.SequenceNode {
		d.fault(n, path, "want a list")
		return
	}
	for i, item := range n.Content {
		f(item, fmt.Sprintf("%s[%d]", path, i))
	}
}

func (d *decoder) scalar(n *yaml.Node, path, want string) (string, bool) {
	n = resolve(n)
	if n.Kind != yaml.ScalarNode || n.ShortTag() == "!!null" {
		d.fault(n, path, "want %s", want)
		return "", false
	}
	return n.Value, true
}

func (d *decoder) text(dst *string, most int) field {
	return func(n *yaml.Node, path string) {
		v, ok := d.scalar(n, path, "text")
		switch {
		case !ok:
		case resolve(n).ShortTag() != "!!str":
			d.fault(n, path, "%s is not text; put it in quotes", v)
		case v == "" || len(v) > most:
			d.fault(n, path, "want 1 to %d octets of text", most)
		default:
			*dst = v
		}
	}
}

func (d *decoder) word(dst *string, words ...string) field {
	return func(n *yaml.Node, path string) {
		if v, ok := d.scalar(n, path, "one of "+strings.Join(words, ", ")); ok {
			if !slices.Contains(words, v) {
				d.fault(n, path, "%q is none of %s", v, strings.Join(words, ", "))
				return
			}
			*dst = v
		}
	}
}

func (d *decoder) boolean(dst *bool) field {
	return func(n *yaml.Node, path string) {
		switch v, ok := d.scalar(n, path, "true or false"); {
		case !ok:
		case v == "true":
			*dst = true
		case v == "false":
			*dst = false
		default:
			d.fault(n, path, "%q is neither true nor false", v)
		}
	}
}

var (
	leadingZero = regexp.MustCompile(`^[-+]?0[0-9]`)
	wholeNumber = regexp.MustCompile(`^-?[0-9]+$`)
)

// number decodes a whole number between low and high.
func number[T int | int64 | uint64 | uint32](d *decoder, dst *T, low, high int64) field {
	return func(n *yaml.Node, path string) {
		v, ok := d.scalar(n, path, "a whole number")
		if !ok {
			return
		}
		if leadingZero.MatchString(v) {
			d.fault(n, path, "%s starts with a zero, which YAML may read as octal; write it without", v)
			return
		}
		i, err := strconv.ParseInt(v, 10, 64)
		switch {
		case !wholeNumber.MatchString(v) || err != nil:
			d.fault(n, path, "%q is not a whole number", v)
		case i < low || i > high:
			d.fault(n, path, "%d is not in %d…%d", i, low, high)
		default:
			*dst = T(i)
		}
	}
}

func (d *decoder) real(dst *float64, low, high float64) field {
	return func(n *yaml.Node, path string) {
		v, ok := d.scalar(n, path, "a number")
		if !ok {
			return
		}
		if leadingZero.MatchString(v) {
			d.fault(n, path, "%s starts with a zero, which YAML may read as octal; write it without", v)
			return
		}
		x, err := strconv.ParseFloat(v, 64)
		switch {
		case err != nil || x != x:
			d.fault(n, path, "%q is not a number", v)
		case x < low || x > high:
			d.fault(n, path, "%s is not in %g…%g", v, low, high)
		default:
			*dst = x
		}
	}
}

// percent decodes "60%" to 0.6.
func (d *decoder) percent(dst *float64, low, high float64) field {
	return func(n *yaml.Node, path string) {
		v, ok := d.scalar(n, path, "a percentage such as 60%")
		if !ok {
			return
		}
		bare, found := strings.CutSuffix(v, "%")
		x, err := strconv.ParseFloat(bare, 64)
		switch {
		case leadingZero.MatchString(v):
			d.fault(n, path, "%s starts with a zero", v)
		case !found || err != nil || x != x:
			d.fault(n, path, "%q is not a percentage such as 60%%", v)
		case x < low || x > high:
			d.fault(n, path, "%s is not in %g%%…%g%%", v, low, high)
		default:
			*dst = x / 100
		}
	}
}

func (d *decoder) duration(dst *time.Duration, low, high time.Duration) field {
	return func(n *yaml.Node, path string) {
		v, ok := d.scalar(n, path, "a duration with its unit, such as 500ms or 10s")
		if !ok {
			return
		}
		x, err := time.ParseDuration(v)
		switch {
		case leadingZero.MatchString(v):
			d.fault(n, path, "%s starts with a zero", v)
		case err != nil || !strings.ContainsAny(v, "hmsuµn"):
			d.fault(n, path, "%q is not a duration with its unit, such as 500ms or 10s", v)
		case x < low || x > high:
			d.fault(n, path, "%s is not in %s…%s", v, low, high)
		default:
			*dst = x
		}
	}
}
