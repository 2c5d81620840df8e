package testenv_test

import (
	"context"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/redis/go-redis/v9"

	"cmppgateway/testenv"
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
	client := func(addr string, db int) *redis.Client {
		c := redis.NewClient(&redis.Options{Addr: addr, DB: db})
		t.Cleanup(func() { _ = c.Close() })
		return c
	}
	one, two := client(testenv.Redis(t)), client(testenv.Redis(t))
	if err := one.Set(t.Context(), "key", "value", 0).Err(); err != nil {
		t.Fatal(err)
	}
	if n, err := two.DBSize(t.Context()).Result(); err != nil || n != 0 {
		t.Errorf("second database has %d keys (%v), want none", n, err)
	}
}
