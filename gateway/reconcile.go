package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"strconv"
	"time"

	"cmppgateway/gateway/cmpp"
	"cmppgateway/gateway/internal/message"
	"cmppgateway/gateway/internal/reconcile"
	"cmppgateway/gateway/internal/settings"
	"cmppgateway/gateway/internal/settlement"
	"cmppgateway/gateway/internal/store"
)

// reconcileCommands compare ours with theirs.
type reconcileCommands struct {
	Run    reconcileRunCommand    `cmd:"" help:"Compare a supplier's daily statement with our submits; fails when more than 0.1 % differ."`
	List   reconcileListCommand   `cmd:"" help:"The newest comparisons, a line each."`
	Show   reconcileShowCommand   `cmd:"" help:"One comparison with its differences."`
	Format reconcileFormatCommand `cmd:"" help:"How a supplier account writes its statements: show it, or set it from a file."`
}

// supplierFlag names a supplier account by id or name.
type supplierFlag struct {
	Account string `help:"Supplier account: id or name." required:"" placeholder:"ACCOUNT"`
}

func (f supplierFlag) find(snap *settings.Snapshot) (int32, error) {
	id, err := strconv.ParseInt(f.Account, 10, 32)
	for _, a := range snap.Accounts {
		if a.Name == f.Account || err == nil && a.ID == int32(id) {
			return a.ID, nil
		}
	}
	return 0, errors.Join(errUsage, fmt.Errorf("account %q: no supplier account has this id or name", f.Account))
}

type dayFlag struct {
	Day string `help:"The supplier's business day, as 2006-01-02." required:"" placeholder:"DAY"`
}

func (f dayFlag) parse() (time.Time, error) {
	day, err := time.ParseInLocation(time.DateOnly, f.Day, cmpp.Shanghai)
	if err != nil {
		return day, errors.Join(errUsage, fmt.Errorf("day %q: want a day as 2006-01-02", f.Day))
	}
	return day, nil
}

type reconcileRunCommand struct {
	supplierFlag
	dayFlag

	From   string `help:"The statement (CSV as the account's format says)." required:"" type:"path" placeholder:"FILE"`
	Absent string `help:"What an unknown submit becomes that the statement does not list: ${enum}." enum:"keep,not-sent" default:"keep"`
	Dry    bool   `help:"Compare only: close nothing, store nothing."`
	JSON   bool   `name:"json" help:"Print the report as JSON."`
}

func (c *reconcileRunCommand) Run(p *program) error {
	day, err := c.parse()
	if err != nil {
		return err
	}
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
		account, err := c.find(snap)
		if err != nil {
			return err
		}
		r, err := reconcile.Run(p.ctx, reconcile.Options{
			Pool: pools.Admin, IDs: ids, Snapshot: snap, Account: account, Day: day, From: statement, File: c.From, Absent: absent, Dry: c.Dry,
		})
		if err != nil {
			return err
		}
		if err := p.print(r, c.JSON); err != nil {
			return err
		}
		if r.Alert() {
			return fmt.Errorf("account %d, day %s: %d submits differ, %.3f %%, more than %.1f %%", r.Account, r.Day, r.Differing, 100*r.Ratio, 100*reconcile.AlertRatio)
		}
		return nil
	})
}

// print writes a comparison for people or programs.
func (p *program) print(r *reconcile.Report, asJSON bool) error {
	if asJSON {
		return json.NewEncoder(p.stdout).Encode(r)
	}
	return r.Write(p.stdout)
}

type reconcileListCommand struct {
	Limit int `help:"At most so many." default:"50"`
}

func (c *reconcileListCommand) Run(p *program) error {
	return p.withPools(func(pools *store.Pools) error {
		list, err := reconcile.List(p.ctx, pools.Admin, c.Limit)
		if err != nil {
			return err
		}
		for _, r := range list {
			if _, err := fmt.Fprintf(p.stdout, "%s account %d: %d lines, %d differ (%.3f %%), %d unknown submits closed, compared %s with %s\n",
				r.Day, r.Account, r.Lines, r.Differing, 100*r.Ratio, r.Closed, r.At.UTC().Format(time.RFC3339), r.File); err != nil {
				return err
			}
		}
		_, err = fmt.Fprintf(p.stdout, "%d comparisons\n", len(list))
		return err
	})
}

type reconcileShowCommand struct {
	supplierFlag
	dayFlag

	JSON bool `name:"json" help:"Print the report as JSON."`
}

func (c *reconcileShowCommand) Run(p *program) error {
	day, err := c.parse()
	if err != nil {
		return err
	}
	return p.withPools(func(pools *store.Pools) error {
		snap, err := settings.Load(p.ctx, pools.Admin)
		if err != nil {
			return err
		}
		account, err := c.find(snap)
		if err != nil {
			return err
		}
		r, err := reconcile.Find(p.ctx, pools.Admin, account, day)
		if err != nil {
			return fmt.Errorf("account %d, day %s: %w", account, c.Day, err)
		}
		return p.print(r, c.JSON)
	})
}

type reconcileFormatCommand struct {
	supplierFlag

	Set string `help:"Take the format from this file (YAML)." type:"path" placeholder:"FILE"`
}

func (c *reconcileFormatCommand) Run(p *program) error {
	return p.withPools(func(pools *store.Pools) error {
		snap, err := settings.Load(p.ctx, pools.Admin)
		if err != nil {
			return err
		}
		account, err := c.find(snap)
		if err != nil {
			return err
		}
		if c.Set != "" {
			file, err := os.Open(c.Set)
			if err != nil {
				return errors.Join(errUsage, err)
			}
			defer file.Close() // only read
			format, err := reconcile.ReadFormat(file)
			if err != nil {
				return errors.Join(errUsage, err)
			}
			if err := reconcile.SetFormat(p.ctx, pools.Admin, account, format); err != nil {
				return err
			}
		}
		format, err := reconcile.FormatOf(p.ctx, pools.Admin, account)
		if err != nil {
			return err
		}
		out := json.NewEncoder(p.stdout)
		out.SetIndent("", "  ")
		return out.Encode(format)
	})
}
