package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"time"

	"cmppgateway/gateway/internal/message"
	"cmppgateway/gateway/internal/settings"
	"cmppgateway/gateway/internal/settlement"
	"cmppgateway/gateway/internal/store"
	"cmppgateway/gateway/internal/wake"
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
	From    string  `help:"The supplier's daily statement (CSV: account, msg_id, number, src_id, submit_time, result)." type:"path" placeholder:"FILE"`
	Absent  string  `help:"With --from: what a submit becomes that the statement of its account and day does not list: ${enum}." enum:"keep,not-sent" default:"keep"`
	As      string  `help:"Without --from: what is known of the submits named: sent (accepted and charged) or not-sent (released)." placeholder:"sent|not-sent"`
	DryRun  bool    `help:"Only say what would become of each submit."`
	JSON    bool    `name:"json" help:"Print JSON."`
	Submits []int64 `arg:"" optional:"" name:"submit" help:"Submits to close by a verdict, see --as."`
}

// Run closes unknown submits by evidence or by a verdict. Resends that follow are found by the edges' pull; receipts that wait
// for the submits closed are tried at once.
func (c *unknownResolveCommand) Run(p *program) error {
	if (c.From == "") == (len(c.Submits) == 0) || (c.As == "") == (len(c.Submits) > 0) {
		return fmt.Errorf("%w: want either --from FILE, or submits with --as sent|not-sent", errUsage)
	}
	decide, done, err := c.evidence(p)
	if err != nil {
		return errors.Join(errUsage, err)
	}
	defer done()
	return p.withNode(func(pools *store.Pools, ids *message.IDs) error {
		snap, err := settings.Load(p.ctx, pools.Admin)
		if err != nil {
			return err
		}
		decisions, err := decide(pools, snap)
		if err != nil {
			return err
		}
		if c.DryRun {
			return c.print(p, decisions)
		}
		res, err := settlement.CarryOut(p.ctx, pools.Admin, ids, snap, decisions, nil)
		p.nudge(wake.Parked, wake.Deliveries)
		if err != nil {
			return err
		}
		if c.JSON {
			return json.NewEncoder(p.stdout).Encode(res)
		}
		_, err = fmt.Fprintf(p.stdout, "%d accepted, %d rejected, %d not sent, %d kept\n", res.Accepted, res.Rejected, res.NotSent, res.Kept)
		return err
	})
}

// evidence is what decides, by the flags; its errors are the caller's. done ends it.
func (c *unknownResolveCommand) evidence(p *program) (decide func(*store.Pools, *settings.Snapshot) ([]settlement.Decision, error), done func(), err error) {
	if c.From == "" {
		verdict, err := settlement.ParseVerdict(c.As)
		return func(pools *store.Pools, _ *settings.Snapshot) ([]settlement.Decision, error) {
			return settlement.JudgeUnknown(p.ctx, pools.Admin, c.Submits, verdict)
		}, func() {}, err
	}
	absent, err := settlement.ParseAbsent(c.Absent)
	if err != nil {
		return nil, nil, err
	}
	statement, err := os.Open(c.From)
	if err != nil {
		return nil, nil, err
	}
	return func(pools *store.Pools, snap *settings.Snapshot) ([]settlement.Decision, error) {
		return settlement.DecideUnknown(p.ctx, pools.Admin, snap, statement, absent)
	}, func() { _ = statement.Close() }, nil // only read
}

func (c *unknownResolveCommand) print(p *program, decisions []settlement.Decision) error {
	if c.JSON {
		return json.NewEncoder(p.stdout).Encode(decisions)
	}
	counts := map[string]int{}
	for i := range decisions {
		d := &decisions[i]
		counts[d.Becomes]++
		line := ""
		if d.Line > 0 {
			line = fmt.Sprintf(", line %d", d.Line)
		}
		if _, err := fmt.Fprintf(p.stdout, "submit %d message %d part %d: %s (%s%s), %d frozen\n", d.SubmitID, d.MessageID, d.Part, d.Becomes, d.Why, line, d.Amount); err != nil {
			return err
		}
	}
	_, err := fmt.Fprintf(p.stdout, "dry run: %d accepted, %d rejected, %d not sent, %d kept\n", counts[settlement.BecomesAccepted], counts[settlement.BecomesRejected],
		counts[settlement.BecomesNotSent], counts[settlement.StaysUnknown])
	return err
}

// nudge has the processes that run look at once; without Redis they look at their next poll.
func (p *program) nudge(topics ...string) {
	rdb, err := openRedis(p.config.Redis, slog.New(slog.DiscardHandler))
	if err == nil {
		err = wake.Once(p.ctx, rdb, topics...)
		err = errors.Join(err, rdb.Close())
	}
	if err != nil {
		fmt.Fprintln(p.stderr, "gateway: done; the running gateway was not told and looks within its poll interval:", oneLine(err)) // nowhere else to say it
	}
}

type exceptionsCommand struct {
	Kind  string        `help:"Only this kind." default:""`
	Since time.Duration `help:"How far back." default:"168h"`
	Limit int           `help:"Most rows." default:"1000"`
	JSON  bool          `name:"json" help:"Print a JSON array."`
}

// Run lists what contradicts the books or needs a person, newest first.
func (c *exceptionsCommand) Run(p *program) error {
	return p.withPools(func(pools *store.Pools) error {
		list, err := settlement.ListExceptions(p.ctx, pools.Admin, c.Kind, time.Now().Add(-c.Since), c.Limit)
		if err != nil {
			return err
		}
		if c.JSON {
			return json.NewEncoder(p.stdout).Encode(list)
		}
		for i := range list {
			e := &list[i]
			if _, err := fmt.Fprintf(p.stdout, "%s %s: submit %d, account %d, Msg_Id %d: %s", e.At.UTC().Format(time.RFC3339), e.Kind, e.SubmitID, e.Account, e.SupplierMsgID, e.Detail); err != nil {
				return err
			}
			if len(e.Candidates) > 0 {
				if _, err := fmt.Fprintf(p.stdout, "; could be %v", e.Candidates); err != nil {
					return err
				}
			}
			if _, err := fmt.Fprintln(p.stdout); err != nil {
				return err
			}
		}
		_, err = fmt.Fprintf(p.stdout, "%d exceptions\n", len(list))
		return err
	})
}
