package settlement

import (
	"context"

	"github.com/jackc/pgx/v5"

	"cmppgateway/gateway/internal/message"
	"cmppgateway/gateway/internal/outbox"
	"cmppgateway/gateway/internal/settings"
	"cmppgateway/gateway/internal/store"
)

// Why a command leaves the queue unsent; see settlement_ended_page.sql.
const (
	stays = iota
	tooOld
	stopped
)

// leaving is a row of the walk for commands that waited too long or are stopped.
type leaving struct {
	id, message int64
	why         int
}

// sweepEnded ends commands that waited longer than their class of traffic allows, and those of customers that were stopped.
// Edges leave both alone from the moment on that they know.
func (s *Settlement) sweepEnded(ctx context.Context, tx pgx.Tx, w *work) (swept, error) {
	old := outbox.Oldest(s.Outbox, w.now)
	enterprises, applications := w.snap.Released()
	rows, err := tx.Query(ctx, store.SettlementEndedPage, s.ended, pageRows, old[:], emptied(enterprises), emptied(applications),
		w.snap.Stops.Platform == settings.Release, oldest(w.now))
	if err != nil {
		return swept{}, err
	}
	page, err := pgx.CollectRows(rows, func(row pgx.CollectableRow) (l leaving, err error) {
		err = row.Scan(&l.id, &l.message, &l.why)
		return l, err
	})
	if err != nil {
		return swept{}, err
	}
	var ids, messages []int64
	why := make(map[int64]int)
	next, more := int64(0), len(page) == pageRows
	for _, l := range page {
		if l.why != stays {
			ids, messages = append(ids, l.id), append(messages, l.message)
			why[l.id] = l.why
		}
		next = l.id
		if len(ids) == sweepRows { // the page ends where its transaction would become too large
			more = true
			break
		}
	}
	did := swept{rows: len(ids), more: more, done: func() {
		if s.ended = next; !more {
			s.ended = 0
		}
	}}
	if len(ids) == 0 {
		return did, nil
	}
	gone, err := w.withdrawn(ctx, tx, ids)
	if err != nil {
		return swept{}, err
	}
	if err := w.load(ctx, tx, messages); err != nil {
		return swept{}, err
	}
	for i := range gone {
		m := w.msgs[gone[i].message]
		switch {
		case m == nil:
		case why[gone[i].id] == stopped:
			w.withdraw(ctx, m, message.Failed, message.ReasonStatus)
		default:
			w.withdraw(ctx, m, message.Expired, message.ReasonExpired)
		}
	}
	return did, w.write(ctx, tx)
}

// emptied is list, but never NULL in the statement.
func emptied(list []int32) []int32 { return append([]int32{}, list...) }

// barred says what a channel's own state means for its queue. off: what finds no other channel ends. leaves: it goes
// elsewhere if it can, even though the channel has connections.
func (w *work) barred(channel int32) (off, leaves bool) {
	ch := w.snap.Channels[channel]
	stop := w.snap.Stops.Channels[channel]
	off = ch == nil || !ch.Enabled || stop == settings.Release
	return off, off || w.passed(channel)
}

// passed says that candidates pass a channel over although it may be up: it is locked, refused for its settings, or its
// breaker is open.
func (w *work) passed(channel int32) bool {
	return w.snap.Stops.Channels[channel] != settings.NoStop || len(w.snap.Refused[channel]) > 0 ||
		w.snap.Health.Breakers[channel].State == settings.BreakerOpen
}
