package result_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"flag"
	"math"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
	"time"

	"cmppgateway/reports/result"
)

var update = flag.Bool("update", false, "rewrite the golden files")

// filled returns a report in which every field differs from its zero value, so that
// the golden file shows every name.
func filled() *result.Report {
	var r result.Report
	n := 0
	fill(reflect.ValueOf(&r).Elem(), &n)
	r.Verdict = result.VerdictViolated
	r.Seal()
	return &r
}

func fill(v reflect.Value, n *int) {
	*n++
	switch x := v.Addr().Interface().(type) {
	case *result.Status:
		*x = result.StatusViolated
		return
	case *result.Verdict:
		*x = result.VerdictViolated
		return
	case *result.Limit:
		*x = result.LimitStores
		return
	case *time.Time:
		*x = time.Date(2026, 11, 30, 14, 0, *n%60, 0, time.UTC)
		return
	}
	switch v.Kind() { //nolint:exhaustive // the kinds of the report's fields; another one stops the test
	case reflect.Pointer:
		v.Set(reflect.New(v.Type().Elem()))
		fill(v.Elem(), n)
	case reflect.Struct:
		for _, f := range v.Fields() {
			fill(f, n)
		}
	case reflect.Slice:
		v.Set(reflect.MakeSlice(v.Type(), 1, 1))
		fill(v.Index(0), n)
	case reflect.Map:
		v.Set(reflect.MakeMap(v.Type()))
		e := reflect.New(v.Type().Elem()).Elem()
		fill(e, n)
		v.SetMapIndex(reflect.ValueOf("key"), e)
	case reflect.String:
		v.SetString("text")
	case reflect.Bool:
		v.SetBool(true)
	case reflect.Int, reflect.Int64:
		v.SetInt(int64(*n))
	case reflect.Uint64:
		v.SetUint(uint64(*n))
	case reflect.Float64:
		v.SetFloat(float64(*n) + 0.5)
	default:
		panic("fill: " + v.Type().String())
	}
}

func TestReportGolden(t *testing.T) {
	t.Parallel()
	want := filled()
	got, err := result.Marshal(want)
	if err != nil {
		t.Fatal(err)
	}
	golden := filepath.Join("testdata", "report.json")
	if *update {
		if err := os.WriteFile(golden, got, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	b, err := os.ReadFile(golden)
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(got, b) {
		t.Errorf("report.json changed; its names are promised. Run with -update if a field was added:\n%s", got)
	}
	back, err := result.Unmarshal(b)
	if err != nil {
		t.Fatal(err)
	}
	if !reflect.DeepEqual(back, want) {
		t.Errorf("the report does not survive its own JSON:\n got %+v\nwant %+v", back, want)
	}
}

// promised are the names that readers outside this repository rely on.
const promised = `
schema scenario seed verdict reason started
environment.cpu environment.cores environment.go environment.postgres environment.redis environment.provisioner
environment.durability environment.gateway.pid environment.gateway.sha256
steps.name steps.target_tps steps.offered steps.valid
steps.submit_resp.n steps.submit_resp.p50_ms steps.submit_resp.p95_ms steps.submit_resp.p99_ms
steps.submit_resp.ok steps.submit_resp.rejected steps.submit_resp.missing steps.submit_resp.duplicate_msg_id
steps.first_submit.n steps.first_submit.tps steps.first_submit.tps_interval steps.first_submit.tps_phase
steps.first_submit.p50_ms steps.first_submit.p95_ms steps.first_submit.p99_ms steps.first_submit.duplicate_submit_id
steps.receipts.n steps.receipts.p50_ms steps.receipts.p95_ms steps.receipts.p99_ms steps.receipts.duplicates
steps.added.p50_ms steps.added.p95_ms steps.added.p99_ms
totals.messages totals.delivered totals.failed totals.submitted totals.unknown totals.expired totals.cancelled totals.rejected_by_reason
submits.first submits.resend submits.accepted submits.rejected submits.timeout submits.unknown
channels.id channels.connections.id channels.connections.submits channels.connections.inflight_peak channels.connections.p95_ms
workflow.enterprise workflow.batches workflow.mean workflow.max workflow.wait_p50_ms workflow.wait_p95_ms workflow.drained_s
outbox.publish_p95_ms outbox.publish_max_ms
callback.requests callback.events callback.batch_mean callback.retries callback.backlog_peak
deliveries.max_attempts deliveries.duplicates pg redis protolog
cpu_us_per_message.gateway cpu_us_per_message.postgres cpu_us_per_message.redis cpu_us_per_message.harness
billing.enterprise billing.price billing.units billing.opening billing.closing billing.charged_n billing.charged_amount
billing.refunded_n billing.refunded_amount billing.released_n billing.released_amount billing.frozen_n
identities.id identities.enterprise identities.ok identities.status identities.left identities.right identities.difference
identities.n_left identities.n_right identities.witnesses
checks.id checks.ok checks.status checks.n_left checks.n_right checks.count checks.detail
faults.id faults.injected faults.recovered faults.outstanding_at_injection faults.at faults.until
stages.name stages.p50_ms stages.p95_ms stages.p99_ms
knee.sustained_tps knee.saturated_tps knee.limit recommendation`

func TestPromisedNames(t *testing.T) {
	t.Parallel()
	b, err := result.Marshal(filled())
	if err != nil {
		t.Fatal(err)
	}
	var doc any
	if err := json.Unmarshal(b, &doc); err != nil {
		t.Fatal(err)
	}
	for path := range strings.FieldsSeq(promised) {
		at := doc
		for name := range strings.SplitSeq(path, ".") {
			if list, ok := at.([]any); ok {
				at = list[0]
			}
			m, _ := at.(map[string]any)
			var ok bool
			if at, ok = m[name]; !ok {
				t.Errorf("%s is missing", path)
				break
			}
		}
	}
}

func TestEmptyReportHasListsNotNull(t *testing.T) {
	t.Parallel()
	r := &result.Report{Verdict: result.VerdictAborted}
	r.Seal()
	b, err := result.Marshal(r)
	if err != nil {
		t.Fatal(err)
	}
	var doc map[string]json.RawMessage
	if err := json.Unmarshal(b, &doc); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"steps", "channels", "workflow", "billing", "identities", "checks", "faults", "stages"} {
		if string(doc[name]) != "[]" {
			t.Errorf("%s is %s, want []", name, doc[name])
		}
	}
	for _, name := range []string{"knee", "recommendation"} {
		if string(doc[name]) != "null" {
			t.Errorf("%s is %s, want null", name, doc[name])
		}
	}
}

func TestExitCodes(t *testing.T) {
	t.Parallel()
	want := map[result.Verdict]int{
		"pass": 0, "bad_file": 2, "slo": 3, "violated": 4, "regression": 5, "invalid": 6, "environment": 7, "aborted": 8,
		"": -1, "passed": -1, "PASS": -1,
	}
	for v, code := range want {
		if got := v.ExitCode(); got != code {
			t.Errorf("%q exits %d, want %d", v, got, code)
		}
	}
	last := -1
	for _, v := range result.Verdicts() {
		if c := v.ExitCode(); c <= last {
			t.Errorf("verdict %s with code %d is out of order", v, c)
		} else {
			last = c
		}
	}
}

func TestUnknownValuesRefused(t *testing.T) {
	t.Parallel()
	good, err := result.Marshal(filled())
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct{ kind, from, to string }{
		{"verdict", `"verdict": "violated"`, `"verdict": "fine"`},
		{"verdict", `"verdict": "violated"`, `"verdict": ""`},
		{"status", `"status": "violated"`, `"status": "skipped"`},
		{"limit", `"limit": "stores"`, `"limit": "disk"`},
	} {
		bad := strings.Replace(string(good), c.from, c.to, 1)
		if bad == string(good) {
			t.Fatalf("%s is not in the report", c.from)
		}
		_, err := result.Unmarshal([]byte(bad))
		unknown, ok := errors.AsType[*result.UnknownValueError](err)
		if !ok || unknown.Kind != c.kind {
			t.Errorf("%s: error %v, want an unknown %s", c.to, err, c.kind)
		}
	}
	var v result.Verdict
	if err := v.UnmarshalText([]byte("fine")); err == nil || v != "" {
		t.Errorf("verdict %q, error %v", v, err)
	}
	if _, err := result.Marshal(&result.Report{}); err == nil {
		t.Error("a report without a verdict was written")
	}
}

func TestContradictionsRefused(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		spoil func(*result.Report)
		want  string
	}{
		"schema":             {func(r *result.Report) { r.Schema = 2 }, "schema 2"},
		"identity ok":        {func(r *result.Report) { r.Identities[0].OK = true }, "ok is true but status is violated"},
		"check ok":           {func(r *result.Report) { r.Checks[0].OK = true }, "ok is true but status is violated"},
		"sides differ":       {func(r *result.Report) { r.Identities[0].Status, r.Identities[0].OK = result.StatusOK, true }, "≠"},
		"pass and violated":  {func(r *result.Report) { r.Verdict = result.VerdictPass }, "the verdict is pass"},
		"pass and objective": {func(r *result.Report) { *r = passing(); r.SLO[0].OK = false }, "objective m is missed"},
		"pass and sample":    {func(r *result.Report) { *r = passing(); r.Conservation[0].Difference = 1 }, "conservation broke at 3 s"},
		"pass and unknown": {func(r *result.Report) {
			*r = passing()
			r.Checks[0].Status = result.StatusUnknown
			r.Seal()
		}, "check c is unknown"},
	} {
		r := filled()
		if err := r.Validate(); err != nil {
			t.Fatalf("before %s: %v", name, err)
		}
		c.spoil(r)
		if err := r.Validate(); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: error %v, want %q", name, err, c.want)
		}
	}
	ok := passing()
	if err := ok.Validate(); err != nil {
		t.Errorf("a passing report is refused: %v", err)
	}
}

func passing() result.Report {
	r := result.Report{
		Verdict:      result.VerdictPass,
		Identities:   []result.Identity{{ID: "i", Status: result.StatusOK, Left: 5, Right: 5}},
		Checks:       []result.Check{{ID: "c", Status: result.StatusNotApplicable}},
		SLO:          []result.SLO{{Metric: "m", OK: true}},
		Conservation: []result.ConservationSample{{AtS: 3}},
	}
	r.Seal()
	return r
}

func TestSealSetsDifference(t *testing.T) {
	t.Parallel()
	r := result.Report{Identities: []result.Identity{{Left: 3, Right: 10, Status: result.StatusViolated}}}
	r.Seal()
	if d := r.Identities[0].Difference; d != -7 {
		t.Errorf("difference %d, want -7", d)
	}
}

func TestWorseStatus(t *testing.T) {
	t.Parallel()
	order := []result.Status{result.StatusNotApplicable, result.StatusOK, result.StatusUnknown, result.StatusViolated}
	for i, a := range order {
		for j, b := range order {
			if got := a.Worse(b); got != order[max(i, j)] {
				t.Errorf("worse of %s and %s is %s", a, b, got)
			}
		}
	}
}

func TestNewLatency(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		n             int64
		p50, p95, p99 bool
		reason        string
	}{
		{0, false, false, false, "no samples"},
		{1, true, false, false, "P95 needs n ≥ 72, P99 needs n ≥ 368"},
		{71, true, false, false, "P95 needs n ≥ 72, P99 needs n ≥ 368"},
		{72, true, true, false, "P99 needs n ≥ 368"},
		{367, true, true, false, "P99 needs n ≥ 368"},
		{368, true, true, true, ""},
	} {
		l := result.NewLatency(c.n, 1, 2, 3)
		if (l.P50 != nil) != c.p50 || (l.P95 != nil) != c.p95 || (l.P99 != nil) != c.p99 || l.Reason != c.reason {
			t.Errorf("n=%d: %v %v %v %q", c.n, l.P50, l.P95, l.P99, l.Reason)
		}
	}
}

func TestHeadline(t *testing.T) {
	t.Parallel()
	step := func(name string, tps float64, change func(*result.Step)) result.Step {
		s := result.Step{Name: name, Valid: true, AcceptedTPS: new(tps + 1), FirstSubmit: result.FirstSubmit{TPS: &tps}}
		if change != nil {
			change(&s)
		}
		return s
	}
	warm := func(s *result.Step) { s.Warmup = true }
	invalid := func(s *result.Step) { s.Valid = false }
	stopped := func(s *result.Step) { s.Stopped = "stop" }
	for name, c := range map[string]struct {
		steps []result.Step
		knee  *result.Knee
		want  string
		tps   float64
	}{
		"fastest":              {[]result.Step{step("a", 20, nil), step("b", 50, nil), step("c", 30, nil)}, nil, "b", 50},
		"not the warm-up":      {[]result.Step{step("a", 90, warm), step("b", 50, nil)}, nil, "b", 50},
		"not a stopped step":   {[]result.Step{step("a", 90, stopped), step("b", 50, nil)}, nil, "b", 50},
		"valid before invalid": {[]result.Step{step("a", 90, invalid), step("b", 50, nil)}, nil, "b", 50},
		"invalid if no other":  {[]result.Step{step("a", 90, invalid), step("b", 50, invalid)}, nil, "a", 90},
		"knee wins":            {[]result.Step{step("a", 90, nil), step("b", 50, invalid)}, &result.Knee{SustainedTPS: new(50.0)}, "b", 50},
	} {
		r := result.Report{Steps: c.steps, Knee: c.knee}
		h := r.Headline()
		if h.Step != c.want || h.FullChain == nil || *h.FullChain != c.tps || h.Accepted == nil || *h.Accepted != c.tps+1 {
			t.Errorf("%s: %+v, want step %s at %g", name, h, c.want, c.tps)
		}
	}
	if h := (&result.Report{}).Headline(); h.FullChain != nil || h.Accepted != nil {
		t.Errorf("no steps: %+v, want nothing", h)
	}
}

func TestNotANumberRefused(t *testing.T) {
	t.Parallel()
	r := passing()
	r.Outbox.PublishP95 = new(math.NaN())
	if err := result.Save(t.TempDir(), &r, nil); err == nil {
		t.Error("NaN was saved")
	}
}
