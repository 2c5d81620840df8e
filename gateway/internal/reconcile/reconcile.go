package reconcile

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"cmppgateway/gateway/cmpp"
	"cmppgateway/gateway/internal/message"
	"cmppgateway/gateway/internal/routing"
	"cmppgateway/gateway/internal/settings"
	"cmppgateway/gateway/internal/settlement"
	"cmppgateway/gateway/internal/store"
	"cmppgateway/gateway/sms"
)

const (
	// tolerance is how far apart the sides may see one SUBMIT; a submit so near midnight belongs to the day whose
	// statement lists it.
	tolerance = 10 * time.Minute
	// lifetime is how long before its dispatch a submit may have got its id: validity and resends.
	lifetime = 3 * 24 * time.Hour
	// maxAlone bounds what has no partner and must be held: a statement with more is of another account or day.
	maxAlone = 1_000_000
)

// Options are one comparison.
type Options struct {
	Pool     *pgxpool.Pool
	IDs      *message.IDs
	Snapshot *settings.Snapshot
	Account  int32
	Day      time.Time // any time of the supplier's business day, read in Asia/Shanghai
	From     io.Reader // the statement
	File     string    // its name, for people
	Absent   settlement.Absent
	Dry      bool // compare only: close nothing, store nothing
	Announce func(*settlement.Outcome)
}

// Run compares the statement with the submits of its account and day, closes unknown submits by its evidence and stores
// the report, replacing an earlier one of that account and day. It may run beside full load and any number of times: the
// statement is evidence, and evidence closes a submit once. A faulty statement changes nothing; up to 20 faulty lines are named.
func Run(ctx context.Context, o Options) (*Report, error) {
	account := o.Snapshot.Accounts[o.Account]
	if account == nil {
		return nil, fmt.Errorf("account %d: no such supplier account", o.Account)
	}
	format, err := FormatOf(ctx, o.Pool, o.Account)
	if err != nil {
		return nil, err
	}
	rules, err := format.parse()
	if err != nil {
		return nil, fmt.Errorf("statement format of account %d: %w", o.Account, err)
	}
	year, month, day := o.Day.In(cmpp.Shanghai).Date()
	from := time.Date(year, month, day, 0, 0, 0, 0, cmpp.Shanghai).Add(rules.cutoff)
	hash := sha256.New()
	lines, err := newReader(io.TeeReader(o.From, hash), rules, account.SPID)
	if err != nil {
		return nil, fmt.Errorf("statement: %w", err)
	}
	m := &matching{snap: o.Snapshot, account: o.Account, rules: rules, from: from, to: from.AddDate(0, 0, 1), cells: map[cellKey]*Cell{}}
	m.report = &Report{Account: o.Account, Day: from.Add(-rules.cutoff).Format(time.DateOnly), At: time.Now().UTC(), File: o.File, Kinds: map[Kind]int64{}}
	if err := m.join(ctx, o.Pool, lines); err != nil {
		return nil, err
	}
	m.leftovers()
	m.report.Lines, m.report.SHA256 = lines.lines, hex.EncodeToString(hash.Sum(nil))
	if !o.Dry {
		if err := m.close(ctx, o, account.SPID); err != nil {
			return nil, err
		}
	}
	m.finish(o.Absent)
	if !o.Dry {
		if err := save(ctx, o.Pool, o.IDs, m.report, hash.Sum(nil)); err != nil {
			return nil, err
		}
	}
	return m.report, nil
}

// ours is one submit as recorded.
type ours struct {
	id, message, msgID, phone int64
	channel                   int32
	part, parts               int16
	state                     message.Submit
	result                    int32
	at                        time.Time
	carrier                   routing.Carrier
	units                     int64
	taken                     bool
}

type cellKey struct {
	channel int32
	carrier routing.Carrier
}

// matching is the comparison in hand.
type matching struct {
	snap     *settings.Snapshot
	account  int32
	rules    *rules
	from, to time.Time
	cells    map[cellKey]*Cell
	report   *Report

	alone    []ours // without a line of their Msg_Id and recipient
	strays   []line // lines without a submit of theirs
	evidence []line // strays that may be unknown submits, and one line a day that is none
	matched  *line  // any line that found its submit: proof that the statement covers the day
}

// join runs the comparison in PostgreSQL and takes its rows one by one.
func (m *matching) join(ctx context.Context, pool *pgxpool.Pool, lines *reader) error {
	err := pgx.BeginTxFunc(ctx, pool, pgx.TxOptions{IsoLevel: pgx.RepeatableRead}, func(tx pgx.Tx) error {
		// One join of a whole day: scans and hashes are right here, and it takes as long as it takes.
		if _, err := tx.Exec(ctx, "SET LOCAL enable_seqscan = on; SET LOCAL work_mem = '64MB'; SET LOCAL statement_timeout = 0; SET LOCAL idle_in_transaction_session_timeout = '5min'"); err != nil {
			return err
		}
		if _, err := tx.Exec(ctx, store.ReconcileTheirs); err != nil {
			return err
		}
		columns := []string{"line", "msg_id", "phone", "at", "accepted", "result", "units", "src"}
		if _, err := tx.CopyFrom(ctx, pgx.Identifier{"theirs"}, columns, lines); err != nil {
			if lines.err != nil {
				return fmt.Errorf("statement: %w", lines.err)
			}
			return err
		}
		if _, err := tx.Exec(ctx, "ANALYZE theirs"); err != nil {
			return err
		}
		rows, err := tx.Query(ctx, store.ReconcileCompare, m.account, message.FirstID(m.from.Add(-lifetime)), message.FirstID(m.to.Add(tolerance)),
			m.from.Add(-tolerance), m.to.Add(tolerance))
		if err != nil {
			return err
		}
		return m.read(rows)
	})
	if err != nil {
		return fmt.Errorf("reconcile account %d: %w", m.account, err)
	}
	return nil
}

func (m *matching) read(rows pgx.Rows) error {
	defer rows.Close()
	var o struct {
		id, message, msgID, phone           *int64
		channel, result                     *int32
		part, parts, state, carrier, f, udh *int16
		at                                  *time.Time
		content                             []byte
	}
	var t struct {
		line, result, units *int32
		msgID, phone        *int64
		at                  *time.Time
		accepted            *bool
		src                 *string
	}
	for rows.Next() {
		if err := rows.Scan(&o.id, &o.message, &o.msgID, &o.channel, &o.part, &o.parts, &o.state, &o.result, &o.at, &o.phone, &o.carrier, &o.f, &o.udh, &o.content,
			&t.line, &t.msgID, &t.phone, &t.at, &t.accepted, &t.result, &t.units, &t.src); err != nil {
			return err
		}
		var mine *ours
		var theirs *line
		if o.id != nil {
			mine = &ours{
				id: *o.id, message: *o.message, msgID: *o.msgID, phone: *o.phone, channel: *o.channel, part: *o.part, parts: *o.parts,
				state: message.Submit(*o.state), result: *o.result, at: *o.at, carrier: routing.Carrier(*o.carrier), units: 1,
			}
			if m.rules.units != nil {
				mine.units = m.unitsOf(mine, sms.Fmt(*o.f), *o.udh != 0, o.content)
			}
		}
		if t.line != nil {
			theirs = &line{no: int(*t.line), msgID: *t.msgID, phone: *t.phone, at: t.at, accepted: *t.accepted, result: *t.result, units: *t.units, src: *t.src}
		}
		switch {
		case mine != nil && theirs != nil:
			m.pair(mine, theirs, "")
			m.matched = theirs
		case mine != nil:
			m.alone = append(m.alone, *mine)
		default:
			m.strays = append(m.strays, *theirs)
		}
		if len(m.alone)+len(m.strays) > maxAlone {
			return fmt.Errorf("more than %d submits and lines without a partner: is it the statement of this account and day?", maxAlone)
		}
	}
	return rows.Err()
}

// unitsOf is what the supplier bills for one of the SUBMITs of a message: the units of the whole text, one a part and the
// rest on the first. Content that is no text counts one a part.
func (m *matching) unitsOf(o *ours, f sms.Fmt, udhi bool, content []byte) int64 {
	if udhi {
		if _, _, _, payload, err := sms.SplitHeader(content); err == nil {
			content = payload
		}
	}
	text, err := sms.DecodeText(f, content)
	if err != nil || o.part > 1 {
		return 1
	}
	return max(1, int64(m.rules.units(text))-int64(o.parts)+1)
}

func (m *matching) cell(channel int32, carrier routing.Carrier) *Cell {
	k := cellKey{channel, carrier}
	c := m.cells[k]
	if c == nil {
		c = &Cell{Channel: channel, Carrier: carrier}
		m.cells[k] = c
	}
	return c
}

func (m *matching) countOurs(o *ours) {
	if o.state == message.Accepted {
		c := m.cell(o.channel, o.carrier)
		c.OursN++
		c.OursUnits += o.units
	}
}

func (m *matching) countTheirs(l *line, channel int32, carrier routing.Carrier) {
	if l.accepted {
		c := m.cell(channel, carrier)
		c.TheirsN++
		c.TheirsUnits += int64(l.units)
	}
}

// pair takes a submit and a line for one; kind is the difference the way of matching shows already, or "".
func (m *matching) pair(o *ours, l *line, kind Kind) {
	m.countOurs(o)
	m.countTheirs(l, o.channel, o.carrier)
	d := m.difference(o, l)
	switch {
	case (o.state == message.Accepted) != l.accepted:
		d.Kind = Result
		d.Ours, d.Theirs = fmt.Sprintf("%s, result %d", o.state, o.result), fmt.Sprintf("accepted %t, result %d", l.accepted, l.result)
	case !l.accepted: // refused on both sides: nobody bills it
		return
	case kind != "":
		d.Kind = kind
		d.Ours, d.Theirs = fmt.Sprintf("number %d, Msg_Id %d", o.phone, uint64(o.msgID)), fmt.Sprintf("number %d, Msg_Id %d", l.phone, uint64(l.msgID))
	case o.units != int64(l.units):
		d.Kind = Units
		d.Ours, d.Theirs = fmt.Sprintf("%d units", o.units), fmt.Sprintf("%d units", l.units)
	default:
		return
	}
	m.report.add(d)
}

func (m *matching) difference(o *ours, l *line) (d Difference) {
	if o != nil {
		d = Difference{SubmitID: o.id, MessageID: o.message, MsgID: uint64(o.msgID), Phone: o.phone, Channel: o.channel, At: &o.at}
	}
	if l != nil {
		d.Line = l.no
		if o == nil {
			d.MsgID, d.Phone, d.Channel, d.At = uint64(l.msgID), l.phone, m.channelOf(l), l.at
		}
	}
	return d
}

// channelOf tells a line's channel by its Src_Id, or by there being only one of the account; 0 = cannot be told.
func (m *matching) channelOf(l *line) int32 {
	var found int32
	longest, n := -1, 0
	for _, c := range m.snap.Channels {
		if c.AccountID != m.account {
			continue
		}
		n++
		switch {
		case l.src == "" && n == 1:
			found = c.ID
		case l.src == "":
			found = 0
		case strings.HasPrefix(l.src, c.AccessNumber) && (len(c.AccessNumber) > longest || len(c.AccessNumber) == longest && c.ID < found):
			found, longest = c.ID, len(c.AccessNumber)
		}
	}
	return found
}

// close gives the evidence to settlement, the one place that closes unknown submits.
func (m *matching) close(ctx context.Context, o Options, login string) error {
	if len(m.evidence) == 0 {
		return nil
	}
	pr, pw := io.Pipe()
	go func() { pw.CloseWithError(writeEvidence(pw, login, m.evidence)) }()
	res, err := settlement.ResolveUnknown(ctx, o.Pool, o.IDs, o.Snapshot, pr, o.Absent, o.Announce)
	if err = errors.Join(err, pr.Close()); err != nil {
		return fmt.Errorf("reconcile account %d: %w", m.account, err)
	}
	m.report.Closed, m.report.Kept = res.Accepted+res.Rejected+res.NotSent, res.Kept
	return nil
}
