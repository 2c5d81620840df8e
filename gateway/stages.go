package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"time"

	"cmppgateway/gateway/internal/admin"
	"cmppgateway/gateway/internal/callback"
	"cmppgateway/gateway/internal/deadletter"
	"cmppgateway/gateway/internal/delivery"
	"cmppgateway/gateway/internal/enquiry"
	"cmppgateway/gateway/internal/event"
	"cmppgateway/gateway/internal/inbound"
	"cmppgateway/gateway/internal/observe"
	"cmppgateway/gateway/internal/outbox"
	"cmppgateway/gateway/internal/reconcile"
	"cmppgateway/gateway/internal/review"
	"cmppgateway/gateway/internal/settings"
	"cmppgateway/gateway/internal/settlement"
	"cmppgateway/gateway/internal/store"
	"cmppgateway/gateway/internal/supplier"
	"cmppgateway/gateway/internal/uplink"
	"cmppgateway/gateway/internal/wake"
	"cmppgateway/gateway/internal/workflow"
)

const (
	settingsPoll   = 250 * time.Millisecond // how soon a change of the settings is noticed
	releaseTimeout = 3 * time.Second
)

// start brings the parts up in the order in which they need each other (data §4).
func (g *gateway) start() (err error) {
	// Health answers from the beginning: a process that hangs in its start can be told from a dead one.
	server, err := observe.New(g.ctx, observe.Options{Config: g.config.Admin, Registry: g.registry, Health: g.health, Log: g.log})
	if err != nil {
		return err
	}
	g.crew.start("admin", server.Run)
	// 0. A database that went back in time has forgotten what was sent: wait for `gateway recover`.
	if err := g.guardTime(); err != nil {
		return err
	}
	// 1. The node number: every id, row and shard below carries it.
	if g.node, err = store.LeaseNode(g.ctx, g.pools.Admin, g.config.Node, g.log); err != nil {
		return err
	}
	g.crew.start("node", g.node.Run)
	// 2. What every part reads.
	g.settings = settings.NewWatcher(g.pools.Admin, settingsPoll, g.log)
	if err := g.settings.Refresh(g.ctx); err != nil {
		return err
	}
	g.wake = wake.New(g.rdb, g.log)
	g.settings.Nudges(g.wake.Subscribe(wake.Settings))
	g.crew.start("settings", g.settings.Run)
	g.crew.start("wake", g.wake.Run)
	g.crew.start("clocks", func(ctx context.Context) error {
		return observe.KeepClocks(ctx, g.registry, postgresClock(g.pools), redisClock(g.rdb))
	})
	if g.core() {
		if err := g.startCore(); err != nil {
			return err
		}
	}
	if g.edge() {
		if err := g.startEdge(); err != nil {
			return err
		}
		if err := g.startCustomers(); err != nil {
			return err
		}
	}
	o := admin.Options{
		Config: g.config, Version: version, Roles: g.roles, Node: g.node, Pools: g.pools, Redis: g.rdb, Settings: g.settings,
		Review: g.review, Wake: g.wake, Log: g.log,
	}
	if g.suppliers != nil {
		o.Channels = func() any { return g.suppliers.Status() }
		server.Control(g.suppliers.Control())
	}
	server.Admin(admin.New(o))
	g.checks()
	return nil
}

// startCore starts what turns rows into rows: receivers before senders.
func (g *gateway) startCore() error {
	if err := store.EnsurePartitions(g.ctx, g.pools.Admin, time.Now(), store.LeafDays); err != nil {
		return err
	}
	g.crew.start("partitions", g.keepPartitions)
	g.crew.start("dead letters", func(ctx context.Context) error { return deadletter.Watch(ctx, g.pools.Admin, g.registry, g.log) })
	g.crew.start("reconciliation", func(ctx context.Context) error { return reconcile.Watch(ctx, g.pools.Admin, g.registry, g.log) })
	hints := outbox.NewHinter(g.rdb, g.wake, g.config.Outbox, g.log, g.registry)
	g.crew.start("workflow", workflow.New(workflow.Options{
		Config: g.config.Workflow, Pool: g.pools.Workflow, IDs: g.node.IDs, Settings: g.settings, Wake: g.wake, Hints: hints,
		Log: g.log, Registry: g.registry,
	}).Run)
	g.review = review.New(review.Options{Pool: g.pools.Settlement, IDs: g.node.IDs, Settings: g.settings, Wake: g.wake, Log: g.log, Registry: g.registry})
	g.crew.start("review", g.review.Run)
	settle := settlement.New(settlement.Options{
		Config: g.config.Settlement, Outbox: g.config.Outbox, Pool: g.pools.Settlement, Node: g.node, Settings: g.settings, Wake: g.wake,
		Hints: hints, Log: g.log, Registry: g.registry,
	})
	g.crew.start("settlement", settle.Run)
	g.crew.start("uplinks", uplink.New(uplink.Options{
		Config: g.config.Uplink, Pool: g.pools.Settlement, IDs: g.node.IDs, Settings: g.settings, Wake: g.wake, Log: g.log, Registry: g.registry,
	}).Run)
	events, err := callback.New(g.ctx, callback.Options{
		Config: g.config.Callback, Pool: g.pools.Callback, Node: g.node, Settings: g.settings, Wake: g.wake, Hints: hints, Log: g.log,
		Registry: g.registry, Parking: settle,
	})
	if err != nil {
		return err
	}
	g.crew.start("callback", events.Run)
	g.callback = "http://" + events.Addr()
	return nil
}

// startEdge starts what talks CMPP to suppliers.
func (g *gateway) startEdge() error {
	// 3. Events of an earlier life come back into memory before a supplier can add to them.
	url := g.config.Event.URL
	if url == "" {
		url = g.callback
	}
	var err error
	g.events, err = event.New(event.Options{
		Config: g.config.Event, Node: g.node.Number, NodeEpoch: g.node.Epoch, IDs: g.node.IDs, Instance: g.instance(), Redis: g.rdb,
		URL: url, Token: g.config.Callback.Token, Mode: func(kind string) settings.CallbackMode { return g.settings.Current().CallbackMode(kind) },
		Log: g.log, Registerer: g.registry,
	})
	if err != nil {
		return err
	}
	if err := g.events.Load(g.ctx); err != nil {
		return err
	}
	g.crew.start("events", g.events.Run)
	// 5. Supplier links; the same part adopts what dead nodes left, their events and their dispatched rows.
	g.suppliers = supplier.New(supplier.Options{
		Config: g.config.Supplier, Outbox: g.config.Outbox, Drain: g.config.Shutdown.Drain, Pool: g.pools.Outbox, Node: g.node,
		Settings: g.settings, Wake: g.wake, Redis: g.rdb, Events: g.events, Log: g.log, Registry: g.registry,
		Nudge: func() { g.wake.Publish(wake.Settings) },
	})
	g.crew.start("suppliers", g.suppliers.Run)
	return nil
}

// startCustomers opens the customers' listener, last of all, and the deliveries to whoever logs in.
func (g *gateway) startCustomers() error {
	customers, err := inbound.New(g.ctx, inbound.Options{
		Config: g.config.Inbound, DeliverWindow: g.config.Delivery.DeliverWindow, Pool: g.pools.Inbox, Node: g.node, Settings: g.settings,
		Wake: g.wake, Log: g.log, Registry: g.registry,
		Enquirer: enquiry.New(enquiry.Options{Pool: g.pools.Admin, IDs: g.node.IDs, Settings: g.settings, Wake: g.wake}), // not the inbox's pool: it may take its time
	})
	if err != nil {
		return err
	}
	g.crew.start("delivery", delivery.New(delivery.Options{
		Config: g.config.Delivery, Pool: g.pools.Delivery, Node: g.node, Wake: g.wake, Sessions: customers.Sessions(), Log: g.log,
		Registry: g.registry,
	}).Run)
	g.crew.start("customers", customers.Run)
	return nil
}

// stop ends the parts in the order in which work flows through them. Each step has Shutdown.Drain, all together
// Shutdown.Total; a second signal ends every wait.
func (g *gateway) stop() error {
	ctx, cancel := context.WithTimeout(g.cut, g.config.Shutdown.Total)
	defer cancel()
	// 1. No new deliveries; those in flight are acknowledged or released while the customers are still connected.
	g.crew.stop(ctx, "delivery")
	// 2. Customers: no new connections and SUBMITs, what was taken is committed and answered, then the sessions end.
	g.crew.stop(ctx, "customers")
	// 3. The workflow finishes the batch in hand; what it leaves waits in the inbox.
	g.crew.stop(ctx, "workflow", "review")
	// 4. Suppliers: no new submits, the windows drain, what was surely not written is pending again.
	g.crew.stop(ctx, "suppliers")
	// 5. Events: the core accepts what the suppliers said; the rest stays in Redis for who adopts this node.
	drained := g.events == nil || g.drainEvents(ctx)
	g.crew.stop(ctx, "events")
	// 6. The core's own work: what it has not settled waits in its tables.
	g.crew.stop(ctx, "callback")
	g.crew.stop(ctx, "settlement", "uplinks")
	// 7. Nothing issues ids any more: the node number is released.
	g.crew.stop(ctx, "settings", "wake", "clocks", "partitions", "dead letters", "reconciliation", "restore guard", "node")
	err := g.releaseNode(drained)
	g.crew.stop(ctx, "admin")
	return errors.Join(err, g.crew.leftover())
}

func (g *gateway) drainEvents(ctx context.Context) bool {
	ctx, cancel := context.WithTimeout(ctx, g.config.Shutdown.Drain)
	defer cancel()
	if err := g.events.Drain(ctx); err != nil {
		g.log.Warn("events left for the next start", slog.Any("error", err))
		return false
	}
	return true
}

func (g *gateway) releaseNode(drained bool) error {
	if g.node == nil {
		return nil
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(g.ctx), releaseTimeout)
	defer cancel()
	return g.node.Release(ctx, drained)
}

// instance names this process to the core.
func (g *gateway) instance() string {
	name := g.config.Node.Name
	if name == "" {
		name, _ = os.Hostname() // for people; '' serves
	}
	return fmt.Sprintf("%s-%d-%d", name, g.node.Number, g.node.Epoch)
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
