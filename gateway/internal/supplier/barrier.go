package supplier

import (
	"cmp"
	"context"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"slices"
	"sync"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"golang.org/x/time/rate"

	"cmppgateway/gateway/internal/config"
	"cmppgateway/gateway/internal/failpoint"
	"cmppgateway/gateway/internal/store"
)

const (
	barrierTimeout = 5 * time.Second // of one call; the next one has the same batch id
	barrierRetry   = 50 * time.Millisecond
	barrierRetries = time.Second // the longest pause between calls
)

// barrier marks rows dispatched, for all channels, in one goroutine: while one statement runs the next batch collects.
type barrier struct {
	pool *pgxpool.Pool // role outbox
	cfg  config.Supplier
	node int16
	log  *slog.Logger
	m    *metrics
	rate *rate.Limiter // nil = no throttle

	wake chan struct{}
	done chan struct{}

	mu   sync.Mutex
	last bool      // finish when nothing is left
	in   []*flight // slots are held, rows are pending
	back []*flight // passed the barrier and were surely not written
}

func newBarrier(pool *pgxpool.Pool, cfg config.Supplier, node int16, log *slog.Logger, m *metrics) *barrier {
	b := &barrier{pool: pool, cfg: cfg, node: node, log: log, m: m, wake: make(chan struct{}, 1), done: make(chan struct{})}
	if cfg.BarrierRate > 0 {
		b.rate = rate.NewLimiter(rate.Limit(cfg.BarrierRate), max(cfg.BarrierBatch, 1))
		b.rate.AllowN(time.Now(), b.rate.Burst()) // start without a burst
	}
	return b
}

// add queues flights. Its length is bounded by the windows: every flight holds a slot.
func (b *barrier) add(flights []*flight) {
	b.mu.Lock()
	b.in = append(b.in, flights...)
	b.mu.Unlock()
	poke(b.wake)
}

// takeBack queues a flight whose dispatch is to be undone.
func (b *barrier) takeBack(f *flight) {
	b.mu.Lock()
	b.back = append(b.back, f)
	b.mu.Unlock()
	poke(b.wake)
}

// finish ends run when nothing is left to do, or when ctx is done.
func (b *barrier) finish(ctx context.Context) {
	b.mu.Lock()
	b.last = true
	b.mu.Unlock()
	poke(b.wake)
	select {
	case <-b.done:
	case <-ctx.Done():
	}
}

// run serves until finish, or until ctx is done.
func (b *barrier) run(ctx context.Context) {
	defer close(b.done)
	last := 1
	for {
		select {
		case <-ctx.Done():
			return
		case <-b.wake:
		}
		for {
			if last > 1 && last <= b.cfg.BarrierBatch/4 && !pause(ctx, b.cfg.BarrierCollect) {
				return
			}
			in, back, end := b.take()
			if end {
				return
			}
			if len(back) > 0 && !b.undo(ctx, back) {
				return
			}
			if len(in) == 0 {
				if len(back) == 0 {
					break
				}
				continue
			}
			last = len(in)
			if b.rate != nil && b.rate.WaitN(ctx, len(in)) != nil {
				return
			}
			if !b.pass(ctx, in) {
				return
			}
		}
	}
}

func (b *barrier) take() (in, back []*flight, end bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	n := min(len(b.in), max(1, b.cfg.BarrierBatch))
	in = b.in[:n:n]
	b.in = b.in[n:]
	if len(b.in) == 0 {
		b.in = nil
	}
	back, b.back = b.back, nil
	return in, back, b.last && len(in)+len(back) == 0
}

// pass takes a batch through the barrier and writes what passed.
func (b *barrier) pass(ctx context.Context, in []*flight) bool {
	start := time.Now()
	slices.SortFunc(in, func(x, y *flight) int { return cmp.Compare(x.cmd.SubmitID, y.cmd.SubmitID) })
	ids := make([]int64, len(in))
	for i, f := range in {
		ids[i] = f.cmd.SubmitID
	}
	batch := int64(rand.Uint64()>>1) | 1 // unique enough next to the node number
	var moved []dispatched
	ok := b.insist(ctx, "barrier", func(ctx context.Context) (err error) {
		moved, err = b.dispatch(ctx, ids, batch)
		return err
	})
	if !ok {
		return false
	}
	b.m.barrierSeconds.Observe(time.Since(start).Seconds())
	b.m.barrierRows.Observe(float64(len(in)))
	slices.SortFunc(moved, func(x, y dispatched) int { return cmp.Compare(x.ID, y.ID) })
	write(in, moved, batch)
	return true
}

type dispatched struct {
	ID int64
	At time.Time
}

func (b *barrier) dispatch(ctx context.Context, ids []int64, batch int64) ([]dispatched, error) {
	rows, err := b.pool.Query(ctx, store.SupplierBarrier, ids, batch, b.node)
	if err != nil {
		return nil, err
	}
	return pgx.CollectRows(rows, pgx.RowToStructByPos[dispatched])
}

// write sends the flights that passed, one run of octets per connection, as far as the rates allow, and lets go of the others. Both lists are sorted
// by submitId.
func write(in []*flight, moved []dispatched, batch int64) {
	passed := in[:0:0]
	for _, f := range in {
		for len(moved) > 0 && moved[0].ID < f.cmd.SubmitID {
			moved = moved[1:]
		}
		if len(moved) == 0 || moved[0].ID != f.cmd.SubmitID {
			f.pool.blocked(f)
			continue
		}
		f.batch, f.at = batch, moved[0].At
		passed = append(passed, f)
		moved = moved[1:] // an id that comes twice in a batch passes once
	}
	if len(passed) > 0 {
		failpoint.Hit(failpoint.AfterBarrier)
	}
	for _, f := range passed {
		f.pool.src.Settle(f.cmd)
	}
	slices.SortStableFunc(passed, func(x, y *flight) int {
		return cmp.Or(cmp.Compare(x.pool.id, y.pool.id), cmp.Compare(x.sess.ID(), y.sess.ID()))
	})
	for len(passed) > 0 {
		n := 1
		for n < len(passed) && passed[n].pool == passed[0].pool {
			n++
		}
		passed[0].pool.depart(passed[:n])
		passed = passed[n:]
	}
}

// undo makes rows pending again that were surely not written, and gives their commands back to their source.
func (b *barrier) undo(ctx context.Context, back []*flight) bool {
	slices.SortFunc(back, func(x, y *flight) int {
		return cmp.Or(cmp.Compare(x.batch, y.batch), cmp.Compare(x.cmd.SubmitID, y.cmd.SubmitID))
	})
	for len(back) > 0 {
		n := 1
		for n < len(back) && back[n].batch == back[0].batch {
			n++
		}
		ids := make([]int64, n)
		for i, f := range back[:n] {
			ids[i] = f.cmd.SubmitID
		}
		ok := b.insist(ctx, "undispatch", func(ctx context.Context) error {
			_, err := b.pool.Exec(ctx, store.SupplierUndispatch, ids, b.node, back[0].batch)
			return err
		})
		if !ok {
			return false
		}
		b.m.undispatched.Add(float64(n))
		for _, f := range back[:n] {
			f.pool.undone(f)
		}
		back = back[n:]
	}
	return true
}

// insist repeats f until it answers or ctx is done: an answer that was lost may have been a yes (data §1.3). pgxpool drops
// a connection that failed, so that each call has another one.
func (b *barrier) insist(ctx context.Context, what string, f func(context.Context) error) bool {
	for d := barrierRetry; ; d = min(2*d, barrierRetries) {
		call, cancel := context.WithTimeout(ctx, barrierTimeout)
		err := f(call)
		cancel()
		if err == nil {
			return true
		}
		if ctx.Err() != nil {
			return false
		}
		b.m.barrierRetries.Inc()
		b.log.Warn("repeated until PostgreSQL answers", slog.String("statement", what), slog.Any("error", fmt.Errorf("%s: %w", what, err)))
		if !pause(ctx, d) {
			return false
		}
	}
}

// pause ends early, with false, when ctx is done.
func pause(ctx context.Context, d time.Duration) bool {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-ctx.Done():
		return false
	case <-t.C:
		return true
	}
}

func poke(c chan<- struct{}) {
	select {
	case c <- struct{}{}:
	default:
	}
}
