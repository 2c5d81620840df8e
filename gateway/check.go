package main

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/redis/go-redis/v9"

	"cmppgateway/gateway/internal/admin"
	"cmppgateway/gateway/internal/observe"
	"cmppgateway/gateway/internal/settings"
	"cmppgateway/gateway/internal/store"
)

type checkCommand struct{}

const (
	// clockLimit is how far PostgreSQL's, Redis's and our own clock may be apart: leases are shorter than a minute, and
	// the shortest is seconds (P12).
	clockLimit = 500 * time.Millisecond
	checkLimit = 15 * time.Second
)

// Run prints one line for each problem; the configuration itself was checked when it was loaded.
func (checkCommand) Run(p *program) error {
	ctx, cancel := context.WithTimeout(p.ctx, checkLimit)
	defer cancel()
	var problems []string
	wrong := func(format string, args ...any) { problems = append(problems, fmt.Sprintf(format, args...)) }
	if err := p.checkPostgres(ctx, wrong); err != nil {
		wrong("postgres: %s", oneLine(err))
	}
	if err := p.checkRedis(ctx, wrong); err != nil {
		wrong("redis: %s", oneLine(err))
	}
	for _, s := range problems {
		if _, err := fmt.Fprintln(p.stdout, s); err != nil {
			return err
		}
	}
	if len(problems) > 0 {
		return fmt.Errorf("check: %d problems", len(problems))
	}
	_, err := fmt.Fprintln(p.stdout, "ok")
	return err
}

type wrongFunc func(format string, args ...any)

func (p *program) checkPostgres(ctx context.Context, wrong wrongFunc) error {
	pools, err := store.Open(ctx, p.config.Postgres, p.config.Callback.StatementTimeout)
	if err != nil {
		return err
	}
	defer pools.Close()
	d, err := admin.Postgres(ctx, pools.Inbox)
	if err != nil {
		return err
	}
	if err := checkClock(ctx, postgresClock(pools), wrong); err != nil {
		return err
	}
	for _, s := range []struct{ name, value string }{
		{"fsync", d.Fsync}, {"synchronous_commit", d.SynchronousCommit}, {"full_page_writes", d.FullPageWrites},
	} {
		if s.value != "on" {
			wrong("postgres: %s is %s: a crash loses accepted messages and repeats dispatched ones; it must be on", s.name, s.value)
		}
	}
	have, want, err := store.Version(ctx, p.config.Postgres.URL)
	if err != nil {
		return err
	}
	if have != want {
		wrong("postgres: schema version is %d, this program wants %d: run `gateway migrate`", have, want)
		return nil
	}
	missing, err := store.MissingPartitions(ctx, pools.Admin, time.Now(), store.LeafDays)
	if err != nil {
		return err
	}
	if len(missing) > 0 {
		wrong("postgres: partitions %v are missing: run `gateway migrate`", missing)
	}
	s, err := settings.Load(ctx, pools.Admin)
	if err != nil {
		return err
	}
	for _, id := range slices.Sorted(maps.Keys(s.Applications)) {
		if a := s.Applications[id]; a.Status == settings.Active && a.Price == 0 {
			wrong("application %d (%s): price is 0: its messages would be sent for nothing", a.ID, a.Name)
		}
	}
	return nil
}

func (p *program) checkRedis(ctx context.Context, wrong wrongFunc) error {
	rdb, err := openRedis(p.config.Redis, observe.Logger(p.stderr, p.config.Log))
	if err != nil {
		return err
	}
	defer rdb.Close() // nothing was written
	s, err := admin.Redis(ctx, rdb)
	if err != nil {
		return err
	}
	if err := checkClock(ctx, redisClock(rdb), wrong); err != nil {
		return err
	}
	if policy := s["maxmemory-policy"]; policy != "noeviction" {
		wrong("redis: maxmemory-policy is %s: it would drop events and hints; it must be noeviction", policy)
	}
	return nil
}

func checkClock(ctx context.Context, c observe.Clock, wrong wrongFunc) error {
	ahead, margin, err := c.Apart(ctx)
	if err == nil && ahead.Abs() > clockLimit+margin {
		wrong("%s: its clock and ours are %s apart, at most %s allowed", c.Name, ahead.Abs().Round(time.Millisecond), clockLimit)
	}
	return err
}

func postgresClock(pools *store.Pools) observe.Clock {
	return observe.Clock{Name: "postgres", Now: func(ctx context.Context) (time.Time, error) {
		d, err := admin.Postgres(ctx, pools.Admin)
		return d.Clock, err
	}}
}

func redisClock(rdb *redis.Client) observe.Clock {
	return observe.Clock{Name: "redis", Now: func(ctx context.Context) (time.Time, error) { return rdb.Time(ctx).Result() }}
}
