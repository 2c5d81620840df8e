package runner

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"sync"
	"time"

	"github.com/jackc/pgx/v5"

	"cmppgateway/chaos/fault"
	"cmppgateway/reports/result"
	"cmppgateway/scenarios/internal/spec"
	"cmppgateway/scenarios/internal/verify"
)

// journalFile has a line for every step of every fault, written before the first
// is taken.
const journalFile = "faults.jsonl"

// life is the gateway's process, which a fault may end and begin anew. Safe for
// concurrent use.
type life struct {
	mu      sync.Mutex
	child   *child
	doomed  bool          // its end is a fault's doing
	changed chan struct{} // closed when there is another child
	used    time.Duration // CPU time of the earlier ones
}

// set makes c the present process.
func (l *life) set(c *child) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.child != nil {
		l.used += l.child.cpu()
	}
	l.child, l.doomed = c, false
	if l.changed != nil {
		close(l.changed)
	}
	l.changed = make(chan struct{})
}

// doom says that the present process's end is asked for.
func (l *life) doom() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.doomed = true
}

func (l *life) now() *child {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.child
}

// pid of the present process, and the CPU time of those before.
func (l *life) pid() (pid int, used time.Duration) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.child.pid(), l.used
}

// unasked waits until the process ends without a fault's doing, or until done is
// closed; then there is none.
func (l *life) unasked(done <-chan struct{}) *child {
	for {
		l.mu.Lock()
		c, changed := l.child, l.changed
		l.mu.Unlock()
		select {
		case <-done:
			return nil
		case <-changed:
			continue
		case <-c.done:
		}
		l.mu.Lock()
		doomed := l.doomed && l.child == c
		l.mu.Unlock()
		if !doomed {
			return c
		}
		select {
		case <-done:
			return nil
		case <-changed:
		}
	}
}

// lostError is a gateway that did not come back after a fault, or did what it must not
// during one: its own failure.
type lostError struct{ err error }

func (e *lostError) Error() string { return e.err.Error() }
func (e *lostError) Unwrap() error { return e.err }

// injection is a fault of this run.
type injection interface {
	fault.Slow
	// proof says in words what was seen of its beginning and its end.
	proof() string
}

// schedule injects the faults at their times after zero, one after another, and
// returns when the last is over or could not be proved.
func (r *run) schedule(ctx context.Context, zero int64) error {
	journal, err := os.OpenFile(r.path(journalFile), os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o600)
	if err != nil {
		return unfit("journal of faults: %w", err)
	}
	defer journal.Close()
	for _, x := range r.s.Faults {
		if err := r.wait(ctx, zero+int64(x.At)); err != nil {
			return err
		}
		steps := []spec.Injection{x}
		if x.Fault == spec.Scale { // one pool after another, the last one back to the first
			steps = steps[:0]
			for i := range x.To {
				step := x
				step.To, step.Down = x.To[i:], x.Down/time.Duration(len(x.To))
				steps = append(steps, step)
			}
		}
		for _, step := range steps {
			if err := r.inject(ctx, step, journal); err != nil {
				return fmt.Errorf("%s: %w", x.Fault, err)
			}
		}
	}
	return nil
}

// beside runs the load with the faults beside it. What is broken is mended before
// it returns, and what a fault interrupted is made good.
func (r *run) beside(ctx context.Context, cancel context.CancelCauseFunc, zero int64, load func() error) error {
	if len(r.s.Faults) == 0 {
		return load()
	}
	var wg sync.WaitGroup
	var failed error
	wg.Go(func() {
		if failed = r.schedule(ctx, zero); failed != nil {
			cancel(failed)
		}
	})
	err := load()
	if err != nil {
		cancel(err)
	}
	wg.Wait()
	if err == nil {
		err = failed
	}
	if err != nil {
		return err
	}
	if err := r.reconnect(ctx); err != nil {
		return err
	}
	r.afresh()
	return nil
}

// inject carries out one fault and records it.
func (r *run) inject(ctx context.Context, x spec.Injection, journal *os.File) error {
	f, err := r.injection(x)
	if err != nil {
		return unfit("%w", err)
	}
	rep := result.Fault{ID: x.Fault}
	known := verify.Fault{ID: x.Fault}
	var steps error
	note := func(s fault.Step) {
		line, err := json.Marshal(map[string]any{"fault": x.Fault, "at": s.At.UTC(), "step": s.What})
		if err == nil {
			_, err = journal.Write(append(line, '\n'))
		}
		if err == nil {
			err = journal.Sync()
		}
		steps = errors.Join(steps, err)
		switch s.What {
		case "injected":
			known.Struck = r.clock.Now()
		case "proved":
			rep.Injected = true
		case "proved over":
			rep.Recovered = true
		}
	}
	note(fault.Step{At: time.Now(), What: "planned"})
	if steps != nil {
		return unfit("journal: %w", steps) // nothing is broken yet
	}
	known.Outstanding, known.From = r.outstanding(), r.clock.Now()
	rep.Outstanding, rep.At = known.Outstanding, new(r.clock.Time(known.From).UTC())
	r.Log.Info("fault", slog.String("fault", x.Fault), slog.Int64("outstanding", known.Outstanding))
	hold := x.Down
	if x.Change() {
		hold = 0
	}
	err = fault.Run(ctx, f, hold, note)
	known.Until = r.clock.Now()
	rep.Until, rep.Proof = new(r.clock.Time(known.Until).UTC()), f.proof()
	if err == nil {
		limit := linksLimit
		if x.Fault == spec.SupplierRefuses {
			limit += refusedLimit
		}
		err = r.linksBack(ctx, limit)
		rep.Recovered = err == nil
		rep.Proof += fmt.Sprintf("; every supplier connection active %s after the injection", r.since(known.From))
	}
	r.report.Faults = append(r.report.Faults, rep)
	r.faults = append(r.faults, known)
	switch {
	case err != nil && ctx.Err() != nil:
		return context.Cause(ctx)
	case err != nil && (rep.Injected && x.Kills() || isLost(err)):
		return &lostError{err}
	case err != nil:
		return unfit("%w", err)
	case steps != nil:
		return unfit("journal: %w", steps)
	case known.Outstanding < int64(x.Least()):
		return unfit("met %d unanswered SUBMITs, %d are needed for a proof", known.Outstanding, x.Least())
	}
	return nil
}

func isLost(err error) bool {
	_, ok := errors.AsType[*lostError](err)
	return ok
}

func (r *run) since(at int64) time.Duration {
	return time.Duration(r.clock.Now() - at).Round(time.Millisecond)
}

// linksBack waits until every channel has its connections again.
func (r *run) linksBack(ctx context.Context, limit time.Duration) error {
	return poll(ctx, limit, func(ctx context.Context) (string, error) {
		var e effective
		if _, err := get(ctx, r.http, "http://"+r.files.Admin+"/api/admin/effective", &e); err != nil {
			return "the settings cannot be read: " + err.Error(), nil //nolint:nilerr // it is asked again
		}
		if len(e.Errors) > 0 {
			return e.Errors[0], nil // it reads them anew
		}
		return e.matches(r.s, r.wanted())
	})
}

func (r *run) injection(x spec.Injection) (injection, error) {
	switch x.Fault {
	case spec.GatewayKill, spec.GatewayFailpoint:
		return r.kill(x)
	case spec.PostgresCrash, spec.PostgresRestart, spec.RedisFreeze, spec.RedisRestart, spec.RedisEmpty, spec.RedisStale:
		return r.store(x)
	}
	return r.act(x)
}

// reconnect gives the run a connection that works: PostgreSQL may have been away.
func (r *run) reconnect(ctx context.Context) error {
	if r.conn.Ping(ctx) == nil {
		return nil
	}
	var err error
	r.conn, err = r.connect(ctx, r.files.Postgres)
	return err
}

// afresh makes readings from before a kill comparable with later ones: the counters
// of a process that ended began again at zero.
func (r *run) afresh() {
	if r.s.Kills() {
		r.base.metrics, r.from.metrics = nil, nil
	}
}

// unknowns are the submits that were ever seen unknown. Safe for concurrent use.
type unknowns struct {
	mu   sync.Mutex
	seen map[int64]verify.UnknownSubmit
}

// look adds those that are unknown now.
func (u *unknowns) look(ctx context.Context, conn *pgx.Conn) error {
	list, err := verify.Unknowns(ctx, conn)
	if err != nil {
		return err
	}
	u.mu.Lock()
	defer u.mu.Unlock()
	if u.seen == nil {
		u.seen = map[int64]verify.UnknownSubmit{}
	}
	for _, x := range list {
		u.seen[x.Submit] = x
	}
	return nil
}

func (u *unknowns) list() []verify.UnknownSubmit {
	u.mu.Lock()
	defer u.mu.Unlock()
	list := make([]verify.UnknownSubmit, 0, len(u.seen))
	for _, x := range u.seen {
		list = append(list, x)
	}
	return list
}
