package spec_test

import (
	"errors"
	"reflect"
	"slices"
	"strings"
	"testing"

	"cmppgateway/scenarios/internal/spec"
)

const rich = `
    policy: {signatures: ["示例"], signature: required, templates: ["【示例】{}"], template: match, keywords: [赌], blacklist: ["13800001111"], day: -1, quota: 7}
    messages:
      long: {text: "【示例】` + "长长长长长长长长长长" + `", units: 3, long: {reference: 16, connections: 2, order: random, duplicate: true, extra: true}}
      group: {recipients: 5, format: gbk}
      barred: {number: "13800001111", refused: BLACKLIST, text: "【示例】{n}"}
      turned: {result: 8, unregistered: true}
    uplinks: {count: 10, over: 5s, text: "TD {n}", long_text: "退", long_every: 3, replay: 2}
    phases:
      - {name: warm, hold: 5s, measure: false, mix: {plain: 50%, long: 10%, group: 20%, barred: 10%, turned: 10%}, scales: {ent-a: 200%}}
      - {name: measure, hold: 10s, pool: 4x32, drain: true, hostile: 64, disturbed: true, arrival: burst}
    slo:
      - {metric: pool.rate, min: 90%, max: 110%, phase: measure}
      - {metric: submit_resp.p95, max: 84ms, enterprise: ent-a}
`

// richFile is the valid file with everything in it.
func richFile() string {
	text := strings.Replace(valid, `    phases: [{name: warm, hold: 5s, measure: false}, {name: measure, hold: 10s}]
    slo: [{metric: submit_resp.p95, max: 84ms}, {metric: first_submit.tps, min: 9.5}]
`, strings.TrimPrefix(rich, "\n"), 1)
	return strings.Replace(text, "rate_limit: 400}", "rate_limit: 400, only: {unicom-backup: {rate_limit: 50, enabled: false}}}", 1)
}

func TestKinds(t *testing.T) {
	t.Parallel()
	s, err := load(t, richFile())
	if err != nil {
		t.Fatal(err)
	}
	names := make([]string, 0, len(s.Kinds))
	for _, k := range s.Kinds {
		names = append(names, k.Name)
	}
	if !slices.Equal(names, []string{"plain", "long", "group", "barred", "turned"}) {
		t.Fatalf("kinds %v", names)
	}
	if k := s.Kinds[3]; k.Stat != "BLACK" || k.Units != 1 || k.Parts != 1 || k.SrcID != "01" {
		t.Errorf("barred is %+v", k)
	}
	if k := s.Kinds[1]; k.Parts != 3 || k.Long == nil || k.Long.Reference != 16 || !k.Long.Duplicate || k.Long.Missing {
		t.Errorf("long is %+v, %+v", k, k.Long)
	}
	if got := s.Contract(); got != (spec.Pool{Connections: 4, Window: 32}) {
		t.Errorf("contract %s", got)
	}
	if list := s.Untouched(); len(list) > 0 {
		t.Errorf("untouched %v: ent-a has twice the load in one phase", list)
	}
	// 100 SUBMITs of the warm-up: 50 plain, 10 long, 20 to five, 10 barred, 10 turned away; then 100 plain.
	x := s.Expect()
	if x.Messages != 50+10+100+10+10+100 || x.Turned != 10 || x.Intercepted["BLACKLIST"] != 10 || x.Long != 10 {
		t.Errorf("expected %+v", x)
	}
	if x.First != 50+30+100+100 {
		t.Errorf("%d first SUBMITs", x.First)
	}
	if b := x.Enterprises[0]; b.Messages != x.Messages || b.ChargedN+b.ReleasedN != 260 || (b.Charged+b.Released) != 325*(260+2*10) {
		t.Errorf("books %+v", b)
	}
	raw, err := s.Resolved()
	if err != nil {
		t.Fatal(err)
	}
	again, err := load(t, string(raw))
	if err != nil {
		t.Fatalf("%v\n%s", err, raw)
	}
	byName := func(a, b spec.Kind) int { return strings.Compare(a.Name, b.Name) }
	for _, x := range []*spec.Scenario{s, again} { // maps of the resolved file are sorted
		slices.SortFunc(x.Kinds[1:], byName)
		for i := range x.Phases {
			x.Phases[i].Mix = nil
		}
	}
	if !reflect.DeepEqual(s, again) {
		t.Errorf("the resolved scenario differs:\n%+v\n%+v", s, again)
	}
}

func TestKindFaults(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct{ from, to, place, problem string }{
		"no such kind":            {"plain: 50%", "plane: 50%", ":25:", `no kind "plane"`},
		"shares":                  {"plain: 50%", "plain: 60%", ":25:", "the shares add up to 110%"},
		"too long for one SUBMIT": {`format: gbk`, `format: gbk, text: "` + strings.Repeat("长", 71) + `"`, ":20:", "142 octets do not fit one SUBMIT"},
		"reference":               {"reference: 16", "reference: 12", ":19:", "12 bits, want 8 or 16"},
		"reason":                  {"refused: BLACKLIST", "refused: BLACKLISTED", ":21:", `"BLACKLISTED" is none of`},
		"stat without reason":     {"result: 8,", "stat: X,", ":22:", "stat: belongs to refused"},
		"number of digits":        {`number: "13800001111"`, `number: "138x0001111"`, ":21:", "is not 5 to 20 digits"},
		"pool":                    {"pool: 4x32", "pool: 4x65", ":26:", "from 1x1 to 8x64"},
		"unknown enterprise":      {"enterprise: ent-a}", "enterprise: ent-z}", ":", `no enterprise "ent-z"`},
		"unknown phase":           {"phase: measure", "phase: measured", ":", `no phase "measured"`},
		"ratio without unit":      {"min: 90%", "min: 0.9", ":28:", "not a percentage"},
		"unknown channel":         {"unicom-backup", "unicom-third", ":", `no channel "unicom-third"`},
		"long uplinks":            {`long_text: "退", `, "", ":23:", "missing: long_every asks for it"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			text := strings.Replace(richFile(), c.from, c.to, 1)
			if text == richFile() {
				t.Fatalf("%q is not in the file", c.from)
			}
			_, err := load(t, text)
			var faults spec.FaultsError
			if !errors.As(err, &faults) {
				t.Fatalf("error is %v", err)
			}
			for _, f := range faults {
				if strings.Contains(f.String(), c.place) && strings.Contains(f.String(), c.problem) {
					return
				}
			}
			t.Errorf("no fault at %s with %q among\n%s", c.place, c.problem, err)
		})
	}
}

// Whom a fault is about, or who floods, is not among those who must not feel it.
func TestUntouched(t *testing.T) {
	t.Parallel()
	c, err := spec.Load("../../../scenarios.yaml")
	if err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string][]int{
		"fault-customer-storm": {0}, "multi-enterprise": {0, 1, 2, 3, 4, 5, 6, 7, 8}, "hostile-64": {0}, "collect": nil,
	} {
		s, err := c.Scenario(name, nil)
		if err != nil {
			t.Fatal(err)
		}
		if got := s.Untouched(); !slices.Equal(got, want) {
			t.Errorf("%s: %v, want %v", name, got, want)
		}
	}
}

// What is dealt keeps to the shares at every moment.
func TestDeal(t *testing.T) {
	t.Parallel()
	p := spec.Phase{Mix: []spec.Share{{Kind: 0, Share: 0.7}, {Kind: 2, Share: 0.2}, {Kind: 1, Share: 0.1}}}
	got := map[int]int{}
	for i, k := range p.Deal(1000) {
		got[k]++
		if want := 0.2 * float64(i+1); float64(got[2]) < want-1 || float64(got[2]) > want+1 {
			t.Fatalf("%d of %d are of the kind with a fifth", got[2], i+1)
		}
	}
	if got[0] != 700 || got[1] != 100 || got[2] != 200 {
		t.Errorf("dealt %v", got)
	}
}
