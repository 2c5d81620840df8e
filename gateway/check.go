package main

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"time"

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
	asked := time.Now()
	d, err := admin.Postgres(ctx, pools.Inbox)
	if err != nil {
		return err
	}
	clock("postgres", asked, d.Clock, wrong)
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
	asked := time.Now()
	now, err := rdb.Time(ctx).Result()
	if err != nil {
		return err
	}
	clock("redis", asked, now, wrong)
	if policy := s["maxmemory-policy"]; policy != "noeviction" {
		wrong("redis: maxmemory-policy is %s: it would drop events and hints; it must be noeviction", policy)
	}
	return nil
}

// clock compares theirs with ours, halfway between the question and the answer.
func clock(name string, asked, theirs time.Time, wrong wrongFunc) {
	took := time.Since(asked)
	if apart := theirs.Sub(asked.Add(took / 2)).Abs(); apart > clockLimit+took/2 {
		wrong("%s: its clock and ours are %s apart, at most %s allowed", name, apart.Round(time.Millisecond), clockLimit)
	}
}
