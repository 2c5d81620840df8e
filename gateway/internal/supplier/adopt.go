package supplier

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"github.com/jackc/pgx/v5"

	"cmppgateway/gateway/internal/event"
	"cmppgateway/gateway/internal/outbox"
	"cmppgateway/gateway/internal/settings"
	"cmppgateway/gateway/internal/store"
)

const (
	adoptEvery  = time.Second
	orphanPage  = 500 // rows made unknown at once
	orphanRetry = 100 * time.Millisecond
)

// orphan is a dispatched row that nobody will hear of any more.
type orphan struct {
	cmd outbox.Command
	at  time.Time
}

// adopt takes over what dead nodes left: their events, then their dispatched rows, which become unknown. Rows of living nodes
// whose answer is overdue are the core's sweeper's.
func (m *Manager) adopt(ctx context.Context) {
	var dead []store.DeadNode
	tick := time.NewTicker(adoptEvery)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
		more, err := m.o.Node.DeadNodes(ctx)
		if err != nil && ctx.Err() == nil {
			m.o.Log.Warn("dead nodes not looked for", slog.Any("error", err))
		}
		dead = append(dead, more...)
		var left []store.DeadNode
		for _, d := range dead {
			err := m.adoptNode(ctx, d)
			if err != nil && !errors.Is(err, store.ErrLeaseLost) {
				left = append(left, d)
			}
			if err != nil && ctx.Err() == nil {
				m.o.Log.Warn("dead node not adopted", slog.Int("node", int(d.Number)), slog.Any("error", err))
			}
		}
		dead = left
	}
}

func (m *Manager) adoptNode(ctx context.Context, d store.DeadNode) error {
	if err := m.o.Events.Adopt(ctx, d.Number, d.Epoch); err != nil {
		return err
	}
	for {
		n, err := m.orphans(ctx, d.Number)
		if err != nil {
			return err
		}
		if n == 0 {
			break
		}
		if !pause(ctx, orphanRetry) { // the rows go when the core has accepted the events
			return ctx.Err()
		}
	}
	return m.o.Node.Adopted(ctx, d)
}

// orphans reports a page of rows that node has dispatched as unknown, and says how many there were. A row reported already is
// the same event.
func (m *Manager) orphans(ctx context.Context, node int16) (int, error) {
	rows, err := m.o.Pool.Query(ctx, store.SupplierOrphans, node, orphanPage)
	if err != nil {
		return 0, fmt.Errorf("rows of node %d: %w", node, err)
	}
	list, err := pgx.CollectRows(rows, func(row pgx.CollectableRow) (o orphan, err error) {
		c := &o.cmd
		err = row.Scan(&c.SubmitID, &c.MessageID, &c.RetryOf, &c.ChannelID, &c.EnterpriseID, &c.AppID, &c.Attempt, &c.Part, &c.Parts, &c.Lane,
			&c.Phone, &c.Src, &o.at)
		return o, err
	})
	if err != nil {
		return 0, fmt.Errorf("rows of node %d: %w", node, err)
	}
	snap := m.o.Settings.Current()
	for i := range list {
		m.o.Events.Result(unknown(snap, node, &list[i]), false)
	}
	m.metrics.adopted.Add(float64(len(list)))
	return len(list), nil
}

func unknown(snap *settings.Snapshot, node int16, o *orphan) *event.SubmitResult {
	c := &o.cmd
	r := &event.SubmitResult{
		SubmitID: c.SubmitID, MessageID: c.MessageID, ChannelID: c.ChannelID, State: event.Unknown, Node: node, Attempt: c.Attempt,
		Part: c.Part, Parts: c.Parts, Phone: c.Phone, DispatchedAt: o.at,
	}
	if ch := snap.Channels[c.ChannelID]; ch != nil {
		r.AccountID = ch.AccountID
		r.Src = SrcID(snap, ch, c.AppID, c.Src)
	}
	return r
}
