package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"cmppgateway/reports/result"
)

// bin holds the programs, built once from this tree.
var bin = sync.OnceValues(func() (string, error) {
	dir, err := os.MkdirTemp("", "scenarios-")
	if err != nil {
		return "", err
	}
	cmd := exec.Command("go", "build", "-buildvcs=false", "-o", dir+"/", "cmppgateway/gateway", "cmppgateway/scenarios")
	if out, err := cmd.CombinedOutput(); err != nil {
		return dir, fmt.Errorf("build: %w\n%s", err, out)
	}
	return dir, nil
})

// withPoints is the gateway that can be killed at named places, built once from this tree.
var withPoints = sync.OnceValues(func() (string, error) {
	dir, err := bin()
	if err != nil {
		return "", err
	}
	path := filepath.Join(dir, "gateway-failpoint")
	cmd := exec.Command("go", "build", "-buildvcs=false", "-tags", "failpoint", "-o", path, "cmppgateway/gateway")
	if out, err := cmd.CombinedOutput(); err != nil {
		return "", fmt.Errorf("build: %w\n%s", err, out)
	}
	return path, nil
})

func TestMain(m *testing.M) {
	code := m.Run()
	if dir, _ := bin(); dir != "" {
		_ = os.RemoveAll(dir)
	}
	os.Exit(code)
}

const catalogue = "../scenarios.yaml"

// program runs the program in this process.
func inProcess(t *testing.T, args ...string) (code int, stdout, stderr string) {
	t.Helper()
	var out, errs bytes.Buffer
	code = run(t.Context(), args, &out, &errs)
	return code, out.String(), errs.String()
}

func TestListAndCheck(t *testing.T) {
	t.Parallel()
	code, out, errs := inProcess(t, "list", "--file", catalogue)
	if code != 0 || !strings.Contains(out, "dual-enterprise-200") || errs != "" {
		t.Errorf("list: exit %d\n%s%s", code, out, errs)
	}
	code, out, _ = inProcess(t, "check", "--file", catalogue)
	if code != 0 || strings.Count(out, "closing") < 5 {
		t.Errorf("check: exit %d\n%s", code, out)
	}
	code, out, _ = inProcess(t, "check", "smoke", "--file", catalogue, "--set", "phases.0.hold=6s")
	if code != 0 || !strings.Contains(out, "messages  18") {
		t.Errorf("check smoke: exit %d\n%s", code, out)
	}
}

// What is wrong is said in one line each, with the exit code of a bad file.
func TestOneLinePerFault(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	write := func(name, text string) string {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	typos := write("typos.yaml", "scenarios:\n  x:\n    prise: 325\n    limit: 10\n")
	for name, c := range map[string]struct {
		args  []string
		lines []string
	}{
		"unknown scenario": {[]string{"run", "no-such", "--file", catalogue}, []string{`no scenario "no-such"; there are: collect, dual-enterprise-200`}},
		"typos": {[]string{"check", "x", "--file", typos}, []string{
			":3:5: scenarios.x.prise: unknown key", "x.price: missing", "x.content: missing", "x.carriers: missing", "x.suppliers: missing",
			"x.behaviour: missing", "x.enterprises: missing", "x.phases: missing", `:4:12: scenarios.x.limit: "10" is not a duration`,
		}},
		"price 0":          {[]string{"run", "smoke", "--file", catalogue, "--set", "price=0"}, []string{"allow_zero_price"}},
		"no file":          {[]string{"list", "--file", "/nowhere.yaml"}, []string{"no such file"}},
		"unknown command":  {[]string{"rum"}, []string{"rum"}},
		"no history":       {[]string{"verify", dir}, []string{"history"}},
		"no report":        {[]string{"report", dir}, []string{"report.json"}},
		"refused override": {[]string{"run", "smoke", "--file", catalogue, "--set", "gateway.redis.url=x"}, []string{"given by the harness"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			code, out, errs := inProcess(t, c.args...)
			lines := strings.Split(strings.TrimSuffix(errs, "\n"), "\n")
			if code != 2 || out != "" || len(lines) != len(c.lines) {
				t.Fatalf("exit %d, %d lines\n%s%s", code, len(lines), out, errs)
			}
			for _, want := range c.lines {
				if !strings.Contains(errs, want) {
					t.Errorf("no %q in\n%s", want, errs)
				}
			}
		})
	}
}

// outcome of a run of the built program.
type outcome struct {
	code  int
	lines []string // of standard output
	dir   string
}

func execute(t *testing.T, interrupt string, args ...string) outcome {
	t.Helper()
	dir, err := bin()
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	defer cancel()
	runs := t.TempDir()
	args = append(args, "--file", catalogue, "--runs", runs)
	if !slices.Contains(args, "--gateway") {
		args = append(args, "--gateway", filepath.Join(dir, "gateway"))
	}
	cmd := exec.CommandContext(ctx, filepath.Join(dir, "scenarios"), args...)
	var out bytes.Buffer
	cmd.Stdout = &out
	progress := &watcher{mark: interrupt, found: func() { _ = cmd.Process.Signal(os.Interrupt) }}
	cmd.Stderr = progress
	err = cmd.Run()
	if ctx.Err() != nil {
		t.Fatalf("not done in time: %v\n%s%s", err, out.String(), progress.text.String())
	}
	o := outcome{code: cmd.ProcessState.ExitCode(), lines: strings.Split(strings.TrimSuffix(out.String(), "\n"), "\n")}
	o.dir = filepath.Dir(o.lines[len(o.lines)-1])
	t.Logf("%s\n%s", progress.text.String(), out.String())
	return o
}

// watcher does something at the first mark in a text.
type watcher struct {
	text  bytes.Buffer
	mark  string
	found func()
	done  bool
}

func (w *watcher) Write(b []byte) (int, error) {
	w.text.Write(b)
	if w.mark != "" && !w.done && strings.Contains(w.text.String(), w.mark) {
		w.done = true
		w.found()
	}
	return len(b), nil
}

func load(t *testing.T, dir string) *result.Run {
	t.Helper()
	run, err := result.Load(dir)
	if err != nil {
		t.Fatal(err)
	}
	return run
}

// Smoke against the built binary: nine messages, every identity, every file.
func TestSmoke(t *testing.T) {
	t.Parallel()
	o := execute(t, "", "run", "smoke")
	if o.code != 0 {
		t.Fatalf("exit %d", o.code)
	}
	if n := len(o.lines); filepath.Base(o.lines[n-1]) != result.HTMLFile || o.lines[n-2] != "exit 0 pass" {
		t.Errorf("the output ends with %q", o.lines[len(o.lines)-2:])
	}
	for _, name := range []string{
		result.ReportFile, result.HTMLFile, result.MarkdownFile, result.JUnitFile, result.SeriesFile, result.HistoryFile, result.ScenarioFile,
		result.EnvFile, result.GatewayLogFile, result.StatementFile, result.ReproFile,
	} {
		if info, err := os.Stat(filepath.Join(o.dir, name)); err != nil || info.Size() == 0 {
			t.Errorf("%s: %v", name, err)
		}
	}
	r := load(t, o.dir).Report
	step := r.Steps[0]
	if step.SubmitResp.OK != 9 || step.FirstSubmit.N != 9 || step.FirstSubmit.DuplicateSubmitID != 0 || step.SubmitResp.P95 != nil {
		t.Errorf("step %+v", step)
	}
	if r.Totals.Delivered != 7 || r.Totals.Failed != 1 || r.Totals.Submitted != 1 || r.Submits.First != 9 || r.Submits.Resend != 1 {
		t.Errorf("totals %+v, submits %+v", r.Totals, r.Submits)
	}
	if b := r.Billing[0]; b.ChargedAmount != 2925 || b.RefundedAmount != 325 || b.Opening-b.Closing != 2600 || b.Units != 9 {
		t.Errorf("billing %+v", b)
	}
	if len(r.Identities) != 6 || len(r.Checks) < 9 || len(r.Conservation) < 3 || len(r.Stages) != 10 {
		t.Errorf("%d identities, %d checks, %d samples, %d stages", len(r.Identities), len(r.Checks), len(r.Conservation), len(r.Stages))
	}
	if r.Environment.Gateway.PID == 0 || len(r.Environment.Gateway.SHA256) != 64 || r.Environment.Durability["fsync"] != "on" || r.Environment.Settings["supplier.allow_remote"] != "false" {
		t.Errorf("environment %+v", r.Environment)
	}
	var env map[string]any
	if b, err := os.ReadFile(filepath.Join(o.dir, result.EnvFile)); err != nil || json.Unmarshal(b, &env) != nil || env["hot_share"] == nil {
		t.Errorf("env.json: %v, %v", err, env)
	}
	if at, err := os.Readlink(filepath.Join(filepath.Dir(o.dir), "latest")); err != nil || at != filepath.Base(o.dir) {
		t.Errorf("latest points at %q, %v", at, err)
	}
	if code, out, _ := inProcess(t, "verify", o.dir); code != 0 || !strings.Contains(out, "conservation") {
		t.Errorf("verify of the stored run: exit %d\n%s", code, out)
	}
	if code, out, _ := inProcess(t, "report", o.dir); code != 0 || !strings.HasSuffix(out, result.HTMLFile+"\n") {
		t.Errorf("report of the stored run: exit %d\n%s", code, out)
	}
	if code, _, errs := inProcess(t, "check", "smoke", "--file", filepath.Join(o.dir, result.ScenarioFile)); code != 0 {
		t.Errorf("the resolved scenario: exit %d\n%s", code, errs)
	}
}

// An interrupt ends a run in order: a report, and nothing left running.
func TestInterrupt(t *testing.T) {
	t.Parallel()
	o := execute(t, "phase measure", "run", "smoke", "--set", "phases.0.name=measure", "--set", "phases.0.hold=20s", "--set", "limit=90s")
	if o.code != result.VerdictAborted.ExitCode() || o.lines[len(o.lines)-2] != "exit 8 aborted" {
		t.Fatalf("exit %d\n%s", o.code, strings.Join(o.lines, "\n"))
	}
	r := load(t, o.dir).Report
	if r.Verdict != result.VerdictAborted || !strings.Contains(r.Reason, "on request") {
		t.Errorf("verdict %s: %s", r.Verdict, r.Reason)
	}
	pid := r.Environment.Gateway.PID
	if _, err := os.Stat(fmt.Sprintf("/proc/%d", pid)); err == nil {
		exe, _ := os.Readlink(fmt.Sprintf("/proc/%d/exe", pid))
		if strings.HasSuffix(exe, "gateway") {
			t.Errorf("gateway %d still runs", pid)
		}
	}
}
