package main

import (
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/redis/go-redis/v9"

	"cmppgateway/gateway/internal/event"
	"cmppgateway/gateway/internal/observe"
	"cmppgateway/gateway/internal/restore"
	"cmppgateway/gateway/internal/review"
	"cmppgateway/gateway/internal/settings"
	"cmppgateway/gateway/internal/store"
	"cmppgateway/gateway/internal/supplier"
	"cmppgateway/gateway/internal/wake"
)

type serveCommand struct {
	Roles []string `help:"Parts to run in this process: ${enum}." enum:"edge,core" default:"edge,core" sep:","`
}

// gateway is one running process.
type gateway struct {
	*program
	roles    []string
	log      *slog.Logger
	registry *prometheus.Registry
	health   *observe.Health
	pools    *store.Pools
	rdb      *redis.Client
	crew     *crew

	// made by start
	node      *store.Node
	settings  *settings.Watcher
	wake      *wake.Bus
	callback  string            // core: its own URL
	events    *event.Queue      // edge
	review    *review.Review    // core
	suppliers *supplier.Manager // edge
}

func (g *gateway) edge() bool { return slices.Contains(g.roles, "edge") }
func (g *gateway) core() bool { return slices.Contains(g.roles, "core") }

// Run serves until the first signal, or until a part fails, and stops in order.
func (c *serveCommand) Run(p *program) (err error) {
	log := observe.Logger(p.stderr, p.config.Log)
	g := &gateway{
		program: p, roles: c.Roles, log: log, registry: observe.Registry(), health: new(observe.Health),
		crew: newCrew(p.config.Shutdown.Drain, log),
	}
	if g.edge() && !g.core() && p.config.Event.URL == "" {
		return fmt.Errorf("%w: event.url is \"\": an edge without the core needs to know where it is", errUsage)
	}
	log.Info("starting", slog.String("version", version), slog.Any("roles", c.Roles), slog.Any("config", p.config.Effective()))
	if g.pools, err = store.Open(p.ctx, p.config.Postgres, p.config.Callback.StatementTimeout); err != nil {
		return err
	}
	defer within(closeTimeout, g.pools.Close) // 8. of stop
	if err := p.schema(g.pools); err != nil {
		return err
	}
	if g.rdb, err = openRedis(p.config.Redis, log); err != nil {
		return err
	}
	defer g.rdb.Close() // nothing waits in it
	g.registry.MustRegister(observe.Pools(g.pools))

	err = g.start()
	if err == nil {
		g.health.Enter(observe.Serving)
		log.Info("ready")
		select {
		case <-p.ctx.Done():
			log.Info("stopping")
		case err = <-g.crew.failed:
			log.Error("stopping", slog.Any("error", err))
			if errors.Is(err, restore.ErrQuarantine) {
				// Any further SUBMIT may be one that was sent before: no drain, no last batch.
				die()
			}
		}
	}
	g.health.Enter(observe.Stopping)
	return errors.Join(err, g.stop())
}

const closeTimeout = 2 * time.Second

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
