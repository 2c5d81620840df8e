package main

import (
	"encoding/json"
	"fmt"
	"time"

	"cmppgateway/gateway/internal/store"
	"cmppgateway/gateway/internal/uplink"
)

type uplinkCommands struct {
	List    uplinkListCommand    `cmd:"" help:"List uplinks that are nobody's, oldest first."`
	Rematch uplinkRematchCommand `cmd:"" help:"Look again whose they are, once access numbers or routes were set right."`
	Discard uplinkDiscardCommand `cmd:"" help:"Take uplinks off the list; they stay stored."`
}

type uplinkListCommand struct {
	After int64 `help:"Only behind the one with this id." placeholder:"ID"`
	Limit int   `help:"At most so many." default:"100"`
	JSON  bool  `name:"json" help:"Print a JSON array."`
}

func (c *uplinkListCommand) Run(p *program) error {
	return p.withPools(func(pools *store.Pools) error {
		list, err := uplink.List(p.ctx, pools.Admin, c.After, c.Limit)
		if err != nil {
			return err
		}
		if c.JSON {
			return json.NewEncoder(p.stdout).Encode(list)
		}
		for i := range list {
			u := &list[i]
			asks := ""
			if u.OptOut {
				asks = ", asks for no more messages"
			}
			if _, err := fmt.Fprintf(p.stdout, "%d %s %s to %s, account %d: %s%s: %q\n", u.EventID, u.At.UTC().Format(time.RFC3339), u.Phone, u.Dest, u.Account, u.Reason, asks, u.Text()); err != nil {
				return err
			}
		}
		_, err = fmt.Fprintf(p.stdout, "%d uplinks\n", len(list))
		return err
	})
}

type uplinkRematchCommand struct {
	IDs []int64 `arg:"" optional:"" name:"id" help:"Ids of uplinks; without any, all on the list."`
}

// Run puts them back into the queue; running gateways look there within uplink.poll.
func (c *uplinkRematchCommand) Run(p *program) error {
	return p.withPools(func(pools *store.Pools) error {
		n, err := uplink.Rematch(p.ctx, pools.Admin, c.IDs)
		if len(c.IDs) == 0 {
			n, err = uplink.RematchAll(p.ctx, pools.Admin)
		}
		if err != nil {
			return err
		}
		_, err = fmt.Fprintf(p.stdout, "%d uplinks are matched again\n", n)
		return err
	})
}

type uplinkDiscardCommand struct {
	IDs []int64 `arg:"" name:"id" help:"Ids of uplinks."`
}

func (c *uplinkDiscardCommand) Run(p *program) error {
	return p.withPools(func(pools *store.Pools) error {
		n, err := uplink.Discard(p.ctx, pools.Admin, c.IDs)
		if err != nil {
			return err
		}
		_, err = fmt.Fprintf(p.stdout, "%d of %d uplinks are off the list\n", n, len(c.IDs))
		return err
	})
}
