package runner

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/redis/go-redis/v9"

	"cmppgateway/scenarios/internal/spec"
	"cmppgateway/testenv/stack"
)

// store makes the faults of PostgreSQL and Redis. Each is proved by another client than
// the gateway's.
func (r *run) store(x spec.Injection) (injection, error) {
	pg, rdb := r.stack.Postgres(), r.stack.Redis()
	if pg == nil || rdb == nil {
		return nil, fmt.Errorf("%s needs PostgreSQL and Redis as processes: --stack processes", x.Fault)
	}
	a := &act{name: x.Fault, mend: readyLimit}
	switch x.Fault {
	case spec.PostgresCrash:
		postgresStops(a, pg, pg.StopImmediate)
	case spec.PostgresRestart:
		postgresStops(a, pg, pg.Stop)
	case spec.RedisFreeze:
		redisFreezes(a, rdb)
		r.goesOn(a)
	case spec.RedisRestart:
		redisStops(a, rdb, rdb.Stop)
		r.goesOn(a)
	case spec.RedisEmpty:
		redisForgets(a, rdb)
	case spec.RedisStale:
		redisGoesBack(a, rdb, time.Duration(x.Value)*time.Millisecond)
	}
	return a, nil
}

// goesOn has SUBMITs reach the suppliers while the fault holds: what it takes away makes
// the gateway slower at most.
func (r *run) goesOn(a *act) {
	submits := func() int {
		n := 0
		for _, c := range r.suppliers.Counts() {
			n += c.Submits
		}
		return n
	}
	here, revert, before := a.here, a.revert, -1
	a.here = func(ctx context.Context) (string, error) {
		seen, err := here(ctx)
		before = submits()
		return seen, err
	}
	a.revert = func(ctx context.Context) error {
		n := submits() - before
		err := revert(ctx)
		if before < 0 {
			return err // it was never proved
		}
		before = -1
		if n == 0 {
			return errors.Join(err, &lostError{errors.New("no SUBMIT reached a supplier while it held")})
		}
		a.seen = append(a.seen, fmt.Sprintf("%d SUBMITs reached the suppliers meanwhile", n))
		return err
	}
}

// postgresStops stops PostgreSQL, with a checkpoint or without, and starts it again.
func postgresStops(a *act, server *stack.Process, stop func(context.Context) error) {
	var stopped time.Time
	a.inject = func(ctx context.Context) error {
		stopped = time.Now()
		return stop(ctx)
	}
	a.here = func(ctx context.Context) (string, error) {
		conn, err := pgx.Connect(ctx, server.URL())
		switch {
		case err == nil:
			return "", errors.Join(errors.New("it takes connections"), conn.Close(ctx))
		case !errors.Is(err, syscall.ECONNREFUSED):
			return "", err
		}
		return "another client's connection was refused", nil
	}
	a.revert = server.Restart
	a.over = func(ctx context.Context) (string, error) {
		ctx, cancel := context.WithTimeout(ctx, 2*time.Second)
		defer cancel()
		conn, err := pgx.Connect(ctx, server.URL())
		if err != nil {
			return "", err
		}
		var started time.Time
		err = conn.QueryRow(ctx, "SELECT pg_postmaster_start_time() WHERE NOT pg_is_in_recovery()").Scan(&started)
		if err = errors.Join(err, conn.Close(ctx)); err != nil {
			return "", err
		}
		if !started.After(stopped) {
			return "", fmt.Errorf("it runs since %s, before it was stopped", started.UTC().Format(time.RFC3339))
		}
		return fmt.Sprintf("it answered another client %s after the stop", time.Since(stopped).Round(time.Millisecond)), nil
	}
}

// pingLimit is how long another client waits for Redis: a working one on a busy machine
// answers long before.
const pingLimit = time.Second

// asRedisClient runs f on a client of its own, over a connection made for it.
func asRedisClient(ctx context.Context, server *stack.Process, f func(context.Context, *redis.Client) error) error {
	ctx, cancel := context.WithTimeout(ctx, pingLimit)
	defer cancel()
	var dialer net.Dialer
	conn, err := dialer.DialContext(ctx, "tcp", server.Addr())
	if err != nil {
		return err
	}
	c := redis.NewClient(&redis.Options{
		Dialer:   func(context.Context, string, string) (net.Conn, error) { return conn, nil },
		PoolSize: 1, MaxRetries: -1, DisableIdentity: true, ContextTimeoutEnabled: true,
	})
	err = f(ctx, c)
	return errors.Join(err, c.Close(), ignoreClosed(conn.Close()))
}

func ignoreClosed(err error) error {
	if errors.Is(err, net.ErrClosed) {
		return nil
	}
	return err
}

// answers says how Redis answers another client: as which process, since when.
func answers(ctx context.Context, server *stack.Process) (pid int, err error) {
	err = asRedisClient(ctx, server, func(ctx context.Context, c *redis.Client) error {
		text, err := c.Info(ctx, "server").Result()
		if err != nil {
			return err
		}
		_, rest, _ := strings.Cut(text, "process_id:")
		line, _, _ := strings.Cut(rest, "\n")
		pid, err = strconv.Atoi(strings.TrimSpace(line))
		return err
	})
	return pid, err
}

// redisBack proves that Redis answers another client, as another process than before
// unless that is 0.
func redisBack(ctx context.Context, server *stack.Process, before int) (string, error) {
	pid, err := answers(ctx, server)
	if err != nil {
		return "", err
	}
	if pid == before {
		return "", fmt.Errorf("process %d still answers", pid)
	}
	return fmt.Sprintf("process %d answered another client", pid), nil
}

// redisFreezes stops Redis's process: connections stay, and new ones are taken by the
// kernel, but nothing answers.
func redisFreezes(a *act, server *stack.Process) {
	a.inject = func(context.Context) error { return server.Freeze() }
	a.here = func(ctx context.Context) (string, error) {
		err := asRedisClient(ctx, server, func(ctx context.Context, c *redis.Client) error { return c.Ping(ctx).Err() })
		switch {
		case err == nil:
			return "", errors.New("it answers another client's PING")
		case !errors.Is(err, context.DeadlineExceeded) && !errors.Is(err, os.ErrDeadlineExceeded):
			return "", fmt.Errorf("another client's PING: want silence, got: %w", err)
		}
		return fmt.Sprintf("another client connected and got no answer to PING in %s", pingLimit), nil
	}
	a.revert = func(context.Context) error { return server.Thaw() }
	a.over = func(ctx context.Context) (string, error) { return redisBack(ctx, server, 0) }
}

// redisStops ends Redis in the way of stop and starts it with the data it has on disk.
func redisStops(a *act, server *stack.Process, stop func(context.Context) error) {
	before := 0
	a.inject = func(ctx context.Context) (err error) {
		if before, err = answers(ctx, server); err != nil {
			return err
		}
		return stop(ctx)
	}
	a.here = func(ctx context.Context) (string, error) {
		switch pid, err := answers(ctx, server); {
		case err == nil:
			return "", fmt.Errorf("process %d answers", pid)
		case !errors.Is(err, syscall.ECONNREFUSED):
			return "", err
		}
		return "another client's connection was refused", nil
	}
	a.revert = server.Restart
	a.over = func(ctx context.Context) (string, error) { return redisBack(ctx, server, before) }
}

// marker is the harness's own key, by which another client sees what Redis has forgotten.
const marker = "scenario:marker"

// epochs reads what the edges last wrote as their epochs: with another value they have
// written again all that they hold.
func epochs(ctx context.Context, c *redis.Client) (map[string]string, error) {
	names, err := c.Keys(ctx, "{ev:*}:epoch").Result()
	if err != nil {
		return nil, err
	}
	values := map[string]string{}
	for _, name := range names {
		if values[name], err = c.Get(ctx, name).Result(); err != nil && !errors.Is(err, redis.Nil) {
			return nil, err
		}
	}
	return values, nil
}

// redisForgets makes Redis forget everything at once; its connections do not notice.
func redisForgets(a *act, server *stack.Process) {
	var before map[string]string
	a.inject = func(ctx context.Context) error {
		return asRedisClient(ctx, server, func(ctx context.Context, c *redis.Client) (err error) {
			if err = c.Set(ctx, marker, "before", 0).Err(); err != nil {
				return err
			}
			if before, err = epochs(ctx, c); err != nil {
				return err
			}
			if len(before) == 0 {
				return errors.New("no edge has an epoch in Redis")
			}
			return c.FlushAll(ctx).Err()
		})
	}
	a.here = func(ctx context.Context) (string, error) {
		seen := ""
		err := asRedisClient(ctx, server, func(ctx context.Context, c *redis.Client) error {
			switch n, err := c.Exists(ctx, marker).Result(); {
			case err != nil:
				return err
			case n > 0:
				return errors.New("it remembers another client's key")
			}
			seen = "another client's key is forgotten"
			return nil
		})
		return seen, err
	}
	a.over = func(ctx context.Context) (string, error) {
		err := asRedisClient(ctx, server, func(ctx context.Context, c *redis.Client) error {
			now, err := epochs(ctx, c)
			if err != nil {
				return err
			}
			for name, value := range before {
				if now[name] == "" || now[name] == value {
					return fmt.Errorf("%s was not written again", name)
				}
			}
			return nil
		})
		if err != nil {
			return "", err
		}
		return fmt.Sprintf("%d edges have written their epoch again", len(before)), nil
	}
}

// redisGoesBack kills Redis and starts it with an RDB file that is older by age: its
// streams, epochs and hints are those of then. Its append-only file must be off.
func redisGoesBack(a *act, server *stack.Process, age time.Duration) {
	redisStops(a, server, func(ctx context.Context) error {
		err := asRedisClient(ctx, server, func(ctx context.Context, c *redis.Client) error {
			set, err := c.ConfigGet(ctx, "appendonly").Result()
			if err != nil {
				return err
			}
			if set["appendonly"] != "no" {
				return fmt.Errorf("appendonly is %q: it would know everything again", set["appendonly"])
			}
			if err := c.Set(ctx, marker, "old", 0).Err(); err != nil {
				return err
			}
			if err := c.Save(ctx).Err(); err != nil {
				return err
			}
			return c.Set(ctx, marker, "new", 0).Err()
		})
		if err != nil {
			return err
		}
		timer := time.NewTimer(age)
		defer timer.Stop()
		select {
		case <-timer.C:
		case <-ctx.Done():
			return context.Cause(ctx)
		}
		return server.Kill()
	})
	back := a.over
	a.over = func(ctx context.Context) (string, error) {
		answered, err := back(ctx)
		if err != nil {
			return "", err
		}
		err = asRedisClient(ctx, server, func(ctx context.Context, c *redis.Client) error {
			got, err := c.GetDel(ctx, marker).Result()
			if err == nil && got != "old" {
				err = fmt.Errorf("another client's key is %q, as it was when Redis was killed", got)
			}
			return err
		})
		if err != nil {
			return "", err
		}
		return fmt.Sprintf("%s with the data of %s before the kill", answered, age), nil
	}
}
