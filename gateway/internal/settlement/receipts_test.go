package settlement_test

import (
	"fmt"
	"testing"
	"time"

	"cmppgateway/gateway/cmpp"
	"cmppgateway/gateway/internal/config"
	"cmppgateway/gateway/internal/event"
	"cmppgateway/gateway/internal/message"
	"cmppgateway/gateway/internal/settlement"
)

func (b *bench) exceptions(tb testing.TB, kind string) int64 {
	tb.Helper()
	return b.count(tb, `SELECT count(*) FROM submit_exception WHERE kind = $1`, kind)
}

// A receipt may be settled before the result it belongs to: it is parked, and found by the sweeper.
func TestReceiptBeforeResult(t *testing.T) {
	t.Parallel()
	b := setup(t)
	m := b.send(t, spec{})
	b.report(t, 1, 7, m.phone, delivered)
	b.settle(t)
	b.retry(t)
	b.want(t, m, message.Checked, message.Frozen, "")
	b.accept(t, m, 7)
	b.retry(t)
	b.want(t, m, message.Delivered, message.Charged, delivered)
	if n := b.count(t, `SELECT count(*) FROM receipt_parked`); n != 0 {
		t.Errorf("%d receipts parked", n)
	}
	b.books(t)
}

// What no submit is ever found for ends as a dead letter.
func TestParkedForGood(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.report(t, 1, 7, 13800000000, delivered)
	b.report(t, 1, 7, 13800000000, "ACCEPTD")
	b.settle(t)
	b.retry(t)
	if n := b.count(t, `SELECT count(*) FROM receipt_parked WHERE tries = 1 AND next_try_at > now() + interval '300 ms'`); n != 1 {
		t.Fatalf("%d receipts parked for longer, want the final one", n)
	}
	b.exec(t, `UPDATE receipt_parked SET at = now() - interval '73 h'`)
	b.retry(t)
	if n := b.count(t, `SELECT count(*) FROM dead_letter WHERE kind = 'receipt' AND account = 1`); n != 1 {
		t.Errorf("%d dead letters, want 1", n)
	}
	if n := b.count(t, `SELECT count(*) FROM receipt_parked`); n != 0 {
		t.Errorf("%d receipts parked still", n)
	}
}

// A receipt that came before its submit was known is the first one, although another is settled while it is parked.
func TestParkedReceiptIsNotOvertaken(t *testing.T) {
	t.Parallel()
	b := setup(t)
	m, other := b.send(t, spec{}), b.send(t, spec{})
	b.report(t, 1, 71, m.phone, delivered)
	b.settle(t)
	b.accept(t, m, 71)
	b.accept(t, other, 72)
	b.report(t, 1, 71, m.phone, "UNDELIV")
	b.report(t, 1, 72, other.phone, delivered)
	b.settle(t)
	b.want(t, other, message.Delivered, message.Charged, delivered) // nobody else waits
	b.retry(t)
	b.want(t, m, message.Delivered, message.Charged, delivered)
	if n := b.exceptions(t, "receipt_contradiction"); n != 1 {
		t.Errorf("%d contradictions listed, want 1", n)
	}
	b.books(t)
}

// The first final receipt wins; what contradicts it is listed.
func TestReceiptsThatDisagree(t *testing.T) {
	t.Parallel()
	b := setup(t)
	m := b.send(t, spec{})
	b.accept(t, m, 7)
	b.report(t, 1, 7, m.phone, "ACCEPTD")
	b.report(t, 1, 7, m.phone, "UNDELIV")
	b.report(t, 1, 7, m.phone, delivered)
	b.report(t, 1, 7, m.phone, "UNDELIV")
	b.settle(t)
	b.want(t, m, message.Failed, message.Refunded, "UNDELIV")
	if n := b.exceptions(t, "receipt_contradiction"); n != 1 {
		t.Errorf("%d contradictions listed, want 1", n)
	}
	if b.receipts(t, m) != 1 {
		t.Errorf("%d receipts for the customer", b.receipts(t, m))
	}
	other := b.send(t, spec{})
	b.accept(t, other, 8)
	b.report(t, 1, 8, other.phone+1, delivered)
	b.settle(t)
	b.want(t, other, message.Submitted, message.Charged, "")
	if n := b.exceptions(t, "recipient_mismatch"); n != 1 {
		t.Errorf("%d mismatches listed, want 1", n)
	}
	b.books(t)
}

// Suppliers use Msg_Ids again, and each account has its own.
func TestReusedMsgID(t *testing.T) {
	t.Parallel()
	b := setup(t)
	phone := int64(13900000000)
	first, second, elsewhere := b.send(t, spec{phone: phone}), b.send(t, spec{phone: phone}), b.send(t, spec{app: 14, channel: 3, phone: phone})
	b.accept(t, first, 7)
	b.accept(t, second, 7)
	b.accept(t, elsewhere, 7)
	b.report(t, 1, 7, phone, delivered)
	b.settle(t)
	b.want(t, first, message.Submitted, message.Charged, "")
	b.want(t, second, message.Delivered, message.Charged, delivered)
	b.report(t, 1, 7, phone, "UNDELIV")
	b.settle(t)
	b.want(t, first, message.Failed, message.Refunded, "UNDELIV")
	b.want(t, elsewhere, message.Submitted, message.Charged, "")
	b.books(t)
}

// A SUBMIT answered twice with two Msg_Ids: receipts under either are found.
func TestSecondAnswer(t *testing.T) {
	t.Parallel()
	b := setup(t)
	m, refused := b.send(t, spec{}), b.send(t, spec{})
	b.accept(t, m, 7)
	if out := b.apply(t, b.result(m, event.Accepted, 0, 8)); out.Contradicted != 1 {
		t.Errorf("%+v", out)
	}
	b.report(t, 1, 8, m.phone, delivered)
	b.reject(t, refused, 13)
	for range 2 {
		b.apply(t, b.result(refused, event.Accepted, 0, 9))
	}
	b.report(t, 1, 9, refused.phone, delivered)
	b.settle(t)
	b.want(t, m, message.Delivered, message.Charged, delivered)
	b.want(t, refused, message.Failed, message.Released, "REJECTD")
	for kind, want := range map[string]int64{"accepted_after_rejected": 1, "receipt_of_refused_submit": 1} {
		if n := b.exceptions(t, kind); n != want {
			t.Errorf("%d exceptions %s, want %d", n, kind, want)
		}
	}
	b.books(t)
}

// A receipt whose Done_time cannot be read has the time it was settled at.
func TestDoneTime(t *testing.T) {
	t.Parallel()
	b := setup(t)
	for i, done := range []string{"2608251234", "none"} {
		m := b.send(t, spec{})
		b.accept(t, m, uint64(i+1))
		b.exec(t, receiptSQL, b.id(t), b.id(t), i+1, m.phone, 1, b.node.Number, delivered, done)
		b.settle(t)
		var at time.Time
		if err := b.QueryRow(t.Context(), `SELECT done_at FROM delivery WHERE message_id = $1`, m.message).Scan(&at); err != nil {
			t.Fatal(err)
		}
		want := time.Date(2026, 8, 25, 12, 34, 0, 0, cmpp.Shanghai)
		if i == 0 && !at.Equal(want) || i == 1 && time.Since(at) > time.Minute {
			t.Errorf("%s: done at %s", done, at)
		}
	}
}

// An unknown submit is closed by a receipt that can mean only it (data §1.4).
func TestUnknownBinding(t *testing.T) { //nolint:tparallel // the cases share a database
	t.Parallel()
	b := setup(t, func(c *config.Config) { c.Settlement.UnknownAfter = 0 })
	bound := func(t *testing.T, m sent, submit, msgID int64) {
		t.Helper()
		if n := b.count(t, `SELECT count(*) FROM submit WHERE id = $1 AND state = 2 AND supplier_msg_id = $2`, submit, msgID); n != 1 {
			t.Errorf("submit %d of message %d is not accepted with Msg_Id %d", submit, m.message, msgID)
		}
	}
	report := func(t *testing.T, account int32, msgID uint64, phone int64, stat string) {
		t.Helper()
		b.report(t, account, msgID, phone, stat)
		b.settle(t)
		b.retry(t)
	}
	t.Run("single", func(t *testing.T) {
		m := b.send(t, spec{})
		b.lose(t, m)
		report(t, 1, 101, m.phone, delivered)
		b.want(t, m, message.Delivered, message.Charged, delivered)
		bound(t, m, m.submit, 101)
		report(t, 1, 101, m.phone, delivered) // a repetition is known by the Msg_Id
		if b.receipts(t, m) != 1 {
			t.Errorf("%d receipts for the customer", b.receipts(t, m))
		}
	})
	t.Run("failed", func(t *testing.T) {
		m := b.send(t, spec{})
		b.lose(t, m)
		report(t, 1, 102, m.phone, "UNDELIV")
		b.want(t, m, message.Failed, message.Refunded, "UNDELIV")
	})
	t.Run("parts in their order", func(t *testing.T) {
		m := b.send(t, spec{parts: 2})
		for part, id := range m.parts {
			r := b.result(m, event.Unknown, 0, 0)
			r.SubmitID, r.Part = id, int16(part+1)
			b.apply(t, r)
		}
		report(t, 1, 103, m.phone, delivered)
		bound(t, m, m.parts[0], 103)
		b.want(t, m, message.Submitted, message.Charged, delivered)
		report(t, 1, 104, m.phone, delivered)
		bound(t, m, m.parts[1], 104)
		b.want(t, m, message.Delivered, message.Charged, delivered)
	})
	t.Run("several messages", func(t *testing.T) {
		phone := int64(13911111111)
		one, two := b.send(t, spec{phone: phone}), b.send(t, spec{phone: phone})
		b.lose(t, one)
		b.lose(t, two)
		report(t, 1, 105, phone, delivered)
		b.retry(t)
		b.want(t, one, message.Unknown, message.Frozen, "")
		b.want(t, two, message.Unknown, message.Frozen, "")
		if n := b.exceptions(t, "unknown_ambiguous"); n != 1 {
			t.Errorf("%d exceptions, want 1", n)
		}
		b.reject(t, one, 13) // once one of them is known, the receipt can mean the other only
		b.retry(t)
		b.want(t, two, message.Delivered, message.Charged, delivered)
	})
	for name, change := range map[string]string{
		"dispatched too early":   `UPDATE unknown_submit SET dispatched_at = dispatched_at - interval '12 min' WHERE submit_id = $1`,
		"another supplier":       `UPDATE unknown_submit SET supplier_account = 2 WHERE submit_id = $1`,
		"another number of ours": `UPDATE unknown_submit SET src = '10691' WHERE submit_id = $1`,
	} {
		t.Run(name, func(t *testing.T) {
			m := b.send(t, spec{})
			b.lose(t, m)
			b.exec(t, change, m.submit)
			report(t, 1, uint64(m.message), m.phone, delivered)
			b.want(t, m, message.Unknown, message.Frozen, "")
		})
	}
	b.books(t)
}

// A receipt is not bound before it had time to be found by its Msg_Id.
func TestUnknownBindingWaits(t *testing.T) {
	t.Parallel()
	b := setup(t)
	m := b.send(t, spec{})
	b.lose(t, m)
	b.report(t, 1, 7, m.phone, delivered)
	b.settle(t)
	b.retry(t)
	b.want(t, m, message.Unknown, message.Frozen, "")
	b.exec(t, `UPDATE receipt_parked SET at = now() - interval '61 s'`)
	b.retry(t)
	b.want(t, m, message.Delivered, message.Charged, delivered)
	b.books(t)
}

// A report about one message does not close another one to the same number whose answer is still to come; nor does a repetition
// of it close a second part.
func TestUnknownBindingKnowsItsRivals(t *testing.T) {
	t.Parallel()
	b := setup(t, func(c *config.Config) { c.Settlement.UnknownAfter = 0 })
	phone := int64(13911111111)
	lost, open := b.send(t, spec{phone: phone}), b.send(t, spec{phone: phone})
	b.lose(t, lost)
	b.report(t, 1, 7, phone, delivered) // of the open one: its result is late
	b.settle(t)
	b.retry(t)
	b.want(t, lost, message.Unknown, message.Frozen, "")
	b.accept(t, open, 7)
	b.retry(t)
	b.want(t, open, message.Delivered, message.Charged, delivered)
	b.want(t, lost, message.Unknown, message.Frozen, "")

	elsewhere := b.send(t, spec{app: 14, channel: 3, phone: phone}) // another supplier's answer says nothing
	b.report(t, 1, 8, phone, delivered)
	b.settle(t)
	b.retry(t)
	b.want(t, lost, message.Delivered, message.Charged, delivered)
	b.want(t, elsewhere, message.Checked, message.Frozen, "")

	long := b.send(t, spec{parts: 2})
	for i, id := range long.parts {
		r := b.result(long, event.Unknown, 0, 0)
		r.SubmitID, r.Part, r.Parts = id, int16(i+1), 2
		b.apply(t, r)
	}
	b.report(t, 1, 9, long.phone, delivered)
	b.report(t, 1, 9, long.phone, delivered)
	b.settle(t)
	b.retry(t)
	b.want(t, long, message.Submitted, message.Charged, delivered)
	if n := b.count(t, `SELECT count(*) FROM unknown_submit WHERE message_id = $1`, long.message); n != 1 {
		t.Errorf("%d parts unknown, want 1", n)
	}
	b.books(t)
}

// What cannot be told apart ends as dead letter, and on the list of exceptions with its candidates.
func TestCandidatesAreListed(t *testing.T) {
	t.Parallel()
	b := setup(t, func(c *config.Config) { c.Settlement.UnknownAfter = 0 })
	phone := int64(13911111111)
	one, two := b.send(t, spec{phone: phone}), b.send(t, spec{phone: phone})
	b.lose(t, one)
	b.lose(t, two)
	b.report(t, 1, 7, phone, delivered)
	b.report(t, 1, 8, 13922222222, delivered)
	b.settle(t)
	b.retry(t)
	b.exec(t, `UPDATE receipt_parked SET at = now() - interval '73 h'`)
	b.retry(t)
	list, err := settlement.ListExceptions(t.Context(), b.Pool, "", time.Now().Add(-time.Hour), 10)
	if err != nil {
		t.Fatal(err)
	}
	got := map[string]string{}
	for _, e := range list {
		got[e.Kind] = fmt.Sprintf("%d %v", e.SupplierMsgID, e.Candidates)
	}
	want := map[string]string{"unknown_ambiguous": fmt.Sprintf("7 [%d %d]", one.submit, two.submit), "receipt_unmatched": "8 []"}
	if fmt.Sprint(got) != fmt.Sprint(want) {
		t.Errorf("exceptions %v, want %v", got, want)
	}
	if n := b.count(t, `SELECT count(*) FROM dead_letter WHERE kind = 'receipt' AND position($1 in convert_from(raw, 'UTF8')) > 0`, fmt.Sprint(one.submit)); n != 1 {
		t.Errorf("%d dead letters with the candidates, want 1", n)
	}
	b.want(t, one, message.Unknown, message.Frozen, "")
	b.books(t)
}

// A parked receipt does not wait for its next try once its submit is known.
func TestKnownSubmitsWakeTheirReceipts(t *testing.T) {
	t.Parallel()
	b := setup(t)
	m := b.send(t, spec{})
	b.lose(t, m)
	b.report(t, 1, 7, m.phone, delivered)
	b.settle(t)
	b.retry(t)
	b.exec(t, `UPDATE receipt_parked SET next_try_at = now() + interval '5 min', tries = 8`)
	b.accept(t, m, 7) // late
	if err := b.Parked(t.Context()); err != nil {
		t.Fatal(err)
	}
	b.want(t, m, message.Delivered, message.Charged, delivered)
	b.books(t)
}

// A report without a Msg_Id matches nothing by it: submits without one have 0 as well.
func TestReportWithoutMsgID(t *testing.T) {
	t.Parallel()
	b := setup(t)
	m := b.send(t, spec{})
	b.reject(t, m, 13)
	b.report(t, 1, 0, m.phone, delivered)
	b.settle(t)
	b.want(t, m, message.Failed, message.Released, "REJECTD")
	if n := b.count(t, `SELECT count(*) FROM receipt_parked`); n != 1 {
		t.Errorf("%d receipts parked, want 1", n)
	}
}
