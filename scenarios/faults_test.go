package main

import (
	"slices"
	"strings"
	"testing"

	"cmppgateway/reports/result"
)

// struck runs a fault scenario with short phases and returns its report, in which
// everything holds. These tests are not parallel: two gateways at full load on a
// small machine would measure each other.
func struck(t *testing.T, name string, options ...string) result.Report {
	t.Helper()
	args := []string{"run", name, "--set", "phases.0.hold=2s", "--set", "phases.1.hold=8s", "--set", "faults.0.at=4s"}
	o := execute(t, "", append(args, options...)...)
	r := load(t, o.dir).Report
	if o.code != 0 || r.Verdict != result.VerdictPass {
		t.Fatalf("exit %d, %s: %s", o.code, r.Verdict, r.Reason)
	}
	if len(r.Faults) != 1 {
		t.Fatalf("faults %+v", r.Faults)
	}
	f := r.Faults[0]
	if !strings.HasPrefix(name, "fault-"+strings.TrimPrefix(f.ID, "gateway-")) && "fault-"+f.ID != name || !f.Injected || !f.Recovered || f.Outstanding < 50 || f.At == nil || f.Until == nil || !f.Until.After(*f.At) || f.Proof == "" {
		t.Errorf("fault %+v", f)
	}
	// The checks a fault could break have examined what they are about.
	for _, id := range []string{"one_fate", "no_lost_accept", "no_phantom", "submit_once", "billed_once", "message_balanced", "receipts_in", "receipts_out", "nothing_left"} {
		if c := check(t, r, id); c.Status != result.StatusOK || c.NLeft == 0 || c.NRight == 0 {
			t.Errorf("%s is %s, examined %d and %d", id, c.Status, c.NLeft, c.NRight)
		}
	}
	for _, x := range r.Identities {
		if !x.Status.OK() || x.Difference != 0 {
			t.Errorf("identity %s of %q is %s: %s", x.ID, x.Enterprise, x.Status, x.Detail)
		}
	}
	if r.Totals.Unknown != 0 {
		t.Errorf("%d messages are unknown after the statement", r.Totals.Unknown)
	}
	return r
}

func check(t *testing.T, r result.Report, id string) result.Check {
	t.Helper()
	i := slices.IndexFunc(r.Checks, func(c result.Check) bool { return c.ID == id })
	if i < 0 {
		t.Fatalf("no check %s", id)
	}
	return r.Checks[i]
}

// SIGKILL at full load: what was on its way is unknown, no more, and all of it ends
// in one fate; nothing is sent twice.
func TestGatewayKill(t *testing.T) { //nolint:paralleltest // see struck
	r := struck(t, "fault-gateway-kill")
	if proof := r.Faults[0].Proof; !strings.Contains(proof, "ended by signal 9") || !strings.Contains(proof, "answered /readyz") || !strings.Contains(proof, "connection active") {
		t.Errorf("proof %q", proof)
	}
	for _, id := range []string{"resolved", "after_kill"} {
		if c := check(t, r, id); c.Status != result.StatusOK || c.NLeft < 50 || !strings.Contains(c.Detail, "unknown") {
			t.Errorf("%s is %s, examined %d: %s", id, c.Status, c.NLeft, c.Detail)
		}
	}
}

// SIGKILL between the barrier and the write: what is dispatched and was never written is unknown, and is not sent again.
func TestFailpoint(t *testing.T) { //nolint:paralleltest // see struck
	gateway, err := withPoints()
	if err != nil {
		t.Fatal(err)
	}
	r := struck(t, "fault-failpoint-after-barrier", "--gateway", gateway, "--set", "phases.0.hold=1s", "--set", "phases.1.hold=4s", "--set", "faults.0.at=3s",
		"--set", "drain.stable=1s", "--set", "gateway.settlement.unknown_after=2s")
	if proof := r.Faults[0].Proof; !strings.Contains(proof, "ended by signal 9 at after_barrier") || !strings.Contains(proof, "answered /readyz") {
		t.Errorf("proof %q", proof)
	}
	if c := check(t, r, "after_kill"); c.Status != result.StatusOK || c.NLeft == 0 || strings.Contains(c.Detail, " 0 between barrier and supplier") {
		t.Errorf("after_kill is %s, examined %d: %s", c.Status, c.NLeft, c.Detail)
	}
}

// A gateway without points cannot be killed at one: that is said before anything starts.
func TestFailpointNeedsItsGateway(t *testing.T) {
	t.Parallel()
	o := execute(t, "", "run", "fault-failpoint-mid-write")
	if r := load(t, o.dir).Report; o.code != result.VerdictEnvironment.ExitCode() || !strings.Contains(r.Reason, "make failpoint") {
		t.Errorf("exit %d, %s: %s", o.code, r.Verdict, r.Reason)
	}
}

// A crash of PostgreSQL at full load: everything waits for it and goes on.
func TestPostgresCrash(t *testing.T) { //nolint:paralleltest // see struck
	r := struck(t, "fault-postgres-crash")
	if proof := r.Faults[0].Proof; !strings.Contains(proof, "refused") || !strings.Contains(proof, "answered another client") {
		t.Errorf("proof %q", proof)
	}
	if r.Environment.Provisioner != "processes" {
		t.Errorf("PostgreSQL came from %s", r.Environment.Provisioner)
	}
	missing := int64(0)
	for _, s := range r.Steps {
		missing += s.SubmitResp.Missing
	}
	if missing > 0 {
		t.Errorf("%d SUBMITs were never answered though the gateway lived", missing)
	}
}

// A fault that meets next to nothing on its way proves nothing: no verdict on the
// gateway.
func TestKillThatMeetsNothing(t *testing.T) { //nolint:paralleltest // see struck
	o := execute(t, "", "run", "fault-gateway-kill", "--set", "phases.0.hold=1s", "--set", "phases.1.hold=4s", "--set", "faults.0.at=3s",
		"--set", "behaviour.submit_rtt.value=1ms")
	r := load(t, o.dir).Report
	if o.code != result.VerdictEnvironment.ExitCode() || r.Verdict != result.VerdictEnvironment || !strings.Contains(r.Reason, "50 are needed") {
		t.Errorf("exit %d, %s: %s", o.code, r.Verdict, r.Reason)
	}
	if len(r.Faults) != 1 || !r.Faults[0].Injected || r.Faults[0].Outstanding >= 50 {
		t.Errorf("faults %+v", r.Faults)
	}
}
