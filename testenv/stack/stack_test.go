package stack_test

import (
	"errors"
	"strconv"
	"strings"
	"testing"

	"cmppgateway/testenv/stack"
)

func itoa(n int) string { return strconv.Itoa(n) }

func TestGivenServersAreUsedAndLeftRunning(t *testing.T) {
	t.Parallel()
	p, r := startPostgres(t), startRedis(t)
	s, err := stack.Start(t.Context(), stack.Options{PostgresURL: p.URL(), RedisAddr: r.Addr()})
	if err != nil {
		t.Fatal(err)
	}
	if s.Provisioner() != stack.ModeURLs || s.PostgresURL() != p.URL() || s.RedisAddr() != r.Addr() || s.Postgres() != nil || s.Redis() != nil {
		t.Errorf("stack from %q is not the given servers alone", s.Provisioner())
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(p.Ready(t.Context()), r.Ready(t.Context())); err != nil {
		t.Errorf("given servers after Close: %v", err)
	}
}

func TestStartRefusesWhatItCannotDo(t *testing.T) {
	t.Parallel()
	for name, o := range map[string]stack.Options{
		"half of the servers":        {Mode: stack.ModeAuto, RedisAddr: "127.0.0.1:1"},
		"urls without any":           {Mode: stack.ModeURLs},
		"unknown mode":               {Mode: "magic"},
		"given servers do not exist": {PostgresURL: "postgres://postgres@127.0.0.1:1/postgres", RedisAddr: "127.0.0.1:1"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s, err := stack.Start(t.Context(), o)
			if err == nil {
				_ = s.Close()
				t.Error("started")
			}
		})
	}
}

func TestNothingAvailableNamesTheFix(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	cmd, first := startChild(t, "nothing", "PATH="+dir, "HOME="+dir, "XDG_RUNTIME_DIR="+dir,
		"DOCKER_HOST=unix://"+dir+"/none.sock", "TESTCONTAINERS_DOCKER_SOCKET_OVERRIDE="+dir+"/none.sock",
		stack.EnvMode+"=", stack.EnvPostgresURL+"=", stack.EnvRedisAddr+"=")
	if first != "unavailable" {
		t.Errorf("child said %q, want ErrUnavailable", first)
	}
	if err := cmd.Wait(); err == nil {
		t.Error("child succeeded")
	}
	if text := stack.ErrUnavailable.Error(); !strings.Contains(text, "make setup") {
		t.Errorf("error %q does not name the command that fixes it", text)
	}
}

func TestDatabasesAreCopiedAndDropped(t *testing.T) {
	t.Parallel()
	p, r := startPostgres(t), startRedis(t)
	checkDatabases(t, stack.Options{PostgresURL: p.URL(), RedisAddr: r.Addr()})
}

// checkDatabases starts a stack, runs the life of a template on it and returns
// after Close.
func checkDatabases(t *testing.T, o stack.Options) {
	t.Helper()
	ctx := t.Context()
	s, err := stack.Start(ctx, o)
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	}()
	url, err := s.CreateDatabase(ctx, `odd "name"`, "")
	if err != nil {
		t.Fatal(err)
	}
	conn := connect(t, url)
	exec1(t, conn, `CREATE TABLE t AS SELECT 7 AS n`)
	if err := conn.Close(ctx); err != nil {
		t.Fatal(err)
	}
	if err := s.SealDatabase(ctx, `odd "name"`); err != nil {
		t.Fatal(err)
	}
	if err := connectOnce(ctx, url); err == nil {
		t.Error("a sealed database takes sessions")
	}
	copied, err := s.CreateDatabase(ctx, "copied", `odd "name"`)
	if err != nil {
		t.Fatal(err)
	}
	inUse := connect(t, copied)
	if n := queryInt(t, inUse, `SELECT n FROM t`); n != 7 {
		t.Errorf("copy has %d, want the template's 7", n)
	}
	for _, name := range []string{"copied", "copied", `odd "name"`} { // twice: a database that does not exist is no error
		if err := s.DropDatabase(ctx, name); err != nil {
			t.Error(err)
		}
	}
	admin := connect(t, s.PostgresURL())
	if n := queryInt(t, admin, `SELECT count(*) FROM pg_database WHERE NOT datistemplate`); n != 1 {
		t.Errorf("%d databases are left, want postgres alone", n)
	}
}
