package stack_test

import (
	"context"
	"errors"
	"net"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/redis/go-redis/v9"

	"cmppgateway/testenv/stack"
)

func TestPostgresKeepsCommittedRowsOverAnImmediateStop(t *testing.T) {
	t.Parallel()
	p := startPostgres(t)
	addr, pid := p.Addr(), p.PID()
	conn := connect(t, p.URL())
	exec1(t, conn, `CREATE TABLE ledger (id int)`)
	exec1(t, conn, `INSERT INTO ledger VALUES (1), (2)`)
	exec1(t, conn, `BEGIN`)
	exec1(t, conn, `INSERT INTO ledger VALUES (3)`)
	if err := p.StopImmediate(t.Context()); err != nil {
		t.Fatal(err)
	}
	if got := p.PID(); got != 0 {
		t.Errorf("PID after the stop = %d, want 0", got)
	}
	if err := p.Restart(t.Context()); err != nil {
		t.Fatal(err)
	}
	if p.Addr() != addr || p.PID() == pid {
		t.Errorf("restarted as %s, process %d; want the address %s again and another process than %d", p.Addr(), p.PID(), addr, pid)
	}
	if n := queryInt(t, connect(t, p.URL()), `SELECT count(*) FROM ledger`); n != 2 {
		t.Errorf("%d rows after recovery, want the 2 committed ones", n)
	}
}

func TestPostgresKillTakesEverySessionAndWorker(t *testing.T) {
	t.Parallel()
	p := startPostgres(t)
	conn := connect(t, p.URL())
	rows, err := conn.Query(t.Context(), `SELECT pid FROM pg_stat_activity`)
	if err != nil {
		t.Fatal(err)
	}
	pids, err := pgx.CollectRows(rows, pgx.RowTo[int])
	if err != nil {
		t.Fatal(err)
	}
	if len(pids) < 3 {
		t.Fatalf("only %d processes known, want the session and several workers", len(pids))
	}
	main := p.PID()
	if err := p.Freeze(); err != nil { // or the workers would end by themselves
		t.Fatal(err)
	}
	if err := p.Kill(); err != nil {
		t.Fatal(err)
	}
	for _, pid := range append(pids, main) {
		if alive(pid) {
			t.Errorf("process %d outlived the kill", pid)
		}
	}
	if err := p.Kill(); !errors.Is(err, stack.ErrNotRunning) {
		t.Errorf("second kill = %v, want ErrNotRunning", err)
	}
	if err := p.Restart(t.Context()); err != nil {
		t.Errorf("restart after the kill: %v", err)
	}
}

func TestRedisKeepsAnsweredWritesOverAKill(t *testing.T) {
	t.Parallel()
	p := startRedis(t)
	c := redisClient(t, p.Addr())
	if err := c.Set(t.Context(), "key", "value", 0).Err(); err != nil {
		t.Fatal(err)
	}
	if p.ExitState() != nil {
		t.Error("a running server has an exit state")
	}
	if err := p.Kill(); err != nil {
		t.Fatal(err)
	}
	<-p.Done()
	if ws, ok := p.ExitState().Sys().(syscall.WaitStatus); !ok || ws.Signal() != syscall.SIGKILL {
		t.Errorf("ended with %v, want signal 9", p.ExitState())
	}
	if err := p.Ready(t.Context()); err == nil {
		t.Error("a killed server is ready")
	}
	if err := p.Restart(t.Context()); err != nil {
		t.Fatal(err)
	}
	// A new client: one with a small pool repeats its last dial error for a second.
	if got, err := redisClient(t, p.Addr()).Get(t.Context(), "key").Result(); err != nil || got != "value" {
		t.Errorf("key after the restart = %q, %v; want the value written before the kill", got, err)
	}
}

func TestRestartStopsARunningServerFirst(t *testing.T) {
	t.Parallel()
	for _, p := range []*stack.Process{startRedis(t), startPostgres(t)} {
		pid := p.PID()
		if err := p.Freeze(); err != nil {
			t.Fatal(err)
		}
		if err := p.Restart(t.Context()); err != nil {
			t.Fatal(err)
		}
		if alive(pid) || p.PID() == 0 || p.PID() == pid {
			t.Errorf("%s: process %d before, %d after the restart; want the old one gone and a new one", p.Name(), pid, p.PID())
		}
	}
}

func TestFreezeHoldsOpenPostgresSessionsUntilThaw(t *testing.T) {
	t.Parallel()
	p := startPostgres(t)
	conn := connect(t, p.URL())
	if err := p.Freeze(); err != nil {
		t.Fatal(err)
	}
	answered := make(chan error, 1)
	go func() {
		_, err := conn.Exec(context.Background(), `SELECT 1`)
		answered <- err
	}()
	select {
	case err := <-answered:
		t.Fatalf("a frozen server answered an open session: %v", err)
	case <-time.After(300 * time.Millisecond):
	}
	if err := p.Thaw(); err != nil {
		t.Fatal(err)
	}
	if err := <-answered; err != nil {
		t.Errorf("after the thaw: %v", err)
	}
}

func TestFrozenRedisCarriesOutWhatTheClientGaveUp(t *testing.T) {
	t.Parallel()
	p := startRedis(t)
	c := redisClient(t, p.Addr())
	if err := c.Ping(t.Context()).Err(); err != nil {
		t.Fatal(err)
	}
	if err := p.Freeze(); err != nil {
		t.Fatal(err)
	}
	if err := c.Incr(t.Context(), "n").Err(); err == nil {
		t.Error("a frozen server answered")
	}
	if err := p.Thaw(); err != nil {
		t.Fatal(err)
	}
	eventually(t, "the abandoned INCR takes effect", func() bool {
		n, err := c.Get(t.Context(), "n").Int()
		return err == nil && n == 1
	})
}

func TestSettingsReachTheServers(t *testing.T) {
	t.Parallel()
	s, err := stack.Start(t.Context(), stack.Options{
		Mode:           stack.ModeProcesses,
		PostgresConfig: map[string]string{"synchronous_commit": "off"},
		RedisConfig:    map[string]string{"appendfsync": "always"},
	})
	if err != nil {
		t.Fatal(err)
	}
	want := map[string]string{
		"fsync": "on", "synchronous_commit": "off", "full_page_writes": "on",
		"appendonly": "yes", "appendfsync": "always", "maxmemory-policy": "noeviction",
	}
	got := s.Durability()
	for name, value := range want {
		if got[name] != value {
			t.Errorf("%s = %q, want %q", name, got[name], value)
		}
	}
	if s.Provisioner() != stack.ModeProcesses || s.Postgres() == nil || s.Redis() == nil {
		t.Errorf("provisioner %q with processes %v, %v", s.Provisioner(), s.Postgres(), s.Redis())
	}
	pids := []int{s.Postgres().PID(), s.Redis().PID()}
	dirs := []string{filepath.Dir(s.Postgres().LogPath()), filepath.Dir(s.Redis().LogPath())}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	for _, pid := range pids {
		if alive(pid) {
			t.Errorf("process %d outlived Close", pid)
		}
	}
	for _, dir := range dirs {
		if _, err := os.Stat(dir); !errors.Is(err, os.ErrNotExist) {
			t.Errorf("%s outlived Close: %v", dir, err)
		}
	}
}

func TestBadSettingsAreReportedWithTheServersWords(t *testing.T) {
	t.Parallel()
	_, err := stack.StartPostgres(t.Context(), stack.Options{PostgresConfig: map[string]string{"fsync": "perhaps"}})
	if err == nil || !strings.Contains(err.Error(), `parameter "fsync"`) {
		t.Errorf("error = %v, want PostgreSQL's own", err)
	}
}

func TestServersDieWithTheProgram(t *testing.T) {
	t.Parallel()
	for _, role := range []string{"processes", "frozen"} {
		t.Run(role, func(t *testing.T) {
			t.Parallel()
			dir := openDir(t)
			cmd, _ := startChild(t, role, "STACK_TEST_DIR="+dir)
			before := serversIn(dir)
			if len(before) < 3 {
				t.Fatalf("%d server processes, want Redis, the postmaster and its workers", len(before))
			}
			kill(t, cmd)
			if role == "frozen" {
				// The stopped workers cannot see the postmaster's end; the next
				// start in the same place must remove them.
				p, err := stack.StartRedis(t.Context(), stack.Options{Dir: dir})
				if err != nil {
					t.Fatal(err)
				}
				if err := p.Close(); err != nil {
					t.Fatal(err)
				}
				left, err := os.ReadDir(dir)
				if err != nil || len(left) != 0 {
					t.Errorf("left behind: %v, %v", left, err)
				}
			}
			for _, pid := range before {
				eventually(t, "servers end with the program", func() bool { return !alive(pid) })
			}
		})
	}
}

func TestPortsLieBelowTheOutgoingRange(t *testing.T) {
	t.Parallel()
	low := stack.EphemeralLow()
	if low <= 15000 {
		t.Skipf("this machine hands out ports from %d on, leaving none below", low)
	}
	for range 20 {
		if port, err := stack.FreePort(t.Context()); err != nil || port >= low {
			t.Errorf("port %d, %v; want one below %d", port, err, low)
		}
	}
}

func TestATakenPortMeansAnother(t *testing.T) {
	t.Parallel()
	for _, p := range []*stack.Process{startRedis(t), startPostgres(t)} {
		if err := p.Stop(t.Context()); err != nil {
			t.Fatal(err)
		}
		taken, err := net.Listen("tcp4", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		picked := 0
		err = p.First(t.Context(), func(ctx context.Context) (int, error) {
			if picked++; picked == 1 {
				return taken.Addr().(*net.TCPAddr).Port, nil
			}
			return stack.FreePort(ctx)
		})
		if err != nil || picked != 2 || p.Addr() == taken.Addr().String() {
			t.Errorf("%s: after %d ports at %s: %v; want the second port", p.Name(), picked, p.Addr(), err)
		}
		if err := taken.Close(); err != nil {
			t.Fatal(err)
		}
	}
}

func TestNewestPostgresComesLast(t *testing.T) {
	t.Parallel()
	for _, pair := range [][2]string{
		{"/usr/lib/postgresql/9/bin/initdb", "/usr/lib/postgresql/15/bin/initdb"},
		{"/usr/lib/postgresql/15/bin/initdb", "/usr/lib/postgresql/17/bin/initdb"},
	} {
		if stack.ByVersion(pair[0], pair[1]) >= 0 || stack.ByVersion(pair[1], pair[0]) <= 0 {
			t.Errorf("%s does not come before %s", pair[0], pair[1])
		}
	}
}

// serversIn lists the processes at work in the data directories below dir.
func serversIn(dir string) []int {
	dirs, _ := filepath.Glob(filepath.Join(dir, "*"))
	var pids []int
	for _, d := range dirs {
		pids = append(pids, stack.ProcessesIn(d)...)
	}
	return pids
}

// alive tells whether a process runs; one that only waits to be reaped by a
// parent of its own does not.
func alive(pid int) bool {
	data, err := os.ReadFile(filepath.Join("/proc", itoa(pid), "stat"))
	if err != nil {
		return false
	}
	_, state, _ := strings.Cut(string(data), ") ")
	return !strings.HasPrefix(state, "Z")
}

func redisClient(t *testing.T, addr string) *redis.Client {
	t.Helper()
	c := redis.NewClient(&redis.Options{
		Addr: addr, MaxRetries: -1, DisableIdentity: true, PoolSize: 1,
		DialTimeout: 2 * time.Second, ReadTimeout: 300 * time.Millisecond,
	})
	t.Cleanup(func() { _ = c.Close() })
	return c
}
