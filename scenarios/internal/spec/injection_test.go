package spec_test

import (
	"errors"
	"os"
	"path/filepath"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"cmppgateway/scenarios/internal/spec"
)

// scheduled is the valid file with a schedule of faults in line 16.
func scheduled(schedule string) string {
	return strings.Replace(valid, "    about: a test\n", "    about: a test\n    faults: "+schedule+"\n", 1)
}

func TestSchedule(t *testing.T) {
	t.Parallel()
	s, err := load(t, scheduled("[{fault: gateway-kill, at: 6s}, {fault: postgres-crash, at: 8s, down: 2s}]"))
	if err != nil {
		t.Fatal(err)
	}
	want := []spec.Injection{{Fault: spec.GatewayKill, At: 6 * time.Second, Down: time.Second, Every: 1}, {Fault: spec.PostgresCrash, At: 8 * time.Second, Down: 2 * time.Second, Every: 1}}
	if !reflect.DeepEqual(s.Faults, want) {
		t.Errorf("read %+v", s.Faults)
	}
	if !s.Needs(spec.PostgresCrash) || s.Needs("redis") {
		t.Error("needs another fault than scheduled")
	}
	// 10 TPS and a round trip of 14 ms leave nothing on its way.
	if w := strings.Join(s.Warnings(), "\n"); !strings.Contains(w, "gateway-kill at 6s meets about 0 unanswered SUBMITs, 50 are needed") {
		t.Errorf("warnings:\n%s", w)
	}
	raw, err := s.Resolved()
	if err != nil {
		t.Fatal(err)
	}
	again, err := load(t, string(raw))
	if err != nil {
		t.Fatalf("%v\n%s", err, raw)
	}
	if !reflect.DeepEqual(again.Faults, want) {
		t.Errorf("resolved %+v", again.Faults)
	}
}

func TestScheduleFaults(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct{ schedule, place, problem string }{
		"unknown fault":                 {"[{fault: gateway-kil, at: 1s}]", ":16:22:", `"gateway-kil" is none of callback-bad-event, `},
		"unknown key":                   {"[{fault: gateway-kill, when: 1s}]", ":16:36:", "unknown key"},
		"no time":                       {"[{fault: gateway-kill}]", ":16:14:", "missing"},
		"time without a unit":           {"[{fault: gateway-kill, at: 1}]", ":16:40:", "duration with its unit"},
		"negative":                      {"[{fault: gateway-kill, at: -1s}]", ":16:40:", "is not in"},
		"after the phases":              {"[{fault: gateway-kill, at: 15s}]", ":16:40:", "15s…16s does not lie inside a phase; the phases end at 5s, 15s"},
		"before measuring":              {"[{fault: gateway-kill, at: 5500ms}]", ":16:40:", "5.5s is before 6s: measuring must have begun"},
		"no such point":                 {"[{fault: gateway-failpoint, at: 6s, point: after_dinner}]", ":16:56:", `"after_dinner" is none of after_inbox_commit, `},
		"no point":                      {"[{fault: gateway-failpoint, at: 6s}]", ":16:14:", "missing"},
		"a point elsewhere":             {"[{fault: gateway-kill, at: 6s, point: mid_write}]", ":16:51:", "does not belong to gateway-kill"},
		"two points":                    {"[{fault: gateway-failpoint, at: 6s, point: mid_write}, {fault: gateway-failpoint, at: 8s, point: mid_write}]", ":16:68:", "is the second gateway-failpoint"},
		"until after the end":           {"[{fault: gateway-kill, at: 14s, down: 2s}]", ":16:40:", "does not lie inside a phase"},
		"one in another":                {"[{fault: gateway-kill, at: 6s, down: 2s}, {fault: postgres-crash, at: 7s}]", ":16:83:", "7s is before the end of the fault above, 8s"},
		"a fault that takes no channel": {"[{fault: gateway-kill, at: 6s, channel: primary}]", ":16:53:", "does not belong to gateway-kill"},
		"no such channel":               {"[{fault: connection-rst, at: 6s, channel: fixed-primary}]", ":16:14:", `no channel or role "fixed-primary"`},
		"no such enterprise":            {"[{fault: customer-mute, at: 6s, enterprise: ent-z}]", ":16:14:", `no enterprise "ent-z"`},
		"scale without pools":           {"[{fault: scale, at: 6s}]", ":16:14:", "missing"},
		"scale beyond the contract":     {"[{fault: scale, at: 6s, to: [9x1]}]", ":16:42:", "from 1x1 to 8x64"},
		"away after the end":            {"[{fault: customer-offline, at: 14s, down: 2s}]", ":16:44:", "does not lie inside the load"},
		"no list":                       {"{fault: gateway-kill, at: 1s}", ":16:13:", "want a list"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			_, err := load(t, scheduled(c.schedule))
			var faults spec.FaultsError
			if !errors.As(err, &faults) {
				t.Fatalf("error is %v", err)
			}
			for _, f := range faults {
				if strings.Contains(f.String(), c.place) && strings.Contains(f.Problem, c.problem) {
					return
				}
			}
			t.Errorf("no fault at %s with %q among\n%s", c.place, c.problem, err)
		})
	}
}

// The scenarios of the catalogue that kill and crash meet enough SUBMITs to prove
// something, and no number twice can be a resend.
func TestCatalogueOfFaults(t *testing.T) {
	t.Parallel()
	c, err := spec.Load(filepath.Join("..", "..", "..", "scenarios.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	for _, fault := range []string{spec.GatewayKill, spec.PostgresCrash} {
		s, err := c.Scenario("fault-"+fault, nil)
		if err != nil {
			t.Fatal(err)
		}
		if !s.Needs(fault) || len(s.Warnings()) > 0 {
			t.Errorf("fault-%s: schedule %+v, warnings %q", fault, s.Faults, s.Warnings())
		}
		if n := s.OutstandingAt(s.Faults[0].At); n < 2*50 {
			t.Errorf("fault-%s meets %.0f SUBMITs", fault, n)
		}
		if x := s.Expect(); x.RefusedSubmits > 0 || s.Limit > 90*time.Second {
			t.Errorf("fault-%s: %d refused SUBMITs, limit %s", fault, x.RefusedSubmits, s.Limit)
		}
	}
}

// The points are the gateway's, all of them.
func TestPoints(t *testing.T) {
	t.Parallel()
	source, err := os.ReadFile(filepath.FromSlash("../../../gateway/internal/failpoint/points.go"))
	if err != nil {
		t.Fatal(err)
	}
	var points []string
	for _, m := range regexp.MustCompile(`= +"([a-z_]+)"`).FindAllStringSubmatch(string(source), -1) {
		points = append(points, m[1])
	}
	if !slices.Equal(points, spec.Points) {
		t.Errorf("the gateway has %q, scenarios %q", points, spec.Points)
	}
	c, err := spec.Load(filepath.FromSlash("../../../scenarios.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	for _, point := range points {
		s, err := c.Scenario("fault-failpoint-"+strings.ReplaceAll(point, "_", "-"), nil)
		if err != nil {
			t.Error(err)
			continue
		}
		if len(s.Faults) != 1 || s.Faults[0].Fault != spec.GatewayFailpoint || s.Faults[0].Point != point || s.Faults[0].Value < 1 || !s.Kills() {
			t.Errorf("%s: %+v", s.Name, s.Faults)
		}
	}
}
