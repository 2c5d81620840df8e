package spec

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"slices"
	"strconv"
	"strings"

	"go.yaml.in/yaml/v4"
)

// Catalogue is the scenarios of one or more files.
type Catalogue struct {
	entries map[string]entry
}

// entry is one scenario as its file has it.
type entry struct {
	source        string
	defaults, own *yaml.Node
}

// Load reads files; a name in a later file replaces the same in an earlier one.
// A file that cannot be read or parsed is an error; what the scenarios say is
// looked at by Scenario and Check.
func Load(paths ...string) (*Catalogue, error) {
	c := &Catalogue{entries: map[string]entry{}}
	var faults FaultsError
	for _, path := range paths {
		raw, err := os.ReadFile(path)
		if err != nil {
			return nil, fmt.Errorf("scenario file: %w", err)
		}
		d := &decoder{source: path}
		root, err := parse(raw)
		if err != nil {
			return nil, FaultsError{{Source: path, Problem: strings.Join(strings.Fields(err.Error()), " ")}}
		}
		defaults := &yaml.Node{Kind: yaml.MappingNode}
		d.mapping(root, "", map[string]field{
			"defaults": func(n *yaml.Node, path string) {
				if n = resolve(n); n.Kind != yaml.MappingNode {
					d.fault(n, path, "want sections with values")
					return
				}
				defaults = n
			},
			"scenarios": func(n *yaml.Node, at string) {
				d.each(n, at, func(key, value *yaml.Node, at string) {
					value = resolve(value)
					if value.Kind != yaml.MappingNode {
						d.fault(value, at, "want sections with values")
						return
					}
					if !validName(key.Value) {
						d.fault(key, at, "a name has small letters, digits and dashes only")
					}
					c.entries[key.Value] = entry{source: path, own: value}
				})
			},
		})
		d.need(root, "", "scenarios")
		for name, e := range c.entries {
			if e.source == path {
				e.defaults = defaults
				c.entries[name] = e
			}
		}
		faults = append(faults, d.faults...)
	}
	if len(faults) > 0 {
		return nil, faults.sorted()
	}
	return c, nil
}

func validName(name string) bool {
	return name != "" && len(name) <= 60 && strings.Trim(name, "abcdefghijklmnopqrstuvwxyz0123456789-") == ""
}

// parse reads exactly one document.
func parse(raw []byte) (*yaml.Node, error) {
	dec := yaml.NewDecoder(bytes.NewReader(raw))
	var doc, more yaml.Node
	if err := dec.Decode(&doc); err != nil {
		if errors.Is(err, io.EOF) {
			return nil, errors.New("the file is empty")
		}
		return nil, err
	}
	if err := dec.Decode(&more); !errors.Is(err, io.EOF) {
		if err != nil {
			return nil, err
		}
		return nil, errors.New("a second document would be ignored; keep one")
	}
	return resolve(doc.Content[0]), nil
}

// Names lists the scenarios in order.
func (c *Catalogue) Names() []string { return slices.Sorted(maps.Keys(c.entries)) }

// Check reads every scenario and returns all faults of all of them, nil when
// there is none.
func (c *Catalogue) Check() error {
	var faults FaultsError
	for _, name := range c.Names() {
		_, err := c.Scenario(name, nil)
		if f, ok := errors.AsType[FaultsError](err); ok {
			faults = append(faults, f...)
		} else if err != nil {
			return err
		}
	}
	if len(faults) > 0 {
		return faults.sorted()
	}
	return nil
}

// Scenario resolves one scenario: the defaults, its own sections, and overrides
// as PATH=VALUE, such as gateway.supplier.barrier_rate=100 or
// phases.1.hold=5s. The error is *UnknownError or FaultsError.
func (c *Catalogue) Scenario(name string, sets []string) (*Scenario, error) {
	e, ok := c.entries[name]
	if !ok {
		return nil, &UnknownError{Name: name, Known: c.Names()}
	}
	d := &decoder{source: e.source, override: map[*yaml.Node]string{}}
	merged := &yaml.Node{Kind: yaml.MappingNode, Line: e.own.Line, Column: e.own.Column}
	own := map[string]bool{}
	for i := 0; i+1 < len(e.own.Content); i += 2 {
		own[e.own.Content[i].Value] = true
	}
	if e.defaults != nil {
		for i := 0; i+1 < len(e.defaults.Content); i += 2 {
			if !own[e.defaults.Content[i].Value] {
				merged.Content = append(merged.Content, e.defaults.Content[i], e.defaults.Content[i+1])
			}
		}
	}
	merged.Content = append(merged.Content, e.own.Content...)
	if len(sets) > 0 {
		merged = clone(merged) // defaults are shared between scenarios
		for _, set := range sets {
			d.set(merged, set)
		}
	}
	s := d.scenario(name, merged, "scenarios."+name)
	if len(d.faults) > 0 {
		return nil, d.faults.sorted()
	}
	return s, nil
}

func clone(n *yaml.Node) *yaml.Node {
	n = resolve(n)
	c := *n
	c.Content = make([]*yaml.Node, len(n.Content))
	for i := range n.Content {
		c.Content[i] = clone(n.Content[i])
	}
	return &c
}

// set puts the value of PATH=VALUE into the tree.
func (d *decoder) set(root *yaml.Node, set string) {
	source := "--set " + set
	bad := func(problem string) {
		d.faults = append(d.faults, Fault{Source: source, Problem: problem})
	}
	path, text, ok := strings.Cut(set, "=")
	if !ok || path == "" {
		bad("want PATH=VALUE, as in gateway.supplier.barrier_rate=100")
		return
	}
	value, err := parse([]byte(text))
	if err != nil {
		bad("the value is not YAML: " + strings.Join(strings.Fields(err.Error()), " "))
		return
	}
	d.mark(value, source)
	at := root
	keys := strings.Split(path, ".")
	for i, key := range keys {
		last := i == len(keys)-1
		if at.Kind == yaml.SequenceNode {
			index, err := strconv.Atoi(key)
			if err != nil || index < 0 || index >= len(at.Content) {
				bad(fmt.Sprintf("%s: %q is not an index below %d", strings.Join(keys[:i+1], "."), key, len(at.Content)))
				return
			}
			if last {
				at.Content[index] = value
			}
			at = at.Content[index]
			continue
		}
		if at.Kind != yaml.MappingNode {
			bad(strings.Join(keys[:i], ".") + " has no parts")
			return
		}
		at = d.enter(at, key, source, last, value)
	}
}

// enter goes to the value of key, making it when it is not there.
func (d *decoder) enter(at *yaml.Node, key, source string, last bool, value *yaml.Node) *yaml.Node {
	for j := 0; j+1 < len(at.Content); j += 2 {
		if at.Content[j].Value == key {
			if last {
				at.Content[j+1] = value
			}
			return at.Content[j+1]
		}
	}
	name := &yaml.Node{Kind: yaml.ScalarNode, Tag: "!!str", Value: key}
	next := value
	if !last {
		next = &yaml.Node{Kind: yaml.MappingNode}
		d.override[next] = source
	}
	d.override[name] = source
	at.Content = append(at.Content, name, next)
	return next
}

func (d *decoder) mark(n *yaml.Node, source string) {
	d.override[n] = source
	for _, c := range n.Content {
		d.mark(c, source)
	}
}
