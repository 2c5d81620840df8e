package supplier_test

import (
	"log/slog"
	"slices"
	"sync/atomic"
	"testing"
	"time"

	"cmppgateway/gateway/cmpp"
	"cmppgateway/gateway/internal/event"
	"cmppgateway/gateway/internal/outbox"
	"cmppgateway/gateway/internal/supplier"
)

func TestSubmitCarriesTheChannelsAndTheMessagesFields(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	r.channel(t, 1, 1, 16)
	r.exec(t, `UPDATE channel SET service_id = 'SVC', fee_type = '02', fee_code = '10'`)
	e := r.edge(t)
	cmds := r.messages(t, 1, 1)
	e.hints.Hint(t.Context(), 1, cmds)
	eventually(t, "the result", func() bool { return r.core.count() == 1 })
	s := r.smsc.first[0]
	if s.SrcID != "1069000055" || s.ServiceID != "SVC" || s.MsgSrc != "901234" || s.FeeType != "02" || s.FeeCode != "10" || s.RegisteredDelivery != 1 ||
		s.PkTotal != 1 || s.PkNumber != 1 || len(s.DestTerminalID) != 1 || s.DestTerminalID[0] != "13800000000" || string(s.MsgContent) != "text 1" {
		t.Errorf("SUBMIT %+v", s)
	}
	got := r.core.results[cmds[0].SubmitID]
	if len(got) != 1 {
		t.Fatalf("results %+v", got)
	}
	if x := got[0]; x.State != event.Accepted || x.SupplierMsgID != 1 || x.MessageID != cmds[0].MessageID || x.AccountID != 1 || x.ChannelID != 1 ||
		x.Node != e.node.Number || x.Phone != 13800000000 || x.Src != "1069000055" || x.DispatchedAt.IsZero() || x.RespAt.Before(x.DispatchedAt.Add(-time.Second)) {
		t.Errorf("result %+v", x)
	}
}

// P2: whatever repeats a command – hints, pulls, reconnects, an emptied Redis – a submitId is written once.
func TestEverySubmitIsWrittenOnce(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	r.channel(t, 1, 3, 16)
	e := r.edge(t)
	const rounds, each = 12, 40
	for i := range rounds {
		cmds := r.messages(t, 1, each)
		e.hints.Hint(t.Context(), 1, cmds)
		e.hints.Hint(t.Context(), 1, cmds[:each/2])
		switch i {
		case 3, 7:
			r.smsc.cut()
		case 5:
			if err := r.rdb.FlushDB(t.Context()).Err(); err != nil {
				t.Fatal(err)
			}
		case 9:
			e.hints.Hint(t.Context(), 1, cmds)
		}
		eventually(t, "half of the round", func() bool { return r.core.count() >= i*each+each/2 })
	}
	eventually(t, "a result for each", func() bool { return r.core.count() == rounds*each })
	eventually(t, "an empty outbox", func() bool { return r.number(t, `SELECT count(*) FROM submit_outbox`) == 0 })
	unknown := r.core.states()[event.Unknown]
	if unknown > 2*3*16 {
		t.Errorf("%d unknown: more than two cuts of three full windows", unknown)
	}
	r.onceEach(t, rounds*each, unknown)
}

func TestPullSendsWhatWasNeverHinted(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	r.channel(t, 1, 1, 16)
	r.edge(t)
	r.messages(t, 1, 200) // more than a lane keeps
	eventually(t, "a result for each", func() bool { return r.core.count() == 200 })
	r.onceEach(t, 200, 0)
}

func TestRedisAwayIsSlowerNotStopped(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	r.redis.Addr, r.redis.MaxRetries = "127.0.0.1:1", -1
	r.channel(t, 1, 1, 16)
	e := r.edge(t)
	cmds := r.messages(t, 1, 100)
	e.hints.Hint(t.Context(), 1, cmds)
	eventually(t, "a result for each", func() bool { return r.core.count() == 100 })
	r.onceEach(t, 100, 0)
}

// A barrier that committed and whose answer was lost is repeated: nothing is unknown, nothing is written twice.
func TestBarrierAnswerLostIsRepeated(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	p := newProxy(t, r.postgresAddr(t))
	r.through(t, p)
	r.channel(t, 1, 2, 16)
	e := r.edge(t)
	eventually(t, "connections", func() bool { return e.active(1) == 2 })
	p.every.Store(6)
	const n = 300
	for range n / 20 {
		e.hints.Hint(t.Context(), 1, r.messages(t, 1, 20))
	}
	eventually(t, "a result for each", func() bool { return r.core.count() == n })
	p.every.Store(0)
	if s := r.core.states(); s[event.Accepted] != n {
		t.Errorf("states %v, want all accepted", s)
	}
	if p.lost.Load() < 5 {
		t.Errorf("only %d answers were lost", p.lost.Load())
	}
	r.onceEach(t, n, 0)
}

// The connection dies between the barrier and the write: surely not sent, so it goes out elsewhere or becomes pending again.
func TestNotSentGoesOutAgain(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	p := newProxy(t, r.postgresAddr(t))
	r.through(t, p)
	r.channel(t, 1, 1, 16)
	// One connection, used by the barrier alone, which has prepared its statement: then holding answers holds nothing else.
	r.cfg.Postgres.Pools.Outbox, r.cfg.Outbox.Pull, r.cfg.Supplier.LeaseTime = 1, time.Hour, time.Hour
	e := r.edge(t)
	eventually(t, "the connection", func() bool { return e.active(1) == 1 })
	e.hints.Hint(t.Context(), 1, r.messages(t, 1, 1))
	eventually(t, "the first result", func() bool { return r.core.count() == 1 })
	p.held.Store(true)
	cmds := r.messages(t, 1, 10)
	e.hints.Hint(t.Context(), 1, cmds)
	eventually(t, "the rows dispatched", func() bool { return r.number(t, `SELECT count(*) FROM submit_outbox WHERE state = 1`) == 10 })
	r.smsc.cut()
	eventually(t, "the cut noticed", func() bool { return e.active(1) == 0 })
	p.held.Store(false)
	eventually(t, "a result for each", func() bool { return r.core.count() == 11 })
	if s := r.core.states(); s[event.Accepted] != 11 {
		t.Errorf("states %v, want all accepted", s)
	}
	r.onceEach(t, 11, 0)
}

func TestUnansweredIsUnknownAndALateAnswerClosesIt(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	r.channel(t, 1, 1, 2)
	r.exec(t, `UPDATE channel SET response_seconds = 1, cooldown_seconds = 0`)
	e := r.edge(t)
	release := r.smsc.hold()
	cmds := r.messages(t, 1, 2)
	e.hints.Hint(t.Context(), 1, cmds)
	eventually(t, "both unknown", func() bool { return r.core.states()[event.Unknown] == 2 })
	if n, _ := r.smsc.total(); n != 2 {
		t.Fatalf("%d submits written", n)
	}
	release(0)
	eventually(t, "both accepted by the late answers", func() bool { return r.core.states()[event.Accepted] == 2 })
	for _, c := range cmds {
		if got := r.core.results[c.SubmitID]; len(got) != 2 || got[1].SupplierMsgID == 0 {
			t.Errorf("results %+v, want unknown and then accepted", got)
		}
	}
	r.onceEach(t, 2, 0)
}

func TestConnectionCoolsAfterTimeoutsAndComesBack(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	r.channel(t, 1, 1, 4)
	r.exec(t, `UPDATE channel SET response_seconds = 1, cooldown_seconds = 1`)
	e := r.edge(t)
	up := func() bool {
		return r.number(t, `SELECT count(*) FROM channel_lease WHERE channel_id = 1 AND down_since IS NULL AND lease_until > clock_timestamp()`) == 1
	}
	eventually(t, "the lease says that the channel is up", up)
	r.smsc.hold()
	e.hints.Hint(t.Context(), 1, r.messages(t, 1, 4))
	eventually(t, "all unknown", func() bool { return r.core.states()[event.Unknown] == 4 })
	eventually(t, "cooling, and the lease says so", func() bool { return e.state(1).Connections[0].State == supplier.Cooling && !up() })
	r.smsc.script(nil)
	e.hints.Hint(t.Context(), 1, r.messages(t, 1, 10))
	eventually(t, "a result for each", func() bool { return r.core.count() == 14 })
	eventually(t, "the lease says that the channel is up again", up)
	if s := r.core.states(); s[event.Accepted] != 10 {
		t.Errorf("states %v", s)
	}
	r.onceEach(t, 14, 0)
}

func TestRefusalCarriesTheRawCode(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	r.channel(t, 1, 1, 4)
	r.smsc.script(func(_ *peer, _ *cmpp.Submit, reply func(uint32)) { reply(143) })
	e := r.edge(t)
	cmds := r.messages(t, 1, 1)
	e.hints.Hint(t.Context(), 1, cmds)
	eventually(t, "the result", func() bool { return r.core.count() == 1 })
	if x := r.core.results[cmds[0].SubmitID][0]; x.State != event.Rejected || x.Result != 143 || x.SupplierMsgID != 0 {
		t.Errorf("result %+v", x)
	}
}

func TestWindowIsNeverExceededAndACutTouchesOnlyItsOwn(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	r.channel(t, 1, 2, 8)
	release := r.smsc.hold()
	e := r.edge(t)
	eventually(t, "connections", func() bool { return e.active(1) == 2 })
	e.hints.Hint(t.Context(), 1, r.messages(t, 1, 40))
	eventually(t, "both windows full", func() bool { n, _ := r.smsc.total(); return n == 16 })

	r.smsc.mu.Lock()
	var victim *peer
	for p := range r.smsc.peers {
		if victim == nil || p.number < victim.number {
			victim = p
		}
		if p.open != 8 {
			t.Errorf("%d submits on one connection, window 8", p.open)
		}
	}
	_ = victim.conn.Close()
	r.smsc.mu.Unlock()
	eventually(t, "the submits of the cut connection unknown", func() bool { return r.core.states()[event.Unknown] == 8 })
	release(0)
	eventually(t, "a result for each", func() bool { return r.core.count() == 40 })
	if s := r.core.states(); s[event.Unknown] != 8 || s[event.Accepted] != 32 {
		t.Errorf("states %v, want 8 unknown", s)
	}
	if r.smsc.widest > 8 {
		t.Errorf("%d unanswered on one connection, window 8", r.smsc.widest)
	}
	r.onceEach(t, 40, 0)
}

func TestSettingsChangeWhileRunning(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	r.channel(t, 1, 1, 4)
	e := r.edge(t)
	const steps, each = 5, 60
	var delayed atomic.Int64
	r.smsc.script(func(_ *peer, _ *cmpp.Submit, reply func(uint32)) {
		delayed.Add(1)
		time.AfterFunc(2*time.Millisecond, func() { reply(0) })
	})
	for i, s := range []struct{ connections, window int }{{4, 4}, {2, 16}, {8, 2}, {1, 32}, {3, 8}} {
		r.set(t, `UPDATE channel SET desired_connections = $1, window_size = $2`, s.connections, s.window)
		e.hints.Hint(t.Context(), 1, r.messages(t, 1, each))
		eventually(t, "the connections asked for", func() bool { return e.active(1) == s.connections && len(e.state(1).Connections) == s.connections })
		eventually(t, "a result for each", func() bool { return r.core.count() == (i+1)*each })
		eventually(t, "the same at the supplier", func() bool { return r.smsc.connections() == s.connections })
	}
	if s := r.core.states(); s[event.Accepted] != steps*each {
		t.Errorf("states %v, want all accepted", s)
	}
	if r.smsc.most > 8 {
		t.Errorf("%d connections at once", r.smsc.most)
	}
	r.onceEach(t, steps*each, 0)
}

func TestDisabledChannelClosesAfterItsAnswers(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	r.channel(t, 1, 1, 8)
	release := r.smsc.hold()
	e := r.edge(t)
	e.hints.Hint(t.Context(), 1, r.messages(t, 1, 20))
	eventually(t, "a full window", func() bool { n, _ := r.smsc.total(); return n == 8 })
	r.set(t, `UPDATE channel SET enabled = false`)
	eventually(t, "draining", func() bool { return e.state(1).State == supplier.Closing })
	release(0)
	eventually(t, "closed", func() bool { return r.smsc.connections() == 0 && e.state(1).Channel == 0 })
	eventually(t, "the answers", func() bool { return r.core.states()[event.Accepted] == 8 })
	if n := r.number(t, `SELECT count(*) FROM submit_outbox WHERE state = 0`); n != 12 {
		t.Errorf("%d rows pending, want the 12 that were not written", n)
	}
	if n, _ := r.smsc.total(); n != 8 {
		t.Errorf("%d submits written", n)
	}
}

func TestOutOfRangeSettingsRefuseTheChannelAlone(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	r.channel(t, 9, 1, 4)
	r.account(t, 2, 2, 16)
	for i, change := range []string{
		`desired_connections = 0`, `desired_connections = 9`, `window_size = 0`, `window_size = 65`, `response_seconds = 0`, `cooldown_seconds = -1`,
		`account_id = 2, desired_connections = 3`, `account_id = 2, window_size = 32`, `account_id = 77`,
	} {
		r.channel(t, 10+i, 1, 4)
		r.exec(t, `UPDATE channel SET `+change+` WHERE id = $1`, 10+i)
	}
	// The contract counts over all channels of the account: the second one is one connection too many.
	r.channel(t, 20, 2, 4)
	r.channel(t, 21, 1, 4)
	r.exec(t, `UPDATE channel SET account_id = 2 WHERE id IN (20, 21)`)
	e := r.edge(t)
	eventually(t, "the sound channels open", func() bool { return e.active(9) == 1 && e.active(20) == 2 })
	for i := range 9 {
		if s := e.state(int32(10 + i)); s.State != supplier.Refused || s.Detail == "" {
			t.Errorf("channel %d: %s %q", 10+i, s.State, s.Detail)
		}
	}
	if s := e.state(21); s.State != supplier.Refused {
		t.Errorf("channel over the contract: %s %q", s.State, s.Detail)
	}
	r.set(t, `UPDATE channel SET window_size = 64 WHERE id = 13`)
	eventually(t, "the mended channel open", func() bool { return e.active(13) == 1 })
}

func TestRemoteSuppliersAreRefusedInHarnessRuns(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	r.cfg.Supplier.AllowRemote = false
	r.channel(t, 1, 1, 4)
	r.channel(t, 2, 1, 4)
	r.exec(t, `INSERT INTO supplier_account (id, max_connections, max_window, addr, sp_id, secret, name) VALUES (2, 1, 4, '192.0.2.1:7890', '9', 's', 'far')`)
	r.exec(t, `UPDATE channel SET account_id = 2 WHERE id = 2`)
	e := r.edge(t)
	eventually(t, "the local one open", func() bool { return e.active(1) == 1 })
	if s := e.state(2); s.State != supplier.Refused {
		t.Errorf("remote supplier: %s", s.State)
	}
}

func TestChannelHeldElsewhereIsLeftAloneUntilItsOwnerIsGone(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	r.channel(t, 1, 2, 4)
	first := r.edge(t)
	eventually(t, "the first edge's connections", func() bool { return first.active(1) == 2 })
	second := r.edge(t)
	eventually(t, "the second edge knows", func() bool { return second.state(1).State == supplier.Waiting && second.state(1).Detail != "" })
	first.stop()
	eventually(t, "the second edge's connections", func() bool { return second.active(1) == 2 })
	if r.smsc.most > 2 {
		t.Errorf("%d connections at once, 2 desired", r.smsc.most)
	}
	second.hints.Hint(t.Context(), 1, r.messages(t, 1, 10))
	eventually(t, "a result for each", func() bool { return r.core.count() == 10 })
}

// A killed edge leaves accepted results in its shard and rows without any: the first are applied, the others unknown.
func TestDeadNodeIsAdopted(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	r.channel(t, 1, 1, 8)
	r.exec(t, `UPDATE channel SET drain_seconds = 0`)
	first := r.edge(t)
	eventually(t, "the connection", func() bool { return first.active(1) == 1 })
	r.core.down.Store(true)
	answered := r.messages(t, 1, 5)
	first.hints.Hint(t.Context(), 1, answered)
	eventually(t, "answers kept", func() bool { return first.events.Held() == 5 })
	release := r.smsc.hold()
	silent := r.messages(t, 1, 8)
	first.hints.Hint(t.Context(), 1, silent)
	eventually(t, "a full window", func() bool { n, _ := r.smsc.total(); return n == 13 })
	number := first.node.Number
	// What a killed process cannot do is undone: its last results never left its memory.
	first.kill()
	release(0)
	var kept int
	entries, err := r.rdb.XRange(t.Context(), "{ev:1}:result", "-", "+").Result()
	if err != nil {
		t.Fatal(err)
	}
	for i, entry := range entries {
		if kept++; i > 0 {
			if err := r.rdb.XDel(t.Context(), "{ev:1}:result", entry.ID).Err(); err != nil {
				t.Fatal(err)
			}
		}
	}
	if kept == 0 || number != 1 {
		t.Fatalf("%d entries of node %d", kept, number)
	}
	r.core.down.Store(false)
	second := r.edge(t)
	eventually(t, "a result for each", func() bool { return r.core.count() == 13 })
	eventually(t, "the node free", func() bool {
		return r.number(t, `SELECT count(*) FROM node_lease WHERE node = 1 AND instance IS NULL`) == 1
	})
	if second.node.Number == 1 {
		t.Error("the dead node's number was given out before its adoption")
	}
	for _, c := range silent {
		if x := r.core.results[c.SubmitID][0]; x.State != event.Unknown || x.Src != "1069000055" || x.AccountID != 1 || x.DispatchedAt.IsZero() {
			t.Fatalf("unanswered submit %+v", x)
		}
	}
	r.onceEach(t, 13, 0)
}

func TestRateIsPaced(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	r.channel(t, 1, 2, 32)
	r.exec(t, `UPDATE channel SET rate_limit = 50`)
	e := r.edge(t)
	eventually(t, "connections", func() bool { return e.active(1) == 2 })
	start := time.Now()
	e.hints.Hint(t.Context(), 1, r.messages(t, 1, 60))
	eventually(t, "a result for each", func() bool { return r.core.count() == 60 })
	if took := time.Since(start); took < 59*time.Second/50 {
		t.Errorf("60 submits at 50/s in %s", took)
	}
}

func TestDeliversBecomeEventsAndAreAnswered(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	r.channel(t, 1, 1, 4)
	e := r.edge(t)
	eventually(t, "the connection", func() bool { return e.active(1) == 1 })
	report, err := (&cmpp.Report{MsgID: 77, Stat: "DELIVRD", SubmitTime: "2611301200", DoneTime: "2611301201", DestTerminalID: "8613800000000"}).Append(nil, cmpp.V30)
	if err != nil {
		t.Fatal(err)
	}
	for id, d := range map[cmpp.MsgID]*cmpp.Deliver{
		1: {DestID: "1069000055", SrcTerminalID: "8613800000000", RegisteredDelivery: 1, MsgContent: report},
		2: {DestID: "1069000055", SrcTerminalID: "13800000000", MsgFmt: 8, MsgContent: []byte{0x4f, 0x60}},
		3: {DestID: "1069000055", SrcTerminalID: "13800000000", RegisteredDelivery: 1, MsgContent: []byte("short")},
	} {
		d.MsgID = id
		o := <-r.smsc.deliver(t, d)
		if resp, ok := o.Resp.(*cmpp.DeliverResp); !ok || resp.Result != 0 || resp.MsgID != id {
			t.Errorf("DELIVER %d: answer %+v, %v", id, o.Resp, o.Err)
		}
	}
	if err := e.events.Drain(t.Context()); err != nil {
		t.Fatal(err)
	}
	c := r.core
	c.mu.Lock()
	defer c.mu.Unlock()
	if len(c.receipts) != 1 || len(c.uplinks) != 1 || len(c.letters) != 1 {
		t.Fatalf("%d receipts, %d uplinks, %d dead letters", len(c.receipts), len(c.uplinks), len(c.letters))
	}
	if x := c.receipts[0]; x.SupplierMsgID != 77 || x.Phone != 13800000000 || x.Stat != "DELIVRD" || x.Src != "1069000055" || x.AccountID != 1 || x.SubmitTime != "2611301200" {
		t.Errorf("receipt %+v", x)
	}
	if x := c.uplinks[0]; x.Phone != "13800000000" || x.Dest != "1069000055" || x.Fmt != 8 || string(x.Content) != "\x4f\x60" || x.SupplierMsgID != 2 {
		t.Errorf("uplink %+v", x)
	}
	if x := c.letters[0]; string(x.Raw) != "short" || x.Reason == "" {
		t.Errorf("dead letter %+v", x)
	}
}

func TestFullEventQueueStopsDispatching(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	r.cfg.Event.RetainMax = 10
	r.channel(t, 1, 1, 32)
	r.core.down.Store(true)
	e := r.edge(t)
	e.hints.Hint(t.Context(), 1, r.messages(t, 1, 40))
	eventually(t, "the bound", func() bool { return e.events.Held() == 10 })
	if n, _ := r.smsc.total(); n != 10 {
		t.Errorf("%d submits written with room for 10 results", n)
	}
	if n := r.number(t, `SELECT count(*) FROM submit_outbox WHERE state = 0`); n != 30 {
		t.Errorf("%d rows pending, want 30", n)
	}
	r.core.down.Store(false)
	eventually(t, "a result for each", func() bool { return r.core.count() == 40 })
	r.onceEach(t, 40, 0)
}

// BenchmarkEdge is everything of this package and its neighbours: hint → barrier → SUBMIT → SUBMIT_RESP → event → accepted.
// The supplier and the core of the test run in the same process.
func BenchmarkEdge(b *testing.B) {
	r := newRig(b)
	r.log = slog.New(slog.DiscardHandler)
	r.cfg.Outbox.Pull = time.Second
	r.channel(b, 1, 4, 32)
	e := r.edge(b)
	eventually(b, "connections", func() bool { return e.active(1) == 4 })
	var cmds []outbox.Command
	for len(cmds) < b.N {
		cmds = append(cmds, r.messages(b, 1, min(b.N-len(cmds), 5000))...)
	}
	b.ResetTimer()
	for batch := range slices.Chunk(cmds, 64) {
		e.hints.Hint(b.Context(), 1, batch)
		for e.state(1).Backlog > 128 {
			<-time.After(time.Millisecond)
		}
	}
	for r.core.count() < b.N {
		<-time.After(time.Millisecond)
	}
	b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "messages/s")
}
