package testenv_test

import (
	"context"
	"errors"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/redis/go-redis/v9"

	"cmppgateway/testenv"
	"cmppgateway/testenv/stack"
)

func TestMain(m *testing.M) {
	testenv.Migrated(migrate)
	testenv.Main(m)
}

func migrate(ctx context.Context, url string) error {
	conn, err := pgx.Connect(ctx, url)
	if err != nil {
		return err
	}
	defer func() { _ = conn.Close(ctx) }()
	_, err = conn.Exec(ctx, `CREATE TABLE account (id bigint PRIMARY KEY); INSERT INTO account VALUES (1)`)
	return err
}

func connect(t *testing.T, url string) *pgx.Conn {
	t.Helper()
	conn, err := pgx.Connect(t.Context(), url)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close(context.Background()) })
	return conn
}

func redisClient(t *testing.T, addr string, db int) *redis.Client {
	t.Helper()
	c := redis.NewClient(&redis.Options{Addr: addr, DB: db})
	t.Cleanup(func() { _ = c.Close() })
	return c
}

func count(t *testing.T, conn *pgx.Conn) (n int) {
	t.Helper()
	if err := conn.QueryRow(t.Context(), `SELECT count(*) FROM account`).Scan(&n); err != nil {
		t.Fatal(err)
	}
	return n
}

func TestDBGivesEachTestItsOwnMigratedDatabase(t *testing.T) {
	t.Parallel()
	one, two := connect(t, testenv.DB(t)), connect(t, testenv.DB(t))
	if _, err := one.Exec(t.Context(), `INSERT INTO account VALUES (2)`); err != nil {
		t.Fatal(err)
	}
	if a, b := count(t, one), count(t, two); a != 2 || b != 1 {
		t.Errorf("rows = %d and %d, want 2 in the database written to and 1 in the other", a, b)
	}
}

func TestRedisGivesEachTestItsOwnEmptyDatabase(t *testing.T) {
	t.Parallel()
	addr, db := testenv.Redis(t)
	one := redisClient(t, addr, db)
	addr, db = testenv.Redis(t)
	two := redisClient(t, addr, db)
	if err := one.Set(t.Context(), "key", "value", 0).Err(); err != nil {
		t.Fatal(err)
	}
	if n, err := two.DBSize(t.Context()).Result(); err != nil || n != 0 {
		t.Errorf("second database has %d keys (%v), want none", n, err)
	}
}

func TestDatabasesEndWithTheirTest(t *testing.T) { //nolint:tparallel // the subtest must end before the rest
	t.Parallel()
	var url string
	t.Run("user", func(t *testing.T) {
		url = testenv.DBWith(t, nil)
		connect(t, url) // still open when the database is dropped
	})
	conn, err := pgx.Connect(t.Context(), url)
	if err == nil {
		_ = conn.Close(t.Context())
		t.Error("the database outlived its test")
	}
}

func TestEachMigrationHasItsOwnTemplate(t *testing.T) {
	t.Parallel()
	runs := 0
	migrations := map[string]testenv.Migration{}
	for _, table := range []string{"one", "two"} { // the same code with another value captured
		migrations[table] = func(ctx context.Context, url string) error {
			runs++
			conn, err := pgx.Connect(ctx, url)
			if err != nil {
				return err
			}
			_, err = conn.Exec(ctx, `CREATE TABLE `+table+` ()`)
			return errors.Join(err, conn.Close(ctx))
		}
	}
	for _, table := range []string{"one", "two", "one"} {
		var found bool
		if err := connect(t, testenv.DBWith(t, migrations[table])).QueryRow(t.Context(),
			`SELECT to_regclass($1) IS NOT NULL`, table).Scan(&found); err != nil || !found {
			t.Errorf("table %s is missing (%v)", table, err)
		}
	}
	if runs != 2 {
		t.Errorf("migrations ran %d times, want once each", runs)
	}
}

func TestRedisDatabasesAreReturnedEmpty(t *testing.T) { //nolint:tparallel // the subtest must end before the rest
	t.Parallel()
	var addr string
	var db int
	t.Run("user", func(t *testing.T) {
		addr, db = testenv.Redis(t)
		if db == 0 {
			t.Error("database 0 keeps the leases, it is nobody's")
		}
		if err := redisClient(t, addr, db).Set(t.Context(), "left over", "value", 0).Err(); err != nil {
			t.Error(err)
		}
	})
	// Another test may have leased the database by now, so look for the key.
	if n, err := redisClient(t, addr, db).Exists(t.Context(), "left over").Result(); err != nil || n != 0 {
		t.Errorf("what the test left is still there (%v)", err)
	}
}

func TestServersToBreakAreTheTestsOwn(t *testing.T) {
	t.Parallel()
	shared := testenv.Stack(t)
	for _, p := range []*stack.Process{testenv.PostgresServer(t), testenv.RedisServer(t)} {
		if p.Addr() == shared.RedisAddr() || p.URL() == shared.PostgresURL() {
			t.Fatalf("%s is the shared one", p.Name())
		}
		if err := p.Kill(); err != nil {
			t.Error(err)
		}
	}
	connect(t, shared.PostgresURL())
}
