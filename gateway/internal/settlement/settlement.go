package settlement

import (
	"context"
	"errors"
	"log/slog"
	"sync/atomic"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/prometheus/client_golang/prometheus"
	"golang.org/x/sync/errgroup"

	"cmppgateway/gateway/internal/config"
	"cmppgateway/gateway/internal/outbox"
	"cmppgateway/gateway/internal/settings"
	"cmppgateway/gateway/internal/store"
	"cmppgateway/gateway/internal/wake"
)

// Waker is the part of the wake bus that settlement uses.
type Waker interface {
	Publish(topic string)
	Subscribe(topic string) <-chan struct{}
}

// Settings gives the current settings.
type Settings interface {
	Current() *settings.Snapshot
}

// Options of a Settlement; all fields are required.
type Options struct {
	Config   config.Settlement
	Outbox   config.Outbox
	Pool     *pgxpool.Pool // role settlement
	Node     *store.Node
	Settings Settings
	Wake     Waker
	Hints    outbox.Hinter
	Log      *slog.Logger
	Registry prometheus.Registerer
}

// Settlement settles receipts and sweeps the waiting places. Create it with New, start it once with Run.
type Settlement struct {
	Options

	nudge   <-chan struct{} // receipts in the log
	known   <-chan struct{} // submits of parked receipts are known now
	metrics *metrics

	// of the settler alone
	begun  bool          // the own shard has its cursor
	limits map[int16]int // receipts per transaction, by shard; lower while one of them fails
	// of the parked sweeper alone
	alone bool // one receipt a transaction, since one of them fails
	// of the sweeper alone
	walk    int64           // how far the queue was looked through
	ended   int64           // and for what waited too long or is stopped
	reroute map[int32]place // how far the queues of unusable channels were
	forgot  time.Time       // when closed unknown submits and old exceptions were last cleared away
	counted time.Time       // when what waits was last counted

	full atomic.Pointer[map[int32]bool] // accounts without room for parked receipts; written by the sweeper
}

// New makes a Settlement and registers its metrics.
func New(o Options) *Settlement {
	return &Settlement{Options: o, nudge: o.Wake.Subscribe(wake.Receipts), known: o.Wake.Subscribe(wake.Parked), metrics: newMetrics(o.Registry), limits: map[int16]int{}, reroute: map[int32]place{}}
}

// Classes of advisory locks; workflow has 7.
const (
	lockShard = 8 // by shard
	lockSweep = 9 // by sweep
)

const (
	sweepParked = iota + 1
	sweepQueue
	sweepReroute
	sweepOverdue
	sweepEnded
)

const (
	parkedEvery = time.Second // the first retry of a parked receipt: sooner is churn when results lag behind receipts
	sweepRows   = 200         // most rows a sweep moves in one transaction
	retryFirst  = 20 * time.Millisecond
	retryLast   = time.Second
)

// Run works until ctx is done; a transaction that has begun is finished first.
func (s *Settlement) Run(ctx context.Context) error {
	var g errgroup.Group
	g.Go(func() error {
		s.loop(ctx, "receipts", s.Config.Poll, s.nudge, s.settle)
		return nil
	})
	g.Go(func() error {
		s.loop(ctx, "parked", parkedEvery, s.known, s.parked)
		return nil
	})
	g.Go(func() error {
		s.loop(ctx, "sweep", s.Outbox.SweepEvery, nil, s.sweep)
		return nil
	})
	return g.Wait()
}

// loop runs step at every nudge and at least every so often; after an error with a growing pause.
func (s *Settlement) loop(ctx context.Context, name string, every time.Duration, nudge <-chan struct{}, step func(context.Context) error) {
	timer := time.NewTimer(0)
	defer timer.Stop()
	pause := retryFirst
	for {
		select {
		case <-ctx.Done():
			return
		case <-nudge:
		case <-timer.C:
		}
		err := step(ctx)
		if err == nil || ctx.Err() != nil {
			pause = retryFirst
			timer.Reset(every)
			continue
		}
		s.metrics.failures.WithLabelValues(name).Inc()
		s.Log.Error("settlement failed, trying again", slog.String("part", name), slog.Any("error", err))
		timer.Reset(pause)
		pause = min(2*pause, retryLast)
		select { // nudges do not shorten the pause
		case <-ctx.Done():
			return
		case <-timer.C:
			timer.Reset(0)
		}
	}
}

// committed announces a transaction and counts it.
func (s *Settlement) committed(ctx context.Context, o *Outcome) {
	o.Announce(ctx, s.Hints, s.Wake)
	s.metrics.count(o)
}

// errSkip rolls a transaction back that found nothing to do, or another process at it.
var errSkip = errors.New("nothing to do")
