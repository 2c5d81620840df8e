package settlement_test

import (
	"slices"
	"strings"
	"testing"

	"cmppgateway/gateway/internal/event"
	"cmppgateway/gateway/internal/message"
)

// answers of a supplier to one part of a long message, every time it is sent.
const (
	answerOK     = "ok"     // accepted, and delivered
	answerBusy   = "8"      // flow control: to be sent again
	answerNumber = "13"     // refused for good
	answerSilent = "silent" // no answer, and no receipt
)

// Every combination of what a supplier does with the three parts of a long message, in the order of the parts and against it:
// state, bill, customer's receipts, and which submits were made through which channel.
func TestThreeParts(t *testing.T) { //nolint:tparallel // the cases share a database
	t.Parallel()
	b := setup(t)
	fates := []string{answerOK, answerBusy, answerNumber, answerSilent}
	for _, one := range fates {
		for _, two := range fates {
			for _, three := range fates {
				combination := []string{one, two, three}
				for _, backwards := range []bool{false, true} {
					name := strings.Join(combination, ",")
					if backwards {
						name += " backwards"
					}
					t.Run(name, func(t *testing.T) {
						b.t = t
						b.threeParts(t, combination, backwards)
					})
				}
			}
		}
	}
	b.books(t)
}

func (b *bench) threeParts(t *testing.T, fates []string, backwards bool) {
	t.Helper()
	m := b.queue(t, spec{parts: 3})
	var channels []int32 // of the submits, in order
	resends := 0
	for range 10 { // rounds: what is pending is sent and answered
		parts := b.pending(t, m)
		if len(parts) == 0 {
			break
		}
		if backwards {
			slices.Reverse(parts)
		}
		for _, p := range parts {
			b.dispatch(t, p.submit)
		}
		for _, p := range parts {
			channels = append(channels, p.channel)
			if p.attempt > 1 {
				resends++
			}
			r := b.result(p.sent, event.Accepted, 0, uint64(p.submit))
			r.Part, r.Parts = p.part, 3
			switch fates[p.part-1] {
			case answerBusy:
				r.State, r.Result, r.SupplierMsgID = event.Rejected, 8, 0
			case answerNumber:
				r.State, r.Result, r.SupplierMsgID = event.Rejected, 13, 0
			case answerSilent:
				r.State, r.SupplierMsgID = event.Unknown, 0
			}
			b.apply(t, r)
			if fates[p.part-1] == answerOK {
				b.report(t, 1, uint64(p.submit), m.phone, delivered)
				b.settle(t)
			}
		}
	}
	count := func(fate string) (n int) {
		for _, f := range fates {
			if f == fate {
				n++
			}
		}
		return n
	}
	ok, busy, number, silent := count(answerOK), count(answerBusy), count(answerNumber), count(answerSilent)
	placed := ok+silent > 0
	want, receipts := row{message.Failed, message.Refunded, "REJECTD"}, int64(1)
	switch {
	case ok == 3:
		want = row{message.Delivered, message.Charged, delivered}
	case silent > 0:
		receipts = 0
		want = row{message.Unknown, message.Frozen, ""}
		if ok > 0 {
			want = row{message.Submitted, message.Charged, delivered}
		}
		if busy+number > 0 {
			want.Stat = "REJECTD"
		}
	case ok == 0:
		want.Bill = message.Released
	}
	if got := b.row(t, m); got != want {
		t.Errorf("message is %s, want %s", got, want)
	}
	if n := b.receipts(t, m); n != receipts {
		t.Errorf("%d receipts for the customer, want %d", n, receipts)
	}
	// Placed: a busy part is sent three times through its own channel. Not placed: all or none go on, by the candidates.
	wantResends := 2 * busy
	if !placed && number > 0 {
		wantResends = 0
	}
	if resends != wantResends {
		t.Errorf("%d resends, want %d", resends, wantResends)
	}
	elsewhere := slices.ContainsFunc(channels, func(c int32) bool { return c != 1 })
	if elsewhere != (busy == 3) {
		t.Errorf("through channels %v", channels)
	}
	if n := b.count(t, `SELECT count(*) FROM part_refused`) + b.count(t, `SELECT count(*) FROM submit_outbox`); n != 0 {
		t.Errorf("%d parts left behind", n)
	}
	if n := b.count(t, `SELECT count(*) FROM unknown_submit WHERE message_id = $1`, m.message); n != int64(silent) {
		t.Errorf("%d parts unknown, want %d", n, silent)
	}
	b.exec(t, `DELETE FROM unknown_submit`)
}

// part is a pending command of a long message.
type part struct {
	sent

	part int16
}

func (b *bench) pending(t *testing.T, m sent) (parts []part) {
	t.Helper()
	rows, err := b.Query(t.Context(), `SELECT id, channel_id, attempt, part FROM submit_outbox WHERE message_id = $1 AND state = 0 ORDER BY part`, m.message)
	if err != nil {
		t.Fatal(err)
	}
	defer rows.Close()
	for rows.Next() {
		p := part{sent: m}
		if err := rows.Scan(&p.submit, &p.channel, &p.attempt, &p.part); err != nil {
			t.Fatal(err)
		}
		parts = append(parts, p)
	}
	if err := rows.Err(); err != nil {
		t.Fatal(err)
	}
	return parts
}

// A long message that no channel has taken any of goes to the next candidate as a whole, and is charged once.
func TestLongMessageMovesAsAWhole(t *testing.T) {
	t.Parallel()
	b := setup(t)
	m := b.queue(t, spec{parts: 3})
	parts := b.pending(t, m)
	b.dispatch(t, m.parts...)
	refuse := func(p part, code uint32) event.SubmitResult {
		r := b.result(p.sent, event.Rejected, code, 0)
		r.Part, r.Parts = p.part, 3
		return r
	}
	b.apply(t, refuse(parts[2], 8))
	b.apply(t, refuse(parts[0], 8), refuse(parts[2], 8))
	if n := len(b.pending(t, m)); n != 0 {
		t.Fatalf("%d parts sent again while one has no answer", n)
	}
	b.want(t, m, message.Checked, message.Frozen, "")
	b.apply(t, refuse(parts[1], 8))
	again := b.pending(t, m)
	if len(again) != 3 {
		t.Fatalf("%d parts sent again, want 3", len(again))
	}
	if len(b.hints.cmds) != 3 {
		t.Errorf("%d commands hinted, want 3", len(b.hints.cmds))
	}
	for i, p := range again {
		if p.channel != 2 || p.attempt != 2 || p.part != int16(i+1) {
			t.Errorf("part %d on channel %d as attempt %d, want 2 and 2", p.part, p.channel, p.attempt)
		}
		if n := b.count(t, `SELECT retry_of FROM submit_outbox WHERE id = $1`, p.submit); n != parts[i].submit {
			t.Errorf("part %d linked to %d, want %d", p.part, n, parts[i].submit)
		}
		b.dispatch(t, p.submit)
		r := b.result(p.sent, event.Accepted, 0, uint64(p.submit))
		r.Part, r.Parts = p.part, 3
		b.apply(t, r)
		b.report(t, 1, uint64(p.submit), m.phone, delivered)
	}
	b.settle(t)
	b.want(t, m, message.Delivered, message.Charged, delivered)
	if n := b.receipts(t, m); n != 1 {
		t.Errorf("%d receipts, want 1", n)
	}
	b.books(t)
}

// A long message that expires in the queue, or of which a part expires while the others wait, ends as a whole.
func TestLongMessageExpires(t *testing.T) {
	t.Parallel()
	b := setup(t)
	whole, half := b.queue(t, spec{parts: 2}), b.queue(t, spec{parts: 2})
	b.dispatch(t, half.parts[0])
	r := b.result(half, event.Rejected, 8, 0)
	r.Parts = 2
	b.apply(t, r)
	b.exec(t, `UPDATE message SET valid_until = now() - interval '1 s'`)
	b.sweep(t)
	b.want(t, whole, message.Expired, message.Released, "EXPIRED")
	b.want(t, half, message.Failed, message.Released, "EXPIRED")
	for _, m := range []sent{whole, half} {
		if n := b.receipts(t, m); n != 1 {
			t.Errorf("%d receipts, want 1", n)
		}
	}
	if n := b.count(t, `SELECT count(*) FROM part_refused`); n != 0 {
		t.Errorf("%d parts wait still", n)
	}
	b.books(t)
}

// Some suppliers report one part of a long message for all of them.
func TestSegmentReports(t *testing.T) { //nolint:tparallel // the cases share a database
	t.Parallel()
	b := setup(t)
	const all, first, last = 0, 1, 2
	for name, c := range map[string]struct {
		reports int
		answers []uint32 // results of the parts, in order; the refused ones are refused for good
		stats   string   // parts that are reported delivered, in order
		late    bool     // the report comes before the other parts' answers
		want    row
	}{
		"all":                                {all, []uint32{0, 0, 0}, "1", false, row{message.Submitted, message.Charged, delivered}},
		"first":                              {first, []uint32{0, 0, 0}, "1", false, row{message.Delivered, message.Charged, delivered}},
		"last":                               {last, []uint32{0, 0, 0}, "3", false, row{message.Delivered, message.Charged, delivered}},
		"first, early":                       {first, []uint32{0, 0, 0}, "1", true, row{message.Delivered, message.Charged, delivered}},
		"first, none":                        {first, []uint32{0, 0, 0}, "", false, row{message.Submitted, message.Charged, ""}},
		"first, and the others after all":    {first, []uint32{0, 0, 0}, "321", false, row{message.Delivered, message.Charged, delivered}},
		"first, another one refused":         {first, []uint32{0, 13, 0}, "1", false, row{message.Failed, message.Refunded, "REJECTD"}},
		"first, itself refused":              {first, []uint32{13, 0, 0}, "", false, row{message.Failed, message.Refunded, "REJECTD"}},
		"last, itself refused, others early": {last, []uint32{0, 0, 13}, "", false, row{message.Failed, message.Refunded, "REJECTD"}},
	} {
		t.Run(name, func(t *testing.T) {
			b.exec(t, `UPDATE channel SET segment_reports = $1 WHERE id = 1`, c.reports)
			b.refresh(t)
			m := b.send(t, spec{parts: 3})
			report := func() {
				for _, p := range c.stats {
					b.report(t, 1, uint64(m.parts[p-'1']), m.phone, delivered)
				}
				b.settle(t)
			}
			for i, code := range c.answers {
				r := b.result(m, event.Accepted, 0, uint64(m.parts[i]))
				r.SubmitID, r.Part, r.Parts = m.parts[i], int16(i+1), 3
				if code != 0 {
					r.State, r.Result, r.SupplierMsgID = event.Rejected, code, 0
				}
				b.apply(t, r)
				if i == 0 && c.late {
					report()
				}
			}
			if !c.late {
				report()
			}
			if got := b.row(t, m); got != c.want {
				t.Errorf("message is %s, want %s", got, c.want)
			}
			want := int64(0)
			if c.want.State.Final() {
				want = 1
			}
			if n := b.receipts(t, m); n != want {
				t.Errorf("%d receipts for the customer, want %d", n, want)
			}
			report() // repeated
			if got := b.row(t, m); got != c.want || b.receipts(t, m) != want {
				t.Errorf("after repetitions %s", got)
			}
			b.books(t)
		})
	}
	// The report of a part that needed none says that it failed.
	b.exec(t, `UPDATE channel SET segment_reports = 1 WHERE id = 1`)
	b.refresh(t)
	m := b.send(t, spec{parts: 2})
	for i, id := range m.parts {
		r := b.result(m, event.Accepted, 0, uint64(id))
		r.SubmitID, r.Part, r.Parts = id, int16(i+1), 2
		b.apply(t, r)
	}
	b.report(t, 1, uint64(m.parts[1]), m.phone, "UNDELIV")
	b.report(t, 1, uint64(m.parts[0]), m.phone, delivered)
	b.settle(t)
	b.want(t, m, message.Failed, message.Refunded, "UNDELIV")
	b.books(t)
}
