package settlement_test

import (
	"context"
	"fmt"
	"log/slog"
	"slices"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/prometheus/client_golang/prometheus"
	"pgregory.net/rapid"

	"cmppgateway/gateway/cmpp"
	"cmppgateway/gateway/internal/config"
	"cmppgateway/gateway/internal/event"
	"cmppgateway/gateway/internal/ledger"
	"cmppgateway/gateway/internal/message"
	"cmppgateway/gateway/internal/settlement"
	"cmppgateway/gateway/internal/store"
)

// Whatever becomes of submits, in whatever order results, receipts and their repetitions come, and wherever a process dies
// between or inside two steps: no submit is written twice, none that may have been sent is sent again, what a supplier took
// is charged and nothing else, the customer hears once, nothing is left behind, and the books are exact. The mutations of
// docs/mutations.md each make this test, or one beside it, fail.
func TestExactness(t *testing.T) {
	t.Parallel()
	b := setup(t, func(c *config.Config) { c.Settlement.UnknownAfter = 0 })
	b.exec(t, `UPDATE application SET resend_failed = 1 WHERE id = 12`)
	b.exec(t, `INSERT INTO channel_group_member (group_id, channel_id, priority) VALUES (1, 3, 2)`)
	b.refresh(t)
	renewed := make(chan error, 1)
	ctx, stop := context.WithCancel(t.Context())
	go func() { renewed <- b.node.Run(ctx) }()
	t.Cleanup(func() {
		stop()
		<-renewed
	})
	var c cuts
	pool := c.pool(t, b.Pool)
	toppedUp := map[int32]int64{1: 100_000_000, 2: 100_000_000}
	rapid.Check(t, func(rt *rapid.T) {
		b.phones += 2
		w := &world{bench: b, t: t, rt: rt, pool: pool, cuts: &c, toppedUp: toppedUp, flights: map[int64]*flight{}, phone: b.phones}
		w.restart()
		w.send()
		for range rapid.IntRange(6, 30).Draw(rt, "steps") {
			w.step()
		}
		w.drain()
		w.check()
	})
}

// fates of a submit at the supplier.
const (
	fateAccept = "accepted"
	fateBusy   = "8"
	fateNumber = "13"
	fateOther  = "30"    // another carrier's number
	fateTaken  = "taken" // accepted, and the answer is lost
	fateLost   = "lost"  // it never arrives
)

// flight is a submit that was written, or will never be.
type flight struct {
	sent

	part     int16
	fate     string
	receipts []string // Stats that the supplier reports
}

func (f *flight) taken() bool { return f.fate == fateAccept || f.fate == fateTaken }

type worldMessage struct {
	sent

	app     int32
	doubted bool // an operator said something about it that is not so
}

// logged is a report on its way into the log, under one event id.
type logged struct {
	event   int64
	account int32
	msgID   uint64
	phone   int64
	stat    string
}

// world is what goes on around some messages, in one process that may die at any time.
type world struct {
	*bench

	t    *testing.T
	rt   *rapid.T
	pool *pgxpool.Pool // whose connections are cut
	cuts *cuts
	s    *settlement.Settlement

	phone    int64 // and the one before it
	messages []*worldMessage
	flights  map[int64]*flight
	ids      []int64 // submits ever seen
	results  []event.SubmitResult
	reports  []logged
	toppedUp map[int32]int64
	topUps   int
}

// restart is a new process: it remembers nothing.
func (w *world) restart() {
	w.s = settlement.New(settlement.Options{
		Config: w.cfg.Settlement, Outbox: w.cfg.Outbox, Pool: w.pool, Node: w.node, Settings: w.watch, Wake: w.bus, Hints: &w.hints,
		Log: slog.New(slog.DiscardHandler), Registry: prometheus.NewRegistry(),
	})
}

// may does something that may be cut, and says whether the process lived to see it done.
func (w *world) may(do func() error) bool {
	w.cuts.arm(rapid.SampledFrom([]cut{noCut, noCut, noCut, atStatement, beforeEnd, afterEnd}).Draw(w.rt, "cut"), rapid.IntRange(1, 5).Draw(w.rt, "statement"))
	err := do()
	if w.cuts.disarm() {
		w.quiet(w.t)
		w.restart()
	} else if err != nil {
		w.rt.Fatalf("failed without a cut: %v", err)
	}
	return err == nil
}

// surely does something without a cut.
func (w *world) surely(do func() error) {
	if err := do(); err != nil {
		w.rt.Fatalf("%v", err)
	}
}

func (w *world) step() {
	switch rapid.SampledFrom([]string{
		"send", "dispatch", "dispatch", "dispatch", "result", "result", "result", "result", "report", "report", "settle", "settle", "retry", "overdue", "expire", "operator", "top-up",
	}).Draw(w.rt, "step") {
	case "send":
		w.send()
	case "dispatch":
		w.dispatchSome()
	case "result":
		w.result(true)
	case "report":
		w.log(true)
	case "settle":
		w.may(func() error { return w.s.Settle(w.t.Context()) })
	case "retry":
		w.retryParked(true)
	case "overdue":
		w.exec(w.t, `UPDATE submit_outbox SET at = at - interval '80 s' WHERE message_id = ANY($1) AND state = 1`, w.messageIDs())
		w.may(func() error { return w.s.Sweep(w.t.Context()) })
	case "expire":
		m := w.messages[rapid.IntRange(0, len(w.messages)-1).Draw(w.rt, "message")]
		w.exec(w.t, `UPDATE message SET valid_until = now() - interval '1 s' WHERE id = $1`, m.message)
		w.may(func() error { return w.s.Sweep(w.t.Context()) })
	case "operator":
		w.operator()
	case "top-up":
		w.topUp()
	}
}

func (w *world) messageIDs() []int64 {
	ids := make([]int64, len(w.messages))
	for i, m := range w.messages {
		ids[i] = m.message
	}
	return ids
}

func (w *world) send() {
	if len(w.messages) == 3 {
		return
	}
	app := rapid.SampledFrom([]int32{11, 12, 13}).Draw(w.rt, "application")
	parts := rapid.SampledFrom([]int16{1, 1, 3}).Draw(w.rt, "parts")
	m := w.queue(w.t, spec{app: app, parts: parts, phone: w.phone - rapid.Int64Range(0, 1).Draw(w.rt, "number")})
	w.messages = append(w.messages, &worldMessage{sent: m, app: app})
}

// of is the message of a submit.
func (w *world) of(id int64) *worldMessage {
	i := slices.IndexFunc(w.messages, func(m *worldMessage) bool { return m.message == id })
	return w.messages[i]
}

// see learns of new commands.
func (w *world) see() {
	rows, err := w.Query(w.t.Context(), `SELECT id FROM submit_outbox WHERE message_id = ANY($1) ORDER BY id`, w.messageIDs())
	if err != nil {
		w.rt.Fatalf("%v", err)
	}
	list, err := pgx.CollectRows(rows, pgx.RowTo[int64])
	if err != nil {
		w.rt.Fatalf("%v", err)
	}
	for _, id := range list {
		if !slices.Contains(w.ids, id) {
			w.ids = append(w.ids, id)
		}
	}
}

// dispatchSome runs the barrier over commands that somebody thinks are pending: some are not any more.
func (w *world) dispatchSome() {
	w.see()
	if len(w.ids) == 0 {
		return
	}
	chosen := map[int64]bool{}
	for range rapid.IntRange(1, 4).Draw(w.rt, "commands") {
		chosen[w.ids[rapid.IntRange(0, len(w.ids)-1).Draw(w.rt, "command")]] = true
	}
	ids := make([]int64, 0, len(chosen))
	for id := range chosen {
		ids = append(ids, id)
	}
	slices.Sort(ids)
	batch := w.id(w.t)
	var passed []flight
	barrier := func() (err error) {
		passed, err = w.barrier(ids, batch)
		return err
	}
	if !w.may(barrier) {
		if rapid.Bool().Draw(w.rt, "the process died") {
			w.adopt(batch)
			return
		}
		w.surely(barrier) // the same batch, until it answers
	}
	if len(passed) > 0 && rapid.IntRange(0, 5).Draw(w.rt, "not written") == 0 {
		w.takeBack(ids, batch, passed)
		return
	}
	for i := range passed {
		w.write(&passed[i])
	}
}

// barrier returns what may be written.
func (w *world) barrier(ids []int64, batch int64) (passed []flight, err error) {
	err = store.InTx(w.t.Context(), w.pool, func(tx pgx.Tx) error {
		passed = passed[:0]
		rows, err := tx.Query(w.t.Context(), store.SupplierBarrier, ids, batch, w.node.Number)
		if err != nil {
			return err
		}
		var id int64
		var at time.Time
		var got []int64
		if _, err := pgx.ForEachRow(rows, []any{&id, &at}, func() error {
			got = append(got, id)
			return nil
		}); err != nil {
			return err
		}
		passed, err = w.commands(tx, `id = ANY($1)`, got)
		return err
	})
	return passed, err
}

type querier interface {
	Query(ctx context.Context, sql string, args ...any) (pgx.Rows, error)
}

func (w *world) commands(q querier, where string, arg any) ([]flight, error) {
	rows, err := q.Query(w.t.Context(), `SELECT id, message_id, channel_id, attempt, part FROM submit_outbox WHERE `+where+` ORDER BY id`, arg)
	if err != nil {
		return nil, err
	}
	return pgx.CollectRows(rows, func(row pgx.CollectableRow) (f flight, err error) {
		err = row.Scan(&f.submit, &f.message, &f.channel, &f.attempt, &f.part)
		f.phone = w.of(f.message).phone
		return f, err
	})
}

// adopt reports what a dead process has dispatched and never written.
func (w *world) adopt(batch int64) {
	list, err := w.commands(w.Pool, `state = 1 AND batch = $1`, batch)
	if err != nil {
		w.rt.Fatalf("%v", err)
	}
	for i := range list {
		f := list[i]
		if w.flights[f.submit] != nil {
			w.rt.Fatalf("submit %d is dispatched again", f.submit)
		}
		f.fate = fateLost
		w.flights[f.submit] = &f
		w.results = append(w.results, w.resultOf(&f, event.Unknown, 0, 0))
	}
}

// takeBack is a write that surely did not happen. Somebody may have thought the process dead meanwhile, and report what it
// had dispatched.
func (w *world) takeBack(ids []int64, batch int64, passed []flight) {
	if rapid.Bool().Draw(w.rt, "thought dead") {
		for i := range passed {
			w.results = append(w.results, w.resultOf(&passed[i], event.Unknown, 0, 0))
		}
	}
	undispatch := func() error {
		return store.InTx(w.t.Context(), w.pool, func(tx pgx.Tx) error {
			_, err := tx.Exec(w.t.Context(), store.SupplierUndispatch, ids, w.node.Number, batch)
			return err
		})
	}
	if !w.may(undispatch) {
		w.surely(undispatch)
	}
}

// write puts a submit on the wire, once; what the supplier makes of it is decided now.
func (w *world) write(f *flight) {
	if w.flights[f.submit] != nil {
		w.rt.Fatalf("submit %d is written twice", f.submit)
	}
	f.fate = rapid.SampledFrom([]string{fateAccept, fateAccept, fateAccept, fateBusy, fateBusy, fateNumber, fateOther, fateTaken, fateLost}).Draw(w.rt, "fate")
	w.flights[f.submit] = f
	msgID := uint64(f.submit)
	switch f.fate {
	case fateAccept:
		w.results = append(w.results, w.resultOf(f, event.Accepted, 0, msgID))
		if rapid.IntRange(0, 5).Draw(w.rt, "answered twice") == 0 {
			w.results = append(w.results, w.resultOf(f, event.Accepted, 0, msgID+1<<60))
			if rapid.Bool().Draw(w.rt, "reported under the second") {
				msgID += 1 << 60
			}
		}
	case fateBusy:
		w.results = append(w.results, w.resultOf(f, event.Rejected, 8, 0))
	case fateNumber:
		w.results = append(w.results, w.resultOf(f, event.Rejected, 13, 0))
	case fateOther:
		w.results = append(w.results, w.resultOf(f, event.Rejected, 30, 0))
	case fateTaken, fateLost:
		w.results = append(w.results, w.resultOf(f, event.Unknown, 0, 0))
		if f.fate == fateTaken && rapid.Bool().Draw(w.rt, "answered late") {
			w.results = append(w.results, w.resultOf(f, event.Accepted, 0, msgID))
		}
	}
	if !f.taken() {
		return
	}
	f.receipts = rapid.SampledFrom([][]string{nil, {delivered}, {delivered}, {"UNDELIV"}, {"ACCEPTD", "EXPIRED"}, {"UNDELIV", delivered}}).Draw(w.rt, "receipts")
	for _, stat := range f.receipts {
		account := int32(1)
		if f.channel > 2 {
			account = 2
		}
		w.reports = append(w.reports, logged{w.id(w.t), account, msgID, f.phone, stat})
	}
}

func (w *world) resultOf(f *flight, state string, code uint32, msgID uint64) event.SubmitResult {
	r := w.bench.result(f.sent, state, code, msgID)
	r.Part, r.Parts = f.part, int16(len(w.of(f.message).parts))
	return r
}

// result offers results that are on their way, in any order. They are offered again until they are accepted, and some after
// that.
func (w *world) result(cutting bool) {
	if len(w.results) == 0 {
		return
	}
	var batch []event.SubmitResult
	var indexes []int
	for range rapid.IntRange(1, 3).Draw(w.rt, "results") {
		i := rapid.IntRange(0, len(w.results)-1).Draw(w.rt, "which")
		if !slices.ContainsFunc(batch, func(r event.SubmitResult) bool { return r.SubmitID == w.results[i].SubmitID }) {
			batch, indexes = append(batch, w.results[i]), append(indexes, i)
		}
	}
	apply := func() error {
		return store.Retry(w.t.Context(), w.pool, func(tx pgx.Tx) error {
			_, err := settlement.ApplyResults(w.t.Context(), tx, w.node.IDs, w.watch.Current(), batch)
			return err
		})
	}
	if cutting {
		if !w.may(apply) || rapid.IntRange(0, 3).Draw(w.rt, "again") == 0 {
			return
		}
	} else {
		w.surely(apply)
	}
	slices.Sort(indexes)
	for _, i := range slices.Backward(indexes) {
		w.results = slices.Delete(w.results, i, i+1)
	}
}

// log writes a report into the log: under the same event id until that is known to be done, and now and then the supplier
// repeats it.
func (w *world) log(cutting bool) {
	if len(w.reports) == 0 {
		return
	}
	i := rapid.IntRange(0, len(w.reports)-1).Draw(w.rt, "report")
	r := &w.reports[i]
	write := func() error {
		return store.InTx(w.t.Context(), w.pool, func(tx pgx.Tx) error {
			at := time.Now().In(cmpp.Shanghai).Format("0601021504")
			_, err := tx.Exec(w.t.Context(), store.CallbackReceipts, []int64{r.event}, []int64{w.id(w.t)}, []int64{int64(r.msgID)}, []int64{r.phone}, []time.Time{time.Now()},
				[]int32{r.account}, []int32{1}, w.node.Number, []string{r.stat}, []string{at}, []string{at}, []string{"1069"})
			return err
		})
	}
	if cutting && !w.may(write) {
		w.surely(write) // the one writer of the log insists
	}
	if !cutting {
		w.surely(write)
	}
	if cutting && rapid.IntRange(0, 3).Draw(w.rt, "repeated") == 0 {
		r.event = w.id(w.t)
		return
	}
	w.reports = slices.Delete(w.reports, i, i+1)
}

func (w *world) retryParked(cutting bool) {
	w.exec(w.t, `UPDATE receipt_parked SET next_try_at = now() - interval '1 s'`)
	try := func() error { return w.s.Parked(w.t.Context()) }
	if cutting {
		w.may(try)
		return
	}
	w.surely(try)
}

// operator closes an unknown submit by what he believes; mostly it is so.
func (w *world) operator() {
	list, err := settlement.ListUnknown(w.t.Context(), w.Pool)
	if err != nil {
		w.rt.Fatalf("%v", err)
	}
	list = slices.DeleteFunc(list, func(u settlement.UnknownSubmit) bool { return w.flights[u.SubmitID] == nil })
	if len(list) == 0 {
		return
	}
	u := list[rapid.IntRange(0, len(list)-1).Draw(w.rt, "unknown")]
	f, verdict := w.flights[u.SubmitID], settlement.WasNotSent
	if f.taken() {
		verdict = settlement.WasSent
	}
	if rapid.IntRange(0, 3).Draw(w.rt, "mistaken") == 0 {
		w.of(f.message).doubted = true
		verdict = settlement.WasSent - verdict
	}
	decisions, err := settlement.JudgeUnknown(w.t.Context(), w.Pool, []int64{u.SubmitID}, verdict)
	if err != nil {
		w.rt.Fatalf("%v", err)
	}
	w.of(f.message).doubted = w.of(f.message).doubted || !f.taken() && f.fate != fateLost // refused, and its answer is on its way
	w.may(func() error {
		_, err := settlement.CarryOut(w.t.Context(), w.pool, w.node.IDs, w.watch.Current(), decisions, nil)
		return err
	})
}

// topUp adds money under a key until that is known to be done.
func (w *world) topUp() {
	account, key := rapid.Int32Range(1, 2).Draw(w.rt, "account"), fmt.Sprintf("order-%d-%d", w.phone, w.topUps)
	w.topUps++
	pay := func() error {
		_, err := ledger.TopUp(w.t.Context(), w.pool, w.node.IDs, account, 1000, key)
		return err
	}
	for range rapid.IntRange(1, 2).Draw(w.rt, "times") {
		w.may(pay)
	}
	w.surely(pay)
	w.toppedUp[account] += 1000
}

// drain lets everything happen that is on its way, without cuts.
func (w *world) drain() {
	for quiet := 0; quiet < 3; quiet++ { // one binding of a receipt can make another one possible
		for range 60 {
			w.see()
			pending, err := w.commands(w.Pool, `state = 0 AND message_id = ANY($1)`, w.messageIDs())
			if err != nil {
				w.rt.Fatalf("%v", err)
			}
			if len(pending)+len(w.results)+len(w.reports) == 0 {
				break
			}
			quiet = 0
			w.sendAll(pending)
			for len(w.results) > 0 {
				w.result(false)
			}
			for len(w.reports) > 0 {
				w.log(false)
			}
			w.surely(func() error { return w.s.Settle(w.t.Context()) })
		}
		w.surely(func() error { return w.s.Settle(w.t.Context()) })
		w.retryParked(false)
	}
}

func (w *world) sendAll(pending []flight) {
	if len(pending) == 0 {
		return
	}
	ids := make([]int64, len(pending))
	for i := range pending {
		ids[i] = pending[i].submit
	}
	passed, err := w.barrier(ids, w.id(w.t))
	if err != nil {
		w.rt.Fatalf("%v", err)
	}
	for i := range passed {
		w.write(&passed[i])
	}
}

// check compares the database with what happened.
func (w *world) check() {
	for _, m := range w.messages {
		if fault := w.fault(m); fault != "" {
			w.rt.Fatalf("message %d of application %d, %d parts, doubted %t: %s: %s", m.message, m.app, len(m.parts), m.doubted, w.row(w.t, m.sent), fault)
		}
	}
	w.exec(w.t, `DELETE FROM receipt_parked`)
	r, err := ledger.Verify(w.t.Context(), w.Pool)
	if err != nil {
		w.rt.Fatalf("%v", err)
	}
	for _, f := range r.Faults {
		w.rt.Errorf("ledger: %s: %s: %s", f.Rule, f.Key, f.Detail)
	}
	for _, a := range r.Accounts {
		if a.ToppedUp != w.toppedUp[a.ID] {
			w.rt.Errorf("account %d was topped up %d, want %d", a.ID, a.ToppedUp, w.toppedUp[a.ID])
		}
	}
}

const worldSQL = `SELECT m.state, m.bill, m.charge_on, m.refund_on, m.acc,
	(SELECT count(*) FROM submit WHERE message_id = m.id AND state = 2),
	(SELECT count(*) FROM submit WHERE message_id = m.id AND state = 4),
	(SELECT count(*) FROM unknown_submit WHERE message_id = m.id AND closed_at IS NULL),
	(SELECT count(*) FROM submit_outbox WHERE message_id = m.id),
	(SELECT count(*) FROM part_refused WHERE message_id = m.id),
	(SELECT count(*) FROM delivery WHERE message_id = m.id),
	(SELECT count(*) FROM receipt_parked WHERE phone = m.phone),
	(SELECT count(*) FROM submit_exception e JOIN submit s ON s.id = e.submit_id WHERE s.message_id = m.id AND e.kind = 'accepted_after_final'),
	(SELECT count(*) FROM ledger_exception WHERE message_id = m.id),
	(SELECT count(*) FROM (SELECT 1 FROM submit_record WHERE message_id = m.id GROUP BY part HAVING count(*) > 3) x),
	(SELECT count(*) FROM (SELECT 1 FROM submit_record WHERE message_id = m.id AND retry_of_submit_record_id IS NOT NULL GROUP BY retry_of_submit_record_id HAVING count(*) > 1) x),
	(SELECT count(*) FROM submit_record r JOIN submit s ON s.id = r.retry_of_submit_record_id WHERE r.message_id = m.id
		AND (s.state = 4 OR s.state = 2 AND NOT EXISTS (SELECT FROM application a WHERE a.id = m.app_id AND a.resend_failed > 0)))
	FROM message m WHERE id = $1`

// fault is what is wrong with a message, "" = nothing.
func (w *world) fault(m *worldMessage) string {
	var r struct {
		state                                                                                                                    message.State
		bill                                                                                                                     message.Bill
		chargeOn                                                                                                                 message.ChargeOn
		refundOn                                                                                                                 message.RefundOn
		acc                                                                                                                      int64
		accepted, unknown, listed, queued, refused, deliveries, parked, afterFinal, unbilled, tooOften, twice, resentWhileUnsure int64
	}
	if err := w.QueryRow(w.t.Context(), worldSQL, m.message).Scan(&r.state, &r.bill, &r.chargeOn, &r.refundOn, &r.acc, &r.accepted, &r.unknown, &r.listed, &r.queued, &r.refused,
		&r.deliveries, &r.parked, &r.afterFinal, &r.unbilled, &r.tooOften, &r.twice, &r.resentWhileUnsure); err != nil {
		return err.Error()
	}
	taken, silent := int64(0), false // by the supplier; some of it without a final receipt
	for _, f := range w.flights {
		if f.message == m.message && f.taken() {
			taken++
			silent = silent || !slices.ContainsFunc(f.receipts, message.FinalStat)
		}
	}
	charged := r.bill == message.Charged || r.bill == message.Refunded
	failed := r.state.Final() && r.state != message.Delivered
	final := int64(0)
	if r.state.Final() {
		final = 1
	}
	for _, rule := range []struct {
		broken bool
		what   string
	}{
		{r.tooOften > 0, "a part has more than three submits"},
		{r.twice > 0, "a submit was sent again twice"},
		{r.resentWhileUnsure > 0, "a submit that is not refused was sent again"},
		{r.queued > 0, "commands are left in the queue"},
		{r.refused > 0, "refused parts wait for nothing"},
		{r.unknown != r.listed, fmt.Sprintf("%d submits unknown, %d listed", r.unknown, r.listed)},
		{r.accepted > taken && !m.doubted, fmt.Sprintf("%d submits accepted, the supplier took %d", r.accepted, taken)},
		{r.acc+r.afterFinal != r.accepted, fmt.Sprintf("%d submits accepted, %d counted, %d after the end", r.accepted, r.acc, r.afterFinal)},
		{r.unknown == 0 && !m.doubted && r.accepted < taken, fmt.Sprintf("%d submits accepted of %d that the supplier took", r.accepted, taken)},
		{r.afterFinal > 0 && r.acc == 0 && (!m.doubted || r.unbilled == 0), "it ended before it was accepted"},
		{r.deliveries != final, fmt.Sprintf("%d receipts for the customer", r.deliveries)},
		{r.state == message.Delivered && taken == 0 && !m.doubted, "delivered by nobody"},
		{!r.state.Final() && r.unknown == 0 && r.parked == 0 && !silent && !m.doubted, "nothing will ever end it"},
		{r.chargeOn == message.ChargeOnAccept && charged != (r.acc > 0), "the money does not follow the acceptance"},
		{r.chargeOn == message.ChargeOnDeliver && charged != (r.state == message.Delivered), "the money does not follow the delivery"},
		{!charged && (r.bill == message.Released) != r.state.Final(), "the money is not given back at the end, or before it"},
		{(r.bill == message.Refunded) != (failed && charged && r.refundOn == message.RefundOnFailedReceipt), "the refund does not follow the failure"},
	} {
		if rule.broken {
			return rule.what
		}
	}
	return ""
}
