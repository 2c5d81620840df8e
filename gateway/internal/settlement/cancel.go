package settlement

import (
	"context"
	"fmt"

	"github.com/jackc/pgx/v5"

	"cmppgateway/gateway/internal/message"
	"cmppgateway/gateway/internal/settings"
	"cmppgateway/gateway/internal/store"
)

// Cancel ends messages that their customer takes back, all or none: ok says that nothing of them was or will be sent. They
// must be checked and wholly in the queue, or held for review; their money is released. Messages that were cancelled before
// are cancelled. When ok is false the transaction has to be rolled back. Announce the outcome after COMMIT.
func Cancel(ctx context.Context, tx pgx.Tx, ids *message.IDs, snap *settings.Snapshot, list []int64) (o *Outcome, ok bool, err error) {
	w := newWork(ids, snap)
	if ok, err = w.cancel(ctx, tx, sorted(list)); err != nil {
		return nil, false, fmt.Errorf("cancel: %w", err)
	}
	return &w.Outcome, ok, nil
}

func (w *work) cancel(ctx context.Context, tx pgx.Tx, list []int64) (bool, error) {
	free := map[int64]int16{} // parts of a message that are surely not sent; a held one has all
	rows, err := tx.Query(ctx, store.ReviewTake, list)
	if err != nil {
		return false, err
	}
	var id int64
	if _, err := pgx.ForEachRow(rows, []any{&id}, func() error {
		free[id] = -1
		return nil
	}); err != nil {
		return false, err
	}
	lo, hi := store.Bounds(list)
	if rows, err = tx.Query(ctx, store.SettlementPending, list, lo, hi); err != nil {
		return false, err
	}
	commands, err := pgx.CollectRows(rows, pgx.RowTo[int64])
	if err != nil {
		return false, err
	}
	gone, err := w.withdrawn(ctx, tx, commands)
	if err != nil {
		return false, err
	}
	for i := range gone {
		free[gone[i].message]++
	}
	if err := w.load(ctx, tx, list); err != nil {
		return false, err
	}
	again := 0
	for _, id := range list {
		m := w.msgs[id]
		switch {
		case m == nil:
			return false, nil
		case m.state == message.Cancelled:
			again++
		case m.state != message.Checked, m.acc > 0, m.fin > 0, free[id] != m.parts && free[id] != -1:
			return false, nil
		default:
			m.changed, m.state, m.stat = true, message.Cancelled, message.StatCancelled
			if m.bill == message.Frozen {
				m.bill, m.settle = message.Released, w.entry(ctx, message.Release, m)
			}
			w.Ended++
			w.tell(ctx, m, m.stat, w.now)
		}
	}
	if again > 0 {
		return again == len(list), nil
	}
	return true, w.write(ctx, tx)
}
