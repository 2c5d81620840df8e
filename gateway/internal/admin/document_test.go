package admin_test

import (
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"
	"testing"

	"cmppgateway/gateway/internal/manage"
)

// document is /openapi.json as these tests read it.
type document struct {
	OpenAPI string
	Paths   map[string]map[string]struct {
		OperationID string   `json:"operationId"`
		Roles       []string `json:"x-roles"`
		Parameters  []struct {
			Name, In string
			Required bool
		}
		RequestBody *struct {
			Content map[string]struct{ Schema schema }
		}
		Responses map[string]any
	}
	Components struct{ Schemas map[string]schema }
}

type schema struct {
	Type       any
	Properties map[string]schema
	Required   []string
	Enum       []string
	AnyOf      []schema
	Minimum    *json.Number
	Maximum    *json.Number
	ReadOnly   bool
	Ref        string `json:"$ref"`
}

func read(t *testing.T, a *api) document {
	t.Helper()
	var d document
	if err := json.Unmarshal([]byte(a.must(t, 200, "nobody", "GET", "/openapi.json", "").raw), &d); err != nil {
		t.Fatal(err)
	}
	if d.OpenAPI != "3.1.0" || len(d.Paths) < 50 {
		t.Fatalf("OpenAPI %s with %d paths", d.OpenAPI, len(d.Paths))
	}
	return d
}

// sample is a path with something in the place of each parameter: id where a number is wanted.
func sample(path, id string) string {
	for strings.Contains(path, "{") {
		a, b := strings.Index(path, "{"), strings.Index(path, "}")
		v := id
		switch path[a+1 : b] {
		case "carrier":
			v = "mobile"
		case "reason":
			v = "RISK"
		case "scope":
			v = "platform"
		case "phone":
			v = "13800000000"
		}
		path = path[:a] + v + path[b+1:]
	}
	return path
}

// Every operation of the document is there, asks for a token, and lets exactly the roles in that it names; and these are
// the roles that were decided on.
func TestRoles(t *testing.T) {
	t.Parallel()
	a := newAPI(t)
	d := read(t, a)
	var table strings.Builder
	for _, path := range slices.Sorted(maps.Keys(d.Paths)) {
		for _, method := range slices.Sorted(maps.Keys(d.Paths[path])) {
			op, verb, at := d.Paths[path][method], strings.ToUpper(method), sample(path, "999999")
			fmt.Fprintf(&table, "%s %s %s\n", verb, strings.TrimPrefix(path, v1), strings.Join(op.Roles, ","))
			if r := a.call(t.Context(), "nobody", verb, at, ""); r.status != 401 {
				t.Errorf("%s %s without a token: %d", verb, path, r.status)
			}
			for role := range a.tokens {
				// Nothing changes: bodies are empty, versions and keys are missing, ids do not exist.
				r := a.call(t.Context(), role, verb, at, "x")
				if allowed := slices.Contains(op.Roles, role); r.status == 401 || r.status == 405 || (r.status == 403) == allowed {
					t.Errorf("%s %s as %s: %d, its roles are %v", verb, path, role, r.status, op.Roles)
				}
			}
		}
	}
	const file = "testdata/roles.txt"
	want, err := os.ReadFile(file)
	if err != nil || table.String() != string(want) {
		if os.Getenv("UPDATE") != "" {
			if err := os.WriteFile(file, []byte(table.String()), 0o600); err != nil {
				t.Fatal(err)
			}
		}
		t.Errorf("the table of roles differs from %s, which is what was decided (UPDATE=1 writes it): %v", file, err)
	}
}

// What the document says of a body is what the server demands: required fields, enumerations, ranges, and no others.
func TestDocumentAndServerAgreeOnBodies(t *testing.T) {
	t.Parallel()
	a := newAPI(t)
	a.first(t)
	d := read(t, a)
	bodies := 0
	for path, ops := range d.Paths {
		for method, op := range ops {
			if op.RequestBody == nil {
				continue
			}
			s, ok := op.RequestBody.Content["application/json"]
			if !ok {
				continue
			}
			bodies++
			send := func(body map[string]any) map[string]map[string]any {
				raw, err := json.Marshal(body)
				if err != nil {
					t.Fatal(err)
				}
				at := sample(path, "1")
				if strings.HasSuffix(path, "platform-limits/{scope}") {
					at = v1 + "platform-limits/platform"
				}
				r := a.call(t.Context(), "admin", strings.ToUpper(method), at, string(raw), "If-Match", "*", "Idempotency-Key", fmt.Sprint(path, method, len(raw)))
				faults := map[string]map[string]any{}
				list, _ := r.body["faults"].([]any)
				for _, f := range list {
					f := f.(map[string]any)
					faults[f["field"].(string)] = f
				}
				if r.status == 404 || r.status >= 500 {
					faults["(status)"] = map[string]any{"allowed": r.raw}
				}
				return faults
			}
			wrong := map[string]any{"no such field": 1}
			for name := range s.Schema.Properties {
				wrong[name] = map[string]any{"no": "value"}
			}
			faults := send(wrong)
			if f, missing := faults["(status)"]; missing {
				// The row does not exist: its fields are those of the body that makes one, which is tested by that.
				if method != "patch" && !strings.Contains(fmt.Sprint(f["allowed"]), "not-found") {
					t.Errorf("%s %s: %v", method, path, f["allowed"])
				}
				continue
			}
			if faults["no such field"] == nil {
				t.Errorf("%s %s takes a field that the document does not have: %v", method, path, faults)
			}
			for name, p := range s.Schema.Properties {
				f := faults[name]
				if f == nil {
					t.Errorf("%s %s: %s takes an object", method, path, name)
					continue
				}
				enum, low, high := p.Enum, p.Minimum, p.Maximum
				for _, alt := range p.AnyOf {
					enum, low, high = append(enum, alt.Enum...), alt.Minimum, alt.Maximum
				}
				switch allowed := fmt.Sprint(f["allowed"]); {
				case len(enum) > 0:
					for _, w := range enum {
						if w != "deleted" && !strings.Contains(allowed, w) {
							t.Errorf("%s %s: %s may be %q says the document, %q the server", method, path, name, w, allowed)
						}
					}
				case low != nil && high != nil:
					if allowed != low.String()+".."+high.String() {
						t.Errorf("%s %s: %s is %s..%s in the document, %s for the server", method, path, name, low, high, allowed)
					}
				}
			}
			if method == "patch" && !strings.Contains(path, "accounts/") {
				continue
			}
			missing := []string{}
			for name, f := range send(map[string]any{}) {
				if f["value"] == nil {
					missing = append(missing, name)
				}
			}
			slices.Sort(missing)
			if required := slices.Sorted(slices.Values(s.Schema.Required)); !slices.Equal(missing, required) {
				t.Errorf("%s %s: the document requires %v, the server misses %v", method, path, required, missing)
			}
		}
	}
	if bodies < 20 {
		t.Errorf("only %d bodies were compared", bodies)
	}
}

// An answer has exactly the fields of its schema.
func TestDocumentAndServerAgreeOnAnswers(t *testing.T) {
	t.Parallel()
	a := newAPI(t)
	a.first(t)
	d := read(t, a)
	compared := 0
	for _, res := range manage.Resources() {
		if d.Paths[v1+res.Name]["get"].OperationID == "" {
			t.Errorf("%s is not in the document", res.Name)
		}
		items := a.must(t, 200, "admin", "GET", v1+res.Name, "").body["items"].([]any)
		s := d.Components.Schemas[res.Name]
		for _, item := range items {
			compared++
			have := slices.Sorted(maps.Keys(item.(map[string]any)))
			if want := slices.Sorted(maps.Keys(s.Properties)); !slices.Equal(have, want) {
				t.Errorf("%s has %v, the document %v", res.Name, have, want)
			}
			for name, v := range item.(map[string]any) {
				if enum := s.Properties[name].Enum; len(enum) > 0 && !slices.Contains(enum, fmt.Sprint(v)) {
					t.Errorf("%s.%s is %v, the document has %v", res.Name, name, v, enum)
				}
			}
		}
	}
	if compared < 12 {
		t.Errorf("only %d rows were compared", compared)
	}
}
