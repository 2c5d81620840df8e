package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	"cmppgateway/gateway/internal/observe"
	"cmppgateway/gateway/internal/store"
)

// checks says which promises rest on what (architecture §2).
func (g *gateway) checks() {
	g.health.Add(observe.Check{
		Name: "postgres", Promises: []string{"P1", "P2", "P5", "P6", "P7"}, Probe: g.pools.Ping,
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
	// Without Redis nothing stops: the pull replaces hints, and a DELIVER is answered when the core has it.
	g.health.Add(observe.Check{
		Name: "redis", Promises: []string{"P4"}, Degraded: true,
		Probe: func(ctx context.Context) error { return g.rdb.Ping(ctx).Err() },
	})
	// The core may be away, its callback pool busy, or an event refused for now: nothing is lost, and dispatching goes on until
	// the queues are full.
	if g.events != nil {
		g.health.Add(observe.Check{Name: "events", Promises: []string{}, Degraded: true, Probe: g.accepted})
	}
	if g.suppliers != nil {
		g.health.Add(observe.Check{Name: "suppliers", Promises: []string{}, Degraded: true, Probe: g.linked})
	}
}

// eventsLimit is longer than the core takes for a batch on a bad day, and shorter than it has for one.
const eventsLimit = 5 * time.Second

// accepted is the error of events of this process that the core does not take.
func (g *gateway) accepted(context.Context) error {
	if stuck := g.events.Stuck(time.Now().Add(-eventsLimit)); len(stuck) > 0 {
		return fmt.Errorf("%d events are held, and the core has taken none of %v for %s", g.events.Held(), stuck, eventsLimit)
	}
	return nil
}

// linked is the error of channels of this process that no message can leave by.
func (g *gateway) linked(context.Context) error {
	if down := g.suppliers.Down(time.Second); len(down) > 0 {
		return fmt.Errorf("channels without a connection, their messages wait: %v", down)
	}
	return nil
}
