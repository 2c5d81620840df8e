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

// states of submits by the words of results.
var states = map[string]message.Submit{event.Accepted: message.Accepted, event.Rejected: message.Refused, event.Unknown: message.SubmitUnknown}

// answers are the columns of settlement_late.sql, in order of the submits.
type answers struct {
	id, supplierMsgID []int64
	state             []message.Submit
	result            []int32
	respAt            []*time.Time
}

func (a *answers) add(r *event.SubmitResult) {
	a.id, a.supplierMsgID, a.state = append(a.id, r.SubmitID), append(a.supplierMsgID, int64(r.SupplierMsgID)), append(a.state, states[r.State])
	a.result, a.respAt = append(a.result, int32(r.Result)), append(a.respAt, answeredAt(r))
}

// ApplyResults settles results of different submits in tx (data T4): submits move, messages and money follow, refused ones
// are sent again. A result that moves nothing is known already, or contradicts what is known and is listed. Announce the
// outcome after COMMIT. An error that is ErrResult, or not store.IsTransient, is the
// fault of some result: apply them one by one then.
func ApplyResults(ctx context.Context, tx pgx.Tx, ids *message.IDs, snap *settings.Snapshot, results []event.SubmitResult) (*Outcome, error) {
	w := newWork(ids, snap)
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
	ids := make([]int64, len(order))
	for i, r := range order {
		ids[i] = r.SubmitID
		if states[r.State] == 0 {
			return fmt.Errorf("%w: state %q, want %s, %s or %s", ErrResult, r.State, event.Accepted, event.Rejected, event.Unknown)
		}
	}

	moved := make([]submit, 0, len(results))
	var q pgx.Batch
	q.Queue(store.SettlementResults, ids).Query(func(rows pgx.Rows) (err error) {
		moved, err = pgx.AppendRows(moved, rows, scanTaken)
		return err
	})
	w.queueLoad(&q, messages)
	if err := send(ctx, tx, &q); err != nil {
		return err
	}
	if err := w.loadRefused(ctx, tx); err != nil {
		return err
	}
	w.insert(moved, by)
	var late []submit
	if len(moved) < len(results) {
		var err error
		if late, err = w.late(ctx, tx, order, moved); err != nil {
			return err
		}
	}
	for i := range late {
		w.closed[by[late[i].id].State]++
	}
	all := append(moved, late...)
	late = all[len(moved):] // what is decided about them is written to all
	if err := w.decideResults(ctx, tx, all, by); err != nil {
		return err
	}
	var drop pgx.Batch
	if err := w.queue(&drop); err != nil {
		return err
	}
	if len(late) > 0 {
		drop.Queue(store.SettlementUnknownDrop, submitIDs(late, hasMsgID))
		if nameless := submitIDs(late, func(s *submit) bool { return !hasMsgID(s) }); len(nameless) > 0 {
			drop.Queue(store.SettlementUnknownClose, nameless) // its report is found by number and time still
		}
		w.known = queueNudge(&drop, late)
	}
	w.queueAccounts(&drop)
	return send(ctx, tx, &drop)
}

func scanTaken(row pgx.CollectableRow) (s submit, err error) {
	err = row.Scan(&s.id, &s.message, &s.retryOf, &s.channel, &s.attempt, &s.part, &s.dispatchedAt, &s.enterprise, &s.parts)
	return s, err
}

func scanMoved(row pgx.CollectableRow) (s submit, err error) {
	err = row.Scan(&s.id, &s.message, &s.retryOf, &s.channel, &s.attempt, &s.part, &s.dispatchedAt)
	return s, err
}

// insert makes submits of the commands that left the queue.
func (w *work) insert(taken []submit, by map[int64]*event.SubmitResult) {
	v := &w.submits
	for i := range taken {
		s := &taken[i]
		r := by[s.id]
		v.id, v.message, v.retryOf, v.supplierMsgID = append(v.id, s.id), append(v.message, s.message), append(v.retryOf, s.retryOf), append(v.supplierMsgID, int64(r.SupplierMsgID))
		v.dispatchedAt, v.respAt = append(v.dispatchedAt, s.dispatchedAt), append(v.respAt, answeredAt(r))
		v.channel, v.account, v.enterprise = append(v.channel, s.channel), append(v.account, r.AccountID), append(v.enterprise, s.enterprise)
		v.result, v.conn, v.node = append(v.result, int32(r.Result)), append(v.conn, r.Conn), append(v.node, r.Node)
		v.attempt, v.part, v.parts, v.state = append(v.attempt, s.attempt), append(v.part, s.part), append(v.parts, s.parts), append(v.state, states[r.State])
	}
}

func answeredAt(r *event.SubmitResult) *time.Time {
	if r.RespAt.IsZero() {
		return nil
	}
	return &r.RespAt
}

func submitIDs(list []submit, which func(*submit) bool) []int64 {
	ids := make([]int64, 0, len(list))
	for i := range list {
		if which(&list[i]) {
			ids = append(ids, list[i].id)
		}
	}
	slices.Sort(ids)
	return ids
}

// hasMsgID says that the reports of a submit are found by its Msg_Id, or that there are none to come.
func hasMsgID(s *submit) bool { return s.supplierMsgID != 0 || s.state != message.Accepted }

// decideResults follows the submits that moved.
func (w *work) decideResults(ctx context.Context, tx pgx.Tx, moved []submit, by map[int64]*event.SubmitResult) error {
	var chains []int64
	for i := range moved {
		s := &moved[i]
		r := by[s.id]
		s.account, s.supplierMsgID, s.state = r.AccountID, int64(r.SupplierMsgID), states[r.State]
		if r.State != event.Unknown && s.retryOf != 0 {
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
			w.lose(ctx, m, s, r.Src)
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
	var left []*event.SubmitResult
	var a answers
	for _, r := range order {
		if !done[r.SubmitID] {
			left = append(left, r)
			if r.State != event.Unknown {
				a.add(r)
			}
		}
	}
	var closed []submit
	if len(a.id) > 0 {
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
