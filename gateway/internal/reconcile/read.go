package reconcile

import (
	"encoding/csv"
	"errors"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"
	"time"

	"golang.org/x/text/encoding/simplifiedchinese"

	"cmppgateway/gateway/cmpp"
	"cmppgateway/gateway/sms"
)

// line is one submit in a statement.
type line struct {
	no       int
	msgID    int64 // u64 as two's complement, 0 = none
	phone    int64
	at       *time.Time
	accepted bool
	result   int32
	units    int32
	src      string
}

// maxFaults is how many faulty lines are named before the statement is refused.
const maxFaults = 20

// reader reads the lines of one account. It is a pgx.CopyFromSource.
type reader struct {
	rules *rules
	login string
	in    *csv.Reader
	at    [7]int // places of the columns, -1 = none
	fresh bool   // the record in hand was not looked at yet
	held  []string

	now    line
	lines  int64
	faults []error
	err    error
}

// columns in the order of reader.at.
func (c Columns) list() []struct{ field, head string } {
	return []struct{ field, head string }{
		{"account", c.Account},
		{"msg_id", c.MsgID},
		{"number", c.Number},
		{"src", c.Src},
		{"time", c.Time},
		{"result", c.Result},
		{"units", c.Units},
	}
}

const (
	colAccount = iota
	colMsgID
	colNumber
	colSrc
	colTime
	colResult
	colUnits
)

func newReader(from io.Reader, r *rules, login string) (*reader, error) {
	if r.gb18030 {
		from = simplifiedchinese.GB18030.NewDecoder().Reader(from)
	}
	in := csv.NewReader(from)
	in.Comma, in.FieldsPerRecord, in.ReuseRecord, in.LazyQuotes = r.comma, -1, true, true
	out := &reader{rules: r, login: login, in: in}
	first, err := in.Read()
	if err != nil {
		return nil, fmt.Errorf("first line: %w", err)
	}
	first = slices.Clone(first)
	first[0] = strings.TrimPrefix(first[0], "\ufeff")
	var faults []error
	for i, c := range r.Columns.list() {
		out.at[i] = -1
		switch {
		case c.head == "":
		case r.NoHeader:
			place, err := strconv.Atoi(c.head)
			if err != nil || place < 1 || place > len(first) {
				faults = append(faults, fmt.Errorf("columns.%s %q: want a place 1..%d, for the file has no head", c.field, c.head, len(first)))
				continue
			}
			out.at[i] = place - 1
		default:
			out.at[i] = slices.IndexFunc(first, func(s string) bool { return strings.TrimSpace(s) == c.head })
			if out.at[i] < 0 {
				faults = append(faults, fmt.Errorf("columns.%s: the statement has no column %q, but %s", c.field, c.head, strings.Join(first, ", ")))
			}
		}
	}
	if r.NoHeader {
		out.held, out.fresh = first, true
	}
	return out, errors.Join(faults...)
}

// Next reads on to the next line of the account. Faulty lines are collected; too many end the reading.
func (r *reader) Next() bool {
	for r.err == nil {
		record := r.held
		if !r.fresh {
			var err error
			if record, err = r.in.Read(); errors.Is(err, io.EOF) {
				r.err = errors.Join(r.faults...)
				return false
			} else if err != nil {
				r.err = errors.Join(append(r.faults, err)...)
				return false
			}
		}
		r.fresh = false
		no, _ := r.in.FieldPos(0)
		if a := r.field(record, colAccount); r.at[colAccount] >= 0 && a != r.login {
			continue
		}
		if err := r.parse(record); err != nil {
			if r.faults = append(r.faults, fmt.Errorf("line %d: %w", no, err)); len(r.faults) == maxFaults {
				r.err = errors.Join(append(r.faults, errors.New("and perhaps more"))...)
			}
			continue
		}
		r.now.no = no
		r.lines++
		return true
	}
	return false
}

// Values is the row of the temporary table.
func (r *reader) Values() ([]any, error) {
	l := &r.now
	return []any{int32(l.no), l.msgID, l.phone, l.at, l.accepted, l.result, l.units, l.src}, nil
}

// Err is what ended the reading.
func (r *reader) Err() error { return r.err }

func (r *reader) field(record []string, column int) string {
	if i := r.at[column]; i >= 0 && i < len(record) {
		return strings.TrimSpace(record[i])
	}
	return ""
}

func (r *reader) parse(record []string) error {
	l := line{accepted: true, units: 1, src: r.field(record, colSrc)}
	var faults []error
	if id := r.field(record, colMsgID); id != "" && id != "0" {
		parsed, err := r.msgID(id)
		if err != nil {
			faults = append(faults, fmt.Errorf("msg_id %q: %w", id, err))
		}
		l.msgID = int64(parsed)
	}
	number, err := sms.NormalizeNumber(r.field(record, colNumber))
	if err != nil {
		faults = append(faults, fmt.Errorf("number: %w", err))
	}
	l.phone = int64(number)
	if r.at[colTime] >= 0 {
		at, err := r.time(r.field(record, colTime))
		if err != nil {
			faults = append(faults, err)
		}
		l.at = &at
	}
	if r.at[colResult] >= 0 {
		text := r.field(record, colResult)
		l.accepted = r.rules.accepted[text]
		if n, err := strconv.ParseInt(text, 10, 32); err == nil {
			l.result = int32(n)
		}
	}
	if r.at[colUnits] >= 0 {
		text := r.field(record, colUnits)
		n, err := strconv.ParseInt(text, 10, 32)
		if err != nil || n < 0 {
			faults = append(faults, fmt.Errorf("units %q: want a number from 0", text))
		}
		l.units = int32(n)
	}
	r.now = l
	return errors.Join(faults...)
}

func (r *reader) msgID(s string) (uint64, error) {
	switch r.rules.MsgIDBase {
	case "decimal":
		return strconv.ParseUint(s, 10, 64)
	case "hex":
		return strconv.ParseUint(strings.TrimPrefix(s, "0x"), 16, 64)
	}
	id, err := cmpp.ParseMsgID(s)
	return uint64(id), err
}

var layouts = []string{time.RFC3339Nano, time.DateTime, "20060102150405", "0601021504"}

func (r *reader) time(s string) (time.Time, error) {
	try := layouts
	if r.rules.TimeLayout != "" {
		try = []string{r.rules.TimeLayout}
	}
	for _, layout := range try {
		if at, err := time.ParseInLocation(layout, s, cmpp.Shanghai); err == nil {
			return at, nil
		}
	}
	return time.Time{}, fmt.Errorf("time %q: want %s, in Asia/Shanghai unless it says otherwise", s, strings.Join(try, " or "))
}
