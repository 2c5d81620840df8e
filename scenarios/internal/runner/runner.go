package runner

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"os"
	"slices"
	"sync"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/redis/go-redis/v9"

	"cmppgateway/reports/result"
	"cmppgateway/scenarios/internal/load"
	"cmppgateway/scenarios/internal/spec"
	"cmppgateway/scenarios/internal/verify"
	"cmppgateway/simulator/hostile"
	"cmppgateway/simulator/ismg"
	"cmppgateway/simulator/simclock"
	"cmppgateway/simulator/sp"
	"cmppgateway/testenv/stack"
)

// Options of Run.
type Options struct {
	Scenario *spec.Scenario
	// Gateway is the binary under test.
	Gateway string
	// Given says that the binary was named by the caller: then it may be older
	// than the tree.
	Given bool
	// Runs is the directory that run directories are made in.
	Runs  string
	Stack stack.Options
	// AllowRemote allows servers that are not on loopback.
	AllowRemote bool
	// Progress is where the state of the run is shown; TTY says it is a terminal.
	Progress io.Writer
	TTY      bool
	Log      *slog.Logger
	// Version of the harness.
	Version string

	// inspect, for tests, is shown the witness and the database at rest.
	inspect func(context.Context, *verify.Witness, *pgx.Conn)
}

// Outcome is a finished run.
type Outcome struct {
	Dir    string
	Report *result.Report
}

// environmentError is a run that could not take place: no verdict on the gateway.
type environmentError struct{ err error }

func (e *environmentError) Error() string { return e.err.Error() }
func (e *environmentError) Unwrap() error { return e.err }

func unfit(format string, args ...any) error {
	return &environmentError{fmt.Errorf(format, args...)}
}

// diedError is a gateway that ended by itself: that is no fault of the environment.
type diedError struct {
	code  int
	while string
}

func (e *diedError) Error() string {
	return fmt.Sprintf("the gateway ended by itself with exit code %d during the %s", e.code, e.while)
}

// errLimit is the cause of a context that ended at the run's wall-clock limit.
var errLimit = errors.New("wall-clock limit")

// How long parts may take.
const (
	commandLimit = 60 * time.Second
	readyLimit   = 30 * time.Second
	linksLimit   = 20 * time.Second
	refusedLimit = 40 * time.Second // a link whose login was refused cools down first
	stopLimit    = 45 * time.Second // above the gateway's own shutdown.total
	portTries    = 3
	lead         = 300 * time.Millisecond // from the plan to the first message
)

// run is the state of one run.
type run struct {
	Options

	s       *spec.Scenario
	dir     string
	clock   *simclock.Clock
	started time.Time
	report  *result.Report
	plan    *load.Plan
	undo    []func() error // in the order they were set up

	mu    sync.Mutex
	doing string

	progress   progress
	stack      *stack.Stack
	database   string
	files      gatewayFiles
	conn       *pgx.Conn // for everything but the sampler
	rdb        *redis.Client
	wire       *wire // nil unless the schedule breaks what is on it
	buried     int64 // dead letters that are the harness's doing
	http       *http.Client
	gateway    life
	settings   []setting // of the channels, as they are to be now; under mu
	faults     []verify.Fault
	unknowns   unknowns
	gatewayLog *os.File
	suppliers  *ismg.Server
	customers  []*sp.Client
	halt       struct{ customers, suppliers func() error }
	sampler    *sampler
	unsample   func()
	hiccups    *hiccups

	starts     []int64 // of the phases, on the shared clock
	loadEnd    int64
	base       counters // before the load
	from, to   counters // around the measured phases
	last       counters // after the drain
	drained    drained
	places     []verify.Place
	terms      verify.Terms
	witness    *verify.Witness
	goroutines int64
	ledger     string
	costly     []statement
}

// Run runs one scenario and returns where its report is. The error is only for a
// report that could not be written; whatever else went wrong is in the report.
func Run(ctx context.Context, o Options) (*Outcome, error) {
	r := &run{
		Options: o, s: o.Scenario, clock: simclock.New(), started: time.Now(), http: &http.Client{Transport: &http.Transport{}},
		report: &result.Report{Scenario: o.Scenario.Name, Seed: o.Scenario.Seed, Verdict: result.VerdictAborted, Started: time.Now().UTC()},
	}
	dir, err := makeDir(o.Runs, r.s.Name, r.started)
	if err != nil {
		return nil, err
	}
	r.dir = dir
	r.hiccups = newHiccups(r.clock)
	r.progress = newProgress(o.Progress, r.s.Name, o.TTY)

	limited, cancel := context.WithTimeoutCause(ctx, r.s.Limit, errLimit)
	err = r.carry(limited)
	cancel()
	// What was started is stopped also when the run was cut short.
	if e := r.cleanup(); e != nil {
		err = errors.Join(err, unfit("clean up: %w", e))
	}
	r.progress.close()
	r.conclude(ctx, err)
	if err := r.write(); err != nil {
		return nil, err
	}
	return &Outcome{Dir: dir, Report: r.report}, nil
}

// carry does the steps of a run in order.
func (r *run) carry(ctx context.Context) error {
	for _, step := range []struct {
		doing string
		do    func(context.Context) error
	}{
		{"pre-flight", r.preflight},
		{"starting PostgreSQL and Redis", r.startStack},
		{"making the database", r.makeDatabase},
		{"starting suppliers", r.startSuppliers},
		{"seeding", r.seedDatabase},
		{"starting the gateway", r.startGateway},
		{"connecting customers", r.startCustomers},
		{"reading settings and balances", r.readBack},
		{"load", r.drive},
		{"drain", r.drain},
		{"closing unknowns", r.closeUnknowns},
		{"counting what is left", r.look},
		{"stopping the gateway", r.stopGateway},
		{"verifying", r.verify},
	} {
		r.say(step.doing)
		if err := step.do(ctx); err != nil {
			if ctx.Err() != nil {
				err = context.Cause(ctx)
			}
			return fmt.Errorf("%s: %w", step.doing, err)
		}
	}
	return nil
}

// later adds something to undo.
func (r *run) later(f func() error) { r.undo = append(r.undo, f) }

// cleanup undoes everything, the last first.
func (r *run) cleanup() error {
	var errs []error
	for _, f := range slices.Backward(r.undo) {
		errs = append(errs, f())
	}
	r.http.CloseIdleConnections()
	return errors.Join(errs...)
}

// say shows what goes on.
func (r *run) say(doing string) {
	r.mu.Lock()
	r.doing = doing
	r.mu.Unlock()
	r.show()
}

func (r *run) show() {
	r.mu.Lock()
	defer r.mu.Unlock()
	s := status{Doing: r.doing, Elapsed: time.Since(r.started), Expected: r.s.Load() + r.s.Drain.Stable + 15*time.Second}
	for _, c := range r.customers {
		n := c.Counts()
		s.Offered += int64(n.Fired)
		s.Accepted += int64(n.Accepted)
		s.Receipts += int64(n.Receipts)
		s.Unfinished += int64(n.Waiting + n.InFlight)
	}
	if r.suppliers != nil {
		for _, n := range r.suppliers.Counts() {
			s.Submits += int64(n.Submits)
		}
	}
	r.progress.show(s)
}

// observe starts the sampler and the hiccup meter.
func (r *run) observe(ctx context.Context) error {
	conn, err := r.connect(ctx, r.files.Postgres)
	if err != nil {
		return err
	}
	p := pids{
		harness:  os.Getpid(),
		postgres: findPostgres(r.database), redis: findRedis(redisInfo(ctx, r.rdb, "server", "process_id")),
	}
	if x := r.stack.Postgres(); x != nil {
		p.postgres = x.PID()
	}
	if x := r.stack.Redis(); x != nil {
		p.redis = x.PID()
	}
	r.sampler = &sampler{
		clock: r.clock, conn: conn, rdb: r.rdb, http: r.http, url: "http://" + r.files.Admin + "/metrics", gateway: &r.gateway, pids: p, submits: r.outstanding,
		dial: func(ctx context.Context) (*pgx.Conn, error) { return pgx.Connect(ctx, r.files.Postgres) },
	}
	if len(r.s.Faults) > 0 {
		r.sampler.look = r.unknowns.look
	}
	// What the schema cost is not the load's; without the extension there is nothing to forget.
	if _, err := r.conn.Exec(ctx, "SELECT pg_stat_statements_reset(0, (SELECT oid FROM pg_database WHERE datname = current_database()), 0)"); err != nil {
		r.Log.Debug("statement figures include the schema", slog.Any("error", err))
	}
	if r.base, err = r.sampler.count(ctx, r.conn); err != nil {
		return unfit("%w", err)
	}
	r.goroutines = int64(r.base.metrics.sum("go_goroutines"))
	watching, stop := context.WithCancel(context.WithoutCancel(ctx))
	var wg sync.WaitGroup
	wg.Go(func() { r.sampler.run(watching, time.Second, r.show) })
	wg.Go(func() { r.hiccups.run(watching) })
	r.unsample = sync.OnceFunc(func() {
		stop()
		wg.Wait()
	})
	r.later(func() error {
		r.unsample()
		return nil
	})
	return nil
}

// outstanding is how many SUBMITs the suppliers have not answered.
func (r *run) outstanding() int64 {
	n := 0
	for _, c := range r.suppliers.Counts() {
		n += c.InFlight
	}
	return int64(n)
}

// drive runs the phases and the faults scheduled for them.
func (r *run) drive(ctx context.Context) error {
	zero := r.clock.Now() + int64(lead)
	for i := range r.plan.Phases {
		r.starts = append(r.starts, zero+int64(r.plan.Phases[i].Start))
	}
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	var handsets sync.WaitGroup
	var failed error
	handsets.Go(func() {
		if failed = r.sendUplinks(ctx, zero); failed != nil {
			cancel(failed)
		}
	})
	err := r.beside(ctx, cancel, zero, func() error { return r.phases(ctx, cancel) })
	if err != nil {
		cancel(err)
	}
	handsets.Wait()
	if err = errors.Join(err, failed); err != nil {
		return err
	}
	if err := r.replayUplinks(); err != nil {
		return err
	}
	r.isolate()
	if r.to, err = r.sampler.count(ctx, r.conn); err != nil {
		return unfit("%w", err)
	}
	r.loadEnd = r.clock.Now()
	return nil
}

// phases runs the phases one after another without a gap: what is due is fired,
// whatever became of what was before. Only a phase that asks for another pool, or that
// drains, is waited for.
func (r *run) phases(ctx context.Context, cancel context.CancelCauseFunc) error {
	for i := range r.plan.Phases {
		p := &r.plan.Phases[i]
		if p.Pool != nil {
			if err := r.repool(ctx, *p.Pool); err != nil {
				return err
			}
		}
		if i > 0 && (p.Pool != nil || r.plan.Phases[i-1].Drain) {
			r.shift(i)
		}
		if err := r.wait(ctx, r.starts[i]-int64(lead)); err != nil {
			return err
		}
		if p.Measure && r.from.at == 0 {
			var err error
			if r.from, err = r.sampler.count(ctx, r.conn); err != nil {
				return unfit("%w", err)
			}
		}
		r.say("phase " + p.Name)
		calm := r.attack(ctx, p, r.starts[i])
		err := r.fire(ctx, cancel, p, r.starts[i])
		if err = errors.Join(err, calm()); err != nil {
			return err
		}
		end := r.starts[i] + int64(p.Hold)
		last := i == len(r.plan.Phases)-1
		if p.Drain && !last {
			if err := r.wait(ctx, end); err != nil {
				return err
			}
			if err := r.drain(ctx); err != nil {
				return err
			}
			continue
		}
		if last || len(r.s.Faults) == 0 && p.Measure && !r.plan.Phases[i+1].Measure {
			if err := r.wait(ctx, end); err != nil || last {
				return err // after the last phase everything is counted anyway
			}
			if r.to, err = r.sampler.count(ctx, r.conn); err != nil {
				return unfit("%w", err)
			}
		}
	}
	return nil
}

// shift moves the start of a phase, and of those behind it, to a moment from now, when
// that is later.
func (r *run) shift(i int) {
	by := r.clock.Now() + 2*int64(lead) - r.starts[i]
	for k := i; by > 0 && k < len(r.starts); k++ {
		r.starts[k] += by
	}
}

// repool switches every channel to another pool and waits until it is there.
func (r *run) repool(ctx context.Context, p spec.Pool) error {
	r.say("switching to " + p.String())
	if err := r.switchTo(ctx, r.s.Channels(""), func(x *setting) { x.Pool = p }); err != nil {
		return unfit("%w", err)
	}
	if err := r.linksBack(ctx, linksLimit); err != nil {
		return &lostError{fmt.Errorf("switch to %s: %w", p, err)}
	}
	return nil
}

// attack keeps the phase's hostile connections coming; the function it returns ends
// them, and says when they were none.
func (r *run) attack(ctx context.Context, p *load.Phase, start int64) (calm func() error) {
	if p.Hostile == 0 {
		return func() error { return nil }
	}
	a := &hostile.Attack{Addr: r.files.Inbound, Connections: p.Hostile, Seed: r.s.Seed}
	ctx, stop := context.WithCancel(ctx)
	var wg sync.WaitGroup
	wg.Go(func() {
		if r.wait(ctx, start) == nil {
			a.Run(ctx)
		}
	})
	return func() error {
		err := r.wait(ctx, start+int64(p.Hold))
		stop()
		wg.Wait()
		if n := a.Counts(); err == nil && n.Opened < int64(p.Hostile) {
			return unfit("phase %s: %d hostile connections were opened, want at least %d", p.Name, n.Opened, p.Hostile)
		}
		return err
	}
}

// isolate records which phases were disturbed, and who must not have felt it.
func (r *run) isolate() {
	x := verify.Isolation{Untouched: r.s.Untouched()}
	disturbed := false
	for i, p := range r.plan.Phases {
		if !p.Measure {
			continue
		}
		disturbed = disturbed || p.Disturbing()
		x.Phases = append(x.Phases, verify.IsolationPhase{From: r.starts[i], Until: r.starts[i] + int64(p.Hold), Disturbed: p.Disturbing()})
	}
	if disturbed {
		r.terms.Isolation = x
	}
}

// fire sends a phase's messages of every customer at the same time.
func (r *run) fire(ctx context.Context, cancel context.CancelCauseFunc, p *load.Phase, start int64) error {
	var wg sync.WaitGroup
	errs := make([]error, len(r.customers))
	for i, c := range r.customers {
		wg.Go(func() { errs[i] = c.Send(ctx, p.Messages[i], start) })
	}
	done := make(chan struct{})
	go func() {
		if c := r.gateway.unasked(done); c != nil { // there is nobody to send to any more
			cancel(&diedError{c.exitCode(), "load"})
		}
	}()
	wg.Wait()
	close(done)
	if err := errors.Join(errs...); err != nil {
		return context.Cause(ctx)
	}
	return nil
}

// wait waits for a reading of the shared clock.
func (r *run) wait(ctx context.Context, until int64) error {
	timer := time.NewTimer(r.clock.Until(until))
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}
