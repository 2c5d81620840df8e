package workflow

import (
	"bytes"
	"context"
	"fmt"
	"runtime/debug"
	"time"

	"github.com/jackc/pgx/v5"

	"cmppgateway/gateway/internal/config"
	"cmppgateway/gateway/internal/ledger"
	"cmppgateway/gateway/internal/message"
	"cmppgateway/gateway/internal/outbox"
	"cmppgateway/gateway/internal/policy"
	"cmppgateway/gateway/internal/routing"
	"cmppgateway/gateway/internal/settings"
	"cmppgateway/gateway/sms"
)

// verdict is policy's for one recipient, with the route that follows from it.
type verdict struct {
	policy.Verdict

	Phone   uint64
	Units   int
	dest    []byte
	state   message.State
	carrier routing.Carrier
	channel int32

	// of a joined message: the contents of its parts upstream
	parts  [][]byte
	udhi   bool
	outFmt int16
	ref    int32
}

// subject is one inbox row as policy sees it.
type subject struct {
	row      *row
	terms    terms
	message  policy.Message
	check    policy.Verdict
	verdicts []verdict // one per recipient
	err      error     // the row cannot be judged
}

// decide makes messages, commands, refusals and freezes of the claimed rows, in order: what passes counts for what follows.
func (w *Workflow) decide(ctx context.Context, tx pgx.Tx, m mode, b *batch) error {
	snap := w.Settings.Current()
	list := make([]subject, len(b.rows))
	for i := range b.rows {
		list[i] = subject{row: &b.rows[i], terms: b.terms[b.rows[i].app]}
		list[i].read(snap, b.now)
	}
	known := &known{}
	if m.refuse == nil { // else the row fails by itself, perhaps in what would be asked about it
		var err error
		if known, err = w.lookUp(ctx, tx, snap, b, list); err != nil {
			return err
		}
	}
	need := 0
	for i := range list {
		need += (3+partsMost(list[i].row)+len(list[i].row.pieces()))*len(list[i].verdicts) + 2
	}
	ids, err := newPool(ctx, w.IDs, need+b.idsOfRepeats())
	if err != nil {
		return err
	}
	frozen := map[int32]*ledger.Entry{}
	for i := range list {
		s := &list[i]
		if err := w.settle(s, snap, known, m, b, ids); err != nil {
			return err
		}
		for k := range s.verdicts {
			b.add(ids, snap, s, k, frozen, w.Config)
		}
	}
	b.repeat(ids)
	for _, e := range frozen {
		b.freezes = append(b.freezes, *e)
	}
	if known.tally != nil {
		b.count(known.tally.Uses())
	}
	return nil
}

// settle brings a row's verdicts to what the account can pay.
func (w *Workflow) settle(s *subject, snap *settings.Snapshot, k *known, m mode, b *batch, ids *idPool) error {
	cause, mark := m.refuse, 0
	if cause == nil {
		mark = k.tally.Mark()
		s.judge(snap, k, w.Config.ReviewMax)
		cause = s.err
	}
	if cause != nil {
		b.deads = append(b.deads, deadLetter{id: ids.next(), reason: cause.Error(), raw: s.row.content})
		s.refuse(message.ReasonSystem)
		if k.tally != nil {
			k.tally.Undo(mark)
		}
		return nil
	}
	cost, held := int64(0), 0
	for i := range s.verdicts {
		if v := &s.verdicts[i]; v.state == message.Checked {
			cost += int64(v.Units) * s.terms.price
			if v.Held() {
				held++
			}
		}
	}
	// A group send is affordable wholly or not at all.
	if cost > b.funds[s.row.enterprise] {
		if !m.lock {
			return errShort
		}
		s.refuse(message.ReasonBalance)
		k.tally.Undo(mark)
		return nil
	}
	b.funds[s.row.enterprise] -= cost
	k.held[s.row.enterprise] += held
	return nil
}

// guard makes a panic of a rule an error of this row, not of the process.
func (s *subject) guard() {
	if p := recover(); p != nil {
		s.err = fmt.Errorf("policy: panic: %v\n%s", p, debug.Stack())
	}
}

// read finds out what follows from the row alone.
func (s *subject) read(snap *settings.Snapshot, now time.Time) {
	r, t := s.row, s.terms
	recipients := bytes.Split(r.dest, []byte{','})
	s.verdicts = make([]verdict, len(recipients))
	for i := range s.verdicts {
		s.verdicts[i].dest, s.verdicts[i].Units = recipients[i], 1
	}
	defer s.guard()
	if r.ends != 0 { // what was said about it before counts: it is not sent, whatever it says
		for i := range s.verdicts {
			v := &s.verdicts[i]
			v.Phone, _ = sms.NormalizeNumber(string(v.dest)) // checked at the entrance
			if v.state = r.ends; r.ends == message.Expired {
				v.Reason = message.ReasonExpired
			}
		}
		return
	}
	s.message = policy.Message{
		Enterprise: r.enterprise, App: r.app, EnterpriseActive: t.enterpriseActive, ApplicationActive: t.appActive, Lane: t.lane, ValidUntil: r.validUntil,
		Content: policy.ReadContent(sms.Fmt(r.fmt), uint8(r.udhi), r.content, t.unitRule),
	}
	s.check = snap.Policy.Check(s.message, now)
	for i := range s.verdicts {
		v := &s.verdicts[i]
		v.Verdict, v.Units = s.check, s.message.Content.Units
		var bad error
		if v.Phone, bad = sms.NormalizeNumber(string(v.dest)); bad != nil {
			v.Reason = v.BadNumber()
		}
	}
}

// ask notes what the database must be asked about the recipients.
func (s *subject) ask(snap *settings.Snapshot, ask *wanted) {
	if s.err != nil || s.row.ends != 0 {
		return
	}
	duplicates := snap.Policy.Modes(s.row.app).DuplicateSeconds > 0
	for i := range s.verdicts {
		v := &s.verdicts[i]
		if v.Reason != message.NoReason {
			continue
		}
		ask.numbers = append(ask.numbers, policy.Number{Enterprise: s.row.enterprise, Phone: v.Phone})
		if duplicates {
			ask.repeats = append(ask.repeats, repeat{s.row.app, v.Phone, string(s.row.content)})
		}
		if v.Held() {
			ask.holds = append(ask.holds, s.row.enterprise)
		}
	}
}

// judge applies what is known of the numbers, and finds the routes.
func (s *subject) judge(snap *settings.Snapshot, k *known, reviewMax int) {
	if s.err != nil || s.row.ends != 0 {
		return
	}
	defer s.guard()
	held := k.held[s.row.enterprise]
	for i := range s.verdicts {
		v := &s.verdicts[i]
		recipient := policy.Recipient{Phone: v.Phone}
		if snap.Policy.Modes(s.row.app).DuplicateSeconds > 0 {
			recipient.Content = string(s.row.content)
		}
		if v.Reason == message.NoReason {
			v.Reason = k.tally.Judge(&s.message, &s.check, recipient)
		}
		if v.Reason == message.NoReason {
			v.carrier = snap.Table.CarrierOf(v.Phone, k.overrides[v.Phone])
			var c routing.Candidate
			c, v.Reason = snap.Route(s.row.app, v.carrier, v.Signature, v.Phone, nil)
			v.channel = c.ChannelID
		}
		if v.Reason == message.NoReason && s.row.joined != nil {
			v.cut(snap, s.row)
		}
		if v.Held() {
			if held++; held > reviewMax {
				v.Reason, v.channel = message.ReasonKeyword, 0
			}
		}
		v.state = message.Rejected
		if v.Reason == message.NoReason {
			v.state = message.Checked
			k.tally.Count(&s.message, recipient)
		}
		if v.Reason == message.ReasonExpired {
			v.state = message.Expired
		}
	}
}

// refuse ends a row as a whole. What failed by itself (SYSTEM) keeps nothing of what was found in it.
func (s *subject) refuse(reason message.Reason) {
	for i := range s.verdicts {
		v := &s.verdicts[i]
		if reason == message.ReasonSystem {
			v.Verdict, v.carrier = policy.Verdict{}, routing.Unknown
		} else if v.state != message.Checked {
			continue
		}
		v.Reason, v.state, v.channel = reason, message.Rejected, 0
	}
}

// add writes one message of a row, and what follows from its verdict, into the batch.
func (b *batch) add(ids *idPool, snap *settings.Snapshot, s *subject, index int, frozen map[int32]*ledger.Entry, c config.Workflow) {
	r, t, v := s.row, s.terms, &s.verdicts[index]
	id, msgID := ids.next(), r.msgID+int64(index)
	validUntil := b.now.Add(c.Validity)
	if r.validUntil != nil {
		validUntil = *r.validUntil
	}
	bill, entry, stat := message.BillNone, int64(0), ""
	if v.state != message.Cancelled {
		b.refusedBy[v.Reason]++
	}
	if v.Action != 0 && v.Reason != message.ReasonSystem {
		b.keywords[hit{v.Action, v.Keyword, r.enterprise}]++
	}
	if v.state == message.Checked {
		e := frozen[r.enterprise]
		if e == nil {
			e = &ledger.Entry{ID: ids.next(), Account: r.enterprise, Kind: message.Freeze}
			frozen[r.enterprise] = e
		}
		e.N++
		e.Amount += int64(v.Units) * t.price
		bill, entry = message.Frozen, e.ID
	}
	switch {
	case v.state == message.Checked && v.Held():
		b.holds.add(id, r, v.Keyword, earlier(b.now.Add(c.ReviewWait), validUntil))
	case v.state == message.Checked:
		b.send(ids, id, r, t, v, validUntil)
	case v.state == message.Cancelled:
		stat = message.StatCancelled
	default:
		stat = snap.Stat(r.app, v.Reason)
	}
	if v.state.Final() {
		for _, p := range r.pieces() {
			if p.MsgID += int64(index); p.Registered == 1 {
				b.refusals.add(ids.next(), id, p.MsgID, r, &p, stat, v.dest)
			}
		}
	}
	if j := r.joined; j != nil {
		r.messages = append(r.messages, id)
		b.waits.sets[j.set] = r
		for _, p := range j.Pieces {
			p.MsgID += int64(index)
			b.segments.add(id, j.Key, r.app, p)
		}
	}
	recipients := int16(1)
	if index == 0 {
		recipients = int16(len(s.verdicts))
	}
	b.messages.add(id, msgID, entry, r, t, v, bill, validUntil, stat, recipients)
}

// send queues the commands of a message: one, or one for each part.
func (b *batch) send(ids *idPool, id int64, r *row, t terms, v *verdict, validUntil time.Time) {
	c := outbox.Command{
		MessageID: id, ChannelID: v.channel, EnterpriseID: r.enterprise, AppID: r.app, Attempt: 1, Part: 1, Parts: 1, Lane: int16(t.lane),
		Phone: int64(v.Phone), Fmt: r.fmt, UDHI: r.udhi, PkTotal: r.pkTotal, PkNumber: r.pkNumber, Src: r.src, Service: r.service, Content: r.content, ValidUntil: validUntil,
	}
	parts := int16(max(len(v.parts), 1))
	for part := int16(1); part <= parts; part++ {
		c.SubmitID = ids.next()
		if v.parts != nil {
			c.SetPart(part, parts, v.outFmt, v.udhi, v.parts[part-1])
		}
		b.submits.add(c.SubmitID, id, v.channel, r.enterprise, t.lane, part, parts)
		b.commands[v.channel] = append(b.commands[v.channel], c)
	}
}

func earlier(a, b time.Time) time.Time {
	if b.Before(a) {
		return b
	}
	return a
}

// idPool hands out ids taken in one go.
type idPool struct{ list []int64 }

func newPool(ctx context.Context, g *message.IDs, n int) (*idPool, error) {
	const most = 16384
	p := &idPool{list: make([]int64, 0, n)}
	for n > 0 {
		some, err := g.Take(ctx, min(n, most))
		if err != nil {
			return nil, err
		}
		p.list = append(p.list, some...)
		n -= len(some)
	}
	return p, nil
}

func (p *idPool) next() int64 {
	id := p.list[0]
	p.list = p.list[1:]
	return id
}
