package fault_test

import (
	"context"
	"errors"
	"os"
	"os/exec"
	"slices"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"cmppgateway/chaos/fault"
)

// victim is a child that does nothing, in a group of its own.
func victim(t *testing.T) *exec.Cmd {
	t.Helper()
	cmd := exec.Command("sleep", "60")
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
	})
	return cmd
}

func names(t *testing.T, f fault.Fault, hold time.Duration) []string {
	t.Helper()
	var steps []string
	if err := fault.Run(t.Context(), f, hold, func(s fault.Step) { steps = append(steps, s.What) }); err != nil {
		t.Fatal(err)
	}
	return steps
}

func TestStopIsProvedAndTakenBack(t *testing.T) {
	t.Parallel()
	for _, group := range []bool{false, true} {
		cmd := victim(t)
		f, err := fault.Stop(cmd.Process.Pid, group)
		if err != nil {
			t.Fatal(err)
		}
		if got := names(t, f, 0); !slices.Equal(got, []string{"injected", "proved", "reverted", "proved over"}) {
			t.Errorf("group %t: steps %v", group, got)
		}
		if err := f.Verify(t.Context(), true); err == nil {
			t.Error("the process runs again and counts as stopped")
		}
	}
}

func TestStopIsTakenBackWhenTheContextEnds(t *testing.T) {
	t.Parallel()
	cmd := victim(t)
	f, err := fault.Stop(cmd.Process.Pid, false)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	err = fault.Run(ctx, f, time.Hour, func(s fault.Step) {
		if s.What == "proved" {
			cancel()
		}
	})
	if err != nil {
		t.Fatal(err)
	}
	if err := f.Verify(t.Context(), false); err != nil {
		t.Errorf("still stopped: %v", err)
	}
}

func TestKill(t *testing.T) {
	t.Parallel()
	cmd := victim(t)
	f, err := fault.Kill(cmd.Process.Pid, false)
	if err != nil {
		t.Fatal(err)
	}
	if err := f.Verify(t.Context(), true); err == nil {
		t.Error("a living process counts as killed")
	}
	if got := names(t, f, 0); !slices.Contains(got, "proved") {
		t.Errorf("steps %v", got)
	}
	var exit *exec.ExitError
	if err := cmd.Wait(); !errors.As(err, &exit) || exit.Sys().(syscall.WaitStatus).Signal() != syscall.SIGKILL {
		t.Errorf("the child ended with %v, not by SIGKILL", err)
	}
	if err := f.Inject(t.Context()); !errors.Is(err, fault.ErrNotThere) {
		t.Errorf("killing what is gone gives %v", err)
	}
}

// What is armed is over when the process has ended, however long that takes.
func TestArm(t *testing.T) {
	t.Parallel()
	cmd := victim(t)
	f, err := fault.Arm(cmd.Process.Pid)
	if err != nil {
		t.Fatal(err)
	}
	if err := f.Verify(t.Context(), true); err == nil {
		t.Error("a living process counts as ended at its point")
	}
	if got := names(t, f, 0); !slices.Equal(got, []string{"injected", "proved", "reverted", "proved over"}) {
		t.Errorf("steps %v", got)
	}
	var exit *exec.ExitError
	if err := cmd.Wait(); !errors.As(err, &exit) || exit.Sys().(syscall.WaitStatus).Signal() != syscall.SIGUSR1 {
		t.Errorf("the child ended with %v, not by SIGUSR1", err)
	}
}

// wool is a fault that never bites.
type wool struct{ reverted bool }

func (w *wool) Name() string                 { return "wool" }
func (w *wool) Inject(context.Context) error { return nil }
func (w *wool) Revert(context.Context) error { w.reverted = true; return nil }
func (w *wool) Verify(_ context.Context, want bool) error {
	if want {
		return errors.New("nothing happened")
	}
	return nil
}

func TestUnprovedFaultIsAnErrorAndTakenBack(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
	defer cancel()
	w := &wool{}
	err := fault.Run(ctx, w, 0, func(fault.Step) {})
	var unproved *fault.UnprovedError
	if !errors.As(err, &unproved) || unproved.Over || !w.reverted {
		t.Errorf("error %v, reverted %t", err, w.reverted)
	}
}

// mud is a fault that is over only some time after it was reverted.
type mud struct {
	wool

	within   time.Duration // 0: not said
	over     time.Duration
	reverted time.Time
}

func (m *mud) Revert(context.Context) error { m.reverted = time.Now(); return nil }
func (m *mud) Verify(_ context.Context, want bool) error {
	if !want && time.Since(m.reverted) < m.over {
		return errors.New("still there")
	}
	return nil
}

// slow is mud that says how long it takes.
type slow struct{ mud }

func (s *slow) MendWithin() time.Duration { return s.within }

func TestMendingHasTheTimeItNeeds(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		f  fault.Fault
		ok bool
	}{
		"5 s are not enough for it": {&mud{over: 8 * time.Second}, false},
		"it has said so":            {&slow{mud{over: 8 * time.Second, within: 10 * time.Second}}, true},
		"it takes even longer":      {&slow{mud{over: 11 * time.Second, within: 10 * time.Second}}, false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				err := fault.Run(t.Context(), c.f, 0, func(fault.Step) {})
				var unproved *fault.UnprovedError
				if c.ok && err != nil || !c.ok && (!errors.As(err, &unproved) || !unproved.Over) {
					t.Errorf("error %v", err)
				}
			})
		})
	}
}

func TestRefusedVictims(t *testing.T) {
	t.Parallel()
	for name, pid := range map[string]int{"none": 0, "init": 1, "self": os.Getpid(), "not there": 1 << 22} {
		if _, err := fault.Kill(pid, false); err == nil {
			t.Errorf("%s: %d would be killed", name, pid)
		}
	}
}
