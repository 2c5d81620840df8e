package settlement

import (
	"context"
	"encoding/csv"
	"errors"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"cmppgateway/gateway/cmpp"
	"cmppgateway/gateway/internal/event"
	"cmppgateway/gateway/internal/message"
	"cmppgateway/gateway/internal/settings"
	"cmppgateway/gateway/internal/store"
	"cmppgateway/gateway/sms"
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

// Resolution is what a statement did to the unknown submits.
type Resolution struct {
	Accepted int // the statement has them, with result 0
	Rejected int // with another result
	NotSent  int // the statement has not, and the policy said so
	Kept     int // still unknown
}

// line is one submit in a supplier's statement.
type line struct {
	account string // login id of the supplier account
	msgID   uint64
	number  int64
	src     string
	at      time.Time
	result  uint32
	used    bool
}

// ResolveUnknown closes unknown submits by a supplier's daily statement: CSV with a header that names the columns account
// (login id), msg_id, number, src_id, submit_time and result; others are ignored. A line is the submit of its account to
// its number within ten minutes of the dispatch; several parts of one message are taken in order, several messages to one
// number are left alone. absent applies to submits of accounts and days (Asia/Shanghai) that the statement lists.
// announce (may be nil) is called with each outcome after its COMMIT.
func ResolveUnknown(ctx context.Context, pool *pgxpool.Pool, ids *message.IDs, snap *settings.Snapshot, statement io.Reader, absent Absent, announce func(*Outcome)) (Resolution, error) {
	var res Resolution
	lines, err := readStatement(statement)
	if err != nil {
		return res, fmt.Errorf("statement: %w", err)
	}
	unknowns, err := ListUnknown(ctx, pool)
	if err != nil {
		return res, err
	}
	results, missing := match(snap, lines, unknowns, &res)
	for chunk := range slices.Chunk(results, sweepRows) {
		err := commit(ctx, pool, announce, func(tx pgx.Tx) (*Outcome, error) { return ApplyResults(ctx, tx, ids, snap, chunk) })
		if err != nil {
			return res, fmt.Errorf("resolve unknown submits: %w", err)
		}
		for _, r := range chunk {
			if r.State == event.Accepted {
				res.Accepted++
			} else {
				res.Rejected++
			}
		}
	}
	if absent == KeepUnknown {
		res.Kept += len(missing)
		return res, nil
	}
	for chunk := range slices.Chunk(missing, sweepRows) {
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
		res.NotSent += n
	}
	return res, nil
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

// match finds the line of each unknown submit. missing are those that the statement should have and has not.
func match(snap *settings.Snapshot, lines []line, unknowns []UnknownSubmit, res *Resolution) (results []event.SubmitResult, missing []UnknownSubmit) {
	type key struct {
		account string
		number  int64
	}
	by := map[key][]*line{}
	days := map[string]bool{}
	for i := range lines {
		l := &lines[i]
		k := key{l.account, l.number}
		by[k] = append(by[k], l)
		days[l.account+" "+day(l.at)] = true
	}
	login := func(u *UnknownSubmit) string {
		if a := snap.Accounts[u.Account]; a != nil {
			return a.SPID
		}
		return ""
	}
	fits := func(u *UnknownSubmit, l *line) bool {
		return !l.used && l.at.Sub(u.DispatchedAt).Abs() <= bindWithin && (u.Src == "" || l.src == "" || strings.HasSuffix(l.src, u.Src) || strings.HasSuffix(u.Src, l.src))
	}
	rivals := map[key]map[int64]bool{} // messages with an unknown submit to a number
	for i := range unknowns {
		u := &unknowns[i]
		k := key{login(u), u.Phone}
		if rivals[k] == nil {
			rivals[k] = map[int64]bool{}
		}
		rivals[k][u.MessageID] = true
	}
	// Parts of a message are in the order of their submits, and so are their lines.
	slices.SortFunc(unknowns, func(a, b UnknownSubmit) int { return int(a.Part) - int(b.Part) })
	for i := range unknowns {
		u := &unknowns[i]
		k := key{login(u), u.Phone}
		var found *line
		if i := slices.IndexFunc(by[k], func(l *line) bool { return fits(u, l) }); i >= 0 {
			found = by[k][i]
		}
		switch {
		case found == nil && days[k.account+" "+day(u.DispatchedAt)]:
			missing = append(missing, *u)
		case found == nil, len(rivals[k]) > 1 && ambiguous(u, unknowns, k.account, login):
			res.Kept++
		default:
			found.used = true
			results = append(results, result(u, found))
		}
	}
	return results, missing
}

// ambiguous says that an unknown submit of another message to the same number could be meant by the same line.
func ambiguous(u *UnknownSubmit, all []UnknownSubmit, account string, login func(*UnknownSubmit) string) bool {
	return slices.ContainsFunc(all, func(o UnknownSubmit) bool {
		return o.MessageID != u.MessageID && o.Phone == u.Phone && login(&o) == account && o.DispatchedAt.Sub(u.DispatchedAt).Abs() <= 2*bindWithin
	})
}

func day(t time.Time) string { return t.In(cmpp.Shanghai).Format(time.DateOnly) }

func result(u *UnknownSubmit, l *line) event.SubmitResult {
	r := event.SubmitResult{
		SubmitID: u.SubmitID, MessageID: u.MessageID, ChannelID: u.Channel, AccountID: u.Account, State: event.Accepted, SupplierMsgID: l.msgID,
		Part: u.Part, Phone: u.Phone, Src: u.Src, DispatchedAt: u.DispatchedAt, RespAt: l.at,
	}
	if l.result != 0 {
		r.State, r.Result, r.SupplierMsgID = event.Rejected, l.result, 0
	}
	return r
}

// notSent closes unknown submits that their supplier never had: refused, and not tried again.
func (w *work) notSent(ctx context.Context, tx pgx.Tx, list []UnknownSubmit) (int, error) {
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
	q.Queue(store.SettlementUnknownClose, submitIDs(moved))
	w.queueAccounts(&q)
	return len(moved), send(ctx, tx, &q)
}

// readStatement reads the lines of a statement; an error names the line.
func readStatement(r io.Reader) ([]line, error) {
	in := csv.NewReader(r)
	in.FieldsPerRecord = -1
	head, err := in.Read()
	if err != nil {
		return nil, fmt.Errorf("header: %w", err)
	}
	at := map[string]int{}
	for i, name := range head {
		at[strings.TrimSpace(strings.TrimPrefix(name, "\ufeff"))] = i
	}
	for _, name := range []string{"account", "msg_id", "number", "src_id", "submit_time", "result"} {
		if _, ok := at[name]; !ok {
			return nil, fmt.Errorf("header: no column %s", name)
		}
	}
	var lines []line
	for {
		record, err := in.Read()
		if errors.Is(err, io.EOF) {
			return lines, nil
		}
		if err != nil {
			return nil, err
		}
		number, _ := in.FieldPos(0)
		l, err := parseLine(record, at)
		if err != nil {
			return nil, fmt.Errorf("line %d: %w", number, err)
		}
		lines = append(lines, l)
	}
}

func parseLine(record []string, at map[string]int) (l line, err error) {
	field := func(name string) string {
		if i := at[name]; i < len(record) {
			return strings.TrimSpace(record[i])
		}
		return ""
	}
	l.account, l.src = field("account"), field("src_id")
	if id := field("msg_id"); id != "" && id != "0" {
		parsed, err := cmpp.ParseMsgID(id)
		if err != nil {
			return l, fmt.Errorf("msg_id: %w", err)
		}
		l.msgID = uint64(parsed)
	}
	number, err := sms.NormalizeNumber(field("number"))
	if err != nil {
		return l, fmt.Errorf("number: %w", err)
	}
	l.number = int64(number)
	result, err := strconv.ParseUint(field("result"), 10, 32)
	if err != nil {
		return l, fmt.Errorf("result %q: want 0..4294967295", field("result"))
	}
	l.result = uint32(result)
	text := field("submit_time")
	for _, layout := range []string{time.RFC3339Nano, time.DateTime, "20060102150405", "0601021504"} {
		if l.at, err = time.ParseInLocation(layout, text, cmpp.Shanghai); err == nil {
			return l, nil
		}
	}
	return l, fmt.Errorf("submit_time %q: want a time as 2026-01-02T15:04:05+08:00, or YYMMDDHHMM in Asia/Shanghai", text)
}
