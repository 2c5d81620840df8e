package testenv

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"cmppgateway/testenv/stack"
)

// The environment of a process that InZones starts.
const (
	envLocal    = "TESTENV_LOCAL_ZONE"    // of the process: UTC or Asia/Shanghai
	envDatabase = "TESTENV_DATABASE_ZONE" // of the databases DB and DBWith make
	envTemplate = "TESTENV_TEMPLATE"      // the database that DB copies: its owner has migrated it, and drops it
)

// zonesLimit is the time for one of InZones' processes.
const zonesLimit = 5 * time.Minute

// shanghai needs no zone database: a machine without one would test UTC twice.
var shanghai = time.FixedZone("Asia/Shanghai", 8*60*60)

// localZone makes this process what InZones asked for, before any test runs.
func localZone() {
	switch os.Getenv(envLocal) {
	case "UTC":
		time.Local = time.UTC
	case "Asia/Shanghai":
		time.Local = shanghai
	}
}

// InZones runs tests of this binary in two more processes, on the servers of
// this one: the process in Asia/Shanghai with databases in UTC, and reversed.
// Whatever a test of promise P12 expects, it expects there too. In those
// processes InZones itself does nothing.
func InZones(t *testing.T, tests ...string) {
	t.Helper()
	t.Parallel()
	if os.Getenv(envLocal) != "" {
		return
	}
	s, template := registered(t)
	for _, z := range []struct{ local, database string }{{"Asia/Shanghai", "UTC"}, {"UTC", "Asia/Shanghai"}} {
		t.Run("process "+strings.ReplaceAll(z.local, "/", " ")+", database "+strings.ReplaceAll(z.database, "/", " "), func(t *testing.T) {
			t.Parallel()
			ctx, cancel := context.WithTimeout(t.Context(), zonesLimit)
			defer cancel()
			self, err := os.Executable()
			if err != nil {
				t.Fatal(err)
			}
			cmd := exec.CommandContext(ctx, self, "-test.v", "-test.count=1", "-test.timeout="+zonesLimit.String(), "-test.run=^("+strings.Join(tests, "|")+")$")
			cmd.Env = append(os.Environ(), envLocal+"="+z.local, envDatabase+"="+z.database, envTemplate+"="+template,
				stack.EnvMode+"="+stack.ModeURLs, stack.EnvPostgresURL+"="+s.PostgresURL(), stack.EnvRedisAddr+"="+s.RedisAddr())
			out, err := cmd.CombinedOutput()
			if err != nil {
				t.Fatalf("%v\n%s", err, out)
			}
			for _, name := range tests {
				if !bytes.Contains(out, []byte("--- PASS: "+name+" (")) {
					t.Errorf("%s did not run:\n%s", name, out)
				}
			}
		})
	}
}

// registered is the stack and the name of the template of the registered
// migration; "" without one.
func registered(t *testing.T) (s *stack.Stack, name string) {
	t.Helper()
	shared.mu.Lock()
	defer shared.mu.Unlock()
	s = shared.start(t)
	if shared.migrate == nil {
		return s, ""
	}
	ctx, cancel := context.WithTimeout(t.Context(), stepLimit)
	defer cancel()
	tpl, err := shared.template(ctx, shared.migrate)
	if err != nil {
		t.Fatalf("testenv: %v", err)
	}
	return s, tpl.name
}

// setZone gives the database at url the zone InZones asked for.
func setZone(ctx context.Context, url string) error {
	zone := os.Getenv(envDatabase)
	if zone == "" {
		return nil
	}
	return onDatabase(ctx, url, func(conn *pgx.Conn, name string) error {
		_, err := conn.Exec(ctx, "ALTER DATABASE "+name+" SET timezone = "+pgQuote(zone))
		return err
	})
}

// Clock is PostgreSQL's clock in one database, standing still where it was
// set: what statements call now(), clock_timestamp() and their like. Column
// defaults keep the real time.
type Clock struct {
	tb   testing.TB
	conn *pgx.Conn
}

const clockSQL = `
CREATE SCHEMA testclock;
CREATE TABLE testclock.reading (at timestamptz NOT NULL);
INSERT INTO testclock.reading VALUES (pg_catalog.now());
CREATE FUNCTION testclock.now() RETURNS timestamptz LANGUAGE sql STABLE AS 'SELECT at FROM testclock.reading';
CREATE FUNCTION testclock.statement_timestamp() RETURNS timestamptz LANGUAGE sql STABLE AS 'SELECT at FROM testclock.reading';
CREATE FUNCTION testclock.transaction_timestamp() RETURNS timestamptz LANGUAGE sql STABLE AS 'SELECT at FROM testclock.reading';
CREATE FUNCTION testclock.clock_timestamp() RETURNS timestamptz LANGUAGE sql VOLATILE AS 'SELECT at FROM testclock.reading';`

// StopClock replaces the clock of the database at url, for connections made
// from now on: a database looks for functions in its search path.
func StopClock(tb testing.TB, url string) *Clock {
	tb.Helper()
	ctx, cancel := context.WithTimeout(tb.Context(), stepLimit)
	defer cancel()
	err := onDatabase(ctx, url, func(conn *pgx.Conn, name string) error {
		if _, err := conn.Exec(ctx, clockSQL); err != nil {
			return err
		}
		_, err := conn.Exec(ctx, "ALTER DATABASE "+name+" SET search_path = testclock, pg_catalog, public")
		return err
	})
	if err != nil {
		tb.Fatalf("testenv: clock: %v", err)
	}
	conn, err := pgx.Connect(ctx, url)
	if err != nil {
		tb.Fatalf("testenv: clock: %v", err)
	}
	tb.Cleanup(func() { _ = conn.Close(context.Background()) }) // the database goes next
	return &Clock{tb, conn}
}

// Set moves the clock; what is under way keeps the reading of its snapshot.
func (c *Clock) Set(at time.Time) {
	c.tb.Helper()
	if _, err := c.conn.Exec(c.tb.Context(), `UPDATE testclock.reading SET at = $1`, at); err != nil {
		c.tb.Fatalf("testenv: clock: %v", err)
	}
}

func onDatabase(ctx context.Context, url string, do func(conn *pgx.Conn, name string) error) error {
	conn, err := pgx.Connect(ctx, url)
	if err != nil {
		return fmt.Errorf("connect: %w", err)
	}
	defer func() { _ = conn.Close(context.WithoutCancel(ctx)) }()
	return do(conn, pgx.Identifier{conn.Config().Database}.Sanitize())
}

func pgQuote(s string) string { return "'" + strings.ReplaceAll(s, "'", "''") + "'" }

// ZonePool is pool, or in InZones' processes one like it whose sessions are in
// the database's zone: statements must not rely on what a pool sets.
func ZonePool(tb testing.TB, pool *pgxpool.Pool) *pgxpool.Pool {
	tb.Helper()
	if os.Getenv(envDatabase) == "" {
		return pool
	}
	config := pool.Config()
	delete(config.ConnConfig.RuntimeParams, "timezone")
	other, err := pgxpool.NewWithConfig(tb.Context(), config)
	if err != nil {
		tb.Fatalf("testenv: %v", err)
	}
	tb.Cleanup(other.Close)
	return other
}
