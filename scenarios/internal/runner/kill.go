package runner

import (
	"context"
	"debug/buildinfo"
	"errors"
	"fmt"
	"os"
	"runtime/debug"
	"slices"
	"strings"
	"syscall"
	"time"

	"cmppgateway/chaos/fault"
	"cmppgateway/reports/result"
	"cmppgateway/scenarios/internal/spec"
)

// pointLimit is how long a gateway under load may take to pass its point.
const pointLimit = 20 * time.Second

// kill makes the fault that ends the gateway now, or at a point.
func (r *run) kill(x spec.Injection) (injection, error) {
	c := r.gateway.now()
	f, err := fault.Kill(c.pid(), true)
	if x.Fault == spec.GatewayFailpoint {
		f, err = fault.Arm(c.pid())
	}
	if err != nil {
		return nil, err
	}
	return &gatewayKill{Fault: f, r: r, point: x.Point, victim: c}, nil
}

// pointOf is the environment variable that a gateway built with the tag "failpoint" takes
// the scenario's point from; nothing when it has none.
func pointOf(s *spec.Scenario) []string {
	for _, x := range s.Faults {
		if x.Fault == spec.GatewayFailpoint {
			return []string{fmt.Sprintf("FAILPOINT=%s:%d", x.Point, x.Value)}
		}
	}
	return nil
}

// hasPoints says whether a program was built with the tag "failpoint".
func hasPoints(program string) bool {
	info, err := buildinfo.ReadFile(program)
	return err == nil && slices.ContainsFunc(info.Settings, func(s debug.BuildSetting) bool {
		return s.Key == "-tags" && slices.Contains(strings.Split(s.Value, ","), "failpoint")
	})
}

// gatewayKill is SIGKILL to the gateway's process group, or the gateway's own at a point.
// Its end is proved by the exit status and, at a point, by the line that the gateway
// wrote there; its return by /readyz answered by the new process.
type gatewayKill struct {
	fault.Fault

	point        string // "" = at once
	r            *run
	victim, next *child
	seen         string
	killed       time.Time
}

func (*gatewayKill) MendWithin() time.Duration { return readyLimit }

func (k *gatewayKill) Inject(ctx context.Context) error {
	k.r.gateway.doom()
	k.killed = time.Now()
	if err := k.Fault.Inject(ctx); err != nil || k.point == "" {
		return err
	}
	limit := time.NewTimer(pointLimit)
	defer limit.Stop()
	select {
	case <-k.victim.done:
		k.killed = time.Now()
		return nil
	case <-limit.C:
		return fmt.Errorf("it did not pass %s often enough within %s", k.point, pointLimit)
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

func (k *gatewayKill) Revert(context.Context) error {
	if k.killed.IsZero() || k.next != nil {
		return nil
	}
	if k.victim.alive() { // it can only be armed: it is no use any more
		return errors.New("it still runs")
	}
	next, err := startGateway(k.r.Gateway, k.r.dir, k.r.gatewayLog) // without a point: this one is to live
	if err != nil {
		return err
	}
	k.next = next
	k.r.later(func() error {
		next.stop(5 * time.Second)
		return nil
	})
	k.r.gateway.set(next)
	return nil
}

func (k *gatewayKill) Verify(ctx context.Context, want bool) error {
	if want {
		if k.victim.alive() {
			return errors.New("it still runs")
		}
		if code := k.victim.exitCode(); code != 128+int(syscall.SIGKILL) {
			return fmt.Errorf("it ended with exit code %d, not by SIGKILL", code)
		}
		k.seen = fmt.Sprintf("process %d ended by signal %d", k.victim.pid(), syscall.SIGKILL)
		if k.point != "" {
			log, err := os.ReadFile(k.r.path(result.GatewayLogFile))
			if err != nil {
				return err
			}
			line := "failpoint " + k.point
			if !slices.Contains(strings.Split(string(log), "\n"), line) {
				return fmt.Errorf("its log has no line %q", line)
			}
			k.seen += " at " + k.point
		}
		return k.Fault.Verify(ctx, true)
	}
	if _, err := ready(ctx, k.r.http, &k.r.files, k.next, readyLimit); err != nil {
		return err
	}
	k.seen += fmt.Sprintf("; process %d answered /readyz %s after the kill", k.next.pid(), time.Since(k.killed).Round(time.Millisecond))
	return nil
}

func (k *gatewayKill) proof() string { return k.seen }
