package delivery

import (
	"cmp"
	"context"
	"fmt"
	"log/slog"
	"slices"
	"time"

	"cmppgateway/gateway/internal/store"
)

// outcomes wait for the finisher. They are no more than what was in flight: while they are not written, nothing new is
// claimed either.
type outcomes struct {
	acks  []int64
	backs []back
	deads []dead
}

// back puts a row back into its queue.
type back struct {
	id, claim int64
	refund    int16 // of the budget
	wait      time.Duration
}

type dead struct {
	id, claim int64
	reason    string
}

// release costs no budget.
func (o *outcomes) release(f *flight, wait time.Duration) {
	o.backs = append(o.backs, back{f.ID, f.claim, 1, wait})
}

const (
	retryFirst = time.Second
	retryMost  = time.Minute
)

// retry is for later, or for never when the budget is spent.
func (o *outcomes) retry(f *flight, why string) {
	if int(f.Attempts) >= f.d.Config.AttemptsMax {
		o.dead(f, why+" after the last try")
		return
	}
	wait := retryMost
	if n := f.Attempts - 1; n < 6 {
		wait = min(retryFirst<<max(n, 0), retryMost)
	}
	o.backs = append(o.backs, back{f.ID, f.claim, 0, wait})
}

func (o *outcomes) dead(f *flight, reason string) {
	f.d.metrics.outcomes.WithLabelValues("dead").Inc()
	o.deads = append(o.deads, dead{f.ID, f.claim, reason})
}

func (o *outcomes) empty() bool { return len(o.acks)+len(o.backs)+len(o.deads) == 0 }

// finish is the finisher: it writes outcomes, what is there at a time, and looks for answers that are late. When ctx ends
// it writes what is left, once.
func (d *Delivery) finish(ctx context.Context) {
	tick := time.NewTicker(min(max(d.Config.AckTimeout/10, 10*time.Millisecond), time.Second))
	defer tick.Stop()
	failing := false
	var left outcomes
	for {
		stopping := false
		select {
		case <-ctx.Done():
			stopping = true
		case <-d.done:
		case <-tick.C:
			d.late(time.Now())
		}
		d.mu.Lock()
		more := d.outcomes
		d.outcomes = outcomes{}
		d.mu.Unlock()
		left.acks, left.backs, left.deads = append(left.acks, more.acks...), append(left.backs, more.backs...), append(left.deads, more.deads...)
		err := d.write(context.WithoutCancel(ctx), &left)
		if failed := err != nil; failed != failing {
			failing = failed
			d.Log.Warn("outcomes of deliveries written", slog.Bool("working", !failed), slog.Any("error", err))
		}
		if stopping {
			return
		}
		if failing {
			wait(ctx, failPause)
			poke(d.done)
		}
	}
}

const writeTimeout = 10 * time.Second

// write is T8 and the claim-bound ways back. What is written is taken off o; what fails for good is left to the lease.
func (d *Delivery) write(ctx context.Context, o *outcomes) error {
	if o.empty() {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, writeTimeout)
	defer cancel()
	if len(o.acks) > 0 {
		slices.Sort(o.acks)
		_, err := d.Pool.Exec(ctx, store.DeliveryAck, o.acks)
		if err := d.check("acknowledge", len(o.acks), err); err != nil {
			return err
		}
		o.acks = o.acks[:0]
	}
	if len(o.backs) > 0 {
		if err := d.check("put back", len(o.backs), d.putBack(ctx, o.backs)); err != nil {
			return err
		}
		o.backs = o.backs[:0]
	}
	if len(o.deads) > 0 {
		if err := d.check("bury", len(o.deads), d.bury(ctx, o.deads)); err != nil {
			return err
		}
		o.deads = o.deads[:0]
	}
	return nil
}

// check lets transient errors through, for another try.
func (d *Delivery) check(what string, rows int, err error) error {
	switch {
	case err == nil:
		return nil
	case store.IsTransient(err):
		return fmt.Errorf("%s deliveries: %w", what, err)
	}
	d.Log.Error("outcomes of deliveries lost, their leases will end", slog.String("outcome", what), slog.Int("rows", rows), slog.Any("error", err))
	return nil
}

func (d *Delivery) putBack(ctx context.Context, list []back) error {
	slices.SortFunc(list, func(a, b back) int { return cmp.Compare(a.id, b.id) })
	ids, claims, refunds, waits := make([]int64, len(list)), make([]int64, len(list)), make([]int16, len(list)), make([]int32, len(list))
	for i, b := range list {
		ids[i], claims[i], refunds[i], waits[i] = b.id, b.claim, b.refund, int32(b.wait.Milliseconds())
	}
	if _, err := d.Pool.Exec(ctx, store.DeliveryBack, ids, claims, refunds, waits); err != nil {
		return err
	}
	now := time.Now()
	d.mu.Lock()
	defer d.mu.Unlock()
	for _, b := range list {
		d.claimAgain(now.Add(max(b.wait, d.Config.Merge)))
	}
	return nil
}

func (d *Delivery) bury(ctx context.Context, list []dead) error {
	slices.SortFunc(list, func(a, b dead) int { return cmp.Compare(a.id, b.id) })
	ids, claims, reasons := make([]int64, len(list)), make([]int64, len(list)), make([]string, len(list))
	for i, b := range list {
		ids[i], claims[i], reasons[i] = b.id, b.claim, b.reason
	}
	tag, err := d.Pool.Exec(ctx, store.DeliveryDead, ids, claims, reasons)
	if n := tag.RowsAffected(); n > 0 {
		d.Log.Warn("deliveries moved to the dead letters", slog.Int64("rows", n))
	}
	return err
}
