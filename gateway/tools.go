package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"

	"cmppgateway/gateway/internal/ledger"
	"cmppgateway/gateway/internal/message"
	"cmppgateway/gateway/internal/store"
)

type versionCommand struct{}

func (versionCommand) Run(p *program) error {
	_, err := fmt.Fprintln(p.stdout, "gateway", version)
	return err
}

type migrateCommand struct{}

func (migrateCommand) Run(p *program) error {
	if err := store.Migrate(p.ctx, p.config.Postgres.URL); err != nil {
		return err
	}
	have, _, err := store.Version(p.ctx, p.config.Postgres.URL)
	if err != nil {
		return err
	}
	_, err = fmt.Fprintln(p.stdout, "schema version", have)
	return err
}

type verifyCommand struct {
	JSON bool `name:"json" help:"Print the report as JSON."`
}

func (c *verifyCommand) Run(p *program) error {
	return p.withPools(func(pools *store.Pools) error {
		r, err := ledger.Verify(p.ctx, pools.Admin)
		if err != nil {
			return err
		}
		if c.JSON {
			err = json.NewEncoder(p.stdout).Encode(r)
		} else {
			err = r.Write(p.stdout)
		}
		if err == nil && len(r.Faults) > 0 {
			err = fmt.Errorf("ledger: %d faults", len(r.Faults))
		}
		return err
	})
}

// withPools opens the pools for a command of people, having seen that the database answers and has the right schema.
func (p *program) withPools(f func(*store.Pools) error) error {
	pools, err := store.Open(p.ctx, p.config.Postgres, p.config.Callback.StatementTimeout)
	if err != nil {
		return err
	}
	defer pools.Close()
	if err := p.schema(pools); err != nil {
		return err
	}
	return f(pools)
}

// schema is the error of a database that does not answer or has another schema than this program's.
func (p *program) schema(pools *store.Pools) error {
	if err := pools.Ping(p.ctx); err != nil {
		return fmt.Errorf("postgres: %w", err)
	}
	have, want, err := store.Version(p.ctx, p.config.Postgres.URL)
	if err != nil {
		return err
	}
	if have != want {
		return fmt.Errorf("the database has schema version %d, this program wants %d: run `gateway migrate`", have, want)
	}
	return nil
}

// withNode is withPools with a node number, for commands that write rows with ids of their own.
func (p *program) withNode(f func(*store.Pools, *message.IDs) error) error {
	return p.withLease(func(pools *store.Pools, node *store.Node) error { return f(pools, node.IDs) })
}

// withLease is withNode for those who need the node itself.
func (p *program) withLease(f func(*store.Pools, *store.Node) error) error {
	return p.withPools(func(pools *store.Pools) error {
		node, err := store.LeaseNode(p.ctx, pools.Admin, p.config.Node, slog.New(slog.DiscardHandler))
		if err != nil {
			return err
		}
		ctx, stop := context.WithCancel(p.ctx)
		renewed := make(chan error, 1)
		go func() { renewed <- node.Run(ctx) }()
		err = f(pools, node)
		stop()
		return errors.Join(err, <-renewed, node.Release(context.WithoutCancel(p.ctx), true))
	})
}
