package ismg

import (
	"encoding/binary"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"cmppgateway/simulator/internal/wire"
)

// submit takes a SUBMIT: fates and controls first, without the lock, then
// limits, record and schedule.
func (c *conn) submit(f wire.Frame, now int64) {
	s, a := c.srv, c.acct
	var body wire.SubmitBody
	if err := wire.DecodeSubmit(f.Body, c.version, &body); err != nil || body.DestCount == 0 {
		s.violate(Violation{At: now, Account: a.spec.ID, Conn: c.id, Kind: ViolatedFrame, Detail: "SUBMIT that cannot be read"})
		c.refuse(f.Sequence, resultStructure)
		return
	}
	if s.records.Add(int64(body.DestCount)) > int64(s.opts.MaxRecords) {
		s.shed.Add(1)
		c.refuse(f.Sequence, resultFlow)
		return
	}
	deal := a.deal.Load()
	taken := c.taken[:0]
	for i := range body.DestCount {
		taken = append(taken, taking{})
		t := &taken[i]
		c.fill(&t.rec, &body, f.Sequence, i, now)
		t.rec.Fate = deal.deck.Fate(t.rec.Key, t.rec.Attempt)
		t.plan = deal.plan(s.seed, &t.rec)
		s.runControls(&t.rec, &t.plan)
	}
	c.taken = taken
	a.mu.Lock()
	defer a.mu.Unlock()
	c.heard, c.tests = now, 0
	if c.state == connLive || c.state == connEnding {
		c.take(taken, now)
	}
}

// taking is a SUBMIT to one recipient before it is on record.
type taking struct {
	rec  Submit
	plan Plan
}

// fill copies what the record keeps out of the frame.
func (c *conn) fill(r *Submit, b *wire.SubmitBody, seq uint32, i int, now int64) {
	s := c.srv
	dest := b.DestAt(i)
	*r = Submit{
		Account: c.acct.spec.ID, Conn: c.id, Seq: seq, Recv: now,
		Number: string(dest), SrcID: c.intern(b.SrcID), MsgSrc: c.intern(b.MsgSrc), ServiceID: c.intern(b.ServiceID),
		Fmt: b.MsgFmt, UDHI: b.TPUDHI, Registered: b.Registered, PkTotal: b.PkTotal, PkNumber: b.PkNumber,
		Length: len(b.Content), Hash: wire.Hash(b.Content),
	}
	r.Key, _ = wire.NumberKey(r.Number) // a number that is none is key 0, and a violation when prefixes are set
	if concat, ok := wire.DecodeConcat(b.TPUDHI, b.Content); ok {
		r.Concat = Concat(concat)
	}
	if s.opts.KeepContent {
		r.Content = slices.Clone(b.Content)
	}
	r.Attempt = s.attempt(r.Key, r.Part())
}

// intern returns b as a string, shared with earlier equal ones. Of the reader.
func (c *conn) intern(b []byte) string {
	if s, ok := c.texts[string(b)]; ok {
		return s
	}
	s := string(b)
	if len(c.texts) < maxTexts {
		c.texts[s] = s
	}
	return s
}

// refuse answers a SUBMIT that is not put on record.
func (c *conn) refuse(seq, result uint32) {
	c.acct.mu.Lock()
	defer c.acct.mu.Unlock()
	body := make([]byte, 8, 12)
	if wire.Wide(c.version) {
		body = binary.BigEndian.AppendUint32(body, result)
	} else {
		body = append(body, byte(result))
	}
	c.raw(wire.Submit|wire.Response, seq, body)
	c.nudge = true
}

// take judges the limits, puts the SUBMIT on record and schedules what follows.
func (c *conn) take(taken []taking, now int64) {
	a := c.acct
	head := &taken[0].plan
	_, duplicate := c.inflight[taken[0].rec.Seq]
	var result uint32
	var refusal Refusal
	for i := range taken {
		if t := &taken[i]; t.plan.Result != 0 && result == 0 {
			result, refusal = t.plan.Result, RefusedByHook
			if result == t.rec.Fate.Result {
				refusal = RefusedByDeck
			}
		}
		c.judgeCarrier(&taken[i].rec)
	}
	switch {
	case duplicate:
		result, refusal = resultSequence, RefusedByFrame
		c.violated(ViolatedSequence, now, "sequence %d", taken[0].rec.Seq)
	case !head.Uncounted && c.counted >= a.spec.Window:
		result, refusal = resultFlow, RefusedByWindow
		c.violated(ViolatedWindow, now, "%d unanswered", c.counted+1)
	case !a.admit(now, len(taken)):
		result, refusal = resultFlow, RefusedByRate
		c.violated(ViolatedRate, now, "more than %d/s", a.spec.RateLimit)
	}
	if refusal != NotRefused && refusal != RefusedByDeck && refusal != RefusedByHook {
		*head = Plan{Answers: 1}
	}
	var id uint64
	if result == 0 {
		id = a.ids.reserve(now, len(taken))
	}
	c.submits++
	var first *submit
	for i := range taken {
		sub := a.submits.Add()
		sub.Submit, sub.conn = taken[i].rec, c
		sub.Hold, sub.Result, sub.Refusal = int64(head.Hold), result, refusal
		a.counts.Submits++
		if result == 0 {
			a.counts.Accepted++
			sub.MsgID = id + uint64(i)
		} else {
			a.counts.Refused++
		}
		sub.todo = &todo{plan: taken[i].plan}
		if first == nil {
			first = sub
		} else {
			first.todo.also = append(first.todo.also, sub)
		}
	}
	c.begin(first, duplicate, now)
}

// begin schedules the answer and the early reports of sub.
func (c *conn) begin(sub *submit, duplicate bool, now int64) {
	a, t := c.acct, sub.todo
	if sub.Accepted() && sub.Registered == 1 {
		for i, r := range t.plan.Receipts {
			if r.Early {
				t.early++
				a.report(sub, i, r, now+sub.Hold/2)
			}
		}
	}
	if t.plan.Answers == 0 && t.plan.Cut == NoCut {
		a.finish(sub, now)
		return
	}
	if !duplicate {
		c.inflight[sub.Seq] = sub
		c.inflightPeak = max(c.inflightPeak, len(c.inflight))
		if !t.plan.Uncounted {
			c.counted++
		}
	}
	due := now + sub.Hold
	if sub.Hold > 0 {
		due = roundUp(due, answerTick)
	}
	next, ok := c.due.Next()
	c.nudge = c.nudge || !ok || due < next
	c.due.Push(due, item{kind: itemAnswer, sub: sub})
}

// roundUp moves a time to the grid of tick, so that what falls due together
// wakes writers together.
func roundUp(ns int64, tick time.Duration) int64 {
	return (ns + int64(tick) - 1) / int64(tick) * int64(tick)
}

func (c *conn) judgeCarrier(r *Submit) {
	prefixes := c.acct.spec.Prefixes
	if len(prefixes) == 0 {
		return
	}
	number := strconv.FormatUint(r.Key, 10)
	for _, p := range prefixes {
		if strings.HasPrefix(number, p) {
			return
		}
	}
	c.violated(ViolatedCarrier, r.Recv, "recipient outside the prefixes, sequence %d", r.Seq)
}

func (c *conn) violated(kind ViolationKind, now int64, format string, args ...any) {
	c.srv.violate(Violation{At: now, Account: c.acct.spec.ID, Conn: c.id, Kind: kind, Detail: fmt.Sprintf(format, args...)})
}
