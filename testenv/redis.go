package testenv

import (
	"context"
	"crypto/rand"
	"errors"
	"strconv"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
)

// leaseLimit frees a logical database whose owner was killed.
const leaseLimit = time.Hour

// Redis returns a Redis and a logical database in it that is empty and the
// test's own until it ends. Channels of PUBLISH know no databases, and
// FLUSHALL spares nobody: such tests take RedisServer. Database 0 keeps the
// leases, since several test binaries may share a server given by URL.
func Redis(tb testing.TB) (addr string, db int) {
	tb.Helper()
	addr = Stack(tb).RedisAddr()
	ctx, cancel := context.WithTimeout(tb.Context(), stepLimit)
	defer cancel()
	owner := rand.Text()
	db, err := lease(ctx, addr, owner)
	if err != nil {
		tb.Fatalf("testenv: lease a Redis database: %v", err)
	}
	tb.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), stepLimit) // tb's is over by now
		defer cancel()
		if err := release(ctx, addr, db); err != nil {
			tb.Errorf("testenv: release a Redis database: %v", err)
		}
	})
	return addr, db
}

func lease(ctx context.Context, addr, owner string) (int, error) {
	count, db := 0, 0
	err := withRedis(addr, 0, func(c *redis.Client) error {
		got, err := c.ConfigGet(ctx, "databases").Result()
		if err != nil {
			return err
		}
		if count, err = strconv.Atoi(got["databases"]); err != nil {
			return err
		}
		for n := 1; n < count; n++ {
			err := c.SetArgs(ctx, leaseKey(n), owner, redis.SetArgs{Mode: "NX", TTL: leaseLimit}).Err()
			if errors.Is(err, redis.Nil) {
				continue
			}
			db = n
			return err
		}
		return errors.New("every database is taken")
	})
	if err != nil {
		return 0, err
	}
	return db, withRedis(addr, db, func(c *redis.Client) error { return c.FlushDB(ctx).Err() })
}

func release(ctx context.Context, addr string, db int) error {
	return errors.Join(
		withRedis(addr, db, func(c *redis.Client) error { return c.FlushDB(ctx).Err() }),
		withRedis(addr, 0, func(c *redis.Client) error { return c.Del(ctx, leaseKey(db)).Err() }),
	)
}

func leaseKey(db int) string { return "testenv:lease:" + strconv.Itoa(db) }

func withRedis(addr string, db int, f func(*redis.Client) error) error {
	c := redis.NewClient(&redis.Options{Addr: addr, DB: db, PoolSize: 1, DisableIdentity: true})
	return errors.Join(f(c), c.Close())
}
