package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"time"

	"cmppgateway/gateway/internal/config"
	"cmppgateway/gateway/internal/deadletter"
	"cmppgateway/gateway/internal/event"
	"cmppgateway/gateway/internal/settings"
	"cmppgateway/gateway/internal/store"
)

type deadCommands struct {
	List   deadListCommand   `cmd:"" help:"List dead letters, newest first."`
	Replay deadReplayCommand `cmd:"" help:"Offer dead letters again, once their cause is mended."`
}

type deadListCommand struct {
	Kind  string `help:"Only of this kind, as \"delivery\", \"receipt\", \"event uplink\"." placeholder:"KIND"`
	All   bool   `help:"Also those replayed."`
	Limit int    `help:"At most so many." default:"100"`
	JSON  bool   `name:"json" help:"Print a JSON array."`
}

func (c *deadListCommand) Run(p *program) error {
	return p.withPools(func(pools *store.Pools) error {
		list, err := deadletter.List(p.ctx, pools.Admin, c.Kind, c.All, c.Limit)
		if err != nil {
			return err
		}
		if c.JSON {
			return json.NewEncoder(p.stdout).Encode(list)
		}
		for _, l := range list {
			replayed := ""
			if l.ReplayedAt != nil {
				replayed = ", replayed " + l.ReplayedAt.UTC().Format(time.RFC3339)
			}
			if _, err := fmt.Fprintf(p.stdout, "%d %s %s: %s, account %d, %d octets%s\n", l.ID, l.At.UTC().Format(time.RFC3339), l.Kind, l.Reason, l.Account, len(l.Raw), replayed); err != nil {
				return err
			}
		}
		_, err = fmt.Fprintf(p.stdout, "%d dead letters\n", len(list))
		return err
	})
}

type deadReplayCommand struct {
	IDs []int64 `arg:"" name:"id" help:"Ids of dead letters."`
}

// Run needs a running core for refused events: they go to its callback, as an edge's would.
func (c *deadReplayCommand) Run(p *program) error {
	client, err := event.NewHTTPClient(p.config.Event)
	if err != nil {
		return errors.Join(errUsage, err)
	}
	defer client.CloseIdleConnections()
	offer := func(ctx context.Context, e event.Event) (event.Result, error) {
		return offerSingle(ctx, client, p.config, e)
	}
	return p.withPools(func(pools *store.Pools) error {
		var failed []error
		for _, o := range deadletter.Replay(p.ctx, pools.Admin, c.IDs, offer) {
			text := "taken"
			if o.Err != nil {
				text = o.Err.Error()
				failed = append(failed, fmt.Errorf("%d: %w", o.ID, o.Err))
			}
			if _, err := fmt.Fprintf(p.stdout, "%d %s\n", o.ID, text); err != nil {
				return err
			}
		}
		if len(failed) > 0 {
			return fmt.Errorf("%d of %d not taken: %w", len(failed), len(c.IDs), errors.Join(failed...))
		}
		return nil
	})
}

// offerSingle posts one event to the core.
func offerSingle(ctx context.Context, client *http.Client, c config.Config, e event.Event) (r event.Result, err error) {
	base := c.Event.URL
	if base == "" {
		base = "http://" + c.Callback.Listen
	}
	body, err := json.Marshal(e)
	if err != nil {
		return r, err
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, base+event.SinglePath(e.Type), bytes.NewReader(body))
	if err != nil {
		return r, err
	}
	req.Header.Set("Content-Type", "application/json")
	if c.Callback.Token != "" {
		req.Header.Set("Authorization", "Bearer "+c.Callback.Token)
	}
	resp, err := client.Do(req)
	if err != nil {
		return r, fmt.Errorf("is the core running? %w", err)
	}
	defer func() { _ = resp.Body.Close() }()
	answer, err := io.ReadAll(io.LimitReader(resp.Body, event.MaxBytes))
	if err != nil {
		return r, err
	}
	if resp.StatusCode != http.StatusOK {
		return r, fmt.Errorf("callback answered %d: %s", resp.StatusCode, answer)
	}
	return r, json.Unmarshal(answer, &r)
}

type callbackCommands struct {
	Mode callbackModeCommand `cmd:"" help:"How events of a type travel to the core: show it, or change it while running."`
}

type callbackModeCommand struct {
	Type string `arg:"" optional:"" help:"Event type: submit_result, submit_segment_result, receipt_intake, uplink, dead_letter."`
	Mode string `arg:"" optional:"" help:"batch, shadow or single."`
}

// Run changes the mode of a type, or shows all.
func (c *callbackModeCommand) Run(p *program) error {
	return p.withPools(func(pools *store.Pools) error {
		if c.Type != "" {
			mode, err := settings.ParseCallbackMode(c.Mode)
			if err != nil {
				return errors.Join(errUsage, err)
			}
			if err := settings.SetCallbackMode(p.ctx, pools.Admin, c.Type, mode); err != nil {
				return err
			}
		}
		snap, err := settings.Load(p.ctx, pools.Admin)
		if err != nil {
			return err
		}
		for _, kind := range settings.EventTypes {
			if _, err := fmt.Fprintf(p.stdout, "%-22s %s\n", kind, snap.CallbackMode(kind)); err != nil {
				return err
			}
		}
		return nil
	})
}
