package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/redis/go-redis/v9"

	"cmppgateway/gateway/internal/admin"
	"cmppgateway/gateway/internal/observe"
	"cmppgateway/gateway/internal/settings"
	"cmppgateway/gateway/internal/store"
	"cmppgateway/gateway/internal/wake"
)

type serveCommand struct {
	Roles []string `help:"Parts to run in this process: ${enum}." enum:"edge,core" default:"edge,core" sep:","`
}

// settingsPoll is how soon a change of the settings is noticed.
const settingsPoll = 250 * time.Millisecond

// gateway is one running process.
type gateway struct {
	*program
	edge, core bool
	log        *slog.Logger
	registry   *prometheus.Registry
	health     *observe.Health
	pools      *store.Pools
	rdb        *redis.Client
	node       *store.Node
	settings   *settings.Watcher
	wake       *wake.Bus
	crew       *crew
}

func (c *serveCommand) Run(p *program) (err error) {
	g := &gateway{
		program: p, edge: slices.Contains(c.Roles, "edge"), core: slices.Contains(c.Roles, "core"),
		log: observe.Logger(p.stderr, p.config.Log), registry: observe.Registry(), health: new(observe.Health),
	}
	g.log.Info("starting", slog.String("version", version), slog.Any("roles", c.Roles), slog.Any("config", p.config.Effective()))
	if g.pools, err = store.Open(p.ctx, p.config.Postgres, p.config.Callback.StatementTimeout); err != nil {
		return err
	}
	defer within(closeTimeout, g.pools.Close)
	if err := p.schema(g.pools); err != nil {
		return err
	}
	if g.rdb, err = openRedis(p.config.Redis, g.log); err != nil {
		return err
	}
	defer g.rdb.Close() //nolint:errcheck // nothing waits in it
	g.registry.MustRegister(observe.Pools(g.pools))
	g.settings = settings.NewWatcher(g.pools.Admin, settingsPoll, g.log)
	g.wake = wake.New(g.rdb, g.log)
	g.crew = newCrew(p.cut.Done(), g.log)

	err = g.start(c.Roles)
	if err == nil {
		g.health.Enter(observe.Serving)
		g.log.Info("ready")
		select {
		case <-p.ctx.Done():
			g.log.Info("stopping")
		case err = <-g.crew.failed:
		}
	}
	g.health.Enter(observe.Stopping)
	return errors.Join(err, g.stop())
}

// start brings the parts up in the order in which they need each other (data §4).
func (g *gateway) start(roles []string) (err error) {
	// Health answers from the beginning: a process that hangs in its start can be told from a dead one.
	server, err := observe.New(g.ctx, observe.Options{
		Config: g.config.Admin, Registry: g.registry, Health: g.health, Log: g.log,
		Admin: admin.New(admin.Options{
			Config: g.config, Version: version, Roles: roles, Node: g.nodeNumber, Pools: g.pools, Redis: g.rdb, Settings: g.settings,
		}),
	})
	if err != nil {
		return err
	}
	g.crew.start("admin", server.Run)

	// 1. The node number: every id, row and shard below carries it.
	if g.node, err = store.LeaseNode(g.ctx, g.pools.Admin, g.config.Node, g.log); err != nil {
		return err
	}
	g.crew.start("node", g.node.Run)
	if err := g.settings.Refresh(g.ctx); err != nil {
		return err
	}
	g.crew.start("settings", g.settings.Run)
	g.crew.start("wake", g.wake.Run)
	if g.core {
		if err := store.EnsurePartitions(g.ctx, g.pools.Admin, time.Now(), store.LeafDays); err != nil {
			return err
		}
		g.crew.start("partitions", g.keepPartitions)
	}
	g.checks()
	return nil
}

// stop ends the parts in the order in which work flows through them. Each step has Shutdown.Drain, all together
// Shutdown.Total; a second signal cuts every wait short.
func (g *gateway) stop() error {
	g.crew.limit(g.config.Shutdown.Drain, g.config.Shutdown.Total)
	// 7. The node number is released when nothing issues ids any more.
	g.crew.stop("settings", "wake", "partitions", "node")
	err := g.releaseNode(true)
	// 8. The admin server goes last; the pools are closed by who opened them.
	g.crew.stop("admin")
	return errors.Join(err, g.crew.leftover())
}

const (
	releaseTimeout = 3 * time.Second
	closeTimeout   = 2 * time.Second
)

// within does not wait longer than d for f: a part that did not stop in time may keep a connection in use for ever, and
// the process ends anyway.
func within(d time.Duration, f func()) {
	done := make(chan struct{})
	go func() {
		f()
		close(done)
	}()
	select {
	case <-done:
	case <-time.After(d):
	}
}

func (g *gateway) releaseNode(drained bool) error {
	if g.node == nil {
		return nil
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(g.ctx), releaseTimeout)
	defer cancel()
	return g.node.Release(ctx, drained)
}

func (g *gateway) nodeNumber() (int16, int64) {
	if g.node == nil {
		return 0, 0
	}
	return g.node.Number, g.node.Epoch
}

// keepPartitions makes the leaves of the coming days.
func (g *gateway) keepPartitions(ctx context.Context) error {
	tick := time.NewTicker(time.Hour)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-tick.C:
		}
		if err := store.EnsurePartitions(ctx, g.pools.Admin, time.Now(), store.LeafDays); err != nil && ctx.Err() == nil {
			g.log.Error("partitions not made, readiness ends when they are missing", slog.Any("error", err))
		}
	}
}

// checks says which promises rest on what (architecture §2).
func (g *gateway) checks() {
	g.health.Add(observe.Check{
		Name: "postgres", Promises: []string{"P1", "P2", "P5", "P6", "P7"},
		Probe: g.pools.Ping,
	})
	g.health.Add(observe.Check{
		Name: "partitions", Promises: []string{"P1", "P5", "P6"},
		Probe: func(ctx context.Context) error {
			missing, err := store.MissingPartitions(ctx, g.pools.Admin, time.Now(), store.LeafDays)
			if err == nil && len(missing) > 0 {
				err = fmt.Errorf("missing: %v", missing)
			}
			return err
		},
	})
	g.health.Add(observe.Check{
		Name: "node_lease", Promises: []string{"P1", "P2"},
		Probe: func(context.Context) error {
			if !g.node.Healthy() {
				return errors.New("not renewed in time: no ids are issued")
			}
			return nil
		},
	})
	g.health.Add(observe.Check{
		Name: "redis", Promises: []string{"P4"}, Degraded: true, // receipts are answered when the core has them; the pull replaces hints
		Probe: func(ctx context.Context) error { return g.rdb.Ping(ctx).Err() },
	})
}
