package settlement_test

import (
	"testing"

	"cmppgateway/gateway/internal/event"
	"cmppgateway/gateway/internal/message"
)

// A failed receipt sends the message through another channel where its application wants that; the money moves once.
func TestResendAfterFailedReceipt(t *testing.T) { //nolint:tparallel // the cases share a database
	t.Parallel()
	b := setup(t)
	b.exec(t, `INSERT INTO channel_group_member (group_id, channel_id, priority) VALUES (1, 3, 2)`)
	b.exec(t, `UPDATE application SET resend_failed = 1 WHERE id IN (11, 13)`)
	b.refresh(t)
	// failed is a message whose first attempt was accepted and failed, and the resend that follows.
	failed := func(t *testing.T, app int32) (m, again sent) {
		t.Helper()
		m = b.send(t, spec{app: app})
		b.accept(t, m, uint64(m.submit))
		b.report(t, 1, uint64(m.submit), m.phone, "UNDELIV")
		b.settle(t)
		bill := message.Charged
		if app == 13 {
			bill = message.Frozen
		}
		b.want(t, m, message.Submitted, bill, "UNDELIV")
		if b.receipts(t, m) != 0 {
			t.Error("the customer was told already")
		}
		again = b.next(t, m)
		if again.channel != 2 || again.attempt != 2 || b.count(t, `SELECT retry_of FROM submit_outbox WHERE id = $1`, again.submit) != m.submit {
			t.Errorf("resent on channel %d as attempt %d, want 2, 2 and linked", again.channel, again.attempt)
		}
		return m, again
	}
	for name, c := range map[string]struct {
		app      int32
		then     func(m, again sent)
		want     row
		submits  int64
		receipts int64
	}{
		"delivered": {11, func(m, again sent) {
			b.accept(b.t, again, uint64(again.submit))
			b.report(b.t, 1, uint64(again.submit), m.phone, delivered)
		}, row{message.Delivered, message.Charged, delivered}, 2, 1},
		"delivered, charge on delivery": {13, func(m, again sent) {
			b.accept(b.t, again, uint64(again.submit))
			b.report(b.t, 1, uint64(again.submit), m.phone, delivered)
		}, row{message.Delivered, message.Charged, delivered}, 2, 1},
		"failed again": {11, func(m, again sent) {
			b.accept(b.t, again, uint64(again.submit))
			b.report(b.t, 1, uint64(again.submit), m.phone, "EXPIRED")
		}, row{message.Failed, message.Refunded, "EXPIRED"}, 2, 1},
		"failed again, charge on delivery": {13, func(m, again sent) {
			b.accept(b.t, again, uint64(again.submit))
			b.report(b.t, 1, uint64(again.submit), m.phone, "EXPIRED")
		}, row{message.Failed, message.Released, "EXPIRED"}, 2, 1},
		"first receipt repeated": {11, func(m, _ sent) {
			b.report(b.t, 1, uint64(m.submit), m.phone, "UNDELIV")
		}, row{message.Submitted, message.Charged, "UNDELIV"}, 1, 0},
		"first attempt fails in another way while the second is on its way": {11, func(m, again sent) {
			b.accept(b.t, again, uint64(again.submit))
			b.report(b.t, 1, uint64(m.submit), m.phone, "EXPIRED")
		}, row{message.Submitted, message.Charged, "UNDELIV"}, 2, 0},
		"refused for good": {11, func(_, again sent) {
			b.reject(b.t, again, 13)
		}, row{message.Failed, message.Refunded, "UNDELIV"}, 2, 1},
		"refused, taken by the third": {11, func(m, again sent) {
			b.reject(b.t, again, 8)
			third := b.next(b.t, again)
			if third.channel != 3 {
				b.t.Errorf("then on channel %d, want 3", third.channel)
			}
			b.accept(b.t, third, uint64(third.submit))
			b.report(b.t, 2, uint64(third.submit), m.phone, "UNDELIV")
		}, row{message.Failed, message.Refunded, "UNDELIV"}, 3, 1},
		"unknown": {11, func(_, again sent) {
			b.lose(b.t, again)
		}, row{message.Submitted, message.Charged, "UNDELIV"}, 2, 0},
		"unknown, refused late": {11, func(_, again sent) {
			b.lose(b.t, again)
			b.reject(b.t, again, 13)
		}, row{message.Failed, message.Refunded, "UNDELIV"}, 2, 1},
		"expired in the queue": {11, func(m, again sent) {
			b.exec(b.t, `UPDATE submit_outbox SET state = 0, batch = NULL, node = NULL WHERE id = $1`, again.submit)
			b.exec(b.t, `UPDATE message SET valid_until = now() - interval '1 s' WHERE id = $1`, m.message)
			b.sweep(b.t)
		}, row{message.Failed, message.Refunded, "UNDELIV"}, 1, 1},
		"first delivered after all": {11, func(m, again sent) {
			b.report(b.t, 1, uint64(m.submit), m.phone, delivered)
			b.settle(b.t)
			b.accept(b.t, again, uint64(again.submit))
		}, row{message.Delivered, message.Charged, delivered}, 2, 1},
	} {
		t.Run(name, func(t *testing.T) {
			b.t = t
			m, again := failed(t, c.app)
			c.then(m, again)
			b.settle(t)
			if got := b.row(t, m); got != c.want {
				t.Errorf("message is %s, want %s", got, c.want)
			}
			if n := b.receipts(t, m); n != c.receipts {
				t.Errorf("%d receipts for the customer, want %d", n, c.receipts)
			}
			if n := b.count(t, `SELECT count(*) FROM submit WHERE message_id = $1`, m.message); n != c.submits {
				t.Errorf("%d submits, want %d", n, c.submits)
			}
			b.books(t)
		})
	}
	t.Run("not for an application that does not want it", func(t *testing.T) {
		m := b.send(t, spec{app: 12})
		b.accept(t, m, uint64(m.submit))
		b.report(t, 1, uint64(m.submit), m.phone, "UNDELIV")
		b.settle(t)
		b.want(t, m, message.Failed, message.Charged, "UNDELIV")
	})
}

// A number that one carrier's supplier refused as not its own and another carrier's took is that carrier's from now on.
func TestLearnedNumbers(t *testing.T) {
	t.Parallel()
	b := setup(t)
	carrier := func(m sent) int64 {
		return b.count(t, `SELECT coalesce(max(carrier * 100 + source * 10 + channel_id), 0) FROM number_override WHERE phone = $1`, m.phone)
	}
	ported := b.send(t, spec{})
	b.reject(t, ported, 30)
	if n := carrier(ported); n != 0 {
		t.Errorf("learned %d before anybody took it", n)
	}
	b.accept(t, b.next(t, ported), 1)
	if n := carrier(ported); n != 221 {
		t.Errorf("learned %d, want carrier 2, source 2, refused by channel 1", n)
	}

	busy := b.send(t, spec{}) // refused for another reason
	b.reject(t, busy, 8)
	b.accept(t, b.next(t, busy), 2)
	own := b.send(t, spec{}) // refused by both carriers' suppliers, then taken by the backup of its own
	b.reject(t, own, 30)
	other := b.next(t, own)
	b.reject(t, other, 30)
	b.accept(t, b.next(t, other), 3)
	for _, m := range []sent{busy, own} {
		if n := carrier(m); n != 0 {
			t.Errorf("learned %d", n)
		}
	}

	set := b.send(t, spec{}) // an operator knows better
	b.exec(t, `INSERT INTO number_override (phone, carrier, source, channel_id) VALUES ($1, 3, 3, 0)`, set.phone)
	b.reject(t, set, 30)
	b.accept(t, b.next(t, set), 4)
	if n := carrier(set); n != 330 {
		t.Errorf("an operator's entry became %d", n)
	}

	late := b.send(t, spec{}) // the answer to the resend comes late
	b.reject(t, late, 30)
	again := b.next(t, late)
	b.lose(t, again)
	b.apply(t, b.result(again, event.Accepted, 0, 5))
	if n := carrier(late); n != 221 {
		t.Errorf("learned %d from a late answer", n)
	}
	b.books(t)
}
