package workflow

import (
	"bytes"
	"context"
	"fmt"
	"runtime/debug"
	"time"

	"cmppgateway/gateway/internal/ledger"
	"cmppgateway/gateway/internal/message"
	"cmppgateway/gateway/internal/outbox"
	"cmppgateway/gateway/internal/policy"
	"cmppgateway/gateway/internal/routing"
	"cmppgateway/gateway/internal/settings"
	"cmppgateway/gateway/sms"
)

// verdict is policy's, with the route that follows from it.
type verdict struct {
	policy.Verdict

	Phone   uint64
	Units   int
	dest    []byte
	state   message.State
	carrier routing.Carrier
	channel int32
}

// decide makes messages, commands, refusals and freezes of the claimed rows.
func (w *Workflow) decide(ctx context.Context, m mode, b *batch) error {
	snap, now := w.Settings.Current(), time.Now()
	frozen := map[int32]*ledger.Entry{}
	need := 0
	for _, r := range b.rows {
		need += 3 * (1 + bytes.Count(r.dest, []byte{','}))
	}
	ids, err := newPool(ctx, w.IDs, need+2*len(b.rows))
	if err != nil {
		return err
	}
	for i := range b.rows {
		r := &b.rows[i]
		t := b.terms[r.app]
		verdicts, cause := judge(snap, r, t, now)
		if m.refuse != nil {
			cause = m.refuse
		}
		if cause != nil {
			b.deads = append(b.deads, deadLetter{id: ids.next(), reason: cause.Error(), raw: r.content})
			refuseAll(verdicts, message.ReasonSystem)
		}
		cost := int64(0)
		for k := range verdicts {
			if verdicts[k].state == message.Checked {
				cost += int64(verdicts[k].Units) * t.price
			}
		}
		// A group send is affordable wholly or not at all.
		if cost > b.funds[r.enterprise] {
			if !m.lock {
				return errShort
			}
			refuseAll(verdicts, message.ReasonBalance)
			cost = 0
		}
		b.funds[r.enterprise] -= cost
		for k := range verdicts {
			b.add(ids, r, t, &verdicts[k], k, frozen, w.Config.Validity, now)
		}
	}
	for _, e := range frozen {
		b.freezes = append(b.freezes, *e)
	}
	return nil
}

// judge gives one verdict per recipient. A panic of a rule is an error of this row, not of the process.
func judge(snap *settings.Snapshot, r *row, t terms, now time.Time) (verdicts []verdict, err error) {
	recipients := bytes.Split(r.dest, []byte{','})
	verdicts = make([]verdict, len(recipients))
	for i := range verdicts {
		verdicts[i].dest, verdicts[i].Units = recipients[i], 1
	}
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("policy: panic: %v\n%s", p, debug.Stack())
		}
	}()
	for i := range verdicts {
		v := &verdicts[i]
		content := policy.ReadContent(sms.Fmt(r.fmt), uint8(r.udhi), r.content, t.unitRule)
		v.Units = content.Units
		v.Verdict = (*policy.Set)(nil).Check(policy.Message{EnterpriseActive: t.enterpriseActive, ApplicationActive: t.appActive, Content: content}, now)
		var bad error
		if v.Phone, bad = sms.NormalizeNumber(string(v.dest)); bad != nil {
			v.Reason = v.BadNumber()
		}
		v.state = message.Checked
		switch {
		case v.Reason != message.NoReason:
			v.state = message.Rejected
		case r.validUntil != nil && !now.Before(*r.validUntil):
			v.Reason, v.state = message.ReasonExpired, message.Expired
		default:
			route(snap, r, v)
		}
	}
	return verdicts, nil
}

// route finds the carrier of the number and the first candidate of the application's group for it. Without one the
// message fails here, before any supplier.
func route(snap *settings.Snapshot, r *row, v *verdict) {
	v.carrier = snap.Table.Carrier(v.Phone)
	if app := snap.Applications[r.app]; app != nil {
		if group := snap.Groups[app.Routes[v.carrier]]; group != nil {
			if c, ok := group.Pick(v.Phone, nil); ok {
				v.channel = c.ChannelID
				return
			}
		}
	}
	v.Reason, v.state = message.ReasonRoute, message.Rejected
}

func refuseAll(verdicts []verdict, reason message.Reason) {
	for i := range verdicts {
		if verdicts[i].state == message.Checked || reason == message.ReasonSystem {
			verdicts[i].Reason, verdicts[i].state, verdicts[i].channel = reason, message.Rejected, 0
		}
	}
}

// add writes one message of a row, and what follows from its verdict, into the batch.
func (b *batch) add(ids *idPool, r *row, t terms, v *verdict, index int, frozen map[int32]*ledger.Entry, validity time.Duration, now time.Time) {
	id, msgID := ids.next(), r.msgID+int64(index)
	validUntil := now.Add(validity)
	if r.validUntil != nil {
		validUntil = *r.validUntil
	}
	bill, entry, stat := message.BillNone, int64(0), ""
	b.refusedBy[v.Reason]++
	if v.state == message.Checked {
		e := frozen[r.enterprise]
		if e == nil {
			e = &ledger.Entry{ID: ids.next(), Account: r.enterprise, Kind: message.Freeze}
			frozen[r.enterprise] = e
		}
		e.N++
		e.Amount += int64(v.Units) * t.price
		bill, entry = message.Frozen, e.ID
		submit := ids.next()
		b.submits.add(submit, id, v.channel, r.enterprise, t.lane)
		b.commands[v.channel] = append(b.commands[v.channel], outbox.Command{
			SubmitID: submit, MessageID: id, ChannelID: v.channel, EnterpriseID: r.enterprise, AppID: r.app, Attempt: 1, Part: 1, Parts: 1, Lane: int16(t.lane),
			Phone: int64(v.Phone), Fmt: r.fmt, UDHI: r.udhi, PkTotal: r.pkTotal, PkNumber: r.pkNumber, Src: r.src, Service: r.service, Content: r.content, ValidUntil: validUntil,
		})
	} else {
		stat = v.Reason.Stat()
		if r.registered == 1 {
			b.refusals.add(ids.next(), id, msgID, r, stat, v.dest)
		}
	}
	b.messages.add(id, msgID, entry, r, t, v, bill, validUntil, stat)
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
