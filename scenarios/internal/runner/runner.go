package runner

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"maps"
	"net"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/redis/go-redis/v9"

	"cmppgateway/reports/render"
	"cmppgateway/reports/result"
	"cmppgateway/scenarios/internal/load"
	"cmppgateway/scenarios/internal/spec"
	"cmppgateway/scenarios/internal/verify"
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
	http       *http.Client
	gateway    life
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

// preflight checks what can be known before anything starts.
func (r *run) preflight(context.Context) error {
	if r.s.Price == 0 && !r.s.AllowZeroPrice {
		return unfit("price is 0: capacity without money is not claimed; allow_zero_price: true accepts an invalid verdict")
	}
	if info, err := os.Stat(r.Gateway); err != nil || info.IsDir() || info.Mode()&0o111 == 0 {
		return unfit("no gateway program at %s; `make build` makes it", r.Gateway)
	}
	if !r.Given {
		newer, err := stale(r.Gateway)
		if err != nil {
			return unfit("compare %s with its sources: %w", r.Gateway, err)
		}
		if newer != "" {
			return unfit("%s is newer than %s; `make build` first, or name the program with --gateway", newer, r.Gateway)
		}
	}
	sum, err := fileSum(r.Gateway)
	if err != nil {
		return unfit("read %s: %w", r.Gateway, err)
	}
	r.report.Environment.Gateway.SHA256 = sum
	r.report.Environment.CPU, r.report.Environment.Cores = cpuModel(), runtime.NumCPU()
	r.report.Environment.Go, r.report.Environment.Kernel, r.report.Environment.MemoryBytes = runtime.Version(), kernel(), memory()
	r.report.Harness.Version = r.Version
	if own, err := os.Executable(); err == nil {
		r.report.Harness.SHA256, _ = fileSum(own)
	}
	if r.plan, err = load.Build(r.s); err != nil {
		return unfit("plan the load: %w", err)
	}
	return nil
}

// startStack provides PostgreSQL and Redis.
func (r *run) startStack(ctx context.Context) error {
	o := r.Stack
	if r.s.Needs(spec.PostgresCrash) && (o.Mode == "" || o.Mode == stack.ModeAuto) {
		o.Mode = stack.ModeProcesses // the others cannot be crashed
	}
	if statementsAvailable() {
		o.PostgresConfig = map[string]string{"shared_preload_libraries": "pg_stat_statements"}
	}
	st, err := stack.Start(ctx, o)
	if err != nil {
		return unfit("%w", err)
	}
	r.stack = st
	r.later(st.Close)
	env := &r.report.Environment
	env.Provisioner, env.Durability = st.Provisioner(), st.Durability()
	for name, addr := range map[string]string{"PostgreSQL": st.PostgresURL(), "Redis": "redis://" + st.RedisAddr()} {
		u, err := url.Parse(addr)
		if err != nil {
			return unfit("address of %s: %w", name, err)
		}
		if !r.AllowRemote && !loopback(u.Hostname()) {
			return unfit("%s at %s is not on this machine; --allow-remote allows that", name, u.Host)
		}
	}
	r.rdb = redis.NewClient(&redis.Options{Addr: st.RedisAddr(), MaxRetries: -1})
	r.later(r.rdb.Close)
	if n, err := r.rdb.DBSize(ctx).Result(); err != nil || n != 0 {
		return unfit("Redis at %s has %d keys (%v); a run needs an empty one", st.RedisAddr(), n, err)
	}
	env.Redis = redisVersion(ctx, r.rdb)
	return nil
}

// statementsAvailable says whether PostgreSQL of this machine has pg_stat_statements.
func statementsAvailable() bool {
	found, err := filepath.Glob("/usr/lib/postgresql/*/lib/pg_stat_statements.so")
	return err == nil && len(found) > 0
}

func loopback(host string) bool {
	ip := net.ParseIP(host)
	return host == "localhost" || ip != nil && ip.IsLoopback()
}

func redisVersion(ctx context.Context, rdb *redis.Client) string {
	text, err := rdb.Info(ctx, "server").Result()
	if err != nil {
		return ""
	}
	_, rest, _ := strings.Cut(text, "redis_version:")
	version, _, _ := strings.Cut(rest, "\n")
	return strings.TrimSpace(version)
}

// makeDatabase makes the run's own database and its schema.
func (r *run) makeDatabase(ctx context.Context) error {
	r.database = "run_" + strings.ToLower(strings.ReplaceAll(filepath.Base(r.dir), "-", "_"))
	addr, err := r.stack.CreateDatabase(ctx, r.database, "")
	if err != nil {
		return unfit("make the database: %w", err)
	}
	r.later(func() error { //nolint:contextcheck // the run is over by then, whatever became of its context
		drop, cancel := context.WithTimeout(context.Background(), 10*time.Second)
		defer cancel()
		return r.stack.DropDatabase(drop, r.database)
	})
	if r.conn, err = r.connect(ctx, addr); err != nil {
		return err
	}
	if err := r.conn.QueryRow(ctx, "SHOW server_version").Scan(&r.report.Environment.Postgres); err != nil {
		return unfit("ask PostgreSQL for its version: %w", err)
	}
	// Without it only the figures about statements are missing.
	if _, err := r.conn.Exec(ctx, "CREATE EXTENSION IF NOT EXISTS pg_stat_statements"); err != nil {
		r.Log.Debug("no statement figures", slog.Any("error", err))
	}
	r.files.Postgres, r.files.Redis = addr, "redis://"+r.stack.RedisAddr()+"/0"
	if err := r.files.ports(ctx); err != nil {
		return unfit("%w", err)
	}
	if err := r.files.config(r.path(configFile), r.s); err != nil {
		return unfit("%w", err)
	}
	return r.tool(ctx, "migrate")
}

func (r *run) connect(ctx context.Context, addr string) (*pgx.Conn, error) {
	conn, err := pgx.Connect(ctx, addr)
	if err != nil {
		return nil, unfit("connect to the run's database: %w", err)
	}
	r.later(func() error { //nolint:contextcheck // the run is over by then, whatever became of its context
		end, cancel := context.WithTimeout(context.Background(), 5*time.Second)
		defer cancel()
		return conn.Close(end)
	})
	return conn, nil
}

func (r *run) path(name string) string { return filepath.Join(r.dir, name) }

// tool runs a command of the gateway.
func (r *run) tool(ctx context.Context, args ...string) error {
	ctx, cancel := context.WithTimeout(ctx, commandLimit)
	defer cancel()
	if _, err := command(ctx, r.Gateway, append([]string{"--config", r.path(configFile)}, args...)...); err != nil {
		return unfit("%w", err)
	}
	return nil
}

// startSuppliers serves the simulated suppliers.
func (r *run) startSuppliers(ctx context.Context) error {
	p := ismg.Profile{Seed: r.s.Seed, Behaviour: r.s.Behaviour}
	r.terms.Accounts = map[string]verify.SupplierAccount{}
	for i, c := range channels(r.s) {
		p.Accounts = append(p.Accounts, ismg.Account{
			ID: c.Login, Secret: supplierSecret, MaxConnections: r.s.Suppliers.Connections, Window: r.s.Suppliers.Window,
			RateLimit: r.s.Suppliers.RateLimit, GatewayCode: uint32(100 + i), Prefixes: r.s.Carriers[c.Carrier].Prefixes,
		})
		r.terms.Accounts[c.Login] = verify.SupplierAccount{ID: c.ID, Connections: r.s.Suppliers.Connections, Window: r.s.Suppliers.Window}
	}
	server, err := ismg.New(p, r.clock, ismg.Options{Log: r.Log, Place: r.plan.Place})
	if err != nil {
		return unfit("suppliers: %w", err)
	}
	var lc net.ListenConfig
	ln, err := lc.Listen(ctx, "tcp4", "127.0.0.1:0")
	if err != nil {
		return unfit("suppliers: %w", err)
	}
	r.mu.Lock()
	r.suppliers = server
	r.mu.Unlock()
	serving, stop := context.WithCancel(context.WithoutCancel(ctx))
	done := make(chan error, 1)
	go func() { done <- server.Serve(serving, ln) }()
	r.halt.suppliers = sync.OnceValue(func() error {
		stop()
		return <-done
	})
	r.later(r.halt.suppliers)
	if err := seed(r.path(seedFile), r.s, ln.Addr().String()); err != nil {
		return unfit("%w", err)
	}
	return nil
}

func (r *run) seedDatabase(ctx context.Context) error {
	return r.tool(ctx, "seed", "--file", r.path(seedFile))
}

// startGateway starts the child and waits for it, with other ports when the ones
// picked were taken meanwhile.
func (r *run) startGateway(ctx context.Context) error {
	log, err := os.Create(r.path(result.GatewayLogFile))
	if err != nil {
		return unfit("gateway log: %w", err)
	}
	r.later(log.Close)
	r.gatewayLog = log
	for try := 1; ; try++ {
		c, err := startGateway(r.Gateway, r.dir, log)
		if err != nil {
			return unfit("start the gateway: %w", err)
		}
		r.gateway.set(c)
		r.later(func() error {
			c.stop(5 * time.Second)
			return nil
		})
		e, err := ready(ctx, r.http, &r.files, c, readyLimit)
		if err == nil {
			r.report.Environment.Gateway.PID = c.pid()
			r.report.Environment.Gateway.Version = e.Version
			return nil
		}
		c.stop(5 * time.Second)
		taken := r.files.taken(ctx)
		if len(taken) == 0 || ctx.Err() != nil || c.exitCode() == 0 {
			return r.gatewayFault(c, err)
		}
		if try == portTries {
			return unfit("the gateway's ports %s are taken by another program", strings.Join(taken, ", "))
		}
		if err := errors.Join(r.files.ports(ctx), r.files.config(r.path(configFile), r.s)); err != nil {
			return unfit("%w", err)
		}
	}
}

// gatewayFault says why the gateway did not become ready; settings it refuses are
// the scenario's fault.
func (r *run) gatewayFault(c *child, err error) error {
	log, _ := os.ReadFile(r.path(result.GatewayLogFile))
	const exitUsage = 2
	if !c.alive() && c.exitCode() == exitUsage {
		return spec.FaultsError{{Source: r.s.Name, Path: "gateway", Problem: lastLine(string(log))}}
	}
	if last := lastLine(string(log)); last != "" {
		return unfit("the gateway did not become ready: %w; its log ends with: %s", err, last)
	}
	return unfit("the gateway did not become ready: %w", err)
}

// startCustomers logs the simulated customers in.
func (r *run) startCustomers(ctx context.Context) error {
	running, stop := context.WithCancel(context.WithoutCancel(ctx))
	var wg sync.WaitGroup
	var errs []error
	var mu sync.Mutex
	r.halt.customers = sync.OnceValue(func() error {
		stop()
		wg.Wait()
		return errors.Join(errs...)
	})
	r.later(r.halt.customers)
	var clients []*sp.Client
	for i, e := range r.s.Enterprises {
		c, err := sp.New(sp.Config{
			Addr: r.files.Inbound, ID: customerID(i), Secret: customerSecret, Connections: e.Connections, Window: e.Window, ServiceID: "scenario", Log: r.Log,
		}, r.clock)
		if err != nil {
			return unfit("customer %s: %w", e.ID, err)
		}
		wg.Go(func() {
			if err := c.Run(running); err != nil {
				mu.Lock()
				defer mu.Unlock()
				errs = append(errs, err)
			}
		})
		clients = append(clients, c)
	}
	r.mu.Lock()
	r.customers = clients
	r.mu.Unlock()
	for i, c := range clients {
		login, cancel := context.WithTimeout(ctx, linksLimit)
		err := c.Ready(login, r.s.Enterprises[i].Connections)
		cancel()
		if err != nil {
			return unfit("%w", err)
		}
	}
	return nil
}

// readBack compares the running gateway with the scenario, and records the opening
// balances and that nothing is under way.
func (r *run) readBack(ctx context.Context) error {
	var e effective
	err := poll(ctx, linksLimit, func(ctx context.Context) (string, error) {
		e = effective{}
		if _, err := get(ctx, r.http, "http://"+r.files.Admin+"/api/admin/effective", &e); err != nil {
			return "the settings cannot be read: " + err.Error(), nil //nolint:nilerr // it is asked again
		}
		return e.matches(r.s)
	})
	if err != nil {
		return unfit("%w", err)
	}
	env := &r.report.Environment
	env.Settings = flatten(e.Config)
	maps.Copy(env.Durability, e.durability()) // as the gateway's own sessions see it
	if e.SHA256 != env.Gateway.SHA256 {
		return unfit("the gateway that answers has SHA-256 %s, the program has %s", e.SHA256, env.Gateway.SHA256)
	}
	queues, err := verify.Queues(ctx, r.conn)
	if err != nil {
		return unfit("%w", err)
	}
	if left := nonZero(queues); len(left) > 0 {
		return unfit("not empty before the load: %s", describe(left))
	}
	if err := r.opening(ctx); err != nil {
		return err
	}
	return r.observe(ctx)
}

// opening records the balances and compares them with the scenario.
func (r *run) opening(ctx context.Context) error {
	books, err := verify.Books(ctx, r.conn)
	if err != nil {
		return unfit("%w", err)
	}
	x := r.s.Expect()
	t := &r.terms
	t.Price, t.Units, t.Hash, t.Backup = r.s.Price, r.s.Content.Units, r.plan.Hash, len(r.s.Suppliers.PerCarrier) > 1
	t.Expected = verify.Expected{
		Messages: x.Messages, RefusedSubmits: x.RefusedSubmits, Receipts: x.Delivered + x.Failed + x.Refused, Early: x.Early,
		Charged: map[string]int64{}, Refunded: map[string]int64{}, Released: map[string]int64{},
	}
	for i, e := range r.s.Enterprises {
		name, b := e.ID, x.Enterprises[i]
		t.Expected.Charged[name], t.Expected.Refunded[name], t.Expected.Released[name] = b.ChargedN, b.RefundedN, b.ReleasedN
		opened := false
		for _, s := range books {
			if s.Enterprise != int32(i+1) {
				continue
			}
			opened = true
			if s.Available != e.Balance || s.TopUps != e.Balance {
				return unfit("enterprise %s opens with %d and top-ups of %d, the scenario says %d", name, s.Available, s.TopUps, e.Balance)
			}
			t.Enterprises = append(t.Enterprises, verify.Enterprise{Name: name, ID: s.Enterprise, Opening: s.Available, TopUps: s.TopUps})
		}
		if !opened {
			return unfit("enterprise %s has no account", name)
		}
	}
	return nil
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
	err := r.beside(ctx, cancel, zero, func() error { return r.phases(ctx, cancel) })
	if err != nil {
		return err
	}
	if r.to, err = r.sampler.count(ctx, r.conn); err != nil {
		return unfit("%w", err)
	}
	r.loadEnd = r.clock.Now()
	return nil
}

// phases runs the phases one after another without a gap: what is due is fired,
// whatever became of what was before.
func (r *run) phases(ctx context.Context, cancel context.CancelCauseFunc) error {
	for i := range r.plan.Phases {
		p := &r.plan.Phases[i]
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
		if err := r.fire(ctx, cancel, p, r.starts[i]); err != nil {
			return err
		}
		end := r.starts[i] + int64(p.Hold)
		if last := i == len(r.plan.Phases)-1; last || len(r.s.Faults) == 0 && p.Measure && !r.plan.Phases[i+1].Measure {
			if err := r.wait(ctx, end); err != nil || last {
				return err // after the last phase everything is counted anyway
			}
			var err error
			if r.to, err = r.sampler.count(ctx, r.conn); err != nil {
				return unfit("%w", err)
			}
		}
	}
	return nil
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

// pending counts everything that still has to happen before the books can be closed.
func (r *run) pending(ctx context.Context) (map[string]int64, error) {
	counts := map[string]int64{}
	for _, c := range r.customers {
		n := c.Counts()
		counts["unanswered SUBMITs"] += int64(n.Waiting + n.InFlight)
	}
	for _, n := range r.suppliers.Counts() {
		counts["SUBMITs at suppliers"] += int64(n.InFlight)
		counts["reports at suppliers"] += int64(n.Reports + n.Uplinks - n.Acked)
	}
	queues, err := verify.Queues(ctx, r.conn)
	if err != nil {
		return nil, err
	}
	// An unknown keeps its freeze until its statement comes.
	queues["open_freezes"] -= queues["unknown"]
	for name, n := range queues {
		if name != "unknown" && name != "dead_letter" {
			counts[name] = n
		}
	}
	if counts["stream entries"], err = streamEntries(ctx, r.rdb); err != nil {
		return nil, err
	}
	return counts, nil
}

func (r *run) drain(ctx context.Context) error {
	var err error
	if r.drained, err = drain(ctx, r.s.Drain, r.pending); err != nil {
		return err
	}
	if c := r.gateway.now(); !c.alive() {
		return &diedError{c.exitCode(), "drain"}
	}
	if len(r.drained.Left) > 0 {
		r.Log.Warn("not drained", slog.String("left", describe(r.drained.Left)))
	}
	return nil
}

// closeUnknowns writes the suppliers' statement and, when submits are unknown,
// closes them with it the way an operator would.
func (r *run) closeUnknowns(ctx context.Context) error {
	f, err := os.Create(r.path(result.StatementFile))
	if err != nil {
		return unfit("statement: %w", err)
	}
	if err := errors.Join(r.suppliers.WriteStatement(f), f.Close()); err != nil {
		return unfit("statement: %w", err)
	}
	queues, err := verify.Queues(ctx, r.conn)
	if err != nil {
		return unfit("%w", err)
	}
	if queues["unknown"] == 0 {
		return nil
	}
	if err := r.unknowns.look(ctx, r.conn); err != nil {
		return unfit("%w", err)
	}
	if err := r.tool(ctx, "unknown", "resolve", "--from", r.path(result.StatementFile), "--absent", "not-sent"); err != nil {
		return err
	}
	// What the statement closes may send receipts to customers.
	r.say("drain after the statement")
	d, err := drain(ctx, r.s.Drain, r.pending)
	r.drained.Left = d.Left
	return err
}

// look polls the places that must be empty while everything still runs.
func (r *run) look(ctx context.Context) error {
	var err error
	if r.last, err = r.sampler.count(ctx, r.conn); err != nil {
		return unfit("%w", err)
	}
	r.unsample()
	r.costly = costly(ctx, r.conn)
	queues, err := verify.Queues(ctx, r.conn)
	if err != nil {
		return unfit("%w", err)
	}
	add := func(p verify.Place) { r.places = append(r.places, p) }
	for _, name := range []string{"inbox", "submit_outbox", "receipt_parked", "delivery", "unknown", "dead_letter"} {
		add(verify.Place{Name: name, Left: queues[name], Witness: "D"})
	}
	add(verify.Place{Name: "open_freezes", Left: queues["open_freezes"], Expected: queues["unknown"], Witness: "D", Detail: "as many as unknown"})
	locks, err := verify.Locks(ctx, r.conn)
	if err != nil {
		return unfit("%w", err)
	}
	for _, name := range []string{"waiting_locks", "idle_in_transaction", "prepared_transactions"} {
		add(verify.Place{Name: name, Left: locks[name], Witness: "D"})
	}
	entries, err := streamEntries(ctx, r.rdb)
	if err != nil {
		return unfit("%w", err)
	}
	add(verify.Place{Name: "stream_entries", Left: entries, Witness: "R"})
	m := r.last.metrics
	add(verify.Place{Name: "event_backlog", Left: int64(m.sum("cmppgw_event_backlog")), Witness: "M"})
	add(verify.Place{Name: "supplier_inflight", Left: int64(m.sum("cmppgw_supplier_inflight")), Witness: "M"})
	// Pools of connections and timers come and go; a leak grows with the load.
	add(verify.Place{Name: "goroutines", Left: int64(m.sum("go_goroutines")), Expected: r.goroutines + r.goroutines/5 + 20, AtMost: true, Witness: "M"})
	pending := int64(0)
	for _, n := range r.suppliers.Counts() {
		pending += int64(n.Reports + n.Uplinks - n.Acked)
	}
	add(verify.Place{Name: "supplier_reports", Left: pending, Witness: "S"})
	return nil
}

// stopGateway ends the gateway in order; that it leaves nothing behind is part of
// nothing_left.
func (r *run) stopGateway(ctx context.Context) error {
	out, err := command(ctx, r.Gateway, "--config", r.path(configFile), "ledger", "verify")
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	r.ledger = strings.TrimSpace(out)
	place := verify.Place{Name: "ledger_verify", Witness: "D", Detail: "exit code of `gateway ledger verify`"}
	if failed, ok := errors.AsType[*commandError](err); ok {
		place.Left = int64(failed.Code)
		place.Detail = lastLine(failed.Stderr)
	} else if err != nil {
		return unfit("ledger verify: %w", err)
	}
	r.places = append(r.places, place)
	c := r.gateway.now()
	took, killed := c.stop(stopLimit)
	r.Log.Info("gateway stopped", slog.Duration("took", took), slog.Bool("killed", killed), slog.Int("exit_code", c.exitCode()))
	r.places = append(r.places, verify.Place{
		Name: "gateway_exit_code", Left: int64(c.exitCode()), Witness: "M", Detail: fmt.Sprintf("after %s", took.Round(time.Millisecond)),
	})
	sessions := int64(0)
	err = poll(ctx, 2*time.Second, func(ctx context.Context) (string, error) {
		err := r.conn.QueryRow(ctx, "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() AND application_name LIKE 'cmppgw/%'").Scan(&sessions)
		if err != nil {
			return "", err
		}
		if sessions > 0 {
			return fmt.Sprintf("%d sessions are open", sessions), nil
		}
		return "", nil
	})
	if err != nil && sessions == 0 {
		return unfit("count the gateway's sessions: %w", err)
	}
	r.places = append(r.places, verify.Place{Name: "gateway_sessions", Left: sessions, Witness: "D", Detail: "of PostgreSQL, after its end"})
	return nil
}

// verify takes the witnesses, now that nothing moves any more, and checks them.
func (r *run) verify(ctx context.Context) error {
	if err := r.halt.customers(); err != nil {
		return unfit("%w", err)
	}
	if err := r.halt.suppliers(); err != nil {
		return unfit("%w", err)
	}
	w := &verify.Witness{
		Terms: r.terms, Suppliers: r.suppliers.Record(), Places: r.places, Samples: r.sampler.books, Faults: r.faults, Unknowns: r.unknowns.list(),
	}
	for _, c := range r.customers {
		w.Customers = append(w.Customers, c.Record())
	}
	var err error
	if w.Database, err = verify.Snapshot(ctx, r.conn); err != nil {
		return unfit("%w", err)
	}
	final, err := verify.Books(ctx, r.conn)
	if err != nil {
		return unfit("%w", err)
	}
	w.Samples = append(w.Samples, final...)
	r.witness = w
	if err := verify.Save(r.dir, w); err != nil {
		return unfit("%w", err)
	}
	r.fill()
	judge(r.s, r.report)
	if r.inspect != nil {
		r.inspect(ctx, w, r.conn)
	}
	return nil
}

// write writes the files of the run.
func (r *run) write() error {
	r.report.Finished = time.Now().UTC()
	resolved, err := r.s.Resolved()
	if err != nil {
		return err
	}
	r.report.Harness.ScenarioSHA256 = textSum(resolved)
	r.report.Harness.Repro = "sh " + filepath.Join(r.dir, result.ReproFile)
	env := environmentFile{Environment: r.report.Environment, Harness: r.report.Harness, HotShare: map[string]float64{}, Ledger: r.ledger, Costly: r.costly}
	for name, x := range r.last.tables {
		env.HotShare[name] = float64(x.of) / float64(max(x.all, 1))
	}
	var rows []result.Second
	if r.sampler != nil {
		env.Missed = r.sampler.missed
		for _, s := range r.sampler.seconds {
			env.OldestSnapshot = max(env.OldestSnapshot, s.xminAge)
		}
	}
	if r.witness != nil {
		zero := r.started.Sub(r.clock.Base()).Nanoseconds()
		rows = series(zero, r.plan, r.starts, trace(r.witness, r.plan), r.witness, r.hiccups, r.sampler.seconds)
	}
	err = errors.Join(
		result.WriteFile(r.path(result.ScenarioFile), resolved),
		writeJSON(r.path(result.EnvFile), env),
		writeRepro(r.dir, r.report),
		result.Save(r.dir, r.report, rows),
	)
	if err != nil {
		return err
	}
	_, err = render.Dir(r.dir)
	return err
}
