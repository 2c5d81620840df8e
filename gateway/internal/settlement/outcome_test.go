package settlement_test

import (
	"testing"

	"cmppgateway/gateway/internal/config"
	"cmppgateway/gateway/internal/event"
	"cmppgateway/gateway/internal/message"
)

const delivered = message.StatDelivered

// One case per row of the outcome table (architecture §4, data §2.1).
func TestOutcomes(t *testing.T) { //nolint:tparallel // the cases share a database
	t.Parallel()
	type end struct {
		state    message.State
		bill     message.Bill
		stat     string
		receipts int64 // to the customer
		submits  int64 // in all
	}
	b := setup(t)
	for name, c := range map[string]struct {
		do   func(*bench) sent
		want end
	}{
		"accepted, delivered": {func(b *bench) sent {
			m := b.send(b.t, spec{})
			b.accept(b.t, m, 7)
			b.report(b.t, 1, 7, m.phone, delivered)
			return m
		}, end{message.Delivered, message.Charged, delivered, 1, 1}},
		"accepted, no receipt": {func(b *bench) sent {
			m := b.send(b.t, spec{})
			b.accept(b.t, m, 7)
			b.report(b.t, 1, 7, m.phone, "ACCEPTD")
			return m
		}, end{message.Submitted, message.Charged, "", 0, 1}},
		"accepted, failed receipt": {func(b *bench) sent {
			m := b.send(b.t, spec{})
			b.accept(b.t, m, 7)
			b.report(b.t, 1, 7, m.phone, "UNDELIV")
			return m
		}, end{message.Failed, message.Refunded, "UNDELIV", 1, 1}},
		"accepted, failed receipt, never refunded": {func(b *bench) sent {
			m := b.send(b.t, spec{app: 12})
			b.accept(b.t, m, 7)
			b.report(b.t, 1, 7, m.phone, "UNDELIV")
			return m
		}, end{message.Failed, message.Charged, "UNDELIV", 1, 1}},
		"accepted, failed receipt after the refund window": {func(b *bench) sent {
			m := b.send(b.t, spec{})
			b.accept(b.t, m, 7)
			b.exec(b.t, `UPDATE message SET created_at = now() - interval '73 h' WHERE id = $1`, m.message)
			b.report(b.t, 1, 7, m.phone, "UNDELIV")
			return m
		}, end{message.Failed, message.Charged, "UNDELIV", 1, 1}},
		"refused for good": {func(b *bench) sent {
			m := b.send(b.t, spec{})
			b.reject(b.t, m, 13)
			return m
		}, end{message.Failed, message.Released, "REJECTD", 1, 1}},
		"refused by every supplier tried": {func(b *bench) sent {
			m := b.send(b.t, spec{})
			first := m
			b.reject(b.t, m, 8)
			for range 2 {
				m = b.next(b.t, m)
				b.reject(b.t, m, 8)
			}
			return first
		}, end{message.Failed, message.Released, "REJECTD", 1, 3}},
		"refused, accepted by the backup": {func(b *bench) sent {
			m := b.send(b.t, spec{})
			b.reject(b.t, m, 8)
			next := b.next(b.t, m)
			if next.channel != 2 || next.attempt != 2 {
				b.t.Errorf("resent on channel %d as attempt %d, want 2 and 2", next.channel, next.attempt)
			}
			b.accept(b.t, next, 9)
			b.report(b.t, 1, 9, m.phone, delivered)
			return m
		}, end{message.Delivered, message.Charged, delivered, 1, 2}},
		"accepted first, a later resend refused": {func(b *bench) sent {
			m := b.send(b.t, spec{})
			b.accept(b.t, m, 7)
			again := m
			again.submit, again.attempt, again.channel = b.id(t), 2, 2
			b.exec(b.t, outboxSQL, again.submit, m.message, m.submit, 2, 1, 2, 1, 1)
			b.exec(b.t, `UPDATE message SET attempt = 2 WHERE id = $1`, m.message)
			b.dispatch(b.t, again.submit)
			b.reject(b.t, again, 13)
			return m
		}, end{message.Submitted, message.Charged, "", 0, 2}},
		"charge on delivery, delivered": {func(b *bench) sent {
			m := b.send(b.t, spec{app: 13})
			b.accept(b.t, m, 7)
			b.want(b.t, m, message.Submitted, message.Frozen, "")
			b.report(b.t, 1, 7, m.phone, delivered)
			return m
		}, end{message.Delivered, message.Charged, delivered, 1, 1}},
		"charge on delivery, failed": {func(b *bench) sent {
			m := b.send(b.t, spec{app: 13})
			b.accept(b.t, m, 7)
			b.report(b.t, 1, 7, m.phone, "EXPIRED")
			return m
		}, end{message.Failed, message.Released, "EXPIRED", 1, 1}},
		"unknown": {func(b *bench) sent {
			m := b.send(b.t, spec{})
			b.lose(b.t, m)
			return m
		}, end{message.Unknown, message.Frozen, "", 0, 1}},
		"unknown, accepted late": {func(b *bench) sent {
			m := b.send(b.t, spec{})
			b.lose(b.t, m)
			b.accept(b.t, m, 7)
			b.report(b.t, 1, 7, m.phone, delivered)
			return m
		}, end{message.Delivered, message.Charged, delivered, 1, 1}},
		"unknown, refused late for good": {func(b *bench) sent {
			m := b.send(b.t, spec{})
			b.lose(b.t, m)
			b.reject(b.t, m, 13)
			return m
		}, end{message.Failed, message.Released, "REJECTD", 1, 1}},
		"unknown, refused late, accepted by the backup": {func(b *bench) sent {
			m := b.send(b.t, spec{})
			b.lose(b.t, m)
			b.reject(b.t, m, 8)
			b.want(b.t, m, message.Checked, message.Frozen, "")
			b.accept(b.t, b.next(b.t, m), 9)
			return m
		}, end{message.Submitted, message.Charged, "", 0, 2}},
		"expired in the queue": {func(b *bench) sent {
			m := b.queue(b.t, spec{})
			b.exec(b.t, `UPDATE message SET valid_until = now() - interval '1 s' WHERE id = $1`, m.message)
			b.sweep(t)
			return m
		}, end{message.Expired, message.Released, "EXPIRED", 1, 0}},
		"expired while it waits to be resent": {func(b *bench) sent {
			m := b.send(b.t, spec{app: 14, channel: 3})
			b.reject(b.t, m, 8)
			b.exec(b.t, `UPDATE message SET valid_until = now() - interval '1 s' WHERE id = $1`, m.message)
			b.sweep(t)
			return m
		}, end{message.Expired, message.Released, "EXPIRED", 1, 1}},
		"refused, no time left for a resend": {func(b *bench) sent {
			m := b.send(b.t, spec{app: 14, channel: 3})
			b.exec(b.t, `UPDATE message SET valid_until = now() + interval '500 ms' WHERE id = $1`, m.message)
			b.reject(b.t, m, 8)
			return m
		}, end{message.Failed, message.Released, "REJECTD", 1, 1}},
		"all channels disabled": {func(b *bench) sent {
			m := b.queue(b.t, spec{})
			b.exec(b.t, `UPDATE channel SET enabled = false`)
			b.refresh(t)
			b.sweep(t)
			b.exec(b.t, `UPDATE channel SET enabled = true`)
			b.refresh(t)
			return m
		}, end{message.Failed, message.Released, "NOROUTE", 1, 0}},
		"long message, all parts delivered": {func(b *bench) sent {
			m := b.send(b.t, spec{parts: 2})
			for i, id := range m.parts {
				m.submit = id
				b.accept(b.t, m, uint64(70+i))
				b.report(b.t, 1, uint64(70+i), m.phone, delivered)
				b.report(b.t, 1, uint64(70+i), m.phone, delivered)
			}
			return m
		}, end{message.Delivered, message.Charged, delivered, 1, 2}},
		"long message, one part refused for good": {func(b *bench) sent {
			m := b.send(b.t, spec{parts: 2})
			b.accept(b.t, m, 70)
			b.want(b.t, m, message.Submitted, message.Charged, "")
			other := m
			other.submit = m.parts[1]
			b.reject(b.t, other, 13)
			b.report(b.t, 1, 70, m.phone, delivered)
			return m
		}, end{message.Failed, message.Refunded, "REJECTD", 1, 2}},
		"long message, one part failed": {func(b *bench) sent {
			m := b.send(b.t, spec{parts: 2})
			other := m
			other.submit = m.parts[1]
			b.apply(b.t, b.result(m, event.Accepted, 0, 70), b.result(other, event.Accepted, 0, 71))
			b.report(b.t, 1, 70, m.phone, "UNDELIV")
			b.settle(t)
			b.want(b.t, m, message.Submitted, message.Charged, "UNDELIV")
			b.report(b.t, 1, 71, m.phone, delivered)
			return m
		}, end{message.Failed, message.Refunded, "UNDELIV", 1, 2}},
		"long message, every part refused": {func(b *bench) sent {
			m := b.send(b.t, spec{parts: 2})
			other := m
			other.submit = m.parts[1]
			b.apply(b.t, b.result(m, event.Rejected, 13, 0), b.result(other, event.Rejected, 13, 0))
			return m
		}, end{message.Failed, message.Released, "REJECTD", 1, 2}},
	} {
		t.Run(name, func(t *testing.T) {
			b.t = t
			m := c.do(b)
			b.settle(t)
			got := end{b.row(t, m).State, b.row(t, m).Bill, b.row(t, m).Stat, b.receipts(t, m), b.count(t, `SELECT count(*) FROM submit WHERE message_id = $1`, m.message)}
			if got != c.want {
				t.Errorf("%+v, want %+v", got, c.want)
			}
			b.books(t)
		})
	}
}

// A message without a receipt is marked after the wait; money that waits for the receipt goes back, and a receipt that
// comes after all is listed.
func TestOverdue(t *testing.T) {
	t.Parallel()
	b := setup(t, func(c *config.Config) { c.Settlement.ReceiptWait = 1 })
	charged, waiting, open := b.send(t, spec{}), b.send(t, spec{app: 13}), b.send(t, spec{})
	b.accept(t, charged, 7)
	b.accept(t, waiting, 8)
	b.sweep(t)
	b.sweep(t)
	b.want(t, charged, message.Submitted, message.Charged, "")
	b.want(t, waiting, message.Submitted, message.Released, "")
	b.want(t, open, message.Checked, message.Frozen, "")
	if n := b.count(t, `SELECT count(*) FROM message WHERE receipt_overdue_at IS NOT NULL`); n != 2 {
		t.Errorf("%d messages overdue, want 2", n)
	}
	b.report(t, 1, 7, charged.phone, "UNDELIV")
	b.report(t, 1, 8, waiting.phone, delivered)
	b.settle(t)
	b.want(t, charged, message.Failed, message.Refunded, "UNDELIV")
	b.want(t, waiting, message.Delivered, message.Released, delivered)
	if n := b.count(t, `SELECT amount FROM ledger_exception WHERE message_id = $1 AND kind = 'delivered_unbilled'`, waiting.message); n != 325 {
		t.Errorf("exception over %d, want 325", n)
	}
	b.books(t)
}

// Where a refused submit goes next, by class, and what it carries.
func TestResends(t *testing.T) { //nolint:tparallel // the cases share a database
	t.Parallel()
	b := setup(t)
	for name, c := range map[string]struct {
		app, channel int32
		code         uint32
		to           []int32 // channels of the resends
		delays       []bool  // whether they wait
	}{
		"other":                     {11, 1, 8, []int32{2, 2}, []bool{false, true}},
		"other, from the backup":    {11, 2, 8, []int32{1, 1}, []bool{false, true}},
		"other, none left":          {14, 3, 8, []int32{3, 3}, []bool{true, true}},
		"later":                     {11, 1, 20, []int32{1, 1}, []bool{true, true}},
		"carrier":                   {11, 1, 30, []int32{4, 2}, []bool{false, false}},
		"carrier, no other carrier": {14, 3, 30, []int32{3, 3}, []bool{true, true}},
		"final":                     {11, 1, 13, nil, nil},
	} {
		t.Run(name, func(t *testing.T) {
			b.hints.cmds = nil
			m := b.send(t, spec{app: c.app, channel: c.channel})
			before := m
			for i, channel := range c.to {
				b.reject(t, m, c.code)
				b.want(t, m, message.Checked, message.Frozen, "")
				next := b.next(t, m)
				if next.channel != channel || next.attempt != m.attempt+1 {
					t.Fatalf("resend %d: channel %d, attempt %d, want %d and %d", i, next.channel, next.attempt, channel, m.attempt+1)
				}
				if n := b.count(t, `SELECT count(*) FROM submit_outbox WHERE id = $1 AND retry_of = $2 AND (due IS NOT NULL) = $3 AND coalesce(due <= clock_timestamp() + interval '2 seconds', true)`, next.submit, m.submit, c.delays[i]); n != 1 {
					t.Errorf("resend %d: not linked, or not due as wanted", i)
				}
				m = next
			}
			b.reject(t, m, c.code)
			b.want(t, before, message.Failed, message.Released, "REJECTD")
			hinted := 0
			for i := range c.to {
				if !c.delays[i] {
					hinted++
				}
			}
			if len(b.hints.cmds) != hinted {
				t.Errorf("%d commands hinted, want %d", len(b.hints.cmds), hinted)
			}
			b.books(t)
		})
	}
}

// A result of a command that is still pending moves nothing: it was never written, whoever says so.
func TestResultOfPendingCommand(t *testing.T) {
	t.Parallel()
	b := setup(t)
	m := b.queue(t, spec{})
	for range 2 {
		b.accept(t, m, 7)
	}
	b.want(t, m, message.Checked, message.Frozen, "")
	if next, waits := b.follow(t, m); !waits || next.submit != m.submit {
		t.Error("the command is gone")
	}
	if n := b.exceptions(t, "not_dispatched"); n != 1 {
		t.Errorf("%d exceptions, want 1", n)
	}
}
