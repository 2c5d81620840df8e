package ismg

import (
	"errors"
	"slices"
	"sync"
	"sync/atomic"
	"time"
	"unicode/utf16"

	"cmppgateway/gateway/cmpp"
	"cmppgateway/simulator/internal/wire"
)

// account is one supplier account. mu guards everything of it and of its
// connections that changes after login; it may be held while taking Server.mu,
// never the other way round, and never during I/O.
type account struct {
	srv  *Server
	deal atomic.Pointer[dealer]

	mu          sync.Mutex
	spec        Account
	ids         idSource
	submits     wire.Slab[submit]
	deliveries  wire.Slab[delivery]
	live        []*conn // in order of login
	history     []*conn
	next        int // of live, for spreading reports
	orphans     wire.Queue[*delivery]
	recent      []int64 // ring of the latest times of admitted SUBMITs, as long as the rate allows in a second
	oldest      int     // of recent
	counts      Counts
	lastMinute  int64
	minuteText  string
	refuse      uint32
	ignoreTests bool
	split       bool
}

// dealer is a behaviour ready for use.
type dealer struct {
	behaviour Behaviour
	deck      *Deck
}

// submit is a SUBMIT on record and what is still to be done about it.
type submit struct {
	Submit
	conn *conn
	todo *todo // nil when nothing is
}

// todo is the part of a submit that is not kept.
type todo struct {
	plan  Plan
	also  []*submit // further recipients of a group send
	early int       // reports that must be written before the answer
	ready bool      // the answer waits for them only
}

// delivery is a DELIVER: a report on sub, or an uplink.
type delivery struct {
	sub    *submit
	up     *uplinkText // nil for a report
	stat   string
	copy   int
	early  bool
	other  bool // wants another connection than the submit's
	size   bool // has the length of the other version's report
	replay bool
	id     uint64
	conn   uint64
	holder *conn // whose window it fills; nil when it is not in flight
	due    int64
	first  int64
	last   int64
	acked  int64
	result uint32
	tries  int
	acks   int
}

type uplinkText struct {
	source, dest string
	format, udhi uint8
	content      []byte
}

func (d *delivery) report() Report {
	return Report{
		Account: d.sub.Account, MsgID: d.sub.MsgID, Number: d.sub.Number, Stat: d.stat, Copy: d.copy,
		Early: d.early, WrongSize: d.size, DeliverID: d.id, Conn: d.conn, Due: d.due, First: d.first, Last: d.last,
		Acked: d.acked, Result: d.result, Tries: d.tries, Acks: d.acks,
	}
}

func (d *delivery) uplink(account string) Uplink {
	return Uplink{
		Account: account, DeliverID: d.id, Source: d.up.source, Dest: d.up.dest, Fmt: d.up.format,
		UDHI: d.up.udhi, Content: slices.Clone(d.up.content), Conn: d.conn, Due: d.due, First: d.first,
		Last: d.last, Acked: d.acked, Result: d.result, Tries: d.tries, Acks: d.acks,
	}
}

// setRate sizes the ring of admitted SUBMITs: 5 % slack, at least one.
func (a *account) setRate(limit int) {
	a.spec.RateLimit = limit
	a.recent, a.oldest = nil, 0
	if limit > 0 {
		a.recent = make([]int64, limit+max(1, limit/20))
	}
}

// admit judges n SUBMITs against the rate over the second before now.
func (a *account) admit(now int64, n int) bool {
	if len(a.recent) == 0 {
		return true
	}
	nth := a.recent[(a.oldest+min(n, len(a.recent))-1)%len(a.recent)]
	if n > len(a.recent) || nth != 0 && nth > now-int64(time.Second) {
		return false
	}
	for range n {
		a.recent[a.oldest] = now
		a.oldest = (a.oldest + 1) % len(a.recent)
	}
	return true
}

// minute formats t as YYMMDDHHMM, remembering the last answer.
func (a *account) minute(t time.Time) string {
	m := t.Unix() / 60
	if m != a.lastMinute || a.minuteText == "" {
		a.lastMinute, a.minuteText = m, t.In(shanghai).Format("0601021504")
	}
	return a.minuteText
}

// schedule gives d to a live connection, to be written at due, or keeps it for
// the next login.
func (a *account) schedule(d *delivery, due int64) {
	c := a.pick(d)
	if c == nil {
		a.orphans.Push(due, d)
		return
	}
	c.push(due, item{kind: itemDeliver, del: d})
}

func (a *account) pick(d *delivery) *conn {
	n := len(a.live)
	if n == 0 {
		return nil
	}
	if d.early && d.tries == 0 && slices.Contains(a.live, d.sub.conn) {
		return d.sub.conn // before the answer, so in front of it on its connection
	}
	a.next++
	c := a.live[a.next%n]
	if d.other && n > 1 && c == d.sub.conn {
		a.next++
		c = a.live[a.next%n]
	}
	return c
}

// adopt hands what waited for a login to the new connection.
func (a *account) adopt(c *conn) {
	for {
		due, ok := a.orphans.Next()
		if !ok {
			return
		}
		d, _ := a.orphans.Pop(due)
		c.push(due, item{kind: itemDeliver, del: d})
	}
}

// finish ends the wait for the answer of s: from is the time its reports count
// from.
func (a *account) finish(s *submit, from int64) {
	t := s.todo
	if t == nil {
		return
	}
	a.sendReports(s, t, from)
	for _, other := range t.also {
		a.sendReports(other, other.todo, from)
		other.todo = nil
	}
	s.todo = nil
}

func (a *account) sendReports(s *submit, t *todo, from int64) {
	if !s.Accepted() || s.Registered != 1 {
		return
	}
	for i, r := range t.plan.Receipts {
		if !r.Early {
			a.report(s, i, r, roundUp(from+int64(r.Delay), a.srv.timers.ReportTick))
		}
	}
}

func (a *account) report(s *submit, i int, r Receipt, due int64) {
	a.counts.Reports++
	d := a.deliveries.Add()
	d.sub, d.stat, d.copy, d.early, d.other, d.size, d.due = s, r.Stat, i, r.Early, r.Elsewhere, r.WrongSize, due
	d.id = a.ids.next(a.srv.clock.Now())
	a.schedule(d, due)
}

// Kinds of draws from the hash of a message.
const (
	drawRTT = iota + 1
	drawReceipt
)

// afterFirst is how long the second report of a twice or contradict card comes
// behind the first.
const afterFirst = 50 * time.Millisecond

// plan turns a fate into what will be done; delays are drawn from the seed and
// the message, so every attempt on every connection meets the same.
func (d *dealer) plan(seed uint64, s *Submit) Plan {
	b := &d.behaviour
	part := uint64(s.Part()) << 8
	p := Plan{
		Result:  s.Fate.Result,
		Hold:    b.SubmitRTT.At(mix(seed, s.Key, part|drawRTT)),
		Answers: 1,
	}
	if s.Fate.Stat != "" {
		p.Receipts = []Receipt{{Delay: b.ReceiptDelay.At(mix(seed, s.Key, part|drawReceipt)), Stat: s.Fate.Stat}}
	}
	var change Control
	switch s.Fate.Card {
	case Plain, Result8First, Refused, NoReceipt, ReceiptFailed:
		return p
	case ReceiptEarly:
		change = EarlyReceipt()
	case ReceiptTwice:
		change = ReceiptAgain(afterFirst)
	case ReceiptContradict:
		change = Contradict(statUndelivered, afterFirst)
	case ReceiptElsewhere:
		change = Elsewhere()
	case RespLate:
		change = Late(b.LateBy)
	case RespTwice:
		change = Twice()
	case RespSilent:
		change = Silent()
	case RespWrongSeq:
		change = WrongSeq()
	}
	change(s, &p)
	return p
}

// appendDeliver appends the DELIVER of d.
func (c *conn) appendDeliver(dst []byte, d *delivery, seq uint32, now int64) ([]byte, error) {
	v := cmpp.Version(c.version)
	if d.up != nil {
		p := cmpp.Deliver{
			MsgID: cmpp.MsgID(d.id), DestID: d.up.dest, TPUDHI: d.up.udhi, MsgFmt: d.up.format,
			SrcTerminalID: d.up.source, MsgContent: d.up.content,
		}
		return p.Append(dst, v, seq)
	}
	clock := c.srv.clock
	r := cmpp.Report{
		MsgID: cmpp.MsgID(d.sub.MsgID), Stat: d.stat,
		SubmitTime: c.acct.minute(clock.Time(d.sub.Recv)), DoneTime: c.acct.minute(clock.Time(now)),
		DestTerminalID: d.sub.Number,
	}
	layout := v
	if d.size {
		layout = cmpp.Version(otherLayout(c.version))
	}
	content, err := r.Append(c.scratch[:0], layout)
	if err != nil {
		return dst, err
	}
	c.scratch = content
	p := cmpp.Deliver{
		MsgID: cmpp.MsgID(d.id), DestID: d.sub.SrcID, ServiceID: d.sub.ServiceID,
		SrcTerminalID: d.sub.Number, RegisteredDelivery: 1, MsgContent: content,
	}
	return p.Append(dst, v, seq)
}

// errTooLong reports a text that needs more than one message.
var errTooLong = errors.New("text does not fit one message")

func encodeText(text string) (format uint8, content []byte, err error) {
	format, content = encodeLong(text)
	if format == 0 && len(content) > 160 || format == 8 && len(content) > 140 {
		return 0, nil, errTooLong
	}
	return format, content, nil
}

// encodeLong encodes text of any length: Msg_Fmt 0 for 7-bit characters, else 8.
func encodeLong(text string) (format uint8, content []byte) {
	ascii := true
	for _, r := range text {
		ascii = ascii && r < 0x80
	}
	if ascii {
		return 0, []byte(text)
	}
	for _, u := range utf16.Encode([]rune(text)) {
		content = append(content, byte(u>>8), byte(u))
	}
	return 8, content
}
