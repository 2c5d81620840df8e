package workflow

import (
	"context"
	"log/slog"
	"slices"
	"sync"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/prometheus/client_golang/prometheus"
	"golang.org/x/sync/errgroup"

	"cmppgateway/gateway/internal/config"
	"cmppgateway/gateway/internal/message"
	"cmppgateway/gateway/internal/outbox"
	"cmppgateway/gateway/internal/settings"
	"cmppgateway/gateway/internal/store"
	"cmppgateway/gateway/internal/wake"
)

// Waker is the part of the wake bus that workflow uses.
type Waker interface {
	Publish(topic string)
	Subscribe(topic string) <-chan struct{}
}

// Options of a Workflow; all fields are required.
type Options struct {
	Config   config.Workflow
	Pool     *pgxpool.Pool
	IDs      *message.IDs
	Settings *settings.Watcher
	Wake     Waker
	Hints    outbox.Hinter
	Log      *slog.Logger
	Registry prometheus.Registerer
}

// Workflow processes the inbox of all enterprises. Create it with New, start it once with Run.
type Workflow struct {
	Options

	nudge   <-chan struct{}
	more    chan struct{} // a worker saw more ready enterprises than it took
	metrics metrics

	frequent frequent // has a lock of its own

	mu      sync.Mutex
	busy    map[int32]bool
	floors  map[int32]*floor
	turn    int32     // the enterprise served last, so that the next turn begins behind it
	ownerAt time.Time // when the inbox was last asked for enterprises that no snapshot names
	owners  []int32
}

// floor is up to where an enterprise's rows are known to be gone: a claim begins behind it and does not walk the dead
// entries of everything processed before (data §1.12).
type floor struct {
	pos  int64
	full time.Time // of the last claim from 0
}

const (
	floorMargin = 2 * time.Second // commits arrive out of order, and ids are taken before the commit
	floorFull   = time.Second
	retryFirst  = 20 * time.Millisecond
	retryLast   = time.Second
)

// New makes a Workflow and registers its metrics.
func New(o Options) *Workflow {
	return &Workflow{
		Options: o, nudge: o.Wake.Subscribe(wake.Inbox), more: make(chan struct{}, 1), metrics: newMetrics(o.Registry),
		busy: map[int32]bool{}, floors: map[int32]*floor{},
	}
}

// Run processes until ctx is done; a batch that has begun is finished first.
func (w *Workflow) Run(ctx context.Context) error {
	var g errgroup.Group
	for range w.Config.Workers {
		g.Go(func() error {
			w.work(ctx)
			return nil
		})
	}
	g.Go(func() error {
		w.sweepLoop(ctx)
		return nil
	})
	return g.Wait()
}

func (w *Workflow) work(ctx context.Context) {
	last, pause := 1, retryFirst
	for ctx.Err() == nil {
		// While batches are small but not single, collecting a little makes them fewer; an idle system never waits.
		if last > 1 && last < w.Config.BatchTarget {
			wait(ctx, w.Config.BatchMaxWait)
		}
		ready, err := w.pick(ctx)
		if err == nil && len(ready) > 0 {
			// The batch in hand is finished even when the process is asked to stop meanwhile.
			last, err = w.process(context.WithoutCancel(ctx), ready)
			w.release(ready)
		}
		switch {
		case err != nil && ctx.Err() == nil:
			w.metrics.failures.Inc()
			w.Log.Error("workflow batch failed, trying again", slog.Any("error", err), slog.Any("enterprises", ready))
			wait(ctx, pause)
			pause = min(2*pause, retryLast)
		case err == nil && len(ready) == 0:
			last = 1
			w.idle(ctx)
		default:
			pause = retryFirst
		}
	}
}

func wait(ctx context.Context, d time.Duration) {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
	case <-ctx.Done():
	}
}

func (w *Workflow) idle(ctx context.Context) {
	t := time.NewTimer(w.Config.Poll)
	defer t.Stop()
	select {
	case <-w.nudge:
	case <-w.more:
	case <-t.C:
	case <-ctx.Done():
	}
}

// pick finds enterprises with rows that no worker of this process is at, and marks this worker's share of them busy.
func (w *Workflow) pick(ctx context.Context) ([]int32, error) {
	if err := w.findOwners(ctx); err != nil {
		return nil, err
	}
	ids, floors := w.candidates()
	if len(ids) == 0 {
		return nil, nil
	}
	rows, err := w.Pool.Query(ctx, store.WorkflowReady, ids, floors)
	if err != nil {
		return nil, err
	}
	ready, err := pgx.CollectRows(rows, pgx.RowTo[int32])
	if err != nil {
		return nil, err
	}
	return w.take(ready), nil
}

// findOwners looks once a second for rows of enterprises that the settings no longer name; they must not stay for ever.
func (w *Workflow) findOwners(ctx context.Context) error {
	w.mu.Lock()
	due := time.Since(w.ownerAt) > time.Second
	if due {
		w.ownerAt = time.Now()
	}
	w.mu.Unlock()
	if !due {
		return nil
	}
	rows, err := w.Pool.Query(ctx, store.WorkflowOwners)
	if err != nil {
		return err
	}
	owners, err := pgx.CollectRows(rows, pgx.RowTo[int32])
	if err != nil {
		return err
	}
	w.mu.Lock()
	w.owners = owners
	w.mu.Unlock()
	return nil
}

func (w *Workflow) candidates() (ids []int32, floors []int64) {
	enterprises := w.Settings.Current().Enterprises
	w.mu.Lock()
	defer w.mu.Unlock()
	add := func(id int32) {
		if !w.busy[id] {
			ids = append(ids, id)
			floors = append(floors, w.floor(id))
		}
	}
	for id := range enterprises {
		add(id)
	}
	for _, id := range w.owners {
		if _, known := enterprises[id]; !known {
			add(id)
		}
	}
	return ids, floors
}

// floor is where the next claim of an enterprise begins. The caller holds mu.
func (w *Workflow) floor(id int32) int64 {
	f := w.floors[id]
	if f == nil {
		f = &floor{}
		w.floors[id] = f
	}
	if time.Since(f.full) > floorFull {
		return 0
	}
	return f.pos
}

// take marks this worker's share busy: all workers get some when many enterprises are ready, in turn.
func (w *Workflow) take(ready []int32) []int32 {
	w.mu.Lock()
	defer w.mu.Unlock()
	ready = slices.DeleteFunc(ready, func(id int32) bool { return w.busy[id] })
	if len(ready) == 0 {
		return nil
	}
	slices.Sort(ready)
	first, _ := slices.BinarySearch(ready, w.turn+1)
	ready = append(slices.Clone(ready[first:]), ready[:first]...)
	share := (len(ready) + w.Config.Workers - 1) / w.Config.Workers
	if share < len(ready) {
		select {
		case w.more <- struct{}{}:
		default:
		}
	}
	ready = ready[:share]
	for _, id := range ready {
		w.busy[id] = true
	}
	w.turn = ready[len(ready)-1]
	slices.Sort(ready)
	return ready
}

func (w *Workflow) release(ids []int32) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, id := range ids {
		delete(w.busy, id)
	}
}

func (w *Workflow) floorsOf(ids []int32) []int64 {
	w.mu.Lock()
	defer w.mu.Unlock()
	list := make([]int64, len(ids))
	for i, id := range ids {
		list[i] = w.floor(id)
	}
	return list
}

// advance notes how far an enterprise's rows have been taken, after the COMMIT.
func (w *Workflow) advance(id int32, from, taken int64) {
	w.mu.Lock()
	defer w.mu.Unlock()
	f := w.floors[id]
	if from == 0 {
		f.full = time.Now()
	}
	f.pos = max(f.pos, message.FirstID(message.TimeOf(taken).Add(-floorMargin)))
}
