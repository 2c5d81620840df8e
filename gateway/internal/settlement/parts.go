package settlement

import (
	"context"
	"slices"

	"github.com/jackc/pgx/v5"

	"cmppgateway/gateway/internal/message"
	"cmppgateway/gateway/internal/store"
)

// Parts of a long message never travel apart (architecture §3, long messages). While one of them is accepted or unknown, a
// refused one is sent again on the same channel. While none is, refused ones wait for the answers of their siblings: once
// all are refused, the whole message goes to the next candidate, or ends.

// refusal is a refused submit and the supplier's code.
type refusal struct {
	submit

	code uint32
}

// placed says that some part of the message may be with a supplier: it was accepted, or became unknown.
func (m *msg) placed() bool {
	return m.acc > 0 || m.state == message.Submitted || m.state == message.Unknown
}

// loadRefused reads the waiting parts of the long messages that this transaction has locked.
func (w *work) loadRefused(ctx context.Context, tx pgx.Tx) error {
	if err := w.loadPieces(ctx, tx); err != nil {
		return err
	}
	var ids []int64
	for id, m := range w.msgs {
		if m.parts > 1 && !m.state.Final() && !m.refusedRead {
			m.refusedRead = true
			ids = append(ids, id)
		}
	}
	if len(ids) == 0 {
		return nil
	}
	rows, err := tx.Query(ctx, store.SettlementRefused, sorted(ids))
	if err != nil {
		return err
	}
	var r refusal
	var code int32
	var chains []int64
	if _, err := pgx.ForEachRow(rows, []any{&r.message, &r.id, &r.retryOf, &r.channel, &code, &r.attempt, &r.part}, func() error {
		r.code = uint32(code)
		m := w.msgs[r.message]
		m.refused = append(m.refused, r)
		m.refusedStored++
		chains = append(chains, r.retryOf)
		return nil
	}); err != nil {
		return err
	}
	return w.loadTried(ctx, tx, chains)
}

// refusePart is a refused part of a long message.
func (w *work) refusePart(ctx context.Context, m *msg, s *submit, code uint32) {
	if m.placed() {
		w.again(ctx, m, s, code)
		return
	}
	m.refused, m.refusedChanged = append(m.refused, refusal{*s, code}), true
	w.together(ctx, m)
}

// takeRefused empties the waiting place of the message.
func (m *msg) takeRefused() []refusal {
	if len(m.refused) == 0 {
		return nil
	}
	list := m.refused
	m.refused, m.refusedChanged = nil, true
	slices.SortFunc(list, func(a, b refusal) int { return int(a.part) - int(b.part) })
	return list
}

// release sends the waiting parts again on the same channel: a sibling was accepted, or is unknown.
func (w *work) releaseParts(ctx context.Context, m *msg) {
	for _, r := range m.takeRefused() {
		w.again(ctx, m, &r.submit, r.code)
	}
}

// again sends a part again on the same channel, or ends it.
func (w *work) again(ctx context.Context, m *msg, s *submit, code uint32) {
	if channel, delay, ok := w.next(m, s, code); ok {
		w.resend(ctx, m, s, channel, delay)
		return
	}
	w.endPart(ctx, m, message.Failed, message.NoReason, statRefused, w.now)
}

// together decides about a long message once every part of it is refused or has ended, and none was ever placed.
func (w *work) together(ctx context.Context, m *msg) {
	if m.placed() || len(m.refused) == 0 || len(m.refused)+int(m.fin) < int(m.parts) {
		return
	}
	list := m.takeRefused()
	// A part that has ended cannot be sent any more, so the whole can not be delivered.
	if m.fin == 0 && w.moveTogether(ctx, m, list) {
		return
	}
	for range list {
		w.endPart(ctx, m, message.Failed, message.NoReason, statRefused, w.now)
	}
}

// moveTogether sends all parts of a message again: through the next candidate, or, where none is left or a code says so, on
// the same channel a little later.
func (w *work) moveTogether(ctx context.Context, m *msg, list []refusal) bool {
	class, attempt := message.RetryOther, int16(0)
	var tried []int32
	for i := range list {
		r := &list[i]
		switch c := w.snap.Class(r.channel, r.code); c {
		case message.Terminal:
			return false
		case message.RetryLater:
			class = message.RetryLater
		case message.RerouteCarrier:
			if class == message.RetryOther {
				class = message.RerouteCarrier
			}
		case message.RetryOther:
		}
		attempt = max(attempt, r.attempt)
		for _, c := range w.chain(&r.submit) {
			if !slices.Contains(tried, c) {
				tried = append(tried, c)
			}
		}
	}
	channel, delay, ok := w.place(m, class, list[0].channel, attempt, tried)
	if !ok {
		return false
	}
	if !m.recut(w.snap.Channels[channel]) {
		return false
	}
	for part := int16(1); part <= m.parts; part++ { // more or fewer parts than before, where the channel cuts differently
		s := list[min(int(part), len(list))-1].submit
		s.part = part
		w.resend(ctx, m, &s, channel, delay)
	}
	return true
}

// queueRefused adds what changed about waiting parts to q; the messages are locked.
func (w *work) queueRefused(q *pgx.Batch) {
	var gone []int64
	stored := 0
	var ids, submits, retryOfs []int64
	var channels, results []int32
	var attempts, parts []int16
	for _, id := range sortedKeys(w.msgs) {
		m := w.msgs[id]
		if !m.refusedChanged {
			continue
		}
		if m.refusedStored > 0 {
			gone = append(gone, id)
			stored += m.refusedStored
		}
		for _, r := range m.refused {
			ids, submits, retryOfs = append(ids, id), append(submits, r.id), append(retryOfs, r.retryOf)
			channels, results = append(channels, r.channel), append(results, int32(r.code))
			attempts, parts = append(attempts, r.attempt), append(parts, r.part)
		}
	}
	if len(gone) > 0 {
		q.Queue(store.SettlementRefusedDrop, gone, stored)
	}
	if len(ids) > 0 {
		q.Queue(store.SettlementRefusedAdd, ids, submits, retryOfs, channels, results, attempts, parts)
	}
}
