package main_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/redis/go-redis/v9"

	"cmppgateway/gateway/internal/observe"
	"cmppgateway/gateway/internal/store"
	"cmppgateway/testenv"
	"cmppgateway/testenv/stack"
)

func TestMain(m *testing.M) {
	testenv.Migrated(store.Migrate)
	testenv.Main(m)
}

// limit is how long a run may take on a busy machine before it counts as hanging.
const limit = time.Minute

type binary string

// command is the built program with nothing in its environment but env.
func (b binary) command(ctx context.Context, env []string, args ...string) *exec.Cmd {
	c := exec.CommandContext(ctx, string(b), args...)
	c.Env = append([]string{"HOME=" + os.TempDir()}, env...)
	c.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	return c
}

func (b binary) run(t *testing.T, env []string, args ...string) (code int, stdout, stderr string) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), limit)
	defer cancel()
	var out, errs bytes.Buffer
	c := b.command(ctx, env, args...)
	c.Stdout, c.Stderr = &out, &errs
	if err := c.Run(); err != nil {
		if _, ok := errors.AsType[*exec.ExitError](err); !ok {
			t.Fatalf("%v: %v", args, err)
		}
	}
	return c.ProcessState.ExitCode(), out.String(), errs.String()
}

func free(t *testing.T) string {
	t.Helper()
	port, err := stack.FreePort(t.Context()) // below those of outgoing connections, which would take it before the program does
	if err != nil {
		t.Fatal(err)
	}
	return net.JoinHostPort("127.0.0.1", strconv.Itoa(port))
}

func write(t *testing.T, name, text string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), name)
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

// environment is a database and a Redis of the test's own, and ports nobody else uses.
func environment(t *testing.T, url, redisAddr string, db int) []string {
	t.Helper()
	host, port, err := net.SplitHostPort(redisAddr)
	if err != nil {
		t.Fatal(err)
	}
	return []string{
		"DATABASE_URL=" + url, "REDIS_HOST=" + host, "REDIS_PORT=" + port, fmt.Sprint("CMPPGW_REDIS_DB=", db), "CMPPGW_LOG_LEVEL=error",
		"CMPPGW_ADMIN_LISTEN=" + free(t), "CMPPGW_CALLBACK_LISTEN=" + free(t), "CMPPGW_INBOUND_LISTEN=" + free(t),
	}
}

func TestProgram(t *testing.T) {
	t.Parallel()
	gw := binary(filepath.Join(t.TempDir(), "gateway"))
	if out, err := exec.CommandContext(t.Context(), "go", "build", "-buildvcs=false", "-o", string(gw), ".").CombinedOutput(); err != nil {
		t.Fatalf("build: %v\n%s", err, out)
	}
	t.Run("wrong usage", func(t *testing.T) { t.Parallel(); wrongUsage(t, gw) })
	t.Run("version", func(t *testing.T) { t.Parallel(); versionRuns(t, gw) })
	t.Run("no database", func(t *testing.T) { t.Parallel(); noDatabase(t, gw) })
	t.Run("migrate", func(t *testing.T) { t.Parallel(); migrates(t, gw) })
	t.Run("check", func(t *testing.T) { t.Parallel(); checks(t, gw) })
	t.Run("seed and ledger", func(t *testing.T) { t.Parallel(); seeds(t, gw) })
	t.Run("administration", func(t *testing.T) { t.Parallel(); administers(t, gw) })
	t.Run("administration of a running gateway", func(t *testing.T) { t.Parallel(); administersLive(t, gw) })
	t.Run("serve", func(t *testing.T) { t.Parallel(); serves(t, gw) })
	t.Run("occupied port", func(t *testing.T) { t.Parallel(); occupiedPort(t, gw) })
	t.Run("killed", func(t *testing.T) { t.Parallel(); killed(t, gw) })
	t.Run("restored", func(t *testing.T) { t.Parallel(); restored(t, gw) })
	t.Run("uplinks survive", func(t *testing.T) { t.Parallel(); uplinksSurvive(t, gw) })
	t.Run("customer traps", func(t *testing.T) { t.Parallel(); customerTraps(t, gw) })
}

func wrongUsage(t *testing.T, gw binary) {
	t.Helper()
	url := []string{"DATABASE_URL=postgres://127.0.0.1:1/x"}
	for _, c := range []struct {
		name string
		env  []string
		args []string
		want string
	}{
		{"no command", url, nil, "expected one of"},
		{"unknown command", url, []string{"fly"}, "fly"},
		{"unknown flag", url, []string{"serve", "--loud"}, "--loud"},
		{"unknown role", url, []string{"serve", "--roles", "edge,moon"}, `"moon"`},
		{"seed without a file", url, []string{"seed"}, "--file"},
		{"missing configuration", url, []string{"check", "--config", "nowhere.yaml"}, "nowhere.yaml"},
		{"unknown setting", url, []string{"check", "-c", write(t, "g.yaml", "inbound:\n  speed: 1\n")}, "g.yaml:2: inbound.speed: no such setting"},
		{"unknown variable", append([]string{"CMPPGW_INBOUND_SPEED=1"}, url...), []string{"check"}, "CMPPGW_INBOUND_SPEED: no such setting"},
		{"no database given", nil, []string{"serve"}, "postgres.url"},
		{"edge that does not know the core", url, []string{"serve", "--roles", "edge"}, "event.url"},
		{"statement that is not there", url, []string{"unknown", "resolve", "--from", "nowhere.csv"}, "nowhere.csv"},
		{"faulty seed file", url, []string{"seed", "--file", write(t, "s.yaml", "enterprises:\n  - {id: 0, name: x}\n")}, "s.yaml"},
	} {
		code, stdout, stderr := gw.run(t, c.env, c.args...)
		if code != 2 || !strings.Contains(stderr, c.want) || strings.Count(stderr, "\n") != 1 || stdout != "" {
			t.Errorf("%s: exit %d, stdout %q, stderr %q; want 2 and one line with %q", c.name, code, stdout, stderr, c.want)
		}
	}
	// Several faults: a line each.
	code, _, stderr := gw.run(t, url, "check", "-c", write(t, "g.yaml", "inbound:\n  batch_max: 0\nlog:\n  level: loud\n"))
	if code != 2 || strings.Count(stderr, "\n") != 2 {
		t.Errorf("two faults: exit %d, %q", code, stderr)
	}
}

func versionRuns(t *testing.T, gw binary) {
	t.Helper()
	if code, out, _ := gw.run(t, nil, "version"); code != 0 || !strings.HasPrefix(out, "gateway ") {
		t.Errorf("exit %d, %q", code, out)
	}
	if code, out, _ := gw.run(t, nil, "--help"); code != 0 || !strings.Contains(out, "serve") {
		t.Errorf("help: exit %d, %q", code, out)
	}
}

func noDatabase(t *testing.T, gw binary) {
	t.Helper()
	env := environment(t, "postgres://postgres@127.0.0.1:1/x?sslmode=disable", "127.0.0.1:1", 0)
	for _, args := range [][]string{{"serve"}, {"migrate"}, {"ledger", "verify"}} {
		code, _, stderr := gw.run(t, env, args...)
		if code != 1 || strings.Count(stderr, "\n") != 1 || !strings.Contains(stderr, "127.0.0.1:1") {
			t.Errorf("%v: exit %d, %q; want 1 and one line that names the address", args, code, stderr)
		}
	}
	code, stdout, _ := gw.run(t, env, "check")
	if code != 1 || !strings.Contains(stdout, "postgres: ") || !strings.Contains(stdout, "redis: ") {
		t.Errorf("check: exit %d, %q; want both named", code, stdout)
	}
}

func migrates(t *testing.T, gw binary) {
	t.Helper()
	addr, db := testenv.Redis(t)
	env := environment(t, testenv.DBWith(t, nil), addr, db)
	code, _, stderr := gw.run(t, env, "serve")
	if code != 1 || !strings.Contains(stderr, "run `gateway migrate`") || strings.Count(stderr, "\n") != 1 {
		t.Errorf("serve without a schema: exit %d, %q", code, stderr)
	}
	for range 2 {
		if code, _, stderr := gw.run(t, env, "migrate"); code != 0 {
			t.Fatalf("exit %d, %q", code, stderr)
		}
	}
	if code, out, stderr := gw.run(t, env, "ledger", "verify"); code != 0 {
		t.Errorf("verify: exit %d, %q %q", code, out, stderr)
	}
}

func checks(t *testing.T, gw binary) {
	t.Helper()
	addr, db := testenv.Redis(t)
	if code, stdout, stderr := gw.run(t, environment(t, testenv.DB(t), addr, db), "check"); code != 0 || stdout != "ok\n" {
		t.Errorf("exit %d, %q %q", code, stdout, stderr)
	}

	pg, err := stack.StartPostgres(t.Context(), stack.Options{
		Log: slog.New(slog.DiscardHandler), PostgresConfig: map[string]string{"fsync": "off", "full_page_writes": "off"},
	})
	if err != nil {
		t.Fatal(err)
	}
	defer pg.Close() // the test is over
	rd := testenv.RedisServer(t)
	rdb := redis.NewClient(&redis.Options{Addr: rd.Addr()})
	defer rdb.Close() // the test is over
	if err := rdb.ConfigSet(t.Context(), "maxmemory-policy", "allkeys-lru").Err(); err != nil {
		t.Fatal(err)
	}
	env := environment(t, pg.URL(), rd.Addr(), 0)
	if code, stdout, _ := gw.run(t, env, "check"); code != 1 || !strings.Contains(stdout, "schema version is 0") {
		t.Errorf("without a schema: exit %d, %q", code, stdout)
	}
	if code, _, stderr := gw.run(t, env, "migrate"); code != 0 {
		t.Fatal(stderr)
	}
	conn, err := pgx.Connect(t.Context(), pg.URL())
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close(context.Background()) // the test is over
	for _, sql := range []string{
		"ALTER TABLE receipt DETACH PARTITION receipt_" + time.Now().UTC().AddDate(0, 0, 3).Format("20060102"),
		"INSERT INTO enterprise VALUES (1, 1, 'e')",
		"INSERT INTO application (id, enterprise_id, price, sp_id, secret, name) VALUES (7, 1, 0, '900001', 's', 'shop')",
	} {
		if _, err := conn.Exec(t.Context(), sql); err != nil {
			t.Fatal(err)
		}
	}
	code, stdout, _ := gw.run(t, env, "check")
	for _, want := range []string{"fsync is off", "full_page_writes is off", "maxmemory-policy is allkeys-lru", "are missing", "application 7 (shop): price is 0"} {
		if !strings.Contains(stdout, want) {
			t.Errorf("no line with %q", want)
		}
	}
	if code != 1 || strings.Count(stdout, "\n") != 5 {
		t.Errorf("exit %d, %q; want 1 and all five problems", code, stdout)
	}
}

const seedFile = `
enterprises:
  - {id: 1, name: ent-a, opening: 20000000}
suppliers:
  - {id: 1, name: m, addr: "127.0.0.1:1", sp_id: "900001", secret: s1, max_connections: 8, max_window: 64}
channels:
  - {id: 1, name: m-p, supplier: m, carrier: mobile, connections: 2, window: 32, access_number: "10690001"}
groups:
  - {id: 1, name: mobile, members: [{channel: m-p}]}
applications:
  - {id: 11, enterprise: 1, name: app-a, sp_id: "100001", secret: a, price: 325, routes: {mobile: mobile}}
`

func seeds(t *testing.T, gw binary) {
	t.Helper()
	addr, db := testenv.Redis(t)
	url := testenv.DB(t)
	env := environment(t, url, addr, db)
	file := write(t, "seed.yaml", seedFile)
	for i, want := range []string{"1 opening balances", "0 rows changed, 0 opening balances"} {
		if code, stdout, stderr := gw.run(t, env, "seed", "--file", file); code != 0 || !strings.Contains(stdout, want) {
			t.Fatalf("run %d: exit %d, %q %q; want %q", i, code, stdout, stderr, want)
		}
	}
	if code, stdout, stderr := gw.run(t, env, "ledger", "verify"); code != 0 || !strings.Contains(stdout, "0 faults") {
		t.Errorf("verify: exit %d, %q %q", code, stdout, stderr)
	}
	conn, err := pgx.Connect(t.Context(), url)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close(context.Background()) // the test is over
	var held int
	if err := conn.QueryRow(t.Context(), "SELECT count(*) FROM node_lease WHERE instance IS NOT NULL").Scan(&held); err != nil || held != 0 {
		t.Errorf("%d node numbers still held, %v", held, err)
	}
	if code, stdout, stderr := gw.run(t, env, "unknown", "list"); code != 0 || stdout != "0 unknown\n" {
		t.Errorf("unknown list: exit %d, %q %q", code, stdout, stderr)
	}
	statement := write(t, "statement.csv", "account,msg_id,number,src_id,submit_time,result\n")
	if code, stdout, stderr := gw.run(t, env, "unknown", "resolve", "--from", statement); code != 0 || !strings.HasPrefix(stdout, "0 accepted") {
		t.Errorf("unknown resolve: exit %d, %q %q", code, stdout, stderr)
	}
	if code, stdout, stderr := gw.run(t, env, "unknown", "resolve", "--from", statement, "--dry-run"); code != 0 || !strings.HasPrefix(stdout, "dry run: 0 accepted") {
		t.Errorf("unknown resolve --dry-run: exit %d, %q %q", code, stdout, stderr)
	}
	if code, _, stderr := gw.run(t, env, "unknown", "resolve", "77", "--as", "sent"); code != 1 || !strings.Contains(stderr, "submit 77 is not unknown") {
		t.Errorf("unknown resolve of a known submit: exit %d, %q", code, stderr)
	}
	if code, _, stderr := gw.run(t, env, "unknown", "resolve", "77", "--from", statement); code != 2 || !strings.Contains(stderr, "either --from FILE") {
		t.Errorf("unknown resolve by both: exit %d, %q", code, stderr)
	}
	if code, stdout, stderr := gw.run(t, env, "exceptions"); code != 0 || stdout != "0 exceptions\n" {
		t.Errorf("exceptions: exit %d, %q %q", code, stdout, stderr)
	}
	if _, err := conn.Exec(t.Context(), "UPDATE account SET available = available - 1"); err != nil {
		t.Fatal(err)
	}
	if code, stdout, stderr := gw.run(t, env, "ledger", "verify"); code != 1 || !strings.Contains(stdout, "FAULT") || strings.Count(stderr, "\n") != 1 {
		t.Errorf("verify of broken books: exit %d, %q %q", code, stdout, stderr)
	}
}

// running is a `gateway serve`.
type running struct {
	cmd    *exec.Cmd
	url    string
	stderr *bytes.Buffer
	done   chan error
}

func start(t *testing.T, gw binary, env []string, args ...string) *running {
	t.Helper()
	var stderr bytes.Buffer
	c := gw.command(context.WithoutCancel(t.Context()), env, append([]string{"serve"}, args...)...)
	c.Stdout, c.Stderr = &stderr, &stderr
	if err := c.Start(); err != nil {
		t.Fatal(err)
	}
	r := &running{cmd: c, stderr: &stderr, done: make(chan error, 1)}
	go func() { r.done <- c.Wait() }()
	for _, kv := range env {
		if addr, ok := strings.CutPrefix(kv, "CMPPGW_ADMIN_LISTEN="); ok {
			r.url = "http://" + addr
		}
	}
	t.Cleanup(func() {
		_ = c.Process.Kill() // mostly gone already
		http.DefaultClient.CloseIdleConnections()
	})
	return r
}

func (r *running) state(t *testing.T) (s observe.State, err error) {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, r.url+"/readyz", nil)
	if err != nil {
		return s, err
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return s, err
	}
	defer resp.Body.Close() // read below
	return s, json.NewDecoder(resp.Body).Decode(&s)
}

// until waits for a state of /readyz.
func (r *running) until(t *testing.T, what string, want func(observe.State) bool) {
	t.Helper()
	tick := time.NewTicker(50 * time.Millisecond)
	defer tick.Stop()
	over := time.After(limit)
	var last observe.State
	for {
		select {
		case err := <-r.done:
			t.Fatalf("%s: the process ended: %v\n%s", what, err, r.stderr)
		case <-over:
			t.Fatalf("%s: not seen, last %+v", what, last)
		case <-tick.C:
		}
		var err error
		if last, err = r.state(t); err == nil && want(last) {
			return
		}
	}
}

func ready(s observe.State) bool { return s.Ready }

func breaks(check string) func(observe.State) bool {
	return func(s observe.State) bool {
		for _, b := range s.Broken {
			if b.Check == check {
				return true
			}
		}
		return false
	}
}

func (r *running) exit(t *testing.T) int {
	t.Helper()
	select {
	case <-r.done:
		return r.cmd.ProcessState.ExitCode()
	case <-time.After(limit):
		t.Fatal("the process does not end")
		return 0
	}
}

func serves(t *testing.T, gw binary) {
	t.Helper()
	pg, rd := testenv.PostgresServer(t), testenv.RedisServer(t)
	env := environment(t, pg.URL(), rd.Addr(), 0)
	if code, _, stderr := gw.run(t, env, "migrate"); code != 0 {
		t.Fatal(stderr)
	}
	r := start(t, gw, env)
	r.until(t, "ready", ready)
	conn, err := pgx.Connect(t.Context(), pg.URL())
	if err != nil {
		t.Fatal(err)
	}
	if _, err := conn.Exec(t.Context(), "ALTER TABLE receipt DETACH PARTITION receipt_"+time.Now().UTC().AddDate(0, 0, 3).Format("20060102")); err != nil {
		t.Fatal(err)
	}
	if err := conn.Close(t.Context()); err != nil {
		t.Fatal(err)
	}
	r.until(t, "a missing partition ends readiness", func(s observe.State) bool { return !s.Ready && breaks("partitions")(s) })

	// Redis away: slower, still ready but for the partition.
	if err := rd.Kill(); err != nil {
		t.Fatal(err)
	}
	r.until(t, "redis away", breaks("redis"))
	if err := rd.Restart(t.Context()); err != nil {
		t.Fatal(err)
	}
	r.until(t, "redis back", func(s observe.State) bool { return !breaks("redis")(s) })

	// PostgreSQL away and back: the process lives through it.
	if err := pg.StopImmediate(t.Context()); err != nil {
		t.Fatal(err)
	}
	r.until(t, "postgres away", func(s observe.State) bool { return !s.Ready && breaks("postgres")(s) })
	if err := pg.Restart(t.Context()); err != nil {
		t.Fatal(err)
	}
	r.until(t, "postgres back", func(s observe.State) bool { return !breaks("postgres")(s) && !breaks("node_lease")(s) })

	if err := r.cmd.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	if code := r.exit(t); code != 0 {
		t.Errorf("exit %d after SIGTERM\n%s", code, r.stderr)
	}
	var held int
	if conn, err = pgx.Connect(t.Context(), pg.URL()); err != nil {
		t.Fatal(err)
	}
	defer conn.Close(context.Background()) // the test is over
	if err := conn.QueryRow(t.Context(), "SELECT count(*) FROM node_lease WHERE instance IS NOT NULL").Scan(&held); err != nil || held != 0 {
		t.Errorf("%d node numbers held after a graceful stop, %v", held, err)
	}
}

func occupiedPort(t *testing.T, gw binary) {
	t.Helper()
	addr, db := testenv.Redis(t)
	env := environment(t, testenv.DB(t), addr, db)
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close() // the test is over
	for _, section := range []string{"ADMIN", "CALLBACK", "INBOUND"} {
		code, _, stderr := gw.run(t, append(env, "CMPPGW_"+section+"_LISTEN="+l.Addr().String()), "serve")
		if code != 1 || strings.Count(stderr, "\n") != 1 || !strings.Contains(stderr, strings.ToLower(section)) || !strings.Contains(stderr, "in use") {
			t.Errorf("%s: exit %d, %q; want 1 and one line that names the setting", section, code, stderr)
		}
	}
}

// A killed process leaves its number held; the next one takes another and adopts the first, which is then free.
func killed(t *testing.T, gw binary) {
	t.Helper()
	addr, db := testenv.Redis(t)
	url := testenv.DB(t)
	env := append(environment(t, url, addr, db), "CMPPGW_NODE_LEASE=2s")
	r := start(t, gw, env)
	r.until(t, "ready", ready)
	if err := r.cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	if code := r.exit(t); code != -1 {
		t.Errorf("exit %d of a killed process", code)
	}
	again := start(t, gw, env)
	again.until(t, "ready again", ready)
	conn, err := pgx.Connect(t.Context(), url)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close(context.Background()) // the test is over
	tick := time.NewTicker(100 * time.Millisecond)
	defer tick.Stop()
	over := time.After(limit)
	for {
		var free, held int
		if err := conn.QueryRow(t.Context(), "SELECT count(*) FILTER (WHERE instance IS NULL), count(instance) FROM node_lease").Scan(&free, &held); err != nil {
			t.Fatal(err)
		}
		if free == 1 && held == 1 {
			break
		}
		select {
		case <-tick.C:
		case <-over:
			t.Fatalf("%d numbers free, %d held; the dead one was not adopted\n%s", free, held, again.stderr)
		}
	}
	// A second signal, well after the first, would cut the stop short; one is enough here.
	if err := again.cmd.Process.Signal(os.Interrupt); err != nil {
		t.Fatal(err)
	}
	if code := again.exit(t); code != 0 {
		t.Errorf("exit %d after SIGINT\n%s", code, again.stderr)
	}
}
