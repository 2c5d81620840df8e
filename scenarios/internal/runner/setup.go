package runner

import (
	"context"
	"errors"
	"log/slog"
	"maps"
	"net"
	"net/url"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/redis/go-redis/v9"

	"cmppgateway/reports/result"
	"cmppgateway/scenarios/internal/load"
	"cmppgateway/scenarios/internal/spec"
	"cmppgateway/scenarios/internal/verify"
	"cmppgateway/simulator/ismg"
	"cmppgateway/simulator/sp"
	"cmppgateway/testenv/stack"
)

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
	if r.s.Needs(spec.GatewayFailpoint) && !hasPoints(r.Gateway) {
		return unfit("%s was built without the tag failpoint; `make failpoint` makes bin/gateway-failpoint", r.Gateway)
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
	if r.s.BreaksStores() && (o.Mode == "" || o.Mode == stack.ModeAuto) {
		o.Mode = stack.ModeProcesses // the others cannot be broken
	}
	if r.s.Needs(spec.RedisStale) { // it comes back with a snapshot that is older than what was written since
		o.RedisConfig = map[string]string{"appendonly": "no"}
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
	if err := r.startWire(ctx); err != nil {
		return err
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
	contract := r.s.Contract()
	r.settings = initial(r.s)
	long := false
	for i := range r.s.Kinds {
		long = long || r.s.Kinds[i].Long != nil
	}
	for i, c := range r.settings {
		prefixes := r.s.Carriers[c.Carrier].Prefixes
		for k := range r.s.Kinds {
			if r.s.Kinds[k].Number != "" {
				prefixes = nil // its carrier is for the gateway to know
			}
		}
		p.Accounts = append(p.Accounts, ismg.Account{
			ID: c.Login, Secret: supplierSecret, MaxConnections: contract.Connections, Window: contract.Window,
			RateLimit: c.RateLimit, GatewayCode: uint32(100 + i), Prefixes: prefixes, Behaviour: r.s.Suppliers.Only[c.Name].Behaviour,
		})
		r.terms.Accounts[c.Login] = verify.SupplierAccount{ID: c.ID, Connections: contract.Connections, Window: contract.Window}
	}
	server, err := ismg.New(p, r.clock, ismg.Options{Log: r.Log, Place: r.plan.Place, KeepContent: long})
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
	if err := r.tool(ctx, "seed", "--file", r.path(seedFile)); err != nil {
		return err
	}
	return r.setPolicy(ctx)
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
		if r.wire != nil {
			r.wire.core.Store(new(r.files.Callback))
		}
		c, err := startGateway(r.Gateway, r.dir, log, pointOf(r.s)...)
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
		return e.matches(r.s, r.wanted())
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

func total(m map[string]int64) int64 {
	n := int64(0)
	for _, v := range m {
		n += v
	}
	return n
}

// opening records the balances and compares them with the scenario.
func (r *run) opening(ctx context.Context) error {
	books, err := verify.Books(ctx, r.conn)
	if err != nil {
		return unfit("%w", err)
	}
	x := r.s.Expect()
	t := &r.terms
	t.Price, t.Backup = r.s.Price, len(r.s.Suppliers.PerCarrier) > 1
	for i := range r.s.Kinds {
		k := &r.s.Kinds[i]
		t.Kinds = append(t.Kinds, verify.Kind{
			Name: k.Name, Units: k.Units, Parts: k.Parts, Long: k.Long != nil, Missing: k.Long != nil && k.Long.Missing,
			Reason: spec.Reasons[k.Refused].Code, Stat: k.Stat, Result: uint32(k.Result),
		})
	}
	t.Expected = verify.Expected{
		Messages: x.Messages, RefusedSubmits: x.RefusedSubmits, Receipts: x.Delivered + x.Failed + x.Refused + total(x.Intercepted), Early: x.Early,
		Long: x.Long, Intercepted: x.Turned + total(x.Intercepted),
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
