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
	"cmppgateway/gateway/internal/settings"
	"cmppgateway/gateway/internal/store"
	"cmppgateway/gateway/sms"
)

// line is one submit in a supplier's statement.
type line struct {
	no      int
	account string // login id of the supplier account
	msgID   uint64
	number  int64
	src     string
	at      time.Time
	result  uint32
	used    bool
}

// lineKey is where lines and unknown submits may meet.
type lineKey struct {
	account string
	number  int64
}

func loginOf(snap *settings.Snapshot, account int32) string {
	if a := snap.Accounts[account]; a != nil {
		return a.SPID
	}
	return ""
}

// fits says that a line may be about a submit of its account to its number.
func (l *line) fits(src string, at time.Time) bool {
	return !l.used && l.at.Sub(at).Abs() <= bindWithin && (src == "" || l.src == "" || strings.HasSuffix(l.src, src) || strings.HasSuffix(src, l.src))
}

// useKnown marks the lines that are about submits whose answers are known: they say nothing about unknown ones. Accepted ones
// are recognised by Msg_Id. A refused one has none and is taken for the line of its number and time.
func useKnown(ctx context.Context, pool *pgxpool.Pool, snap *settings.Snapshot, lines []line, unknowns []UnknownSubmit) error {
	wanted := map[lineKey]bool{}
	for i := range unknowns {
		wanted[lineKey{loginOf(snap, unknowns[i].Account), unknowns[i].Phone}] = true
	}
	byMsgID, refused := map[int64][]*line{}, map[lineKey][]*line{}
	var msgIDs, phones []int64
	for i := range lines {
		l := &lines[i]
		k := lineKey{l.account, l.number}
		switch {
		case !wanted[k]:
		case l.msgID != 0:
			byMsgID[int64(l.msgID)] = append(byMsgID[int64(l.msgID)], l)
			msgIDs = append(msgIDs, int64(l.msgID))
		default:
			refused[k] = append(refused[k], l)
			phones = append(phones, l.number)
		}
	}
	if len(msgIDs)+len(phones) == 0 {
		return nil
	}
	return pgx.BeginTxFunc(ctx, pool, pgx.TxOptions{AccessMode: pgx.ReadOnly}, func(tx pgx.Tx) error {
		// The submits of a message have no index: the days are read once.
		if _, err := tx.Exec(ctx, "SET LOCAL enable_seqscan = on; SET LOCAL enable_bitmapscan = on; SET LOCAL statement_timeout = 0"); err != nil {
			return err
		}
		rows, err := tx.Query(ctx, store.SettlementKnownMsgIDs, sorted(msgIDs))
		if err != nil {
			return err
		}
		var msgID, phone int64
		var account int32
		if _, err := pgx.ForEachRow(rows, []any{&msgID, &account}, func() error {
			for _, l := range byMsgID[msgID] {
				l.used = l.used || l.account == loginOf(snap, account)
			}
			return nil
		}); err != nil {
			return err
		}
		if rows, err = tx.Query(ctx, store.SettlementKnownRefused, sorted(phones)); err != nil {
			return err
		}
		var at time.Time
		_, err = pgx.ForEachRow(rows, []any{&phone, &account, &at}, func() error {
			list := refused[lineKey{loginOf(snap, account), phone}]
			if i := slices.IndexFunc(list, func(l *line) bool { return l.fits("", at) }); i >= 0 {
				list[i].used = true
			}
			return nil
		})
		return err
	})
}

// match decides about each unknown submit by the lines that are not used.
func match(snap *settings.Snapshot, lines []line, unknowns []UnknownSubmit, absent Absent) []Decision {
	by := map[lineKey][]*line{}
	days := map[string]bool{}
	for i := range lines {
		l := &lines[i]
		k := lineKey{l.account, l.number}
		by[k] = append(by[k], l)
		days[l.account+" "+day(l.at)] = true
	}
	// Parts of a message are in the order of their submits, and so are their lines.
	slices.SortStableFunc(unknowns, func(a, b UnknownSubmit) int { return int(a.Part) - int(b.Part) })
	byNumber := map[lineKey][]*UnknownSubmit{}
	for i := range unknowns {
		u := &unknowns[i]
		k := lineKey{loginOf(snap, u.Account), u.Phone}
		byNumber[k] = append(byNumber[k], u)
	}
	decisions := make([]Decision, 0, len(unknowns))
	for i := range unknowns {
		u := &unknowns[i]
		k := lineKey{loginOf(snap, u.Account), u.Phone}
		d := Decision{UnknownSubmit: *u, Becomes: StaysUnknown}
		var found *line
		if i := slices.IndexFunc(by[k], func(l *line) bool { return l.fits(u.Src, u.DispatchedAt) }); i >= 0 {
			found = by[k][i]
		}
		switch {
		case found == nil && !days[k.account+" "+day(u.DispatchedAt)]:
			d.Why = "the statement does not cover its account and day"
		case found == nil && absent == NotSent:
			d.Becomes, d.Why = BecomesNotSent, "the statement of its account and day does not list it"
		case found == nil:
			d.Why = "not in the statement; absent submits are kept"
		case ambiguous(u, byNumber[k]):
			d.Line, d.Why = found.no, "another unknown message to the number could be meant"
		default:
			found.used = true
			d.Becomes, d.Line, d.MsgID, d.Result, d.at, d.Why = BecomesAccepted, found.no, found.msgID, found.result, found.at, "its number and time"
			if found.result != 0 {
				d.Becomes, d.MsgID = BecomesRejected, 0
			}
		}
		decisions = append(decisions, d)
	}
	return decisions
}

// ambiguous says that an unknown submit of another message to the same number could be meant by the same line.
func ambiguous(u *UnknownSubmit, all []*UnknownSubmit) bool {
	return slices.ContainsFunc(all, func(o *UnknownSubmit) bool {
		return o.MessageID != u.MessageID && o.DispatchedAt.Sub(u.DispatchedAt).Abs() <= 2*bindWithin
	})
}

func day(t time.Time) string { return t.In(cmpp.Shanghai).Format(time.DateOnly) }

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
		l.no = number
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
