package manage

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
)

// Role is what a token may do.
type Role uint8

// Roles. Each route and resource names a set of them.
const (
	Viewer Role = 1 << iota
	Operator
	Finance
	Admin

	Everyone = Viewer | Operator | Finance | Admin
)

// RoleWords are the roles by name.
var RoleWords = []Word{{"viewer", int64(Viewer)}, {"operator", int64(Operator)}, {"finance", int64(Finance)}, {"admin", int64(Admin)}}

// String is the name of a single role, the names of a set joined by commas.
func (r Role) String() string {
	var names []string
	for _, w := range RoleWords {
		if r&Role(w.N) != 0 {
			names = append(names, w.Text)
		}
	}
	return strings.Join(names, ",")
}

// ParseRole reads a single role.
func ParseRole(s string) (Role, error) {
	n, allowed := enum{words: RoleWords}.parse(s)
	if allowed != "" {
		return 0, FaultsError{{Field: "role", Value: s, Allowed: allowed}}
	}
	return Role(n.(int64)), nil
}

// Doc is a row as people write and see it: by field name.
type Doc map[string]any

// Resource is one kind of rows that people edit: a table of the database, or a part of its columns.
type Resource struct {
	Name   string // plural, as in paths
	Title  string // singular, for people
	Table  string
	Fields []Field
	Key    []string // names of the fields of its key, in the order of paths and lists
	Newest bool     // listed from the highest key down
	Read   Role
	Make   Role     // 0 = rows are not made through this resource
	Edit   Role     // 0 = never edited
	Remove Role     // 0 = never removed
	Filter []string // fields that a list can be narrowed by

	// NextID gives a row without an id the next free one.
	NextID bool
	// Silent resources are no settings: changing them raises no version.
	Silent bool

	// natural are the fields that a row is known by where the database gives its id.
	natural []string
	// adopt changes what only operations of their own can change, when a file puts a row that exists.
	adopt func(ctx context.Context, c *Change, old, columns map[string]any) error
	// deleted, when set, is written instead of removing the row: the past still speaks of it.
	deleted func(c *Change) map[string]any
	// revive is written over a row that gone calls deleted when it is made again.
	revive map[string]any
	gone   func(row map[string]any) bool
	// check adds what a declaration cannot say, and may add columns. before is nil for a new row, columns for a removed one.
	check func(ctx context.Context, c *Change, before, columns map[string]any) (FaultsError, error)
	// done runs after the row was written.
	done func(ctx context.Context, c *Change, before, after map[string]any) error
}

// ByName finds a resource; nil when there is none.
func ByName(name string) *Resource {
	for _, r := range declared {
		if r.Name == name {
			return r
		}
	}
	return nil
}

// Field finds a field; nil when there is none.
func (r *Resource) Field(name string) *Field {
	for i := range r.Fields {
		if r.Fields[i].Name == name {
			return &r.Fields[i]
		}
	}
	return nil
}

// lookup is the column of the names by which rows are referred to; "" for rows without.
func (r *Resource) lookup() string {
	for _, name := range []string{"sp_id", "name"} {
		if f := r.Field(name); f != nil && f.Unique {
			return f.column()
		}
	}
	return ""
}

// Faults is what is wrong with the fields of a row to be made, whatever is in the database.
func (r *Resource) Faults(given Doc) FaultsError {
	_, faults := r.read(given, true)
	return faults
}

// RefersTo is the name of the resource that a field refers to, or "".
func (f *Field) RefersTo() string {
	t, _ := f.Type.(ref)
	return t.to
}

// IsText says that a field's values are written as text, digits too.
func (f *Field) IsText() bool {
	switch f.Type.(type) {
	case text, phone, enum:
		return true
	}
	return false
}

func (r *Resource) names(settable bool) []string {
	var list []string
	for i := range r.Fields {
		if !settable || !r.Fields[i].ReadOnly {
			list = append(list, r.Fields[i].Name)
		}
	}
	return list
}

func (r *Resource) keyColumns() []string {
	list := make([]string, len(r.Key))
	for i, k := range r.Key {
		list[i] = r.Field(k).column()
	}
	return list
}

// keyOf is the key of a stored row.
func (r *Resource) keyOf(row map[string]any) map[string]any {
	key := make(map[string]any, len(r.Key))
	for _, c := range r.keyColumns() {
		key[c] = row[c]
	}
	return key
}

// escape leaves what people read readable and makes the parts of a path tell apart.
var escape = strings.NewReplacer("%", "%25", "/", "%2F", "?", "%3F", "#", "%23")

// empty stands for an empty text in a path.
const empty = "-"

// Path is the key of a shown row as in paths: its values joined by slashes.
func (r *Resource) Path(d Doc) string {
	parts := make([]string, len(r.Key))
	for i, k := range r.Key {
		if parts[i] = escape.Replace(fmt.Sprint(d[k])); parts[i] == "" {
			parts[i] = empty
		}
	}
	return strings.Join(parts, "/")
}

// show is a stored row as people see it.
func (r *Resource) show(row map[string]any) Doc {
	if row == nil {
		return nil
	}
	d := make(Doc, len(r.Fields))
	for i := range r.Fields {
		f := &r.Fields[i]
		if f.Secret || f.Hidden {
			continue
		}
		v := row[f.column()]
		if v != nil {
			v = f.Type.show(v)
		}
		d[f.Name] = v
	}
	return d
}

// withSecrets says of secrets, for the audit, that they were given.
func (r *Resource) withSecrets(shown Doc, before, after map[string]any) Doc {
	for i := range r.Fields {
		f := &r.Fields[i]
		if !f.Secret || after == nil || before != nil && before[f.column()] == after[f.column()] {
			continue
		}
		shown = maps.Clone(shown)
		shown[f.Name] = "(set)"
	}
	return shown
}

// ETag names the version of a row: rows that look the same have the same.
func (r *Resource) ETag(d Doc) string {
	kept := make(Doc, len(d))
	for k, v := range d {
		if f := r.Field(k); f == nil || !f.Volatile {
			kept[k] = v
		}
	}
	raw, _ := json.Marshal(kept) // maps of numbers, texts and lists of them cannot fail
	sum := sha256.Sum256(raw)
	return `"` + hex.EncodeToString(sum[:8]) + `"`
}

// read takes given values apart: columns to write, references to look up by name, faults. For a new row it fills in
// defaults and misses what is required.
func (r *Resource) read(given Doc, isNew bool) (columns map[string]any, faults FaultsError) {
	columns = make(map[string]any, len(given))
	for name, v := range given {
		f := r.Field(name)
		switch {
		case f == nil:
			faults = append(faults, Fault{Field: name, Value: cut(v), Allowed: "left out, there is no such field; fields are " + strings.Join(r.names(true), ", ")})
			continue
		case f.ReadOnly:
			faults = append(faults, Fault{Field: name, Value: cut(v), Allowed: "left out, it cannot be set"})
			continue
		case v == nil && f.Null:
			columns[f.column()] = nil
			continue
		}
		stored, allowed := f.Type.parse(v)
		if allowed != "" {
			if f.Secret {
				v = "xxxxx"
			}
			faults = append(faults, Fault{Field: name, Value: cut(v), Allowed: allowed})
			continue
		}
		columns[f.column()] = stored
	}
	if isNew {
		faults = append(faults, r.fill(given, columns)...)
	}
	slices.SortFunc(faults, func(a, b Fault) int { return strings.Compare(a.Field, b.Field) })
	return columns, faults
}

func (r *Resource) fill(given Doc, columns map[string]any) (faults FaultsError) {
	for i := range r.Fields {
		f := &r.Fields[i]
		if _, there := given[f.Name]; there || f.ReadOnly {
			continue
		}
		switch {
		case f.Required:
			_, allowed := f.Type.parse(nil)
			faults = append(faults, Fault{Field: f.Name, Allowed: allowed})
		case f.Default != nil:
			columns[f.column()], _ = f.Type.parse(f.Default) // defaults are allowed values: a test says so
		}
	}
	return faults
}

// ParseKey reads the values of a key as they stand in a path.
func (r *Resource) ParseKey(parts []string) (map[string]any, error) {
	if len(parts) != len(r.Key) {
		return nil, ErrNotFound
	}
	key := make(map[string]any, len(r.Key))
	for i, part := range parts {
		name := r.Key[i]
		f := r.Field(name)
		if t, ok := f.Type.(text); ok && part == empty && t.lo == 0 {
			part = ""
		}
		stored, ok := fromText(f.Type, part)
		if !ok {
			return nil, ErrNotFound
		}
		key[f.column()] = stored
	}
	return key, nil
}

// fromText reads a value written as plain text, in a path or a query.
func fromText(t Type, s string) (any, bool) {
	var v any = s
	switch t := t.(type) {
	case integer, ref:
		if s == "" || !onlyDigits(s) {
			return nil, false
		}
		v = json.Number(s)
	case boolean:
		v = s == "true"
		if s != "true" && s != "false" {
			return nil, false
		}
	case enum:
		t.words = append(slices.Clone(t.words), t.onlyShown...)
		stored, allowed := t.parse(v)
		return stored, allowed == ""
	}
	stored, allowed := t.parse(v)
	return stored, allowed == ""
}

// FilterBy reads the narrowing values of a list, as written in a query.
func (r *Resource) FilterBy(given map[string]string) (map[string]any, error) {
	columns := make(map[string]any, len(given))
	var faults FaultsError
	for name, s := range given {
		f := r.Field(name)
		if f == nil || !slices.Contains(r.Filter, name) {
			faults = append(faults, Fault{Field: name, Value: cut(s), Allowed: "left out, there is no such filter; filters are " + strings.Join(append([]string{"after", "limit"}, r.Filter...), ", ")})
			continue
		}
		stored, ok := fromText(f.Type, s)
		if !ok {
			_, allowed := f.Type.parse(nil)
			faults = append(faults, Fault{Field: name, Value: cut(s), Allowed: allowed})
			continue
		}
		columns[f.column()] = stored
	}
	if len(faults) > 0 {
		return nil, faults
	}
	return columns, nil
}

// FromQuery is a value of a query as a field takes it; what cannot be read stays text, for the field to refuse.
func FromQuery(fields []Field, name, s string) any {
	for i := range fields {
		if fields[i].Name != name {
			continue
		}
		switch fields[i].Type.(type) {
		case integer, ref:
			if onlyDigits(s) && s != "" {
				return json.Number(s)
			}
		case boolean:
			if s == "true" || s == "false" {
				return s == "true"
			}
		}
	}
	return s
}
