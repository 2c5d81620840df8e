package delivery_test

import (
	"context"
	"log/slog"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"

	"cmppgateway/gateway/cmpp"
	"cmppgateway/gateway/internal/config"
	"cmppgateway/gateway/internal/message"
	"cmppgateway/gateway/internal/session"
	"cmppgateway/gateway/internal/store"
)

func TestReceiptAsTheCustomerExpectsIt(t *testing.T) {
	t.Parallel()
	b := setup(t)
	p := b.boot(t)
	at := time.Date(2026, 11, 30, 17, 4, 59, 0, time.UTC) // the next day in China
	for _, v := range []cmpp.Version{cmpp.V20, cmpp.V30} {
		app := int32(v)
		c := p.connect(t, app, v, accept)
		id, err := p.node.IDs.Next(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		msgID := cmpp.NewMsgID(at, 1001, 7) // the top bit is set
		b.exec(t, `INSERT INTO delivery (id, pos, message_id, msg_id, accept_session, accepted_at, done_at, app_id, kind, accept_node, stat, dest, src, service)
			VALUES ($1, $1, 1, $2, 1, $3, $4, $5, 1, $6, 'MK:0012', '+8613800000001', '106912', 'svc')`, id, int64(msgID), at, at.Add(2*time.Minute), app, p.node.Number)
		p.nudge()
		d := c.next()
		if d.MsgID != cmpp.MsgID(id) || d.RegisteredDelivery != 1 || d.DestID != "106912" || d.ServiceID != "svc" || d.SrcTerminalID != "+8613800000001" {
			t.Errorf("%s: DELIVER %+v", v, d.Deliver)
		}
		if want := map[cmpp.Version]int{cmpp.V20: 60, cmpp.V30: 71}[v]; len(d.MsgContent) != want {
			t.Errorf("%s: report of %d octets, want %d", v, len(d.MsgContent), want)
		}
		report, err := cmpp.ParseReport(d.MsgContent)
		if err != nil {
			t.Fatal(err)
		}
		if report != (cmpp.Report{MsgID: msgID, Stat: "MK:0012", SubmitTime: "2612010104", DoneTime: "2612010106", DestTerminalID: "+8613800000001"}) {
			t.Errorf("%s: report %+v", v, report)
		}
		eventually(t, "row gone", func() bool { return b.rows(t, app) == 0 })
		c.quiet(20 * time.Millisecond)
	}
}

func TestUplink(t *testing.T) {
	t.Parallel()
	b := setup(t)
	p := b.boot(t)
	c := p.connect(t, 1, cmpp.V30, accept)
	id, err := p.node.IDs.Next(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	// Of another living node, which for an uplink means nothing.
	other := b.lease(t)
	b.exec(t, `INSERT INTO delivery (id, pos, message_id, msg_id, accept_session, accepted_at, app_id, kind, accept_node, fmt, udhi, dest, src, body)
		VALUES ($1, $1, 0, 0, 0, now(), 1, 2, $2, 8, 64, '13800000001', '106912', '\x4f60')`, id, other.Number)
	p.nudge()
	d := c.next()
	if d.MsgID != cmpp.MsgID(id) || d.RegisteredDelivery != 0 || d.MsgFmt != 8 || d.TPUDHI != 64 || d.SrcTerminalID != "13800000001" || d.DestID != "106912" || string(d.MsgContent) != "\x4f\x60" {
		t.Errorf("DELIVER %+v", d.Deliver)
	}
	eventually(t, "row gone", func() bool { return b.rows(t, 1) == 0 })
}

func (b *bench) lease(t *testing.T) *store.Node {
	t.Helper()
	n, err := store.LeaseNode(t.Context(), b.Pool, config.Node{Lease: time.Minute}, slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	return n
}

func TestReceiptWaitsForItsSubmitResp(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.cfg.DeliverWindow = 2
	p := b.boot(t)
	c := p.connect(t, 1, cmpp.V30, accept)
	waiting := map[cmpp.MsgID]bool{}
	for range 3 { // more than a claim has room for
		waiting[cmpp.MsgID(p.receiptHeld(t, 1))] = true
	}
	free := p.receipt(t, 1)
	p.nudge()
	if d := c.next(); d.MsgID != cmpp.MsgID(free) {
		t.Fatalf("DELIVER %d, want %d: those that wait must not hold back the others", d.MsgID, free)
	}
	for range 5 { // further looks do not touch them
		p.nudge()
		p.onChange(true)
		c.quiet(10 * time.Millisecond)
	}
	if n := b.count(t, "SELECT count(*) FROM delivery WHERE owner IS NOT NULL AND attempts = 1"); n != 3 {
		t.Fatalf("%d of 3 are parked", n)
	}
	for id := range waiting {
		p.hold(submitOf(id), false)
	}
	for range 3 {
		d := c.next()
		if !waiting[d.MsgID] {
			t.Fatalf("DELIVER %d", d.MsgID)
		}
		delete(waiting, d.MsgID)
	}
	eventually(t, "rows gone", func() bool { return b.rows(t, 1) == 0 })
}

// receiptHeld is a receipt whose SUBMIT_RESP is not written.
func (p *process) receiptHeld(t *testing.T, app int32) int64 {
	t.Helper()
	id, err := p.node.IDs.Next(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	p.hold(submitOf(cmpp.MsgID(id)), true)
	p.insert(t, id, app, p.node.Number, "1 second")
	return id
}

func TestWaitingCostsNoBudget(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.cfg.AttemptsMax = 1
	p := b.boot(t)
	c := p.connect(t, 1, cmpp.V30, accept)
	id := p.receiptHeld(t, 1)
	p.nudge()
	eventually(t, "several looks", func() bool {
		p.mu.Lock()
		defer p.mu.Unlock()
		return p.asked > 1
	})
	p.hold(submitOf(cmpp.MsgID(id)), false)
	if d := c.next(); d.MsgID != cmpp.MsgID(id) {
		t.Fatalf("DELIVER %d", d.MsgID)
	}
}

// A SUBMIT_RESP that is not written for long keeps no claim.
func TestParkedReceiptsAreLetGo(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.cfg.AckTimeout, b.cfg.AttemptsMax = 100*time.Millisecond, 1
	p := b.boot(t)
	c := p.connect(t, 1, cmpp.V30, accept)
	id := p.receiptHeld(t, 1)
	p.nudge()
	state := func(want string) func() bool {
		return func() bool { return b.count(t, "SELECT count(*) FROM delivery WHERE id = $1 AND "+want, id) == 1 }
	}
	eventually(t, "it is parked", state("claim IS NOT NULL"))
	eventually(t, "it is let go", state("claim IS NULL AND attempts = 0"))
	eventually(t, "it is parked again", state("claim IS NOT NULL AND attempts = 1"))
	c.quiet(0)
}

// A process that stops lets go of what it has parked, at no cost.
func TestStopLetsParkedReceiptsGo(t *testing.T) {
	t.Parallel()
	b := setup(t)
	p := b.boot(t)
	c := p.connect(t, 1, cmpp.V30, accept)
	id := p.receiptHeld(t, 1)
	p.nudge()
	eventually(t, "it is parked", func() bool { return p.value(t, "cmppgw_delivery_parked") == 1 })
	p.stop()
	if b.count(t, "SELECT count(*) FROM delivery WHERE id = $1 AND claim IS NULL AND attempts = 0", id) != 1 {
		t.Error("the process that stopped still has it")
	}
	c.quiet(0)
	q := b.boot(t)
	b.exec(t, "UPDATE delivery SET accept_node = $1", q.node.Number)
	if d := q.connect(t, 1, cmpp.V30, accept).next(); d.MsgID != cmpp.MsgID(id) {
		t.Fatalf("DELIVER %d", d.MsgID)
	}
}

func TestLostSessionCostsNoBudget(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.cfg.AttemptsMax = 1
	p := b.boot(t)
	id := p.receipt(t, 1)
	for range 3 { // each connection sees it, none answers, all go
		c := p.connect(t, 1, cmpp.V30, silence)
		if d := c.next(); d.MsgID != cmpp.MsgID(id) {
			t.Fatalf("DELIVER %d", d.MsgID)
		}
		c.end()
		eventually(t, "released", func() bool {
			return b.count(t, "SELECT count(*) FROM delivery WHERE claim IS NULL AND attempts = 0") == 1
		})
	}
	c := p.connect(t, 1, cmpp.V30, accept)
	if d := c.next(); d.MsgID != cmpp.MsgID(id) {
		t.Fatalf("DELIVER %d", d.MsgID)
	}
	eventually(t, "row gone", func() bool { return b.rows(t, 1) == 0 })
}

// The other connections of the customer take over at once.
func TestAnotherConnectionTakesOver(t *testing.T) {
	t.Parallel()
	b := setup(t)
	p := b.boot(t)
	mute := p.connect(t, 1, cmpp.V30, silence)
	for range 10 {
		p.receipt(t, 1)
	}
	p.nudge()
	for range 10 {
		mute.next()
	}
	c := p.connect(t, 1, cmpp.V30, accept)
	c.quiet(50 * time.Millisecond) // never a second time while the claim lives
	mute.end()
	for range 10 {
		c.next()
	}
	eventually(t, "rows gone", func() bool { return b.rows(t, 1) == 0 })
}

func TestRefusedAndUnansweredAreTriedAgainUntilTheBudgetIsSpent(t *testing.T) {
	t.Parallel()
	for name, answer := range map[string]answers{"refused": func(deliver) (uint32, bool) { return 9, true }, "unanswered": silence} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := setup(t)
			b.cfg.AttemptsMax, b.cfg.AckTimeout = 2, 300*time.Millisecond
			p := b.boot(t)
			c := p.connect(t, 1, cmpp.V30, answer)
			begin := time.Now() // before the row is there: a pause of the test makes the time longer, never shorter
			id := p.receipt(t, 1)
			p.nudge()
			c.next()
			if d := c.next(); d.MsgID != cmpp.MsgID(id) || time.Since(begin) < 900*time.Millisecond {
				t.Errorf("DELIVER %d after %s, want the same Msg_Id after a second", d.MsgID, time.Since(begin))
			}
			eventually(t, "dead letter", func() bool { return b.rows(t, 1) == 0 })
			var reason, raw string
			if err := b.QueryRow(t.Context(), "SELECT reason, convert_from(raw, 'UTF8') FROM dead_letter WHERE id = $1 AND kind = 'delivery'", id).Scan(&reason, &raw); err != nil {
				t.Fatal(err)
			}
			if !strings.Contains(reason, "after the last try") || !strings.Contains(raw, `"attempts": 2`) {
				t.Errorf("reason %q, row %s", reason, raw)
			}
			c.quiet(50 * time.Millisecond)
		})
	}
}

// An answer that comes when the row waits for its next try ends it all the same.
func TestLateAnswerCounts(t *testing.T) {
	t.Parallel()
	for name, slow := range map[string]time.Duration{"before the session gives the call up": time.Minute, "after it": 300 * time.Millisecond} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := setup(t)
			b.cfg.AckTimeout = 100 * time.Millisecond
			p := b.boot(t)
			late := make(chan deliver, 9)
			c := p.connectWith(t, 1, cmpp.V30, session.Config{Window: 8, ResponseTimeout: slow, IdleInterval: time.Minute}, func(d deliver) (uint32, bool) {
				late <- d
				return 0, false
			})
			p.receipt(t, 1)
			p.nudge()
			d := <-late
			eventually(t, "put back", func() bool {
				return b.count(t, "SELECT count(*) FROM delivery WHERE not_before IS NOT NULL AND attempts >= 1") == 1
			})
			if slow < time.Minute {
				eventually(t, "slot given up", func() bool { return c.server.InFlight() == 0 })
			}
			c.reply(d, 0)
			eventually(t, "row gone", func() bool { return b.rows(t, 1) == 0 })
			if n := b.count(t, "SELECT count(*) FROM dead_letter"); n != 0 {
				t.Errorf("%d dead letters", n)
			}
		})
	}
}

func TestSilentCustomerTakesOnlyItsOwnSlots(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.cfg.DeliverWindow = 4
	p := b.boot(t)
	mute, c := p.connect(t, 1, cmpp.V30, silence), p.connect(t, 2, cmpp.V30, accept)
	const n = 300
	b.many(t, p, 1, n)
	b.many(t, p, 2, n)
	p.nudge()
	seen := map[cmpp.MsgID]bool{}
	for range n {
		d := c.next()
		if seen[d.MsgID] {
			t.Fatalf("DELIVER %d twice", d.MsgID)
		}
		seen[d.MsgID] = true
	}
	eventually(t, "rows gone", func() bool { return b.rows(t, 2) == 0 })
	if got := len(mute.delivers); got != 4 {
		t.Errorf("%d DELIVERs at the silent customer, window 4", got)
	}
	if claimed := b.count(t, "SELECT count(*) FROM delivery WHERE app_id = 1 AND claim IS NOT NULL"); claimed != 4 {
		t.Errorf("%d rows claimed for the silent customer", claimed)
	}
}

// More free slots than one claim takes are filled by several, without waiting for anything.
func TestClaimsFollowEachOther(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.cfg.DeliverWindow, b.cfg.Sweep = 250, time.Minute
	p := b.boot(t)
	links := make([]*customer, 6)
	for i := range links {
		links[i] = p.connect(t, 1, cmpp.V30, silence)
	}
	b.many(t, p, 1, 1400)
	p.nudge()
	eventually(t, "all in flight", func() bool {
		n := 0
		for _, c := range links {
			n += len(c.delivers)
		}
		return n == 1400
	})
}

// many inserts n receipts.
func (b *bench) many(tb testing.TB, p *process, app int32, n int) {
	tb.Helper()
	ids, err := p.node.IDs.Take(tb.Context(), n)
	if err != nil {
		tb.Fatal(err)
	}
	b.exec(tb, `INSERT INTO delivery (id, pos, message_id, msg_id, accept_session, accepted_at, done_at, app_id, kind, accept_node, stat, dest, src)
		SELECT i, i, 1, i # (1::bigint << 62), 1, now(), now(), $2, 1, $3, 'DELIVRD', '13800000001', '106912' FROM unnest($1::bigint[]) i`, ids, app, p.node.Number)
}

func TestEveryConnectionGetsItsShare(t *testing.T) {
	t.Parallel()
	b := setup(t)
	p := b.boot(t)
	links := []*customer{p.connect(t, 1, cmpp.V20, silence), p.connect(t, 1, cmpp.V30, silence), p.connect(t, 1, cmpp.V30, silence)}
	last := p.connect(t, 2, cmpp.V30, accept)
	p.receipt(t, 2)
	p.nudge()
	last.next() // no claim that knows fewer connections is under way any more
	b.many(t, p, 1, 30)
	p.nudge()
	eventually(t, "all in flight", func() bool { return len(links[0].delivers)+len(links[1].delivers)+len(links[2].delivers) == 30 })
	for i, c := range links {
		if n := len(c.delivers); n != 10 {
			t.Errorf("connection %d has %d of 30", i, n)
		}
	}
}

// Two processes, one customer connected to both: every receipt once.
func TestTwoProcessesDeliverOnce(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.cfg.DeliverWindow = 8
	p, q := b.boot(t), b.boot(t)
	var mu sync.Mutex
	seen := map[cmpp.MsgID]int{}
	count := func(d deliver) (uint32, bool) {
		mu.Lock()
		defer mu.Unlock()
		seen[d.MsgID]++
		return 0, true
	}
	const n = 1500
	for i := range n / 50 {
		from := []*process{p, q}[i%2]
		b.many(t, from, 1, 50)
	}
	b.exec(t, "UPDATE delivery SET accepted_at = now() - interval '2 minutes'") // both may claim all
	p.connect(t, 1, cmpp.V30, count)
	p.connect(t, 1, cmpp.V20, count)
	q.connect(t, 1, cmpp.V30, count)
	eventually(t, "rows gone", func() bool { return b.rows(t, 1) == 0 })
	mu.Lock()
	defer mu.Unlock()
	if len(seen) != n {
		t.Errorf("%d of %d delivered", len(seen), n)
	}
	for id, times := range seen {
		if times != 1 {
			t.Errorf("%d delivered %d times", id, times)
		}
	}
}

func TestOnlyTheAcceptingNodeClaimsEarly(t *testing.T) {
	t.Parallel()
	b := setup(t)
	p := b.boot(t)
	alive, dead, gone := b.lease(t), b.lease(t), b.lease(t)
	b.exec(t, "UPDATE node_lease SET adopter = $1, epoch = epoch + 1 WHERE node = $2", p.node.Number, dead.Number)
	b.exec(t, "UPDATE node_lease SET instance = NULL WHERE node = $1", gone.Number)
	fresh := p.receiptOf(t, 1, alive.Number, "59 seconds")
	free := map[cmpp.MsgID]bool{
		cmpp.MsgID(p.receiptOf(t, 1, dead.Number, "1 second")): true, cmpp.MsgID(p.receiptOf(t, 1, gone.Number, "1 second")): true,
		cmpp.MsgID(p.receiptOf(t, 1, alive.Number, "61 seconds")): true, cmpp.MsgID(p.receiptOf(t, 1, p.node.Number, "1 second")): true,
	}
	c := p.connect(t, 1, cmpp.V30, accept)
	for range len(free) {
		d := c.next()
		if !free[d.MsgID] {
			t.Errorf("DELIVER %d", d.MsgID)
		}
		delete(free, d.MsgID)
	}
	if d := c.next(); d.MsgID != cmpp.MsgID(fresh) { // a second or more later
		t.Errorf("DELIVER %d, want %d", d.MsgID, fresh)
	}
}

func TestLeaseOfAKilledProcessEnds(t *testing.T) {
	t.Parallel()
	b := setup(t)
	p := b.boot(t)
	id := p.receipt(t, 1)
	begin := time.Now()
	b.exec(t, "UPDATE delivery SET claim = 7, owner = 200, attempts = 1, lease = clock_timestamp() + interval '700 milliseconds'")
	c := p.connect(t, 1, cmpp.V30, accept)
	if d := c.next(); d.MsgID != cmpp.MsgID(id) || time.Since(begin) < 500*time.Millisecond {
		t.Errorf("DELIVER %d after %s: not before the lease ends", d.MsgID, time.Since(begin))
	}
	eventually(t, "row gone", func() bool { return b.rows(t, 1) == 0 })
	// Its tries were counted: the last one ends in the dead letters without another DELIVER.
	id = p.receipt(t, 1)
	b.exec(t, "UPDATE delivery SET claim = 7, owner = 200, attempts = $1, lease = clock_timestamp() - interval '1 second'", b.cfg.AttemptsMax)
	eventually(t, "dead letter", func() bool { return b.count(t, "SELECT count(*) FROM dead_letter WHERE id = $1", id) == 1 })
	c.quiet(20 * time.Millisecond)
}

func TestRestartFreesOwnClaims(t *testing.T) {
	t.Parallel()
	b := setup(t)
	node := b.lease(t)
	b.many(t, &process{bench: b, node: node}, 1, 3)
	b.exec(t, "UPDATE delivery SET claim = 7, owner = $1, attempts = 1, lease = clock_timestamp() + interval '1 hour'", node.Number)
	p := b.bootAs(t, node)
	c := p.connect(t, 1, cmpp.V30, accept)
	for range 3 {
		c.next()
	}
}

// Rows become visible late and below the floor: they are found.
func TestFloorsDoNotMissLateCommits(t *testing.T) {
	t.Parallel()
	b := setup(t)
	p := b.boot(t)
	c := p.connect(t, 1, cmpp.V30, accept)
	late := message.FirstID(time.Now().Add(-10 * time.Minute))
	for i := range int64(5) {
		p.receipt(t, 1)
		p.nudge()
		c.next()
		p.insert(t, late+i, 1, p.node.Number, "10 minutes")
		p.nudge()
		if d := c.next(); d.MsgID != cmpp.MsgID(late+i) {
			t.Fatalf("DELIVER %d, want %d", d.MsgID, late+i)
		}
	}
}

func TestNobodyComes(t *testing.T) {
	t.Parallel()
	b := setup(t)
	p := b.boot(t)
	old := message.FirstID(time.Now().Add(-b.cfg.KeepMax - time.Minute))
	for i := range int64(3) {
		p.insert(t, old+i, 1, p.node.Number, "73 hours")
	}
	b.exec(t, "UPDATE delivery SET created_at = now() - interval '73 hours'")
	young := p.receipt(t, 1)
	eventually(t, "dead letters", func() bool { return b.count(t, "SELECT count(*) FROM dead_letter WHERE kind = 'delivery'") == 3 })
	if b.count(t, "SELECT count(*) FROM delivery WHERE id = $1", young) != 1 || b.rows(t, 1) != 1 {
		t.Error("the young one must stay")
	}
}

// A dead delivery that is replayed has all its time again, and when it dies once more it is the same dead letter, whichever
// way it dies; deliveries go on.
func TestReplayedDeliveriesMayDieAgain(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.cfg.AttemptsMax, b.cfg.BacklogMax, b.cfg.Sweep = 1, 2, 20*time.Millisecond
	p := b.boot(t)
	old := message.FirstID(time.Now().Add(-b.cfg.KeepMax - time.Minute))
	kill := map[int64]string{old: "not taken in time", old + 1: "refused by the customer after the last try", old + 2: "too many wait for the customer"}
	for id := range kill {
		b.exec(t, "INSERT INTO dead_letter (id, kind, reason, raw, replayed_at) VALUES ($1, 'delivery', 'before', '', now())", id)
	}
	p.insert(t, old, 1, p.node.Number, "73 hours") // replayed: created now
	calm := p.connect(t, 9, cmpp.V30, accept)
	p.receipt(t, 9)
	p.nudge()
	calm.next() // a sweep or more has passed
	if b.rows(t, 1) != 1 {
		t.Fatal("a replayed delivery had no time")
	}
	b.exec(t, "UPDATE delivery SET created_at = now() - interval '73 hours' WHERE id = $1", old)
	p.connect(t, 2, cmpp.V30, func(deliver) (uint32, bool) { return 9, true })
	p.insert(t, old+1, 2, p.node.Number, "1 second")
	p.insert(t, old+2, 3, p.node.Number, "1 second")
	p.receipt(t, 3)
	p.receipt(t, 3)
	p.nudge()
	for id, reason := range kill {
		eventually(t, reason, func() bool {
			return b.count(t, "SELECT count(*) FROM dead_letter WHERE id = $1 AND reason = $2 AND replayed_at IS NULL AND raw <> ''", id, reason) == 1
		})
	}
	p.receipt(t, 9)
	p.nudge()
	calm.next()
}

func TestWhatDoesNotFitIsBuried(t *testing.T) {
	t.Parallel()
	b := setup(t)
	p := b.boot(t)
	ids := []int64{p.receipt(t, 1), p.receipt(t, 1)}
	b.exec(t, "UPDATE delivery SET dest = '8613800000001 written by a 3.0 link' WHERE id = $1", ids[0])
	b.exec(t, "UPDATE delivery SET service = 'longer than ten' WHERE id = $1", ids[1])
	c := p.connect(t, 1, cmpp.V20, accept)
	eventually(t, "dead letters", func() bool { return b.count(t, "SELECT count(*) FROM dead_letter WHERE id = ANY($1)", ids) == 2 })
	c.quiet(20 * time.Millisecond)
	p.receipt(t, 1)
	p.nudge()
	c.next() // the slots are free again
}

// PostgreSQL cannot take the acknowledgement for a while: it is written later, and nothing is delivered twice.
func TestAcknowledgementSurvivesAnOutage(t *testing.T) {
	t.Parallel()
	b := setup(t)
	cfg := b.Config()
	cfg.ConnConfig.RuntimeParams["lock_timeout"] = "50"
	impatient, err := pgxpool.NewWithConfig(t.Context(), cfg)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(impatient.Close)
	tests := b.Pool
	b.Pool = impatient
	p := b.boot(t)
	first := make(chan deliver, 1)
	c := p.connect(t, 1, cmpp.V30, func(d deliver) (uint32, bool) {
		first <- d
		return 0, false
	})
	p.receipt(t, 1)
	p.nudge()
	d := <-first
	tx, err := tests.Begin(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = tx.Rollback(context.Background()) }) // also when the test fails: others wait for the lock
	if _, err := tx.Exec(t.Context(), "LOCK TABLE delivery IN ACCESS EXCLUSIVE MODE"); err != nil {
		t.Fatal(err)
	}
	c.reply(d, 0)
	eventually(t, "acknowledgement not written", func() bool { return strings.Contains(p.log.String(), "outcomes of deliveries written") })
	if err := tx.Rollback(context.Background()); err != nil {
		t.Fatal(err)
	}
	eventually(t, "row gone", func() bool { return b.rows(t, 1) == 0 })
	c.next()
	c.quiet(50 * time.Millisecond)
}

func TestStopTakesWhatComesSoon(t *testing.T) {
	t.Parallel()
	b := setup(t)
	p := b.boot(t)
	late := make(chan deliver, 1)
	c := p.connect(t, 1, cmpp.V30, func(d deliver) (uint32, bool) {
		late <- d
		return 0, false
	})
	p.receipt(t, 1)
	p.nudge()
	d := <-late
	go c.reply(d, 0)
	p.stop()
	if n := b.rows(t, 1); n != 0 {
		t.Errorf("%d rows after the stop", n)
	}
}

// BenchmarkDeliver is claim, DELIVER, answer and DELETE over loopback, on two connections.
func BenchmarkDeliver(bm *testing.B) {
	b := setup(bm)
	p := b.boot(bm)
	for n := bm.N; n > 0; n -= 16384 {
		b.many(bm, p, 1, min(n, 16384))
	}
	bm.ReportAllocs()
	bm.ResetTimer()
	var links [2]*customer
	for i := range links {
		links[i] = p.connect(bm, 1, cmpp.V30, accept)
	}
	for range bm.N {
		select {
		case <-links[0].delivers:
		case <-links[1].delivers:
		case <-time.After(patience):
			bm.Fatal("no DELIVER within 20 s")
		}
	}
	eventually(bm, "rows gone", func() bool { return b.rows(bm, 1) == 0 })
	bm.ReportMetric(float64(bm.N)/bm.Elapsed().Seconds(), "rows/s")
}
