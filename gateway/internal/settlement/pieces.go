package settlement

import (
	"context"
	"time"

	"github.com/jackc/pgx/v5"

	"cmppgateway/gateway/internal/settings"
	"cmppgateway/gateway/internal/store"
	"cmppgateway/gateway/sms"
)

// loadPieces reads the customer's segments of the messages that this transaction has locked and may end. After the lock: a
// segment that is repeated later is added under it.
func (w *work) loadPieces(ctx context.Context, tx pgx.Tx) error {
	var ids []int64
	for id, m := range w.msgs {
		if m.segments > 0 && !m.state.Final() && m.pieces == nil {
			ids = append(ids, id)
		}
	}
	if len(ids) == 0 {
		return nil
	}
	found, err := store.Segments(ctx, tx, sorted(ids))
	for id, list := range found {
		w.msgs[id].pieces = list
	}
	return err
}

// tell gives the customer the receipts he asked for: one, or one for each of his segments.
func (w *work) tell(ctx context.Context, m *msg, stat string, doneAt time.Time) {
	if m.segments == 0 {
		if m.registered == 1 {
			w.deliveries.add(w.id(ctx), m, stat, doneAt)
		}
		return
	}
	for _, p := range m.pieces {
		if p.Registered != 1 {
			continue
		}
		one := *m
		one.msgID, one.session, one.acceptedAt, one.node = p.MsgID, p.Session, p.AcceptedAt, p.Node
		w.deliveries.add(w.id(ctx), &one, stat, doneAt)
	}
}

// recut cuts a long message of which nothing is with a supplier for the channel that it goes to; false when that is not
// possible.
func (m *msg) recut(ch *settings.Channel) bool {
	if m.segments == 0 || ch == nil {
		return true
	}
	l := sms.Long{Fmt: sms.Fmt(m.fmt), Header: m.udhi != 0, Content: m.content}
	parts, _, err := ch.Cut(&l, m.msgID)
	if err != nil {
		return false
	}
	if int16(len(parts)) != m.parts || int16(l.OutFmt) != m.outFmt || int32(l.Ref) != m.ref {
		m.parts, m.outFmt, m.ref, m.cutAnew = int16(len(parts)), int16(l.OutFmt), int32(l.Ref), true
	}
	return true
}

// queueRecut writes how messages are cut now.
func (w *work) queueRecut(q *pgx.Batch) {
	for _, id := range sortedKeys(w.msgs) {
		if m := w.msgs[id]; m.cutAnew {
			q.Queue(store.SegmentRecut, id, m.parts, m.outFmt, m.ref)
		}
	}
}
