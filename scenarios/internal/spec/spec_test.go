package spec_test

import (
	"errors"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
	"time"

	"cmppgateway/scenarios/internal/spec"
)

// valid is a file with nothing wrong; tests change one line of it.
const valid = `defaults:
  price: 325
  limit: 1m
  content: {text: "【示例】一", units: 1}
  carriers:
    mobile: {prefixes: ["1380"], share: 60%}
    unicom: {prefixes: ["1300"], share: 40%}
  suppliers: {per_carrier: [primary, backup], connections: 2, window: 32, rate_limit: 400}
  behaviour:
    submit_rtt: {dist: lognormal, p50: 14ms, p99: 60ms}
    deck: {block: 100, result_8_first: 1, no_receipt: 2, receipt_failed: {UNDELIV: 3}, receipt_early: 4, results: {9: 5}}
    receipt_delay: {value: 1s}
scenarios:
  one:
    about: a test
    enterprises: [{id: ent-a, tps: 10, connections: 1, window: 16, balance: 100000}]
    phases: [{name: warm, hold: 5s, measure: false}, {name: measure, hold: 10s}]
    slo: [{metric: submit_resp.p95, max: 84ms}, {metric: first_submit.tps, min: 9.5}]
`

func write(t *testing.T, text string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "s.yaml")
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

func load(t *testing.T, text string, sets ...string) (*spec.Scenario, error) {
	t.Helper()
	c, err := spec.Load(write(t, text))
	if err != nil {
		return nil, err
	}
	return c.Scenario("one", sets)
}

func TestValidFile(t *testing.T) {
	t.Parallel()
	s, err := load(t, valid)
	if err != nil {
		t.Fatal(err)
	}
	if s.Price != 325 || s.Limit != time.Minute || s.Suppliers.Window != 32 || s.Carriers[0].Share != 0.6 || s.Phases[0].Measure || !s.Phases[1].Measure {
		t.Errorf("read %+v", s)
	}
	if s.Behaviour.Deck.ReceiptFailed["UNDELIV"] != 3 || s.Behaviour.Deck.Results[9] != 5 || *s.SLO[0].Max != 84 || *s.SLO[1].Min != 9.5 {
		t.Errorf("read %+v and %+v", s.Behaviour, s.SLO)
	}
}

// Every class of fault is found, at its line and column.
func TestFaults(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct{ old, new, place, problem string }{
		"unknown key":             {"price: 325", "prise: 325", ":2:3:", "unknown key"},
		"unknown key deep":        {"connections: 2, window", "conections: 2, window", ":8:47:", "unknown key"},
		"unknown section":         {"    about: a test", "    abowt: a test", ":15:5:", "unknown key"},
		"repeated key":            {"  price: 325", "  price: 325\n  price: 1", ":3:3:", "given twice"},
		"duration without unit":   {"hold: 10s", "hold: 10", ":17:76:", "duration with its unit"},
		"bad unit":                {"hold: 10s", "hold: 10sec", ":17:76:", "duration with its unit"},
		"leading zero":            {"tps: 10", "tps: 010", ":16:36:", "starts with a zero"},
		"leading zero count":      {"block: 100", "block: 0100", ":11:19:", "starts with a zero"},
		"number that is text":     {`prefixes: ["1380"]`, "prefixes: [1380]", ":6:25:", "quotes"},
		"not a prefix":            {`["1380"]`, `["2380"]`, ":6:25:", "mainland number"},
		"not a number":            {"price: 325", "price: cheap", ":2:10:", "not a whole number"},
		"out of range":            {"window: 32, rate", "window: 65, rate", ":8:71:", "not in 1…64"},
		"too many connections":    {"connections: 2, window: 32, rate", "connections: 9, window: 32, rate", ":8:60:", "not in 1…8"},
		"percentage without sign": {"share: 60%", "share: 60", ":6:41:", "percentage"},
		"shares do not add up":    {"share: 60%", "share: 50%", ":6:5:", "add up to 90%"},
		"unknown carrier":         {"    unicom:", "    unicorn:", ":7:5:", "is none of"},
		"missing section":         {"  limit: 1m\n", "", ":14:5:", "missing"},
		"missing key":             {"units: 1", "unit: 1", ":4:12:", "missing"},
		"cards beyond the block":  {"block: 100", "block: 10", ":11:11:", "more than the block"},
		"impossible Stat":         {"UNDELIV: 3", "DELIVRD: 3", ":11:84:", "failing Stat"},
		"lognormal without p99":   {"p50: 14ms, p99: 60ms", "p50: 14ms", ":10:17:", "lognormal needs"},
		"unknown distribution":    {"dist: lognormal", "dist: normal", ":10:24:", "is none of"},
		"unknown metric":          {"metric: submit_resp.p95", "metric: submit_resp.p90", ":18:20:", "is none of"},
		"rate in seconds":         {"metric: first_submit.tps, min: 9.5", "metric: first_submit.tps, max: 9s", ":18:81:", "is not a number"},
		"rate without bound":      {"metric: first_submit.tps, min: 9.5", "metric: first_submit.tps", ":18:49:", "needs min, max or both"},
		"latency with a minimum":  {"max: 84ms", "min: 84", ":18:11:", "needs max"},
		"balance too small":       {"balance: 100000", "balance: 100", ":16:19:", "less than"},
		"no price":                {"price: 325", "price: 0", ":2:10:", "allow_zero_price"},
		"limit below the load":    {"limit: 1m", "limit: 15s", ":3:10:", "no time"},
		"text too long":           {"【示例】一", strings.Repeat("长", 71), ":4:12:", "do not fit"},
		"same phase twice":        {"name: measure", "name: warm", ":17:54:", "used twice"},
		"a list where keys are":   {"submit_rtt: {dist: lognormal, p50: 14ms, p99: 60ms}", "submit_rtt: [1]", ":10:17:", "want keys"},
		"harness's own setting":   {"    about: a test", "    gateway: {inbound: {listen: \"0.0.0.0:1\"}}", ":15:33:", "given by the harness"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			text := strings.Replace(valid, c.old, c.new, 1)
			if text == valid {
				t.Fatalf("%q is not in the file", c.old)
			}
			_, err := load(t, text)
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

func TestAllFaultsAtOnce(t *testing.T) {
	t.Parallel()
	text := strings.NewReplacer("price: 325", "prise: 325", "tps: 10", "tps: 010", "hold: 10s", "hold: 10", "share: 60%", "share: 60").Replace(valid)
	_, err := load(t, text)
	var faults spec.FaultsError
	if !errors.As(err, &faults) || len(faults) < 4 {
		t.Fatalf("found %v", err)
	}
	for i := 1; i < len(faults); i++ {
		if faults[i].Line < faults[i-1].Line {
			t.Errorf("faults are not in the order of the file:\n%s", err)
		}
	}
}

func TestFilesThatAreNone(t *testing.T) {
	t.Parallel()
	for name, text := range map[string]string{
		"empty":            "",
		"two documents":    valid + "\n---\nscenarios: {}\n",
		"syntax":           "scenarios: {a: [}",
		"no scenarios":     "defaults: {}\n",
		"unknown top key":  valid + "extra: 1\n",
		"a name with dots": "scenarios:\n  a.b: {}\n",
	} {
		if _, err := spec.Load(write(t, text)); err == nil {
			t.Errorf("%s: loads", name)
		} else if strings.Contains(err.Error(), "\n\n") || !strings.Contains(err.Error(), "s.yaml") {
			t.Errorf("%s: %v", name, err)
		}
	}
	if _, err := spec.Load("/nowhere/at/all.yaml"); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("missing file: %v", err)
	}
}

func TestUnknownScenario(t *testing.T) {
	t.Parallel()
	c, err := spec.Load(write(t, valid))
	if err != nil {
		t.Fatal(err)
	}
	_, err = c.Scenario("two", nil)
	var unknown *spec.UnknownError
	if !errors.As(err, &unknown) || !strings.Contains(err.Error(), "one") {
		t.Errorf("error is %v", err)
	}
}

// A section of the scenario replaces the defaults' as a whole.
func TestInheritanceByWholeSections(t *testing.T) {
	t.Parallel()
	text := strings.Replace(valid, "    about: a test\n", "    about: a test\n    suppliers: {per_carrier: [only], connections: 1, window: 8, rate_limit: 0}\n", 1)
	s, err := load(t, text)
	if err != nil {
		t.Fatal(err)
	}
	if len(s.Suppliers.PerCarrier) != 1 || s.Suppliers.RateLimit != 0 || s.Price != 325 {
		t.Errorf("suppliers %+v, price %d", s.Suppliers, s.Price)
	}
}

func TestOverrides(t *testing.T) {
	t.Parallel()
	s, err := load(t, valid, "gateway.supplier.barrier_rate=100", "phases.1.hold=20s", "price=10", "gateway.log.level=debug")
	if err != nil {
		t.Fatal(err)
	}
	if s.Gateway["supplier.barrier_rate"] != 100 || s.Gateway["log.level"] != "debug" || s.Phases[1].Hold != 20*time.Second || s.Price != 10 {
		t.Errorf("gateway %v, phases %v, price %d", s.Gateway, s.Phases, s.Price)
	}
	for _, set := range []string{"price", "=1", "price=[", "phases.7.hold=1s", "price.x=1", "prise=1", "phases.1.hold=20", "gateway.redis.url=x"} {
		_, err := load(t, valid, set)
		var faults spec.FaultsError
		if !errors.As(err, &faults) || !strings.HasPrefix(faults[0].Source, "--set") {
			t.Errorf("%s: %v", set, err)
		}
	}
	// The defaults are shared by all scenarios: an override changes one run only.
	c, err := spec.Load(write(t, valid))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := c.Scenario("one", []string{"suppliers.window=1"}); err != nil {
		t.Fatal(err)
	}
	if again, err := c.Scenario("one", nil); err != nil || again.Suppliers.Window != 32 {
		t.Errorf("an override stays: window %d, %v", again.Suppliers.Window, err)
	}
}

// What the arithmetic says, by hand: 150 messages, one deck of 100 and half of
// another; every card appears in a full deck exactly as often as it says.
func TestExpect(t *testing.T) {
	t.Parallel()
	s, err := load(t, strings.NewReplacer("tps: 10,", "tps: 20,", "hold: 5s", "hold: 2s500ms", "hold: 10s", "hold: 2s500ms").Replace(valid))
	if err != nil {
		t.Fatal(err)
	}
	x := s.Expect()
	b := x.Enterprises[0]
	want := spec.ExpectedBooks{
		Enterprise: "ent-a", Messages: 100, ChargedN: 95, RefundedN: 3, ReleasedN: 5,
		Opening: 100000, Charged: 95 * 325, Refunded: 3 * 325, Released: 5 * 325, Closing: 100000 - 95*325 + 3*325,
	}
	if b != want {
		t.Errorf("books are %+v, want %+v", b, want)
	}
	// One result 8 and five refusals with result 9, which is terminal.
	if x.First != 100 || x.Resends != 1 || x.RefusedSubmits != 6 || x.Refused != 5 || x.Early != 4 || x.Submitted != 2 || x.Failed != 3 || x.Delivered != 90 {
		t.Errorf("expectation is %+v", x)
	}
	if x.Delivered+x.Submitted+x.Failed+x.Refused != x.Messages {
		t.Errorf("fates do not add up: %+v", x)
	}
}

// A refusal with result 8 at every attempt ends after three submits, and releases.
func TestExpectRefusedThrice(t *testing.T) {
	t.Parallel()
	s, err := load(t, strings.NewReplacer("results: {9: 5}", "results: {8: 5}", "tps: 10,", "tps: 20,", "hold: 5s", "hold: 2s500ms", "hold: 10s", "hold: 2s500ms").Replace(valid))
	if err != nil {
		t.Fatal(err)
	}
	if x := s.Expect(); x.Resends != 1+2*5 || x.RefusedSubmits != 1+3*5 || x.Enterprises[0].ReleasedN != 5 {
		t.Errorf("expectation is %+v", x)
	}
}

func TestHeadroomAndWarnings(t *testing.T) {
	t.Parallel()
	s, err := load(t, valid)
	if err != nil {
		t.Fatal(err)
	}
	h := s.Headrooms()[0] // 6 of 10 TPS, 64 slots, 14 ms in the middle, bounded by the rate limit
	if h.Rate != 6 || h.Windows != 64 || h.Ceiling != 400 || h.Slots < 0.3 || h.Slots > 0.4 {
		t.Errorf("headroom is %+v", h)
	}
	if w := s.Warnings(); len(w) != 0 {
		t.Errorf("warnings %q", w)
	}
	for set, want := range map[string]string{
		"suppliers.rate_limit=7":           "ceiling",
		"behaviour.deck.result_8_first=80": "meet result 8 at first",
		"slo.1.min=11":                     "cannot be met",
		"limit=16s":                        "close to",
		"behaviour.submit_rtt.p99=30s":     "slots needed",
	} {
		s, err := load(t, valid, set)
		if err != nil {
			t.Fatalf("%s: %v", set, err)
		}
		if got := strings.Join(s.Warnings(), "\n"); !strings.Contains(got, want) {
			t.Errorf("%s: warnings %q, want %q", set, got, want)
		}
	}
	var b strings.Builder
	if err := s.Explain(&b); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"messages  150: delivered 135", "charged 46150 (142 messages at 325 a unit)", "released 2600 (8)", "headroom 66.67 ×"} {
		if !strings.Contains(b.String(), want) {
			t.Errorf("no %q in\n%s", want, b.String())
		}
	}
}

// The resolved file gives the same scenario again.
func TestResolvedRoundTrip(t *testing.T) {
	t.Parallel()
	s, err := load(t, valid, "gateway.supplier.barrier_rate=100")
	if err != nil {
		t.Fatal(err)
	}
	b, err := s.Resolved()
	if err != nil {
		t.Fatal(err)
	}
	again, err := load(t, string(b))
	if err != nil {
		t.Fatalf("%v\n%s", err, b)
	}
	if !reflect.DeepEqual(s, again) {
		t.Errorf("the resolved scenario differs:\n%+v\n%+v", s, again)
	}
}

// The shipped catalogue is valid.
func TestCatalogue(t *testing.T) {
	t.Parallel()
	c, err := spec.Load("../../../scenarios.yaml")
	if err != nil {
		t.Fatal(err)
	}
	if err := c.Check(); err != nil {
		t.Fatal(err)
	}
	s, err := c.Scenario("dual-enterprise-200", nil)
	if err != nil {
		t.Fatal(err)
	}
	x := s.Expect()
	if x.Messages != 8000 || x.Resends != 80 || x.Submitted != 200 || x.Failed != 40 || x.Enterprises[0].Charged != 1_300_000 {
		t.Errorf("dual-enterprise-200 expects %+v", x)
	}
	for _, name := range []string{"smoke", "single-enterprise-100", "single-enterprise-150"} {
		if _, err := c.Scenario(name, nil); err != nil {
			t.Error(err)
		}
	}
}
