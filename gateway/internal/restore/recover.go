package restore

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"

	"cmppgateway/gateway/internal/event"
	"cmppgateway/gateway/internal/settings"
	"cmppgateway/gateway/internal/settlement"
	"cmppgateway/gateway/internal/store"
	"cmppgateway/gateway/internal/supplier"
)

// Counts are what is under way in the database as it is.
type Counts struct {
	Inbox, Pending, Dispatched, Deliveries int64
	Processes                              int64 // living ones beside this; in quarantine there are none
}

// Quarantine says since when and why the installation is in quarantine; since is nil when it is not.
func (g *Guard) Quarantine(ctx context.Context) (since *time.Time, reason string, err error) {
	err = store.InTx(ctx, g.pool, func(tx pgx.Tx) error {
		s, err := read(ctx, tx)
		since, reason = s.since, s.reason
		return err
	})
	return since, reason, err
}

// Count counts what is under way. node is the caller's own, 0 = none.
func (g *Guard) Count(ctx context.Context, node int16) (c Counts, err error) {
	err = g.pool.QueryRow(ctx, store.RestoreCounts, node).Scan(&c.Inbox, &c.Pending, &c.Dispatched, &c.Deliveries, &c.Processes)
	return c, err
}

// Recovery is what Recover needs beside the guard.
type Recovery struct {
	Node     *store.Node
	Snapshot *settings.Snapshot
	// Drain works the inbox off: its messages become commands, which then become unknown like those before them.
	Drain func(ctx context.Context) error
}

// ErrRunning says that a process holds a lease: only one that waits in quarantine holds none.
var ErrRunning = errors.New("another process is running")

const pageRows = 500

// Recover turns everything that may have been sent since the backup into unknown and ends the quarantine. Money stays frozen;
// receipts, the supplier's statement or an operator close each (package settlement). It may be repeated after a failure. It
// returns how many submits became unknown.
func (g *Guard) Recover(ctx context.Context, r Recovery) (int, error) {
	if since, _, err := g.Quarantine(ctx); err != nil {
		return 0, fmt.Errorf("recover: %w", err)
	} else if since == nil {
		return 0, nil
	}
	c, err := g.Count(ctx, r.Node.Number)
	if err != nil {
		return 0, fmt.Errorf("recover: %w", err)
	}
	if c.Processes > 0 {
		return 0, fmt.Errorf("recover: %w: %d leases are held", ErrRunning, c.Processes)
	}
	if err := r.Drain(ctx); err != nil {
		return 0, fmt.Errorf("recover: work the inbox off: %w", err)
	}
	unknown := 0
	for {
		n, err := g.page(ctx, r)
		if err != nil {
			return unknown, fmt.Errorf("recover: %w", err)
		}
		if n == 0 {
			break
		}
		unknown += n
	}
	told, err := g.told(ctx)
	if err != nil {
		return unknown, fmt.Errorf("recover: Redis must say how far the database had come: %w", err)
	}
	if _, err := g.pool.Exec(ctx, store.RestoreRelease, told); err != nil {
		return unknown, fmt.Errorf("recover: %w", err)
	}
	return unknown, nil
}

// page turns a page of commands into unknown submits.
func (g *Guard) page(ctx context.Context, r Recovery) (n int, err error) {
	err = store.Retry(ctx, g.pool, func(tx pgx.Tx) error {
		rows, err := tx.Query(ctx, store.RestoreSuspects, pageRows, r.Node.Number)
		if err != nil {
			return err
		}
		results, err := pgx.CollectRows(rows, func(row pgx.CollectableRow) (event.SubmitResult, error) {
			return suspect(r.Snapshot, row)
		})
		if n = len(results); err != nil || n == 0 {
			return err
		}
		_, err = settlement.ApplyResults(ctx, tx, r.Node.IDs, r.Snapshot, results)
		return err
	})
	return n, err
}

func suspect(snap *settings.Snapshot, row pgx.CollectableRow) (event.SubmitResult, error) {
	u := event.SubmitResult{State: event.Unknown}
	var app int32
	var src []byte
	err := row.Scan(&u.SubmitID, &u.MessageID, &u.ChannelID, &u.Attempt, &u.Part, &u.Parts, &u.Node, &app, &u.Phone, &src, &u.DispatchedAt)
	if ch := snap.Channels[u.ChannelID]; ch != nil {
		u.AccountID, u.Src = ch.AccountID, supplier.SrcID(snap, ch, app, src)
	}
	return u, err
}
