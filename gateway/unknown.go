package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"time"

	"cmppgateway/gateway/internal/message"
	"cmppgateway/gateway/internal/settings"
	"cmppgateway/gateway/internal/settlement"
	"cmppgateway/gateway/internal/store"
)

type unknownListCommand struct {
	JSON bool `name:"json" help:"Print a JSON array."`
}

// Run lists what nobody has closed yet, oldest first.
func (c *unknownListCommand) Run(p *program) error {
	return p.withPools(func(pools *store.Pools) error {
		list, err := settlement.ListUnknown(p.ctx, pools.Admin)
		if err != nil {
			return err
		}
		if c.JSON {
			return json.NewEncoder(p.stdout).Encode(list)
		}
		for _, u := range list {
			if _, err := fmt.Fprintf(p.stdout, "submit %d message %d to %d part %d: account %d channel %d, dispatched %s, enterprise %d, %d frozen\n", u.SubmitID, u.MessageID,
				u.Phone, u.Part, u.Account, u.Channel, u.DispatchedAt.UTC().Format(time.RFC3339), u.Enterprise, u.Amount); err != nil {
				return err
			}
		}
		_, err = fmt.Fprintf(p.stdout, "%d unknown\n", len(list))
		return err
	})
}

type unknownResolveCommand struct {
	From   string `help:"The supplier's daily statement (CSV: account, msg_id, number, src_id, submit_time, result)." required:"" type:"path" placeholder:"FILE"`
	Absent string `help:"What a submit becomes that the statement of its account and day does not list: ${enum}." enum:"keep,not-sent" default:"keep"`
}

// Run closes unknown submits by evidence. Resends that follow are found by the edges' pull.
func (c *unknownResolveCommand) Run(p *program) error {
	absent, err := settlement.ParseAbsent(c.Absent)
	if err != nil {
		return errors.Join(errUsage, err)
	}
	statement, err := os.Open(c.From)
	if err != nil {
		return errors.Join(errUsage, err)
	}
	defer statement.Close() // only read
	return p.withNode(func(pools *store.Pools, ids *message.IDs) error {
		snap, err := settings.Load(p.ctx, pools.Admin)
		if err != nil {
			return err
		}
		res, err := settlement.ResolveUnknown(p.ctx, pools.Admin, ids, snap, statement, absent, func(*settlement.Outcome) {})
		if err != nil {
			return err
		}
		_, err = fmt.Fprintf(p.stdout, "%d accepted, %d rejected, %d not sent, %d kept\n", res.Accepted, res.Rejected, res.NotSent, res.Kept)
		return err
	})
}
