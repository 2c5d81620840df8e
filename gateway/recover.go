package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/redis/go-redis/v9"

	"cmppgateway/gateway/internal/observe"
	"cmppgateway/gateway/internal/outbox"
	"cmppgateway/gateway/internal/restore"
	"cmppgateway/gateway/internal/settings"
	"cmppgateway/gateway/internal/store"
	"cmppgateway/gateway/internal/wake"
	"cmppgateway/gateway/internal/workflow"
)

// guardTime waits while the installation is in quarantine, and from then on ends the process when it gets there.
func (g *gateway) guardTime() error {
	var reason atomic.Pointer[string]
	none := ""
	reason.Store(&none)
	g.health.Add(observe.Check{
		Name: "quarantine", Promises: []string{"P1", "P2", "P6"},
		Probe: func(context.Context) error {
			if why := *reason.Load(); why != "" {
				return fmt.Errorf("%s: nothing is sent and no customer let in until `gateway recover --confirm`", why)
			}
			return nil
		},
	})
	guard, err := restore.Open(g.ctx, g.pools.Admin, g.rdb, g.log)
	if err != nil {
		return err
	}
	if err := guard.Wait(g.ctx, func(why string) { reason.Store(&why) }); err != nil {
		return err
	}
	g.crew.start("restore guard", guard.Run)
	return nil
}

type recoverCommand struct {
	Confirm bool          `help:"Turn everything that may have been sent since the backup into unknown, and end the quarantine."`
	Limit   time.Duration `help:"Longest time to work the inbox off." default:"10m"`
}

// Run shows what would become unknown, or does it.
func (c *recoverCommand) Run(p *program) error {
	return p.withLease(func(pools *store.Pools, node *store.Node) error {
		rdb, err := openRedis(p.config.Redis, slog.New(slog.DiscardHandler))
		if err != nil {
			return err
		}
		defer rdb.Close() // nothing waits in it
		guard, err := restore.Open(p.ctx, pools.Admin, rdb, slog.New(slog.DiscardHandler))
		if err != nil {
			return err
		}
		since, reason, err := guard.Quarantine(p.ctx)
		if err != nil {
			return err
		}
		if since == nil {
			_, err := fmt.Fprintln(p.stdout, "not in quarantine: nothing to recover")
			return err
		}
		n, err := guard.Count(p.ctx, node.Number)
		if err != nil {
			return err
		}
		if _, err := fmt.Fprintf(p.stdout, "in quarantine since %s: %s\n%d messages in the inbox, %d commands pending and %d dispatched may have been sent since the backup; %d deliveries may have been made\n",
			since.UTC().Format(time.RFC3339), reason, n.Inbox, n.Pending, n.Dispatched, n.Deliveries); err != nil {
			return err
		}
		if !c.Confirm {
			_, err := fmt.Fprintln(p.stdout, "with --confirm all of them become unknown: closed by receipts, by `gateway reconcile run` or by `gateway unknown resolve`")
			return err
		}
		return p.recover(pools, rdb, node, guard, c.Limit)
	})
}

// recover ends the quarantine.
func (p *program) recover(pools *store.Pools, rdb *redis.Client, node *store.Node, guard *restore.Guard, limit time.Duration) error {
	quiet := slog.New(slog.DiscardHandler)
	watch := settings.NewWatcher(pools.Admin, settingsPoll, quiet)
	if err := watch.Refresh(p.ctx); err != nil {
		return err
	}
	unknown, err := guard.Recover(p.ctx, restore.Recovery{
		Node: node, Snapshot: watch.Current(),
		Drain: func(ctx context.Context) error {
			ctx, cancel := context.WithTimeout(ctx, limit)
			defer cancel()
			bus, registry := wake.New(rdb, quiet), prometheus.NewRegistry()
			work, stop := context.WithCancel(ctx)
			done := make(chan error, 1)
			flow := workflow.New(workflow.Options{
				Config: p.config.Workflow, Pool: pools.Workflow, IDs: node.IDs, Settings: watch, Wake: bus, Hints: unhinted{}, Log: observe.Logger(p.stderr, p.config.Log),
				Registry: registry,
			})
			go func() { done <- flow.Run(work) }()
			err := drained(ctx, guard, node.Number)
			stop()
			return errors.Join(err, <-done)
		},
	})
	if err != nil {
		return err
	}
	_, err = fmt.Fprintf(p.stdout, "%d submits are unknown now; the quarantine is over\n", unknown)
	return err
}

// unhinted keeps commands from the edges: they are not to be sent.
type unhinted struct{}

func (unhinted) Hint(context.Context, int32, []outbox.Command) {}

// drained waits until the inbox is empty.
func drained(ctx context.Context, guard *restore.Guard, node int16) error {
	tick := time.NewTicker(100 * time.Millisecond)
	defer tick.Stop()
	for {
		c, err := guard.Count(ctx, node)
		if err != nil {
			return err
		}
		if c.Inbox == 0 {
			return nil
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("%d messages left: %w", c.Inbox, ctx.Err())
		case <-tick.C:
		}
	}
}
