package settlement

import (
	"context"
	"maps"
	"slices"
	"time"

	"cmppgateway/gateway/internal/message"
	"cmppgateway/gateway/internal/outbox"
	"cmppgateway/gateway/internal/routing"
	"cmppgateway/gateway/internal/settings"
)

// Stats that the gateway gives itself, at most 7 octets as in a supplier's report.
const (
	statRefused = "REJECTD" // every supplier tried refused it
	statCovered = "COVERED" // a part whose supplier reports another one for the whole message
)

// Kinds of exceptions.
const (
	kindAcceptedAfterRejected = "accepted_after_rejected"
	kindAcceptedAfterFinal    = "accepted_after_final"
	kindNotDispatched         = "not_dispatched"
	kindRecipient             = "recipient_mismatch"
	kindContradiction         = "receipt_contradiction"
	kindNotSent               = "receipt_after_not_sent"
	kindEarlierAttempt        = "receipt_of_earlier_attempt"
	kindNotAccepted           = "receipt_of_refused_submit"
	kindAmbiguous             = "unknown_ambiguous"
	kindUnmatched             = "receipt_unmatched"
	kindUnbilled              = "delivered_unbilled"
)

// accept is a submit that a supplier has taken: the first of a message charges it.
func (w *work) accept(ctx context.Context, m *msg, s *submit) {
	if m.state.Final() {
		// Its other parts ended the message, or an operator did.
		w.exception(s.id, s, kindAcceptedAfterFinal, m.state.String())
		if m.bill == message.Released {
			w.unbilled.add(m)
		}
		return
	}
	m.changed = true
	m.state = message.Submitted
	m.acc++
	m.channel = s.channel
	if m.bill == message.Frozen && m.chargeOn == message.ChargeOnAccept {
		w.charge(ctx, m)
	}
	w.releaseParts(ctx, m)
	w.learn(m, s)
	if m.parts > 1 && !w.reported(m, s) {
		w.parts[s.id] = statCovered
		w.endPart(ctx, m, message.Delivered, message.NoReason, statCovered, w.now)
	}
}

// reported says that the supplier sends a report for this part of a long message; some send one for the first or the last
// part only.
func (w *work) reported(m *msg, s *submit) bool {
	ch := w.snap.Channels[s.channel]
	if ch == nil {
		return true
	}
	switch ch.Particulars.SegmentReports {
	case settings.ReportsFirst:
		return s.part == 1
	case settings.ReportsLast:
		return s.part == m.parts
	case settings.ReportsAll:
	}
	return true
}

// lose is a submit that may have reached the supplier: nothing is known until it is closed. src is the Src_Id used.
func (w *work) lose(ctx context.Context, m *msg, s *submit, src string) {
	if m.state == message.Checked {
		m.changed = true
		m.state = message.Unknown
	}
	u := &w.unknowns
	u.id, u.message, u.phone = append(u.id, s.id), append(u.message, m.id), append(u.phone, m.phone)
	u.dispatchedAt, u.account, u.channel = append(u.dispatchedAt, s.dispatchedAt), append(u.account, s.account), append(u.channel, s.channel)
	u.part, u.src = append(u.part, s.part), append(u.src, []byte(src))
	w.releaseParts(ctx, m)
}

// refuse is a submit that a supplier did not take: another one follows, or the part ends.
func (w *work) refuse(ctx context.Context, m *msg, s *submit, code uint32) {
	switch {
	case m.state.Final():
	case m.parts > 1:
		w.refusePart(ctx, m, s, code)
	case m.settled():
		// accepted before: the charge and the state stay (capacity-plan §16)
	case m.attempt != s.attempt:
		// another attempt is open
	default:
		if channel, delay, ok := w.next(m, s, code); ok {
			w.resend(ctx, m, s, channel, delay)
			return
		}
		w.endUnsent(ctx, m, message.Failed, message.NoReason, statRefused)
	}
}

// settled says that a message with one part was accepted and has no failed receipt: an attempt that comes to nothing then
// changes nothing.
func (m *msg) settled() bool { return m.parts == 1 && m.acc > 0 && m.stat == "" }

// endUnsent ends a message, or a part, of which this attempt comes to nothing. Where an attempt before it has a failed
// receipt, that receipt is final now.
func (w *work) endUnsent(ctx context.Context, m *msg, state message.State, reason message.Reason, stat string) {
	if m.parts == 1 && m.acc > 0 {
		state, reason, stat = message.Failed, message.NoReason, m.stat
	}
	w.endPart(ctx, m, state, reason, stat, w.now)
}

// giveUp is a submit that an operator closed as not sent: it is not tried again.
func (w *work) giveUp(ctx context.Context, m *msg) {
	if !m.state.Final() && !m.settled() {
		w.endUnsent(ctx, m, message.Failed, message.NoReason, statRefused)
	}
}

// withdraw is a command that left the queue unsent, for good.
func (w *work) withdraw(ctx context.Context, m *msg, state message.State, reason message.Reason) {
	if !m.state.Final() && !m.settled() {
		w.endUnsent(ctx, m, state, reason, w.snap.Stat(m.app, reason))
	}
}

// next is the channel of the submit that follows a refused one, and how long it waits.
func (w *work) next(m *msg, s *submit, code uint32) (channel int32, delay time.Duration, ok bool) {
	class := w.snap.Class(s.channel, code)
	if class == message.Terminal {
		return 0, 0, false
	}
	if m.parts > 1 { // parts of one message never travel apart
		class = message.RetryLater
	}
	return w.place(m, class, s.channel, s.attempt, w.chain(s))
}

// place is where a message goes after its submit number attempt was refused on channel: to a candidate that was not tried
// yet, else to the same channel 1 s after the first attempt, 2 s after the second.
func (w *work) place(m *msg, class message.ResultClass, last int32, attempt int16, tried []int32) (channel int32, delay time.Duration, ok bool) {
	if attempt >= message.MaxSubmits {
		return 0, 0, false
	}
	channel, delay = last, time.Duration(attempt)*time.Second
	if class != message.RetryLater {
		if c, found := w.other(m, class, tried); found {
			channel, delay = c, 0
		}
	}
	return channel, delay, w.inTime(m, delay)
}

// inTime says whether a message is valid still after a delay.
func (w *work) inTime(m *msg, delay time.Duration) bool {
	return m.validUntil == nil || w.now.Add(delay).Before(*m.validUntil)
}

// chain is the channels tried for this part: the submit's and those of the refused ones before it.
func (w *work) chain(s *submit) []int32 {
	channels := []int32{s.channel}
	for id := s.retryOf; id != 0 && len(channels) < message.MaxSubmits; {
		before, ok := w.tried[id]
		if !ok {
			break
		}
		channels = append(channels, before.channel)
		id = before.retryOf
	}
	return channels
}

// other is a candidate that is not in tried: for a number that its carrier's suppliers do not serve, of the application's
// groups for the other carriers first.
func (w *work) other(m *msg, class message.ResultClass, tried []int32) (int32, bool) {
	app := w.snap.Applications[m.app]
	if app == nil {
		return 0, false
	}
	if class == message.RerouteCarrier {
		for _, carrier := range slices.Sorted(maps.Keys(app.Routes)) {
			if carrier == routing.Carrier(m.carrier) {
				continue
			}
			if c, ok := w.pick(app.Routes[carrier], m.phone, tried, m.app, m.signature); ok {
				return c, true
			}
		}
	}
	return w.pick(app.Routes[routing.Carrier(m.carrier)], m.phone, tried, m.app, m.signature)
}

// pick is a channel of a group that is not in tried and takes the application's signature.
func (w *work) pick(group int32, phone int64, tried []int32, app int32, signature string) (int32, bool) {
	g := w.snap.Groups[group]
	if g == nil {
		return 0, false
	}
	if a := w.snap.Applications[app]; a != nil {
		if closed := w.snap.Policy.Closed(a.EnterpriseID, signature); len(closed) > 0 {
			tried = slices.Concat(tried, closed)
		}
	}
	c, ok := g.Pick(uint64(phone), tried)
	return c.ChannelID, ok
}

// resend queues the submit that follows a refused one.
func (w *work) resend(ctx context.Context, m *msg, s *submit, channel int32, delay time.Duration) {
	m.changed = true
	if m.state == message.Unknown && m.parts == 1 { // of a long message, another part may be unknown
		m.state = message.Checked
	}
	m.attempt = max(m.attempt, s.attempt+1)
	m.channel = channel
	w.command(ctx, m, s.id, channel, delay, s.attempt+1, s.part)
	w.Resent++
}

// command queues a submit, and offers it to the edge when it may go at once.
func (w *work) command(ctx context.Context, m *msg, retryOf int64, channel int32, delay time.Duration, attempt, part int16) {
	id := w.id(ctx)
	w.resends.add(id, retryOf, m, channel, delay, attempt, part)
	if delay > 0 {
		return // the pull finds it when it is due
	}
	c := outbox.Command{
		SubmitID: id, MessageID: m.id, RetryOf: retryOf, ChannelID: channel, EnterpriseID: m.enterprise, AppID: m.app, Attempt: attempt, Part: part,
		Parts: m.parts, Lane: int16(m.lane), Phone: m.phone, Fmt: m.fmt, UDHI: m.udhi, PkTotal: m.pkTotal, PkNumber: m.pkNumber, Src: m.src,
		Service: m.service, Content: m.content,
	}
	if m.validUntil != nil {
		c.ValidUntil = *m.validUntil
	}
	c.Cut(m.segments, m.outFmt, m.ref)
	w.commands[channel] = append(w.commands[channel], c)
}

// report applies a final Stat to the message of an accepted submit.
func (w *work) report(ctx context.Context, m *msg, s *submit, r *receipt) {
	if m.parts > 1 {
		w.reportPart(ctx, m, s, r)
		return
	}
	switch {
	case w.sendFailedAgain(ctx, m, s, r):
	case m.state == message.Submitted && s.attempt < m.attempt && m.stat == r.stat:
		w.Repeated++
	case m.state == message.Submitted && (s.attempt == m.attempt || r.stat == message.StatDelivered):
		w.endPart(ctx, m, outcome(r.stat), message.NoReason, r.stat, r.done(w.now))
	case m.state.Final() && m.stat == r.stat:
		w.Repeated++
	case m.state.Final():
		w.contradict(m, s, r)
	default:
		// A failure of an attempt that another one has replaced says nothing about the message.
		w.exception(r.event, s, kindEarlierAttempt, r.stat)
	}
}

func (w *work) reportPart(ctx context.Context, m *msg, s *submit, r *receipt) {
	known := s.stat
	if now, ok := w.parts[s.id]; ok {
		known = now
	}
	switch {
	case known == statCovered && !m.state.Final():
		// It says something about its part after all: the worst decides.
		if m.stat == "" || m.stat == message.StatDelivered {
			m.changed, m.stat = true, r.stat
		}
	case known == r.stat, known == statCovered && r.stat == message.StatDelivered:
		w.Repeated++
	case known != "" || m.state.Final():
		w.contradict(m, s, r)
	default:
		w.parts[s.id] = r.stat
		w.endPart(ctx, m, outcome(r.stat), message.NoReason, r.stat, r.done(w.now))
	}
}

func outcome(stat string) message.State {
	if stat == message.StatDelivered {
		return message.Delivered
	}
	return message.Failed
}

// contradict lists a receipt that says something else than what is settled; neither state nor money follow it.
func (w *work) contradict(m *msg, s *submit, r *receipt) {
	w.exception(r.event, s, kindContradiction, m.state.String()+" "+m.stat+", then "+r.stat)
	if r.stat == message.StatDelivered && m.bill == message.Released {
		w.unbilled.add(m)
	}
}

func (w *work) exception(id int64, s *submit, kind, detail string, candidates ...int64) {
	w.Contradicted++
	w.exceptions.add(id, s.id, s.supplierMsgID, s.account, kind, detail, candidates...)
}

// endPart ends a message, or one part of it: the worst part decides, once all have ended.
func (w *work) endPart(ctx context.Context, m *msg, state message.State, reason message.Reason, stat string, doneAt time.Time) {
	m.changed = true
	m.fin++
	if m.parts > 1 {
		if stat != statCovered && (m.stat == "" || m.stat == message.StatDelivered) {
			m.stat, m.reason = stat, reason
		}
		if m.fin < m.parts {
			w.together(ctx, m)
			return
		}
		if m.stat != message.StatDelivered && (m.acc > 0 || reason != m.reason) {
			// Something was sent of it, or its parts ended differently: the message as a whole has failed.
			state = message.Failed
		}
		stat, reason = m.stat, m.reason
	}
	m.state, m.stat, m.reason = state, stat, reason
	w.Ended++
	switch {
	case m.bill == message.Frozen && state == message.Delivered:
		w.charge(ctx, m) // charge_on deliver
	case m.bill == message.Frozen:
		m.bill, m.settle = message.Released, w.entry(ctx, message.Release, m)
	case m.bill == message.Charged && state == message.Failed && m.refundOn == message.RefundOnFailedReceipt && w.now.Sub(m.createdAt) <= refundWindow:
		m.bill, m.refund = message.Refunded, w.entry(ctx, message.Refund, m)
	case m.bill == message.Released && state == message.Delivered:
		w.unbilled.add(m) // its time had passed
	}
	w.tell(ctx, m, stat, doneAt)
}

func (w *work) charge(ctx context.Context, m *msg) {
	m.bill, m.settle = message.Charged, w.entry(ctx, message.Charge, m)
}

// expireReceipt marks a message whose receipt did not come in time. It stays submitted; money that waits for the receipt
// goes back.
func (w *work) expireReceipt(ctx context.Context, m *msg) {
	if m.state != message.Submitted || m.overdue {
		return
	}
	m.changed, m.overdue = true, true
	if m.bill == message.Frozen {
		m.bill, m.settle = message.Released, w.entry(ctx, message.Release, m)
	}
}
