package settlement

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/jackc/pgx/v5"

	"cmppgateway/gateway/internal/event"
	"cmppgateway/gateway/internal/message"
	"cmppgateway/gateway/internal/settings"
	"cmppgateway/gateway/internal/store"
)

// refundWindow is how long after its acceptance a failed receipt still refunds a message (architecture §4).
const refundWindow = 72 * time.Hour

// answers are results as columns, in order of their submits.
type answers struct {
	id, supplierMsgID []int64
	state             []message.Submit
	result            []int32
	respAt            []*time.Time
	account, conn     []int32
	node              []int16
}

func columns(results []*event.SubmitResult) (a answers, err error) {
	for _, r := range results {
		state, err := stateOf(r.State)
		if err != nil {
			return answers{}, err
		}
		a.id, a.supplierMsgID, a.state = append(a.id, r.SubmitID), append(a.supplierMsgID, int64(r.SupplierMsgID)), append(a.state, state)
		a.result, a.account, a.conn, a.node = append(a.result, int32(r.Result)), append(a.account, r.AccountID), append(a.conn, r.Conn), append(a.node, r.Node)
		var at *time.Time
		if !r.RespAt.IsZero() {
			at = &r.RespAt
		}
		a.respAt = append(a.respAt, at)
	}
	return a, nil
}

// ApplyResults settles results of different submits in tx (data T4): submits move, messages and money follow, refused ones
// are sent again. A result that moves nothing is known already, or contradicts what is known and is listed. Announce the
// outcome after COMMIT. An error that is ErrResult, or not store.IsTransient, is the
// fault of some result: apply them one by one then.
func ApplyResults(ctx context.Context, tx pgx.Tx, ids *message.IDs, snap *settings.Snapshot, results []event.SubmitResult) (*Outcome, error) {
	w := newWork(ids, snap, refundWindow)
	if err := w.results(ctx, tx, results); err != nil {
		return nil, fmt.Errorf("apply results: %w", err)
	}
	return &w.Outcome, nil
}

func (w *work) results(ctx context.Context, tx pgx.Tx, results []event.SubmitResult) error {
	order := make([]*event.SubmitResult, len(results))
	by := make(map[int64]*event.SubmitResult, len(results))
	messages := make([]int64, len(results))
	for i := range results {
		order[i], messages[i] = &results[i], results[i].MessageID
		by[results[i].SubmitID] = &results[i]
	}
	if len(by) != len(results) {
		return fmt.Errorf("%w: %d results of %d submits, want one each", ErrResult, len(results), len(by))
	}
	slices.SortFunc(order, func(a, b *event.SubmitResult) int { return cmp.Compare(a.SubmitID, b.SubmitID) })
	a, err := columns(order)
	if err != nil {
		return err
	}

	moved := make([]submit, 0, len(results))
	var q pgx.Batch
	q.Queue(store.SettlementResults, a.id, a.state, a.result, a.supplierMsgID, a.respAt, a.account, a.conn, a.node).Query(func(rows pgx.Rows) (err error) {
		moved, err = pgx.AppendRows(moved, rows, scanMoved)
		return err
	})
	w.queueLoad(&q, messages)
	if err := send(ctx, tx, &q); err != nil {
		return err
	}
	var late []submit
	if len(moved) < len(results) {
		if late, err = w.late(ctx, tx, order, moved); err != nil {
			return err
		}
	}
	if err := w.decideResults(ctx, tx, append(moved, late...), by); err != nil {
		return err
	}
	var drop pgx.Batch
	if err := w.queue(&drop); err != nil {
		return err
	}
	if len(late) > 0 {
		drop.Queue(store.SettlementUnknownDrop, submitIDs(late))
	}
	w.queueAccounts(&drop)
	return send(ctx, tx, &drop)
}

func scanMoved(row pgx.CollectableRow) (s submit, err error) {
	err = row.Scan(&s.id, &s.message, &s.retryOf, &s.channel, &s.attempt, &s.part, &s.dispatchedAt)
	return s, err
}

func submitIDs(list []submit) []int64 {
	ids := make([]int64, len(list))
	for i, s := range list {
		ids[i] = s.id
	}
	slices.Sort(ids)
	return ids
}

// decideResults follows the submits that moved.
func (w *work) decideResults(ctx context.Context, tx pgx.Tx, moved []submit, by map[int64]*event.SubmitResult) error {
	var chains []int64
	for i := range moved {
		s := &moved[i]
		r := by[s.id]
		s.account, s.supplierMsgID = r.AccountID, int64(r.SupplierMsgID)
		if r.State == event.Rejected && s.retryOf != 0 {
			chains = append(chains, s.retryOf)
		}
	}
	if err := w.loadTried(ctx, tx, chains); err != nil {
		return err
	}
	for i := range moved {
		s := &moved[i]
		m, r := w.msgs[s.message], by[s.id]
		if m == nil {
			return fmt.Errorf("submit %d, message %d: %w", s.id, s.message, errVanished)
		}
		w.Moved++
		switch r.State {
		case event.Accepted:
			w.accept(ctx, m, s)
		case event.Rejected:
			w.refuse(ctx, m, s, r.Result)
		case event.Unknown:
			w.lose(m, s, r.Src)
		}
	}
	return nil
}

// late applies the results that found no dispatched command: answers to unknown submits, repetitions, contradictions. The
// messages are locked, all of them by one statement, before any submit is.
func (w *work) late(ctx context.Context, tx pgx.Tx, order []*event.SubmitResult, moved []submit) ([]submit, error) {
	done := make(map[int64]bool, len(moved))
	for _, s := range moved {
		done[s.id] = true
	}
	var left, answered []*event.SubmitResult
	for _, r := range order {
		if !done[r.SubmitID] {
			left = append(left, r)
			if r.State != event.Unknown {
				answered = append(answered, r)
			}
		}
	}
	a, err := columns(answered)
	if err != nil {
		return nil, err
	}
	var closed []submit
	if len(answered) > 0 {
		lo, hi := store.Bounds(a.id)
		rows, err := tx.Query(ctx, store.SettlementLate, a.id, lo, hi, a.state, a.result, a.supplierMsgID, a.respAt)
		if err != nil {
			return nil, err
		}
		if closed, err = pgx.CollectRows(rows, scanMoved); err != nil {
			return nil, err
		}
	}
	for _, s := range closed {
		done[s.id] = true
	}
	left = slices.DeleteFunc(left, func(r *event.SubmitResult) bool { return done[r.SubmitID] })
	if len(left) == 0 {
		return closed, nil
	}
	ids := make([]int64, len(left))
	for i, r := range left {
		ids[i] = r.SubmitID
	}
	known, err := readSubmits(ctx, tx, ids)
	if err != nil {
		return nil, err
	}
	byID := make(map[int64]*submit, len(known))
	for i := range known {
		byID[known[i].id] = &known[i]
	}
	for _, r := range left {
		w.compare(r, byID[r.SubmitID])
	}
	return closed, nil
}

// compare is a result that moved nothing against what is known of its submit.
func (w *work) compare(r *event.SubmitResult, known *submit) {
	id := event.ResultID(r.SubmitID, r.State, r.SupplierMsgID)
	said := submit{id: r.SubmitID, supplierMsgID: int64(r.SupplierMsgID), account: r.AccountID}
	switch {
	case known == nil:
		w.exception(id, &said, kindNotDispatched, r.State)
	case r.State == event.Accepted && known.state == message.Accepted && known.supplierMsgID != int64(r.SupplierMsgID):
		w.Contradicted++
		w.aliases[[2]int64{int64(r.SupplierMsgID), r.SubmitID}] = true
	case r.State == event.Accepted && known.state == message.Refused:
		// Its receipts are recognised by the alias, and listed as well.
		w.exception(id, &said, kindAcceptedAfterRejected, fmt.Sprintf("attempt %d", r.Attempt))
		w.aliases[[2]int64{int64(r.SupplierMsgID), r.SubmitID}] = true
	default:
		w.Repeated++
	}
}
