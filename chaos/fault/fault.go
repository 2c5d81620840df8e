package fault

import (
	"context"
	"errors"
	"fmt"
	"time"
)

// Fault is something that can be broken and, mostly, mended.
type Fault interface {
	// Name is for people and journals.
	Name() string
	// Inject breaks it.
	Inject(ctx context.Context) error
	// Revert mends it; reverting what was not injected does nothing. A fault
	// that cannot be mended returns nil and is over.
	Revert(ctx context.Context) error
	// Verify asks the other side whether the fault is there (want true) or over
	// (want false), and returns an error as long as it is not.
	Verify(ctx context.Context, want bool) error
}

// Slow is a Fault whose mending and its proof may take longer than 5 s together.
type Slow interface {
	Fault
	MendWithin() time.Duration
}

// Step is one step of Run as it happened.
type Step struct {
	At   time.Time
	What string // "injected", "proved", "reverted", "proved over"
}

// UnprovedError is a fault, or its end, that the other side does not confirm.
type UnprovedError struct {
	Fault string
	Over  bool // the end is unproved
	Err   error
}

func (e *UnprovedError) Error() string {
	what := "not proved to have bitten"
	if e.Over {
		what = "not proved to be over"
	}
	return fmt.Sprintf("%s: %s: %v", e.Fault, what, e.Err)
}

func (e *UnprovedError) Unwrap() error { return e.Err }

// How long a proof may take, how often it is tried, and how long mending may take.
const (
	proofLimit = 5 * time.Second
	proofEvery = 20 * time.Millisecond
	mendLimit  = 5 * time.Second
)

// Run injects f, proves it, holds it for the time given or until ctx ends, reverts
// it and proves that it is over. note is told every step. The end of ctx during
// the hold is no error.
func Run(ctx context.Context, f Fault, hold time.Duration, note func(Step)) (err error) {
	step := func(what string) { note(Step{At: time.Now(), What: what}) }
	if err := f.Inject(ctx); err != nil {
		return fmt.Errorf("%s: inject: %w", f.Name(), err)
	}
	step("injected")
	defer func() {
		limit := mendLimit
		if slow, ok := f.(Slow); ok {
			limit = slow.MendWithin()
		}
		mend, cancel := context.WithTimeout(context.WithoutCancel(ctx), limit)
		defer cancel()
		if e := f.Revert(mend); e != nil {
			err = errors.Join(err, fmt.Errorf("%s: revert: %w", f.Name(), e))
			return
		}
		step("reverted")
		if e := prove(mend, f, false); e != nil {
			err = errors.Join(err, e)
			return
		}
		step("proved over")
	}()
	if err := Prove(ctx, f, true); err != nil {
		return err
	}
	step("proved")
	timer := time.NewTimer(hold)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-ctx.Done():
	}
	return nil
}

// Prove asks the other side until it confirms, for at most 5 s.
func Prove(ctx context.Context, f Fault, want bool) error {
	ctx, cancel := context.WithTimeout(ctx, proofLimit)
	defer cancel()
	return prove(ctx, f, want)
}

// prove is Prove until ctx ends.
func prove(ctx context.Context, f Fault, want bool) error {
	tick := time.NewTicker(proofEvery)
	defer tick.Stop()
	for {
		err := f.Verify(ctx, want)
		if err == nil {
			return nil
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			return &UnprovedError{Fault: f.Name(), Over: !want, Err: err}
		}
	}
}
