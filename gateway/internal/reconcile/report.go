package reconcile

import (
	"fmt"
	"io"
	"time"

	"cmppgateway/gateway/internal/routing"
)

// Kind is what is different.
type Kind string

// The kinds of differences. An unknown submit that the statement lists is none: it is closed by the evidence.
const (
	OnlyOurs   Kind = "only_ours"   // accepted as we saw it, not in the statement
	OnlyTheirs Kind = "only_theirs" // accepted as they say, and no submit of ours
	Result     Kind = "result"      // accepted on one side, refused on the other
	Units      Kind = "units"       // another number of units
	Number     Kind = "number"      // one Msg_Id, two recipients
	MsgID      Kind = "msg_id"      // recipient and time agree, the Msg_Id does not
	Absent     Kind = "unknown"     // unknown to us and not in the statement
)

// Difference is one submit that differs.
type Difference struct {
	Kind      Kind       `json:"kind"`
	SubmitID  int64      `json:"submitId,string,omitempty"`
	MessageID int64      `json:"messageId,string,omitempty"`
	MsgID     uint64     `json:"supplierMsgId,string"`
	Phone     int64      `json:"phone"`
	Line      int        `json:"line,omitempty"` // in the statement
	Channel   int32      `json:"channel,omitempty"`
	At        *time.Time `json:"at,omitempty"`
	Ours      string     `json:"ours"`
	Theirs    string     `json:"theirs"`
}

// Cell is one channel, carrier and (by its report) day.
type Cell struct {
	Channel     int32           `json:"channel"` // 0 = a line whose channel cannot be told
	Carrier     routing.Carrier `json:"carrier"`
	OursN       int64           `json:"oursN"`
	OursUnits   int64           `json:"oursUnits"`
	TheirsN     int64           `json:"theirsN"`
	TheirsUnits int64           `json:"theirsUnits"`
}

// AlertRatio is the share of differing submits above which an operator is called (0.1 %).
const AlertRatio = 0.001

// maxListed is how many differences of a kind are kept; Kinds counts all.
const maxListed = 10_000

// Report is one account and day compared.
type Report struct {
	Account   int32          `json:"account"`
	Day       string         `json:"day"` // the supplier's business day, 2006-01-02
	At        time.Time      `json:"at"`
	File      string         `json:"file"`
	SHA256    string         `json:"sha256"`
	Lines     int64          `json:"lines"`
	Cells     []Cell         `json:"cells"`
	Differing int64          `json:"differing"`
	Ratio     float64        `json:"ratio"`
	Kinds     map[Kind]int64 `json:"kinds"`
	List      []Difference   `json:"differences"`
	Closed    int            `json:"closed"` // unknown submits closed by the statement
	Kept      int            `json:"kept"`   // unknown submits it says nothing certain of
}

// Alert says that the sides differ by more than AlertRatio.
func (r *Report) Alert() bool { return r.Ratio > AlertRatio }

// Sums are the totals over all cells.
func (r *Report) Sums() (sum Cell) {
	for _, c := range r.Cells {
		sum.OursN, sum.OursUnits, sum.TheirsN, sum.TheirsUnits = sum.OursN+c.OursN, sum.OursUnits+c.OursUnits, sum.TheirsN+c.TheirsN, sum.TheirsUnits+c.TheirsUnits
	}
	return sum
}

func (r *Report) add(d Difference) {
	r.Differing++
	r.Kinds[d.Kind]++
	if r.Kinds[d.Kind] <= maxListed {
		r.List = append(r.List, d)
	}
}

// Write prints the report for people: a line a cell, then the differences.
func (r *Report) Write(w io.Writer) error {
	p := &printer{w: w}
	p.line("account %d, day %s: %d lines of %s", r.Account, r.Day, r.Lines, r.File)
	p.line("%8s  %-9s %10s %10s %10s %10s", "channel", "carrier", "ours", "units", "theirs", "units")
	for _, c := range r.Cells {
		p.line("%8d  %-9s %10d %10d %10d %10d", c.Channel, c.Carrier, c.OursN, c.OursUnits, c.TheirsN, c.TheirsUnits)
	}
	for _, d := range r.List {
		at := ""
		if d.At != nil {
			at = d.At.UTC().Format(time.RFC3339)
		}
		p.line("%s: number %d, Msg_Id %d, submit %d, message %d, channel %d, line %d, %s: ours %s, theirs %s", d.Kind, d.Phone, d.MsgID, d.SubmitID, d.MessageID, d.Channel, d.Line,
			at, d.Ours, d.Theirs)
	}
	for _, k := range []Kind{OnlyOurs, OnlyTheirs, Result, Units, Number, MsgID, Absent} {
		if n := r.Kinds[k]; n > maxListed {
			p.line("%s: %d in all, the first %d listed", k, n, maxListed)
		}
	}
	p.line("%d differ (%.3f %%), %d unknown submits closed, %d kept", r.Differing, 100*r.Ratio, r.Closed, r.Kept)
	return p.err
}

type printer struct {
	w   io.Writer
	err error
}

func (p *printer) line(format string, args ...any) {
	if p.err == nil {
		_, p.err = fmt.Fprintf(p.w, format+"\n", args...)
	}
}
