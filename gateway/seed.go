package main

import (
	"errors"
	"fmt"

	"cmppgateway/gateway/internal/manage"
	"cmppgateway/gateway/internal/message"
	"cmppgateway/gateway/internal/seed"
	"cmppgateway/gateway/internal/store"
)

type seedCommand struct {
	Path string `arg:"" optional:"" help:"What to write (YAML)." type:"path" placeholder:"FILE"`
	File string `help:"The same." type:"path" placeholder:"FILE"`
}

// Run writes the file through the functions of the admin API. A running gateway has the settings within a second.
func (c *seedCommand) Run(p *program) error {
	path := c.Path
	if path == "" {
		path = c.File
	}
	if path == "" || c.Path != "" && c.File != "" {
		return fmt.Errorf("%w: seed wants one file, as its argument or with --file", errUsage)
	}
	f, err := seed.Load(path)
	if err != nil {
		return errors.Join(errUsage, err)
	}
	err = p.withNode(func(pools *store.Pools, ids *message.IDs) error {
		res, err := seed.Apply(p.ctx, manage.New(pools.Admin, ids, nil), f)
		if err != nil {
			return err
		}
		_, err = fmt.Fprintf(p.stdout, "%d rows changed, %d opening balances booked\n", res.Rows, res.TopUps)
		return err
	})
	if _, ok := errors.AsType[seed.FaultsError](err); ok {
		return errors.Join(errUsage, err)
	}
	if faults := f.Faults(); err != nil && faults != nil { // without a database, what is wrong in any case
		err = errors.Join(errUsage, faults, err)
	}
	return err
}
