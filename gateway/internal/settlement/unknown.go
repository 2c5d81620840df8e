package settlement

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"cmppgateway/gateway/internal/event"
	"cmppgateway/gateway/internal/message"
	"cmppgateway/gateway/internal/settings"
	"cmppgateway/gateway/internal/store"
)

// UnknownSubmit is a submit that may have reached its supplier and has no answer. Its money is frozen.
type UnknownSubmit struct {
	SubmitID     int64     `json:"submitId,string"`
	MessageID    int64     `json:"messageId,string"`
	Phone        int64     `json:"phone"`
	DispatchedAt time.Time `json:"dispatchedAt"`
	Account      int32     `json:"account"` // supplier account
	Channel      int32     `json:"channel"`
	Part         int16     `json:"part"`
	Src          string    `json:"src"` // Src_Id used; "" = not known
	Enterprise   int32     `json:"enterprise"`
	Application  int32     `json:"application"`
	Amount       int64     `json:"amount"` // 1/10,000 yuan
}

// ListUnknown lists every submit that is unknown, oldest first.
func ListUnknown(ctx context.Context, pool *pgxpool.Pool) ([]UnknownSubmit, error) {
	rows, err := pool.Query(ctx, store.SettlementUnknownList)
	if err != nil {
		return nil, fmt.Errorf("list unknown submits: %w", err)
	}
	list, err := pgx.CollectRows(rows, func(row pgx.CollectableRow) (u UnknownSubmit, err error) {
		var src []byte
		err = row.Scan(&u.SubmitID, &u.MessageID, &u.Phone, &u.DispatchedAt, &u.Account, &u.Channel, &u.Part, &src, &u.Enterprise, &u.Application, &u.Amount)
		u.Src = string(src)
		return u, err
	})
	if err != nil {
		return nil, fmt.Errorf("list unknown submits: %w", err)
	}
	return list, nil
}

// Absent says what an unknown submit becomes that its supplier's statement of that day does not list.
type Absent uint8

// Policies for absent submits.
const (
	KeepUnknown Absent = iota // it stays unknown
	NotSent                   // it was not sent: the message fails and its money is released
)

// ParseAbsent reads "keep" or "not-sent".
func ParseAbsent(s string) (Absent, error) {
	switch s {
	case "keep":
		return KeepUnknown, nil
	case "not-sent":
		return NotSent, nil
	}
	return 0, fmt.Errorf("absent %q: want keep or not-sent", s)
}

// Verdict is what an operator knows about an unknown submit.
type Verdict uint8

// Verdicts.
const (
	WasNotSent Verdict = iota // the supplier never had it: refused, not sent again, the money is released
	WasSent                   // the supplier took it: accepted, the money is charged; its Msg_Id stays unknown
)

// ParseVerdict reads "not-sent" or "sent".
func ParseVerdict(s string) (Verdict, error) {
	switch s {
	case "not-sent":
		return WasNotSent, nil
	case "sent":
		return WasSent, nil
	}
	return 0, fmt.Errorf("verdict %q: want not-sent or sent", s)
}

// Resolution is what was done to unknown submits.
type Resolution struct {
	Accepted int `json:"accepted"` // the statement has them with result 0, or an operator said so
	Rejected int `json:"rejected"` // the statement has them with another result
	NotSent  int `json:"notSent"`  // the statement has not, and the policy said so; or an operator did
	Kept     int `json:"kept"`     // still unknown
}

// Words of a [Decision].
const (
	BecomesAccepted = "accepted"
	BecomesRejected = "rejected"
	BecomesNotSent  = "not-sent"
	StaysUnknown    = "unknown"
)

// Decision is what becomes of one unknown submit, and why.
type Decision struct {
	UnknownSubmit

	Becomes string `json:"becomes"`
	Line    int    `json:"line,omitempty"` // of the statement
	MsgID   uint64 `json:"msgId,string,omitempty"`
	Result  uint32 `json:"result,omitempty"`
	Why     string `json:"why"`

	at time.Time
}

// DecideUnknown says what [ResolveUnknown] would do by this statement, and changes nothing.
func DecideUnknown(ctx context.Context, pool *pgxpool.Pool, snap *settings.Snapshot, statement io.Reader, absent Absent) ([]Decision, error) {
	lines, err := readStatement(statement)
	if err != nil {
		return nil, fmt.Errorf("statement: %w", err)
	}
	unknowns, err := ListUnknown(ctx, pool)
	if err != nil {
		return nil, err
	}
	if err := useKnown(ctx, pool, snap, lines, unknowns); err != nil {
		return nil, fmt.Errorf("resolve unknown submits: %w", err)
	}
	return match(snap, lines, unknowns, absent), nil
}

// ResolveUnknown closes unknown submits by a supplier's daily statement: CSV with a header that names the columns account
// (login id), msg_id, number, src_id, submit_time and result; others are ignored. A line is the submit of its account to
// its number within ten minutes of the dispatch; several parts of one message are taken in order, several messages to one
// number are left alone, and so are lines about submits that are known. absent applies to submits of accounts and days
// (Asia/Shanghai) that the statement lists. Repeating it changes nothing. announce (may be nil) is called with each outcome
// after its COMMIT.
func ResolveUnknown(ctx context.Context, pool *pgxpool.Pool, ids *message.IDs, snap *settings.Snapshot, statement io.Reader, absent Absent, announce func(*Outcome)) (Resolution, error) {
	decisions, err := DecideUnknown(ctx, pool, snap, statement, absent)
	if err != nil {
		return Resolution{}, err
	}
	return CarryOut(ctx, pool, ids, snap, decisions, announce)
}

// CarryOut does what was decided about unknown submits, in transactions of 200. Those that are closed meanwhile stay as they
// are and count as kept.
func CarryOut(ctx context.Context, pool *pgxpool.Pool, ids *message.IDs, snap *settings.Snapshot, decisions []Decision, announce func(*Outcome)) (Resolution, error) {
	var res Resolution
	var answered, absent []Decision
	for _, d := range decisions {
		switch d.Becomes {
		case BecomesAccepted, BecomesRejected:
			answered = append(answered, d)
		case BecomesNotSent:
			absent = append(absent, d)
		default:
			res.Kept++
		}
	}
	for chunk := range slices.Chunk(answered, sweepRows) {
		results := make([]event.SubmitResult, len(chunk))
		for i := range chunk {
			results[i] = chunk[i].result()
		}
		var accepted, rejected int
		err := commit(ctx, pool, announce, func(tx pgx.Tx) (*Outcome, error) {
			w := newWork(ids, snap)
			if err := w.results(ctx, tx, results); err != nil {
				return nil, err
			}
			accepted, rejected = w.closed[event.Accepted], w.closed[event.Rejected]
			return &w.Outcome, nil
		})
		if err != nil {
			return res, fmt.Errorf("resolve unknown submits: %w", err)
		}
		res.Accepted, res.Rejected, res.Kept = res.Accepted+accepted, res.Rejected+rejected, res.Kept+len(chunk)-accepted-rejected
	}
	for chunk := range slices.Chunk(absent, sweepRows) {
		n := 0
		err := commit(ctx, pool, announce, func(tx pgx.Tx) (*Outcome, error) {
			w := newWork(ids, snap)
			var err error
			n, err = w.notSent(ctx, tx, chunk)
			return &w.Outcome, err
		})
		if err != nil {
			return res, fmt.Errorf("resolve unknown submits: %w", err)
		}
		res.NotSent, res.Kept = res.NotSent+n, res.Kept+len(chunk)-n
	}
	return res, nil
}

// JudgeUnknown says what an operator's verdict does to the unknown submits named; one that is not unknown is an error that
// names it.
func JudgeUnknown(ctx context.Context, pool *pgxpool.Pool, submits []int64, verdict Verdict) ([]Decision, error) {
	all, err := ListUnknown(ctx, pool)
	if err != nil {
		return nil, err
	}
	by := make(map[int64]*UnknownSubmit, len(all))
	for i := range all {
		by[all[i].SubmitID] = &all[i]
	}
	var decisions []Decision
	var errs []error
	for _, id := range sorted(submits) {
		u := by[id]
		if u == nil {
			errs = append(errs, fmt.Errorf("submit %d is not unknown", id))
			continue
		}
		d := Decision{UnknownSubmit: *u, Becomes: BecomesNotSent, Why: "an operator"}
		if verdict == WasSent {
			d.Becomes = BecomesAccepted
		}
		decisions = append(decisions, d)
	}
	return decisions, errors.Join(errs...)
}

// result is the answer that a decision stands for.
func (d *Decision) result() event.SubmitResult {
	r := event.SubmitResult{
		SubmitID: d.SubmitID, MessageID: d.MessageID, ChannelID: d.Channel, AccountID: d.Account, State: event.Accepted, SupplierMsgID: d.MsgID,
		Part: d.Part, Phone: d.Phone, Src: d.Src, DispatchedAt: d.DispatchedAt, RespAt: d.at,
	}
	if d.Becomes == BecomesRejected {
		r.State, r.Result, r.SupplierMsgID = event.Rejected, d.Result, 0
	}
	return r
}

func commit(ctx context.Context, pool *pgxpool.Pool, announce func(*Outcome), fn func(pgx.Tx) (*Outcome, error)) error {
	var out *Outcome
	err := store.Retry(ctx, pool, func(tx pgx.Tx) (err error) {
		out, err = fn(tx)
		return err
	})
	if err == nil && announce != nil {
		announce(out)
	}
	return err
}

// notSent closes unknown submits that their supplier never had: refused, and not tried again.
func (w *work) notSent(ctx context.Context, tx pgx.Tx, list []Decision) (int, error) {
	var ids, messages, msgIDs []int64
	var states []message.Submit
	var results []int32
	var at []*time.Time
	for _, u := range list {
		ids, messages = append(ids, u.SubmitID), append(messages, u.MessageID)
		states, results, msgIDs, at = append(states, message.Refused), append(results, 0), append(msgIDs, 0), append(at, nil)
	}
	slices.Sort(ids)
	if err := w.load(ctx, tx, messages); err != nil {
		return 0, err
	}
	lo, hi := store.Bounds(ids)
	rows, err := tx.Query(ctx, store.SettlementLate, ids, lo, hi, states, results, msgIDs, at)
	if err != nil {
		return 0, err
	}
	moved, err := pgx.CollectRows(rows, scanMoved)
	if err != nil {
		return 0, err
	}
	for i := range moved {
		if m := w.msgs[moved[i].message]; m != nil {
			w.giveUp(ctx, m)
		}
	}
	var q pgx.Batch
	if err := w.queue(&q); err != nil {
		return 0, err
	}
	q.Queue(store.SettlementUnknownClose, submitIDs(moved, func(*submit) bool { return true }))
	w.queueAccounts(&q)
	return len(moved), send(ctx, tx, &q)
}
