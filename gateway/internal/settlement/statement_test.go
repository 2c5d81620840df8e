package settlement_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"cmppgateway/gateway/cmpp"
	"cmppgateway/gateway/internal/config"
	"cmppgateway/gateway/internal/event"
	"cmppgateway/gateway/internal/message"
	"cmppgateway/gateway/internal/settlement"
)

const statementHeader = "account,msg_id,number,src_id,submit_time,result,stat,segments\n"

func lineOf(account string, msgID uint64, phone int64, at time.Time, result int) string {
	return fmt.Sprintf("%s,%d,%d,1069,%s,%d,,1\n", account, msgID, phone, at.In(cmpp.Shanghai).Format("2006-01-02T15:04:05.000Z07:00"), result)
}

func (b *bench) resolve(tb testing.TB, absent settlement.Absent, lines ...string) settlement.Resolution {
	tb.Helper()
	res, err := settlement.ResolveUnknown(tb.Context(), b.Pool, b.node.IDs, b.watch.Current(), strings.NewReader(statementHeader+strings.Join(lines, "")), absent,
		func(o *settlement.Outcome) { o.Announce(tb.Context(), &b.hints, b.bus) })
	if err != nil {
		tb.Fatal(err)
	}
	return res
}

func TestStatement(t *testing.T) {
	t.Parallel()
	b := setup(t, func(c *config.Config) { c.Settlement.UnknownAfter = 0 })
	now := time.Now()
	taken, refused, again, absent, unlisted, far := b.send(t, spec{}), b.send(t, spec{}), b.send(t, spec{}), b.send(t, spec{}), b.send(t, spec{app: 14, channel: 3}), b.send(t, spec{})
	for _, m := range []sent{taken, refused, again, absent, unlisted, far} {
		b.lose(t, m)
	}
	long := b.send(t, spec{parts: 2})
	for i, id := range long.parts {
		r := b.result(long, event.Unknown, 0, 0)
		r.SubmitID, r.Part = id, int16(i+1)
		b.apply(t, r)
	}
	list, err := settlement.ListUnknown(t.Context(), b.Pool)
	if err != nil || len(list) != 8 || list[0].SubmitID != taken.submit || list[0].Amount != 325 || list[0].Src != "1069" {
		t.Fatalf("unknown: %v, %+v", err, list)
	}
	lines := []string{
		lineOf("900001", 1, taken.phone, now, 0), lineOf("900001", 0, refused.phone, now, 13), lineOf("900001", 0, again.phone, now, 8),
		lineOf("900001", 5, far.phone, now.Add(-time.Hour), 0), lineOf("900001", 21, long.phone, now, 0), lineOf("900001", 22, long.phone, now, 0),
		lineOf("900001", 99, 13999999999, now, 0),
	}
	// far's line of another hour is another submit: far itself is not listed.
	if got, want := b.resolve(t, settlement.KeepUnknown, lines...), (settlement.Resolution{Accepted: 3, Rejected: 2, Kept: 3}); got != want {
		t.Errorf("%+v, want %+v", got, want)
	}
	b.want(t, taken, message.Submitted, message.Charged, "")
	b.want(t, refused, message.Failed, message.Released, "REJECTD")
	b.want(t, again, message.Checked, message.Frozen, "")
	b.want(t, absent, message.Unknown, message.Frozen, "")
	b.want(t, long, message.Submitted, message.Charged, "")
	if n := b.count(t, `SELECT supplier_msg_id FROM submit WHERE id = $1`, long.parts[1]); n != 22 {
		t.Errorf("part 2 has Msg_Id %d, want 22", n)
	}
	if len(b.hints.cmds) != 1 || b.hints.cmds[0].RetryOf != again.submit {
		t.Errorf("hinted: %+v", b.hints.cmds)
	}
	b.report(t, 1, 1, taken.phone, delivered)
	b.settle(t)
	b.want(t, taken, message.Delivered, message.Charged, delivered)

	// The statement says nothing of the other supplier: its submit stays unknown whatever the policy.
	if got, want := b.resolve(t, settlement.NotSent, lines...), (settlement.Resolution{NotSent: 2, Kept: 1}); got != want {
		t.Errorf("%+v, want %+v", got, want)
	}
	b.want(t, absent, message.Failed, message.Released, "REJECTD")
	b.want(t, far, message.Failed, message.Released, "REJECTD")
	b.want(t, unlisted, message.Unknown, message.Frozen, "")
	if b.receipts(t, absent) != 1 {
		t.Errorf("%d receipts for the customer", b.receipts(t, absent))
	}
	b.books(t)

	// It was sent after all: the money stays released, and the case is listed once.
	for range 2 {
		b.report(t, 1, 77, absent.phone, delivered)
		b.settle(t)
		b.retry(t)
	}
	b.want(t, absent, message.Failed, message.Released, "REJECTD")
	if n := b.count(t, `SELECT amount FROM ledger_exception WHERE message_id = $1 AND kind = 'delivered_unbilled'`, absent.message); n != 325 {
		t.Errorf("exception over %d, want 325", n)
	}
	if n := b.count(t, `SELECT count(*) FROM receipt_parked`); n != 0 {
		t.Errorf("%d receipts parked", n)
	}
	b.books(t)
}

// Two unknown messages to one number cannot be told apart by a statement line.
func TestStatementAmbiguous(t *testing.T) {
	t.Parallel()
	b := setup(t)
	one, two := b.send(t, spec{phone: 13911111111}), b.send(t, spec{phone: 13911111111})
	b.lose(t, one)
	b.lose(t, two)
	if got, want := b.resolve(t, settlement.NotSent, lineOf("900001", 1, one.phone, time.Now(), 0)), (settlement.Resolution{Kept: 2}); got != want {
		t.Errorf("%+v, want %+v", got, want)
	}
	b.want(t, one, message.Unknown, message.Frozen, "")
	b.want(t, two, message.Unknown, message.Frozen, "")
}

func TestStatementFaults(t *testing.T) {
	t.Parallel()
	b := setup(t)
	for text, want := range map[string]string{
		"": "header",
		"account,msg_id,number,src_id,submit_time\n":        "no column result",
		statementHeader + "a,1,13800000000,1,now,0\n":       "line 2: submit_time",
		statementHeader + "a,1,1380000,1,2608250101,0\n":    "line 2: number",
		statementHeader + "a,1,13800000000,1,2608250101,\n": "line 2: result",
		statementHeader + "a,x,13800000000,1,2608250101,0":  "line 2: msg_id",
	} {
		_, err := settlement.ResolveUnknown(t.Context(), b.Pool, b.node.IDs, b.watch.Current(), strings.NewReader(text), settlement.KeepUnknown, nil)
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v, want %q", text, err, want)
		}
	}
}

// A line about a submit whose answer is known says nothing about an unknown one to the same number.
func TestStatementOfKnownSubmits(t *testing.T) {
	t.Parallel()
	b := setup(t)
	now := time.Now()
	taken, lost := b.send(t, spec{phone: 13911111111}), b.send(t, spec{phone: 13911111111})
	b.accept(t, taken, 5)
	b.lose(t, lost)
	refused, other := b.send(t, spec{phone: 13922222222}), b.send(t, spec{phone: 13922222222})
	b.reject(t, refused, 13)
	b.lose(t, other)
	twice := b.send(t, spec{phone: 13933333333}) // answered twice: the second Msg_Id is known as well
	b.accept(t, twice, 7)
	b.accept(t, twice, 8)
	alone := b.send(t, spec{phone: 13933333333})
	b.lose(t, alone)
	lines := []string{
		lineOf("900001", 5, 13911111111, now, 0), lineOf("900001", 0, 13922222222, now, 13),
		lineOf("900001", 7, 13933333333, now, 0), lineOf("900001", 8, 13933333333, now, 0),
	}
	if got, want := b.resolve(t, settlement.KeepUnknown, lines...), (settlement.Resolution{Kept: 3}); got != want {
		t.Errorf("%+v, want %+v", got, want)
	}
	for _, m := range []sent{lost, other, alone} {
		b.want(t, m, message.Unknown, message.Frozen, "")
	}
	// With lines of their own they are closed.
	lines = append(lines, lineOf("900001", 6, 13911111111, now, 0), lineOf("900001", 0, 13922222222, now, 13), lineOf("900001", 9, 13933333333, now, 0))
	if got, want := b.resolve(t, settlement.KeepUnknown, lines...), (settlement.Resolution{Accepted: 2, Rejected: 1}); got != want {
		t.Errorf("%+v, want %+v", got, want)
	}
	if got, want := b.resolve(t, settlement.KeepUnknown, lines...), (settlement.Resolution{}); got != want { // again
		t.Errorf("again: %+v, want %+v", got, want)
	}
	b.want(t, lost, message.Submitted, message.Charged, "")
	b.want(t, other, message.Failed, message.Released, "REJECTD")
	b.want(t, alone, message.Submitted, message.Charged, "")
	b.books(t)
}

// Deciding changes nothing; what was decided is carried out once, and leaves alone what was closed meanwhile.
func TestDecideAndCarryOut(t *testing.T) {
	t.Parallel()
	b := setup(t)
	one, two, three := b.send(t, spec{}), b.send(t, spec{}), b.send(t, spec{})
	for _, m := range []sent{one, two, three} {
		b.lose(t, m)
	}
	now := time.Now()
	text := statementHeader + lineOf("900001", 1, one.phone, now, 0) + lineOf("900001", 2, two.phone, now, 0)
	decisions, err := settlement.DecideUnknown(t.Context(), b.Pool, b.watch.Current(), strings.NewReader(text), settlement.NotSent)
	if err != nil {
		t.Fatal(err)
	}
	got := map[int64]string{}
	for _, d := range decisions {
		got[d.SubmitID] = fmt.Sprintf("%s by line %d", d.Becomes, d.Line)
	}
	want := map[int64]string{one.submit: "accepted by line 2", two.submit: "accepted by line 3", three.submit: "not-sent by line 0"}
	if fmt.Sprint(got) != fmt.Sprint(want) {
		t.Errorf("decided %v, want %v", got, want)
	}
	for _, m := range []sent{one, two, three} {
		b.want(t, m, message.Unknown, message.Frozen, "")
	}
	b.reject(t, two, 13) // its answer comes in between
	for _, want := range []settlement.Resolution{{Accepted: 1, NotSent: 1, Kept: 1}, {Kept: 3}} {
		res, err := settlement.CarryOut(t.Context(), b.Pool, b.node.IDs, b.watch.Current(), decisions, nil)
		if err != nil || res != want {
			t.Errorf("%v, %+v, want %+v", err, res, want)
		}
	}
	b.want(t, one, message.Submitted, message.Charged, "")
	b.want(t, two, message.Failed, message.Released, "REJECTD")
	b.want(t, three, message.Failed, message.Released, "REJECTD")
	b.books(t)
}

// An operator's verdict closes a submit; the report of one that was sent is found by number and time.
func TestVerdicts(t *testing.T) {
	t.Parallel()
	b := setup(t, func(c *config.Config) { c.Settlement.UnknownAfter = 0 })
	taken, never := b.send(t, spec{}), b.send(t, spec{})
	b.lose(t, taken)
	b.lose(t, never)
	judge := func(verdict settlement.Verdict, submits ...int64) error {
		decisions, err := settlement.JudgeUnknown(t.Context(), b.Pool, submits, verdict)
		if err != nil {
			return err
		}
		_, err = settlement.CarryOut(t.Context(), b.Pool, b.node.IDs, b.watch.Current(), decisions, nil)
		return err
	}
	if err := judge(settlement.WasSent, taken.submit, 77); err == nil || !strings.Contains(err.Error(), "submit 77 is not unknown") {
		t.Errorf("a submit that is not unknown: %v", err)
	}
	b.want(t, taken, message.Unknown, message.Frozen, "")
	if err := judge(settlement.WasSent, taken.submit); err != nil {
		t.Fatal(err)
	}
	if err := judge(settlement.WasNotSent, never.submit); err != nil {
		t.Fatal(err)
	}
	b.want(t, taken, message.Submitted, message.Charged, "")
	b.want(t, never, message.Failed, message.Released, "REJECTD")
	if err := judge(settlement.WasNotSent, taken.submit); err == nil {
		t.Error("judged twice")
	}
	for range 2 {
		b.report(t, 1, 55, taken.phone, "UNDELIV")
		b.settle(t)
		b.retry(t)
	}
	b.want(t, taken, message.Failed, message.Refunded, "UNDELIV")
	if n := b.count(t, `SELECT count(*) FROM receipt_parked`); n != 0 {
		t.Errorf("%d receipts parked", n)
	}
	b.books(t)
}
