package inbound

import (
	"context"
	"fmt"
	"log/slog"
	"sync/atomic"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"cmppgateway/gateway/internal/settings"
	"cmppgateway/gateway/internal/store"
	"cmppgateway/gateway/sms"
)

const (
	backlogEvery = time.Second
	backlogShare = 20 // the next count comes no sooner than this many times as long as the last one took
)

// backlog is an estimate of what waits: inbox rows of each application, rows of inbox and outbox together, commands of each
// channel that has a ceiling. Each is counted no further than it takes to find out who is at the limit, once a second, or
// more rarely when counting takes longer than a twentieth of that.
type backlog struct {
	pool     *pgxpool.Pool
	log      *slog.Logger
	max      int // inbox rows of an application
	settings *settings.Watcher
	last     atomic.Pointer[waiting]
}

// waiting is one count.
type waiting struct {
	apps, channels map[int32]int // channels: those at their ceiling alone
	platform       int           // 0 without a ceiling
}

// full is the ceiling that keeps a SUBMIT of an application to these numbers out, "" if none does.
func (b *backlog) full(snap *settings.Snapshot, app *settings.Application, dest []string) (v valve, cause string) {
	w := b.last.Load()
	switch {
	case w == nil:
	case w.apps[app.ID] >= b.max:
		return valveApplication, "the application has too many messages waiting"
	case snap.Limits.Backlog > 0 && w.platform >= snap.Limits.Backlog:
		return valvePlatform, "the platform has too many messages waiting"
	case len(w.channels) > 0:
		for _, d := range dest {
			if phone, err := sms.NormalizeNumber(d); err == nil && w.stuck(snap, app, phone) {
				return valveChannel, "the channel of a recipient has too many messages waiting"
			}
		}
	}
	return "", ""
}

// stuck says that the channel which a message to phone will be given first is at its ceiling. The choice is that of the
// workflow, a function of group and number. What only the workflow knows, a ported number or channels that do not take the
// signature, may lead elsewhere. Without a route there is nothing to wait for; policy refuses it.
func (w *waiting) stuck(snap *settings.Snapshot, app *settings.Application, phone uint64) bool {
	group := snap.Groups[app.Routes[snap.Table.Carrier(phone)]]
	if group == nil {
		return false
	}
	c, ok := group.Pick(phone, nil)
	if !ok {
		return false
	}
	n, counted := w.channels[c.ChannelID]
	ceiling := snap.Limits.Channels[c.ChannelID]
	return counted && ceiling > 0 && n >= ceiling
}

func (b *backlog) most() int {
	n := 0
	if w := b.last.Load(); w != nil {
		for _, k := range w.apps {
			n = max(n, k)
		}
	}
	return n
}

func (b *backlog) platform() int {
	if w := b.last.Load(); w != nil {
		return w.platform
	}
	return 0
}

func (b *backlog) stuckChannels() int {
	if w := b.last.Load(); w != nil {
		return len(w.channels)
	}
	return 0
}

// run counts for the enterprises that live gives, with the number of their applications. Without PostgreSQL the last counts stay.
func (b *backlog) run(ctx context.Context, live func() map[int32]int) {
	timer := time.NewTimer(backlogEvery)
	defer timer.Stop()
	failing := false
	for {
		select {
		case <-ctx.Done():
			return
		case <-timer.C:
		}
		start := time.Now()
		err := b.count(ctx, live())
		if failed := err != nil && ctx.Err() == nil; failed != failing {
			failing = failed
			b.log.Info("inbox backlog counted", slog.Bool("working", !failed), slog.Any("error", err))
		}
		timer.Reset(max(backlogEvery, backlogShare*time.Since(start)))
	}
}

func (b *backlog) count(ctx context.Context, live map[int32]int) error {
	limits := b.settings.Current().Limits
	w := &waiting{}
	var enterprises []int32
	var most []int64
	for id, apps := range live {
		enterprises, most = append(enterprises, id), append(most, int64(apps)*int64(b.max))
	}
	var err error
	if w.apps, err = b.counts(ctx, store.InboundBacklog, enterprises, most); err != nil {
		return fmt.Errorf("count inbox rows: %w", err)
	}
	var channels []int32
	most = nil
	for id, ceiling := range limits.Channels {
		channels, most = append(channels, id), append(most, int64(ceiling))
	}
	if w.channels, err = b.counts(ctx, store.InboundBacklogChannel, channels, most); err != nil {
		return fmt.Errorf("count commands of channels: %w", err)
	}
	if limits.Backlog > 0 {
		if err := b.pool.QueryRow(ctx, store.InboundBacklogPlatform, limits.Backlog).Scan(&w.platform); err != nil {
			return fmt.Errorf("count inbox and outbox: %w", err)
		}
	}
	b.last.Store(w)
	return nil
}

// counts runs a statement that takes ids and how far to count for each.
func (b *backlog) counts(ctx context.Context, statement string, ids []int32, most []int64) (map[int32]int, error) {
	counts := make(map[int32]int)
	if len(ids) == 0 {
		return counts, nil
	}
	rows, err := b.pool.Query(ctx, statement, ids, most)
	if err != nil {
		return nil, err
	}
	var id int32
	var n int
	_, err = pgx.ForEachRow(rows, []any{&id, &n}, func() error {
		counts[id] = n
		return nil
	})
	return counts, err
}
