package seed

import (
	"bytes"
	"fmt"
	"os"
	"slices"
	"strings"

	"go.yaml.in/yaml/v4"

	"cmppgateway/gateway/internal/manage"
)

// sections are the lists of a file in the order in which their rows refer to each other.
var sections = []section{
	{"enterprises", "enterprises"},
	{"enterprise_policies", "enterprise-policies"},
	{"suppliers", "supplier-accounts"},
	{"channels", "channels"},
	{"groups", "groups"},
	{"applications", "applications"},
	{"application_policies", "application-policies"},
	{"application_stats", "application-stats"},
	{"application_addresses", "application-addresses"},
	{"signatures", "signatures"},
	{"templates", "templates"},
	{"keywords", "keywords"},
	{"opt_outs", "opt-outs"},
	{"prefix_rules", "prefix-rules"},
	{"number_overrides", "number-overrides"},
	{"result_classes", "result-classes"},
}

type section struct{ name, resource string }

// File is a seed file taken apart.
type File struct {
	path   string
	rows   []row
	faults faults
}

// row is one row that the file wants.
type row struct {
	label    string // section, for messages
	resource *manage.Resource
	doc      manage.Doc
	line     int
	lines    map[string]int // by field
	opening  int64          // enterprises: first balance
	credit   *int64         // enterprises
	members  []string       // groups: the channels named; others leave
}

// fault is one thing wrong with a file.
type fault struct {
	line int
	text string
}

type faults []fault

func (f *faults) add(line int, format string, args ...any) {
	*f = append(*f, fault{line, fmt.Sprintf(format, args...)})
}

// FaultsError is everything wrong with a file, each with its line.
type FaultsError []string

// Error is one line a fault.
func (f FaultsError) Error() string { return strings.Join(f, "\n") }

// err is the faults in the order of their lines, nil for none.
func (f faults) err(path string) error {
	if len(f) == 0 {
		return nil
	}
	slices.SortStableFunc(f, func(a, b fault) int { return a.line - b.line })
	list := make(FaultsError, len(f))
	for i := range f {
		list[i] = fmt.Sprintf("%s:%d: %s", path, f[i].line, f[i].text)
	}
	return list
}

// Load reads a file. Its error is one of reading or of the YAML; what is wrong with the rows is in Faults, and comes with
// Apply together with what only the database can tell.
func Load(path string) (*File, error) {
	raw, err := os.ReadFile(path)
	if err != nil {
		return nil, fmt.Errorf("seed: %w", err)
	}
	var root yaml.Node
	if len(bytes.TrimSpace(raw)) > 0 {
		if err := yaml.Load(raw, &root); err != nil {
			return nil, fmt.Errorf("seed %s: %w", path, err)
		}
	}
	f := &File{path: path}
	f.take(&root)
	f.check()
	return f, nil
}

// Faults is everything that can be said about the file without a database.
func (f *File) Faults() error { return slices.Clone(f.faults).err(f.path) }

func (f *File) take(root *yaml.Node) {
	if root.Kind == yaml.DocumentNode && len(root.Content) > 0 {
		root = root.Content[0]
	}
	if root.Kind == 0 {
		return
	}
	if root.Kind != yaml.MappingNode {
		f.faults.add(root.Line, "the file is no mapping of sections to lists")
		return
	}
	byName := map[string]*yaml.Node{}
	f.pairs(root, "", func(key, value *yaml.Node) {
		if !slices.ContainsFunc(sections, func(s section) bool { return s.name == key.Value }) {
			names := make([]string, len(sections))
			for i := range sections {
				names[i] = sections[i].name
			}
			f.faults.add(key.Line, "%s: no such section; sections are %s", key.Value, strings.Join(names, ", "))
			return
		}
		byName[key.Value] = value
	})
	for _, s := range sections {
		list := byName[s.name]
		if list == nil || list.Tag == "!!null" {
			continue
		}
		if list.Kind != yaml.SequenceNode {
			f.faults.add(list.Line, "%s: must be a list", s.name)
			continue
		}
		for _, n := range list.Content {
			f.item(s, n)
		}
	}
}

// pairs hands out the entries of a mapping; a key that comes twice is a fault.
func (f *File) pairs(n *yaml.Node, label string, take func(key, value *yaml.Node)) {
	seen := map[string]bool{}
	for i := 0; i+1 < len(n.Content); i += 2 {
		key, value := n.Content[i], n.Content[i+1]
		if value.Kind == yaml.AliasNode {
			value = value.Alias
		}
		if seen[key.Value] {
			f.faults.add(key.Line, "%s%s: comes twice", label, key.Value)
			continue
		}
		seen[key.Value] = true
		take(key, value)
	}
}

// item takes one row apart, and the rows that it carries.
func (f *File) item(s section, n *yaml.Node) {
	if n.Kind == yaml.AliasNode {
		n = n.Alias
	}
	r := row{label: s.name, resource: manage.ByName(s.resource), doc: manage.Doc{}, line: n.Line, lines: map[string]int{}}
	if n.Kind != yaml.MappingNode {
		f.faults.add(n.Line, "%s: must be a mapping of fields", s.name)
		return
	}
	var carried []row
	f.pairs(n, s.name+".", func(key, value *yaml.Node) {
		r.lines[key.Value] = key.Line
		switch s.name + "." + key.Value {
		case "enterprises.opening":
			r.opening = f.amount(s.name+".opening", value)
		case "enterprises.credit":
			credit := f.amount(s.name+".credit", value)
			r.credit = &credit
		case "groups.members":
			carried, r.members = f.members(n, value)
		case "applications.routes":
			carried = append(carried, f.routes(n, value)...)
		default:
			r.doc[key.Value] = f.value(r.resource.Field(key.Value), value)
		}
	})
	if s.name == "groups" && len(r.members) == 0 {
		f.faults.add(n.Line, "groups.members: empty, must be at least one channel")
	}
	f.rows = append(append(f.rows, r), carried...)
}

// value is a node as the field wants it: digits of a text field need no quotes.
func (f *File) value(field *manage.Field, n *yaml.Node) any {
	if field != nil && field.IsText() && n.Kind == yaml.ScalarNode && n.Tag != "!!null" {
		return n.Value
	}
	var v any
	if err := n.Load(&v); err != nil {
		f.faults.add(n.Line, "%v", err)
	}
	return v
}

func (f *File) amount(label string, n *yaml.Node) int64 {
	var v int64
	if err := n.Load(&v); err != nil || v < 0 || v > manage.TopUpMax {
		f.faults.add(n.Line, "%s: %s, must be 0..%d", label, n.Value, int64(manage.TopUpMax))
	}
	return v
}

func field(n *yaml.Node, name string) any {
	for i := 0; i+1 < len(n.Content); i += 2 {
		if n.Content[i].Value == name {
			var v any
			_ = n.Content[i+1].Load(&v) // the group or application itself reports it
			if name == "sp_id" {
				return n.Content[i+1].Value
			}
			return v
		}
	}
	return nil
}

// members are the rows of a group's members.
func (f *File) members(group, n *yaml.Node) (rows []row, names []string) {
	if n.Kind != yaml.SequenceNode {
		f.faults.add(n.Line, "groups.members: must be a list")
		return nil, nil
	}
	for _, m := range n.Content {
		r := row{label: "groups.members", resource: manage.ByName("group-members"), doc: manage.Doc{"group": field(group, "name")}, line: m.Line, lines: map[string]int{}}
		if m.Kind != yaml.MappingNode {
			f.faults.add(m.Line, "groups.members: must be mappings with channel, priority and weight")
			continue
		}
		f.pairs(m, "groups.members.", func(key, value *yaml.Node) {
			r.lines[key.Value] = key.Line
			r.doc[key.Value] = f.value(r.resource.Field(key.Value), value)
		})
		if w, ok := r.doc["weight"].(int); ok && w == 0 { // as left out
			delete(r.doc, "weight")
		}
		names = append(names, fmt.Sprint(r.doc["channel"]))
		rows = append(rows, r)
	}
	return rows, names
}

// routes are the rows of an application's routes, carrier to group.
func (f *File) routes(app, n *yaml.Node) (rows []row) {
	if n.Kind != yaml.MappingNode {
		f.faults.add(n.Line, "applications.routes: must be a mapping of carriers to groups")
		return nil
	}
	f.pairs(n, "applications.routes.", func(key, value *yaml.Node) {
		r := row{label: "applications.routes", resource: manage.ByName("application-routes"), line: key.Line, lines: map[string]int{}}
		var group any
		_ = value.Load(&group) // a group that is none is a fault of its own
		r.doc = manage.Doc{"application": field(app, "sp_id"), "carrier": key.Value, "group": group}
		rows = append(rows, r)
	})
	return rows
}

// check adds what is wrong with each row by itself, and rows that come twice.
func (f *File) check() {
	seen := map[string]int{}
	for i := range f.rows {
		r := &f.rows[i]
		for _, w := range r.resource.Faults(r.doc) {
			f.fault(r, w)
		}
		for j := range r.resource.Fields {
			fd := &r.resource.Fields[j]
			v, there := r.doc[fd.Name]
			isKey := len(r.resource.Key) == 1 && r.resource.Key[0] == fd.Name
			if !there || !fd.Unique && !isKey {
				continue
			}
			key := fmt.Sprint(r.resource.Name, "\x00", fd.Name, "\x00", v)
			if line, twice := seen[key]; twice {
				f.faults.add(r.lineOf(fd.Name), "%s.%s: %v, must be unique; line %d has it", r.label, fd.Name, v, line)
			}
			seen[key] = r.line
		}
	}
}

func (r *row) lineOf(field string) int {
	if line, ok := r.lines[field]; ok {
		return line
	}
	return r.line
}

func (f *File) fault(r *row, w manage.Fault) {
	w.Field = strings.TrimPrefix(r.label+"."+w.Field, ".")
	f.faults.add(r.lineOf(strings.TrimPrefix(w.Field, r.label+".")), "%s", w.String())
}
