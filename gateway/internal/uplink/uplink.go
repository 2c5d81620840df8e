package uplink

import (
	"context"
	"fmt"
	"log/slog"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/prometheus/client_golang/prometheus"

	"cmppgateway/gateway/internal/config"
	"cmppgateway/gateway/internal/message"
	"cmppgateway/gateway/internal/settings"
	"cmppgateway/gateway/internal/store"
	"cmppgateway/gateway/internal/wake"
)

// Outcome is what became of an uplink (column uplink.outcome).
type Outcome int16

// Outcomes.
const (
	Waits      Outcome = iota // in the queue, or for other segments
	Delivered                 // to its customer
	Joined                    // to its customer, as a part of a long one that was whole
	Incomplete                // to its customer, as a part of one of which others never came
	Repeated                  // a segment that had come before
	Unmatched                 // nobody's
	Discarded                 // nobody's, and put aside by an operator
)

var outcomeNames = [...]string{"waits", "delivered", "joined", "incomplete", "repeated", "unmatched", "discarded"}

// String is the word in labels and for people.
func (o Outcome) String() string {
	if o < Waits || o > Discarded {
		return fmt.Sprintf("outcome(%d)", int16(o))
	}
	return outcomeNames[o]
}

// Reason is why an uplink is nobody's (column uplink_unmatched.reason).
type Reason int16

// Reasons.
const (
	NoApplication Reason = iota + 1 // no application has the number
	Ambiguous                       // several have it, and none of them wrote to the phone
	Failed                          // it could not be worked on: the log says why
)

var reasonNames = [...]string{"", "no application has the number", "several applications have the number, none wrote to the phone", "could not be worked on, see the log"}

// String is for people.
func (r Reason) String() string {
	if r < NoApplication || r > Failed {
		return fmt.Sprintf("reason(%d)", int16(r))
	}
	return reasonNames[r]
}

// Waker is the part of the wake bus that this package uses.
type Waker interface {
	Publish(topic string)
	Subscribe(topic string) <-chan struct{}
}

// Options of Uplinks; all fields are required.
type Options struct {
	Config   config.Uplink
	Pool     *pgxpool.Pool
	IDs      *message.IDs
	Settings *settings.Watcher
	Wake     Waker
	Log      *slog.Logger
	Registry prometheus.Registerer
}

// Uplinks works on the queue. Create it with New, start it once with Run.
type Uplinks struct {
	Options

	metrics *metrics
	nudge   <-chan struct{}
	numbers *numbers // of the snapshot seen last
	waiting int64    // segments, as counted last
	counted time.Time
	trimmed time.Time
}

// New makes Uplinks, registers their metrics and subscribes to what wakes them.
func New(o Options) *Uplinks {
	return &Uplinks{Options: o, metrics: newMetrics(o.Registry), nudge: o.Wake.Subscribe(wake.Uplinks)}
}

const (
	failPause  = 500 * time.Millisecond
	countEvery = 5 * time.Second
	countMax   = 100_000 // gauges count no further
	trimEvery  = time.Minute
	trimRows   = 500 // in one transaction
	trimPages  = 40  // transactions of one look; the next goes on
)

// Run works until ctx is done, which is no error.
func (u *Uplinks) Run(ctx context.Context) error {
	timer := time.NewTimer(0)
	defer timer.Stop()
	failing := false
	for ctx.Err() == nil {
		more, err := u.step(ctx)
		if err == nil {
			err = u.keep(ctx)
		}
		if failed := err != nil && ctx.Err() == nil; failed != failing {
			failing = failed
			u.Log.Warn("uplinks worked on", slog.Bool("working", !failed), slog.Any("error", err))
		}
		pause := u.Config.Poll
		if failing {
			pause = max(pause, failPause)
		} else if more {
			continue
		}
		timer.Reset(pause)
		select {
		case <-ctx.Done():
		case <-timer.C:
		case <-u.nudge:
		}
	}
	return nil
}

// pick is what is to be worked on.
type pick struct {
	ids  []int64 // in the queue, sorted
	keys []int64 // of sets whose time has come, sorted
	past []int64 // segments that need not be known any more, sorted
}

// step works on what is there, up to a batch; more says that there may be more.
func (u *Uplinks) step(ctx context.Context) (more bool, err error) {
	p, more, err := u.pick(ctx)
	if err != nil || len(p.ids)+len(p.keys)+len(p.past) == 0 {
		return false, err
	}
	// What was begun is finished: it is a short transaction.
	ctx = context.WithoutCancel(ctx)
	did, err := u.apply(ctx, p)
	if err == nil || store.IsTransient(err) {
		return more && did, err
	}
	u.Log.Error("a batch of uplinks fails, each is worked on alone", slog.Any("error", err))
	for _, id := range p.ids {
		if err := u.alone(ctx, pick{ids: []int64{id}}); err != nil {
			return false, err
		}
	}
	for _, key := range p.keys {
		if err := u.alone(ctx, pick{keys: []int64{key}}); err != nil {
			return false, err
		}
	}
	return more, nil
}

// alone works on one uplink or key; what fails for good is given to the operators.
func (u *Uplinks) alone(ctx context.Context, p pick) error {
	_, err := u.apply(ctx, p)
	if err == nil || store.IsTransient(err) {
		return err
	}
	u.Log.Error("an uplink cannot be worked on", slog.Any("uplinks", p.ids), slog.Any("segment_keys", p.keys), slog.Any("error", err))
	return u.bury(ctx, p)
}

func (u *Uplinks) pick(ctx context.Context) (p pick, more bool, err error) {
	rows, err := u.Pool.Query(ctx, store.UplinkPick, u.Config.BatchMax)
	if err != nil {
		return p, false, fmt.Errorf("pick uplinks: %w", err)
	}
	if p.ids, err = pgx.CollectRows(rows, pgx.RowTo[int64]); err != nil {
		return p, false, fmt.Errorf("pick uplinks: %w", err)
	}
	if rows, err = u.Pool.Query(ctx, store.UplinkDue, u.Config.BatchMax); err != nil {
		return p, false, fmt.Errorf("pick segments: %w", err)
	}
	due := 0
	var id, key int64
	var sent bool
	_, err = pgx.ForEachRow(rows, []any{&id, &key, &sent}, func() error {
		due++
		if sent {
			p.past = append(p.past, id)
		} else {
			p.keys = append(p.keys, key)
		}
		return nil
	})
	if err != nil {
		return p, false, fmt.Errorf("pick segments: %w", err)
	}
	p.ids, p.keys, p.past = sorted(p.ids), sorted(p.keys), sorted(p.past)
	return p, len(p.ids) == u.Config.BatchMax || due == u.Config.BatchMax, nil
}
