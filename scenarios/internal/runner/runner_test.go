package runner_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"cmppgateway/reports/result"
	"cmppgateway/scenarios/internal/runner"
	"cmppgateway/scenarios/internal/spec"
)

// script answers each probe with the next counts, the last one for ever.
type script struct {
	counts []map[string]int64
	asked  int
}

func (s *script) probe(context.Context) (map[string]int64, error) {
	c := s.counts[min(s.asked, len(s.counts)-1)]
	s.asked++
	if c == nil {
		return nil, errors.New("no answer")
	}
	return c, nil
}

var (
	full  = map[string]int64{"inbox": 3, "delivery": 1}
	empty = map[string]int64{"inbox": 0, "delivery": 0}
)

func TestDrain(t *testing.T) {
	t.Parallel()
	cfg := spec.Drain{Stable: 3 * time.Second, Limit: 20100 * time.Millisecond}
	for name, c := range map[string]struct {
		counts     []map[string]int64
		took, wall time.Duration
		left       int
	}{
		"empty from the start":                {[]map[string]int64{empty}, 0, 3 * time.Second, 0},
		"empty after a second":                {[]map[string]int64{full, full, full, full, empty}, time.Second, 4 * time.Second, 0},
		"a late receipt begins the wait anew": {[]map[string]int64{empty, empty, empty, full, empty}, time.Second, 4 * time.Second, 0},
		"no answer is not empty":              {[]map[string]int64{empty, nil, empty}, 500 * time.Millisecond, 3500 * time.Millisecond, 0},
		"never empty":                         {[]map[string]int64{full}, 20 * time.Second, 20100 * time.Millisecond, 2},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				begin := time.Now()
				s := &script{counts: c.counts}
				d, err := runner.Drain(t.Context(), cfg, s.probe)
				if err != nil {
					t.Fatal(err)
				}
				if d.Took.Round(250*time.Millisecond) != c.took || len(d.Left) != c.left {
					t.Errorf("took %s with %v left, want %s and %d", d.Took, d.Left, c.took, c.left)
				}
				if wall := time.Since(begin); wall != c.wall {
					t.Errorf("returned after %s, want %s", wall, c.wall)
				}
			})
		})
	}
}

func TestDrainStopsWithItsContext(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		s := &script{counts: []map[string]int64{full}}
		if _, err := runner.Drain(ctx, spec.Drain{Stable: time.Second, Limit: time.Hour}, s.probe); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("error is %v", err)
		}
	})
}

// A line every five seconds and at every change, nothing that moves the cursor.
func TestProgressLines(t *testing.T) {
	t.Parallel()
	var b bytes.Buffer
	p := runner.NewProgress(&b, "smoke", false)
	for s := range 12 {
		runner.Show(p, runner.Status{Doing: "phase measure", Elapsed: time.Duration(s) * time.Second, Offered: int64(3 * s), Accepted: 1})
	}
	runner.Show(p, runner.Status{Doing: "drain", Elapsed: 12 * time.Second})
	want := "[smoke] 0s phase measure\n" +
		"[smoke] 5s phase measure: offered 15, accepted 1, at suppliers 0, receipts 0\n" +
		"[smoke] 10s phase measure: offered 30, accepted 1, at suppliers 0, receipts 0\n" +
		"[smoke] 12s drain\n"
	if b.String() != want {
		t.Errorf("wrote\n%swant\n%s", b.String(), want)
	}
}

const before = `# TYPE a_seconds histogram
a_seconds_bucket{q="x",le="0.1"} 1
a_seconds_bucket{q="x",le="0.2"} 1
a_seconds_bucket{q="x",le="0.4"} 1
a_seconds_bucket{q="x",le="+Inf"} 1
a_seconds_sum{q="x"} 0.05
a_seconds_count{q="x"} 1
# TYPE b_total counter
b_total{state="unknown"} 2
b_total{state="accepted"} 5
`

const after = `# TYPE a_seconds histogram
a_seconds_bucket{q="x",le="0.1"} 1
a_seconds_bucket{q="x",le="0.2"} 11
a_seconds_bucket{q="x",le="0.4"} 101
a_seconds_bucket{q="x",le="+Inf"} 101
a_seconds_sum{q="x"} 30.05
a_seconds_count{q="x"} 101
# TYPE b_total counter
b_total{state="unknown"} 3
b_total{state="accepted"} 9
`

func TestMetricsBetweenTwoReadings(t *testing.T) {
	t.Parallel()
	a, err := runner.ParseMetrics(strings.NewReader(before))
	if err != nil {
		t.Fatal(err)
	}
	b, err := runner.ParseMetrics(strings.NewReader(after))
	if err != nil {
		t.Fatal(err)
	}
	if n := runner.Sum(b, "b_total", "state", "unknown"); n != 3 {
		t.Errorf("unknown is %g", n)
	}
	if n := runner.Sum(b, "b_total"); n != 12 {
		t.Errorf("all are %g", n)
	}
	if mean, n := runner.Mean(a, b, "a_seconds", "q", "x"); n != 100 || mean != 0.3 {
		t.Errorf("mean %g of %g", mean, n)
	}
	// 10 of 100 up to 0.2, 90 from there to 0.4: half is at 0.2 + 0.2·40/90.
	if v, ok := runner.Quantile(a, b, "a_seconds", 0.5); !ok || v < 0.288 || v > 0.290 {
		t.Errorf("median %g, %t", v, ok)
	}
	if _, ok := runner.Quantile(a, b, "a_seconds", 0.5, "q", "y"); ok {
		t.Error("a label that is not there has a median")
	}
	if _, ok := runner.Quantile(a, b, "nothing", 0.5); ok {
		t.Error("a metric that is not there has a median")
	}
}

// report is one with everything right, whose P95 is 80 ms and whose rate is 99.
func report() *result.Report {
	return &result.Report{
		Steps: []result.Step{
			{Name: "warm", Warmup: true},
			{
				Name: "measure", Valid: true, TargetTPS: 100, Offered: 1000, DurationS: 10, Validity: &result.Validity{OK: true},
				SubmitResp:  result.SubmitResp{Latency: result.NewLatency(1000, 40, 80, 100), OK: 1000},
				FirstSubmit: result.FirstSubmit{Latency: result.NewLatency(1000, 40, 80, 100), TPS: new(99.0)},
			},
		},
		Identities: []result.Identity{{ID: "conservation", Status: result.StatusOK}},
		Checks:     []result.Check{{ID: "one_fate", Status: result.StatusOK}, {ID: "early_receipt", Status: result.StatusNotApplicable}},
	}
}

func TestVerdict(t *testing.T) {
	t.Parallel()
	noisy := func(r *result.Report) {
		r.Steps[1].Valid = false
		r.Steps[1].Validity = &result.Validity{Notes: []string{"other programs used the machine"}}
	}
	slo := func(ms float64) []spec.SLO { return []spec.SLO{{Metric: "submit_resp.p95", Max: &ms}} }
	for name, c := range map[string]struct {
		slo    []spec.SLO
		price  int64
		change func(*result.Report)
		want   result.Verdict
	}{
		"everything holds":                        {slo(84), 325, func(*result.Report) {}, result.VerdictPass},
		"an objective is missed":                  {slo(79), 325, func(*result.Report) {}, result.VerdictSLO},
		"a rate is missed":                        {[]spec.SLO{{Metric: "first_submit.tps", Min: new(99.5)}}, 325, func(*result.Report) {}, result.VerdictSLO},
		"missed on a noisy machine":               {slo(79), 325, noisy, result.VerdictInvalid},
		"met on a noisy machine":                  {slo(84), 325, noisy, result.VerdictPass},
		"too few samples":                         {slo(84), 325, func(r *result.Report) { r.Steps[1].SubmitResp.Latency = result.NewLatency(9, 1, 2, 3) }, result.VerdictInvalid},
		"violated":                                {slo(84), 325, func(r *result.Report) { r.Checks[0].Status = result.StatusViolated }, result.VerdictViolated},
		"nothing examined does not pass":          {slo(84), 325, func(r *result.Report) { r.Checks[0].Status = result.StatusUnknown }, result.VerdictViolated},
		"a noisy machine excuses no identity":     {slo(79), 325, func(r *result.Report) { noisy(r); r.Identities[0].Status = result.StatusViolated }, result.VerdictViolated},
		"the books did not balance for a second":  {slo(84), 325, func(r *result.Report) { r.Conservation = []result.ConservationSample{{Difference: 1}} }, result.VerdictViolated},
		"without a price nothing more than valid": {slo(84), 0, func(*result.Report) {}, result.VerdictInvalid},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := report()
			c.change(r)
			runner.Judge(&spec.Scenario{Price: c.price, SLO: c.slo}, r)
			if r.Verdict != c.want || r.Reason == "" {
				t.Errorf("verdict %s (%s), want %s", r.Verdict, r.Reason, c.want)
			}
			r.Seal()
			if err := r.Validate(); err != nil {
				t.Error(err)
			}
		})
	}
}

func TestCutShort(t *testing.T) {
	t.Parallel()
	asked, cancel := context.WithCancel(t.Context())
	cancel()
	for name, c := range map[string]struct {
		ctx  context.Context
		err  error
		want result.Verdict
	}{
		"asked for":             {asked, context.Canceled, result.VerdictAborted},
		"limit":                 {t.Context(), fmt.Errorf("drain: %w", runner.ErrLimit), result.VerdictAborted},
		"no database":           {t.Context(), fmt.Errorf("x: %w", runner.Unfit("no PostgreSQL")), result.VerdictEnvironment},
		"refused settings":      {t.Context(), fmt.Errorf("x: %w", spec.FaultsError{{Source: "s"}}), result.VerdictBadFile},
		"the gateway crashed":   {t.Context(), fmt.Errorf("x: %w", runner.Died(2)), result.VerdictViolated},
		"crashed, also cleanup": {t.Context(), errors.Join(runner.Died(2), runner.Unfit("drop")), result.VerdictViolated},
	} {
		if r := runner.Conclude(c.ctx, c.err); r.Verdict != c.want || r.Reason == "" || strings.Contains(r.Reason, "\n") {
			t.Errorf("%s: verdict %s, reason %q", name, r.Verdict, r.Reason)
		}
	}
}

func TestRecommendation(t *testing.T) {
	t.Parallel()
	r := report()
	got := runner.Recommend(&spec.Scenario{Enterprises: []spec.Enterprise{{ID: "a"}}}, r.Steps)
	if got == nil || got.TotalTPS != 74 || got.EvidenceS != 10 || got.Enterprises[0].TPS != 74 { // floor(0.75 × 99)
		t.Errorf("recommended %+v", got)
	}
	r.Steps[1].SubmitResp.Missing = 1
	if got := runner.Recommend(&spec.Scenario{}, r.Steps); got != nil {
		t.Errorf("recommended %+v from a step that lost answers", got)
	}
}

// The limiting stage is named only when the chain fell short of what was offered.
func TestLimit(t *testing.T) {
	t.Parallel()
	stages := []result.Stage{
		{Name: result.StageWorkflow, Latency: result.NewLatency(1000, 1, 2, 3)},
		{Name: result.StageWindowWait, Latency: result.NewLatency(1000, 1, 900, 950)},
		{Name: result.StageSupplier, Latency: result.NewLatency(1000, 1, 9000, 9500)},
	}
	r := report()
	if l := runner.LimitOf(r.Steps, stages); l != "" {
		t.Errorf("limit %s of a chain that kept up", l)
	}
	r.Steps[1].FirstSubmit.TPS = new(60.0)
	if l := runner.LimitOf(r.Steps, stages); l != result.LimitGatewayWindows {
		t.Errorf("limit %q", l)
	}
}

func TestRunDirectories(t *testing.T) {
	t.Parallel()
	root, now := t.TempDir(), time.Date(2026, 11, 30, 14, 0, 0, 0, time.UTC)
	first, err := runner.MakeDir(root, "smoke", now)
	if err != nil {
		t.Fatal(err)
	}
	second, err := runner.MakeDir(root, "smoke", now)
	if err != nil {
		t.Fatal(err)
	}
	if first == second || filepath.Base(first) != "20261130T140000Z" {
		t.Errorf("directories %s and %s", first, second)
	}
	if at, err := os.Readlink(filepath.Join(root, "smoke", "latest")); err != nil || at != filepath.Base(second) {
		t.Errorf("latest points at %q, %v", at, err)
	}
}

func TestStaleBinary(t *testing.T) {
	t.Parallel()
	root := t.TempDir()
	for name, text := range map[string]string{
		"go.mod": "module cmppgateway\n", "bin/gateway": "x", "gateway/main.go": "package main", "gateway/main_test.go": "package main",
	} {
		path := filepath.Join(root, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o750); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	binary := filepath.Join(root, "bin", "gateway")
	touch := func(name string, at time.Time) {
		if err := os.Chtimes(filepath.Join(root, name), at, at); err != nil {
			t.Fatal(err)
		}
	}
	now := time.Now()
	touch("bin/gateway", now)
	touch("gateway/main.go", now.Add(-time.Minute))
	touch("gateway/main_test.go", now.Add(time.Minute)) // tests are not in the program
	if newer, err := runner.Stale(binary); err != nil || newer != "" {
		t.Errorf("a fresh binary is stale: %q, %v", newer, err)
	}
	touch("gateway/main.go", now.Add(time.Minute))
	if newer, err := runner.Stale(binary); err != nil || newer != "gateway/main.go" {
		t.Errorf("a stale binary is fresh: %q, %v", newer, err)
	}
}

// A child that ends by itself, one that is asked, and one that must be made to.
func TestChildren(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		shell string
		code  int
	}{
		"asked":  {"trap 'exit 7' TERM; echo up; while :; do sleep 0.05; done", 7},
		"made":   {"trap '' TERM; echo up; while :; do sleep 0.05; done", 128 + int(syscall.SIGKILL)},
		"by now": {"echo up; exit 3", 3},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			cmd := exec.Command("sh", "-c", c.shell)
			out, in, err := os.Pipe()
			if err != nil {
				t.Fatal(err)
			}
			defer out.Close()
			cmd.Stdout = in
			child, err := runner.StartIdle(cmd)
			if err != nil {
				t.Fatal(err)
			}
			if err := in.Close(); err != nil {
				t.Fatal(err)
			}
			if _, err := out.Read(make([]byte, 3)); err != nil { // it is up
				t.Fatal(err)
			}
			if d, err := runner.CPUOf(cmd.Process.Pid, true); err == nil && d < 0 {
				t.Errorf("CPU time %s", d)
			}
			if code := runner.StopChild(child, 500*time.Millisecond); code != c.code {
				t.Errorf("exit code %d, want %d", code, c.code)
			}
			// Its own children are killed with it and reaped by whoever inherits them.
			for deadline := time.Now().Add(5 * time.Second); syscall.Kill(-cmd.Process.Pid, 0) == nil; {
				if time.Now().After(deadline) {
					t.Fatal("its group is still there")
				}
				runtime.Gosched()
			}
		})
	}
}

func TestLastLine(t *testing.T) {
	t.Parallel()
	if got := runner.LastLine("a\nb\n\n"); got != "b" {
		t.Errorf("last line %q", got)
	}
}
