package settlement_test

import (
	"fmt"
	"testing"

	"pgregory.net/rapid"

	"cmppgateway/gateway/internal/event"
	"cmppgateway/gateway/internal/message"
)

// Whatever results and receipts come, in whatever order, once or several times: states move along the table, money follows
// them, no submit is sent again twice, and the customer hears once.
func TestAnyOrderOfEvents(t *testing.T) {
	t.Parallel()
	b := setup(t)
	rapid.Check(t, func(rt *rapid.T) {
		m := b.send(t, spec{})
		submits := []sent{m}
		before := b.row(t, m)
		seen := []func(){}
		for range rapid.IntRange(1, 8).Draw(rt, "steps") {
			s := submits[rapid.IntRange(0, len(submits)-1).Draw(rt, "submit")]
			msgID := uint64(s.submit)
			do := func() {}
			kind := rapid.SampledFrom([]string{"accept", "reject 8", "reject 13", "unknown", "second answer", "DELIVRD", "UNDELIV", "ACCEPTD", "again"}).Draw(rt, "event")
			switch kind {
			case "accept":
				do = func() { b.accept(t, s, msgID) }
			case "second answer":
				do = func() { b.accept(t, s, msgID+1<<60) }
			case "reject 8":
				do = func() { b.reject(t, s, 8) }
			case "reject 13":
				do = func() { b.reject(t, s, 13) }
			case "unknown":
				do = func() { b.lose(t, s) }
			case "again":
				if len(seen) > 0 {
					do = seen[rapid.IntRange(0, len(seen)-1).Draw(rt, "which")]
				}
			default:
				do = func() {
					b.report(t, 1, msgID, m.phone, kind)
					b.settle(t)
				}
			}
			seen = append(seen, do)
			do()
			before = b.moved(t, rt, m, kind, before)
			if rapid.Bool().Draw(rt, "retry") {
				b.retry(t)
				before = b.moved(t, rt, m, "retry", before)
			}
			if next, ok := b.follow(t, m); ok {
				b.dispatch(t, next.submit)
				submits = append(submits, next)
			}
			b.consistent(t, rt, m, before, len(submits))
		}
	})
	b.books(t)
}

// moved is what the message is now; it may have got there from before.
func (b *bench) moved(t *testing.T, rt *rapid.T, m sent, kind string, before row) row {
	t.Helper()
	now := b.row(t, m)
	if now.State != before.State && !before.State.Can(now.State) || now.Bill != before.Bill && !before.Bill.Can(now.Bill) {
		rt.Fatalf("%s: from %s to %s", kind, before, now)
	}
	return now
}

// consistent compares what hangs together of one message.
func (b *bench) consistent(t *testing.T, rt *rapid.T, m sent, r row, submits int) {
	t.Helper()
	var acc int16
	var made, twice, deliveries, open int64
	err := b.QueryRow(t.Context(), `SELECT acc, (SELECT count(*) FROM submit_record WHERE message_id = m.id),
		(SELECT count(*) FROM (SELECT 1 FROM submit_record WHERE message_id = m.id GROUP BY retry_of_submit_record_id HAVING count(*) > 1) x),
		(SELECT count(*) FROM delivery WHERE message_id = m.id),
		(SELECT count(*) FROM submit_outbox WHERE message_id = m.id) + (SELECT count(*) FROM unknown_submit WHERE message_id = m.id)
		FROM message m WHERE id = $1`, m.message).Scan(&acc, &made, &twice, &deliveries, &open)
	if err != nil {
		t.Fatal(err)
	}
	fault := ""
	switch {
	case made != int64(submits) || made > message.MaxSubmits:
		fault = fmt.Sprintf("%d submits in the database, %d known", made, submits)
	case twice > 0:
		fault = "a submit was sent again twice"
	case (deliveries == 1) != r.State.Final() || deliveries > 1:
		fault = fmt.Sprintf("%d receipts for the customer", deliveries)
	case open == 0 && (r.State == message.Checked || r.State == message.Unknown):
		fault = "nothing is open"
	case acc > 1:
		fault = fmt.Sprintf("accepted %d times", acc)
	case acc == 0 && r.Bill != message.Frozen && r.Bill != message.Released, acc == 1 && r.Bill != message.Charged && r.Bill != message.Refunded:
		fault = "the money does not follow the acceptance"
	case r.State == message.Delivered && r.Bill != message.Charged, r.State == message.Failed && r.Bill != message.Released && r.Bill != message.Refunded:
		fault = "the money does not follow the end"
	}
	if fault != "" {
		rt.Fatalf("%s: %s", r, fault)
	}
}

// A batch of results leaves the same behind when it is applied twice, and in any order.
func TestBatchesAgain(t *testing.T) {
	t.Parallel()
	b := setup(t)
	rapid.Check(t, func(rt *rapid.T) {
		var results []event.SubmitResult
		for range rapid.IntRange(1, 8).Draw(rt, "messages") {
			m := b.send(t, spec{})
			state := rapid.SampledFrom([]string{event.Accepted, event.Rejected, event.Unknown}).Draw(rt, "state")
			code := uint32(0)
			if state == event.Rejected {
				code = rapid.SampledFrom([]uint32{8, 13, 20}).Draw(rt, "code")
			}
			msgID := uint64(0)
			if state == event.Accepted {
				msgID = uint64(m.submit)
			}
			results = append(results, b.result(m, state, code, msgID))
		}
		if out := b.apply(t, rapid.Permutation(results).Draw(rt, "first")...); out.Moved != len(results) {
			rt.Fatalf("%+v of %d", out, len(results))
		}
		if out := b.apply(t, rapid.Permutation(results).Draw(rt, "again")...); out.Moved != 0 || out.Repeated != len(results) || out.Resent != 0 {
			rt.Fatalf("again: %+v of %d", out, len(results))
		}
	})
	b.books(t)
}
