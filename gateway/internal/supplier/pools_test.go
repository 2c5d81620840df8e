package supplier_test

import (
	"context"
	"net"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"cmppgateway/gateway/cmpp"
	"cmppgateway/gateway/internal/event"
	"cmppgateway/gateway/internal/settings"
	"cmppgateway/gateway/internal/supplier"
	"cmppgateway/simulator/ismg"
	"cmppgateway/simulator/simclock"
)

// The rungs of capacity-plan §3.3 up and down again under load: nothing is lost, nothing is sent twice, no window is
// exceeded, and no more connections are open than asked for.
func TestLiveSwitchLosesAndDoublesNothing(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	sim, err := ismg.New(ismg.Profile{
		Seed:     1,
		Accounts: []ismg.Account{{ID: "901234", Secret: "secret", Version: 0x30, MaxConnections: 8, Window: 64, GatewayCode: 1001}},
		Behaviour: ismg.Behaviour{
			SubmitRTT: ismg.Dist{Kind: ismg.Uniform, Min: time.Millisecond, Max: 20 * time.Millisecond}, Deck: ismg.DeckSpec{Block: 1, NoReceipt: 1},
		},
	}, simclock.New(), ismg.Options{KeepContent: true})
	if err != nil {
		t.Fatal(err)
	}
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	var wg sync.WaitGroup
	wg.Go(func() {
		if err := sim.Serve(ctx, ln); err != nil {
			t.Error(err)
		}
	})
	t.Cleanup(func() {
		cancel()
		wg.Wait()
	})
	r.exec(t, `UPDATE supplier_account SET addr = $1`, ln.Addr().String())
	r.channel(t, 1, 1, 1)
	r.exec(t, `UPDATE channel SET drain_seconds = 30`)
	e := r.edge(t)
	total := 0
	feed := func() {
		e.hints.Hint(t.Context(), 1, r.messages(t, 1, 40))
		total += 40
	}
	for _, step := range []struct{ connections, window int }{{1, 1}, {2, 16}, {4, 32}, {8, 64}, {4, 64}, {2, 32}} {
		feed()
		r.set(t, `UPDATE channel SET desired_connections = $1, window_size = $2`, step.connections, step.window)
		feed() // some while the connections come and go
		eventually(t, "the connections asked for", func() bool {
			return e.active(1) == step.connections && len(e.state(1).Connections) == step.connections && e.state(1).Connections[0].Window == step.window
		})
		feed()
	}
	eventually(t, "a result for each", func() bool { return r.core.count() == total })
	if s := r.core.states(); s[event.Accepted] != total {
		t.Errorf("states %v, want %d accepted", s, total)
	}
	rec := sim.Record()
	seen := make(map[string]int)
	for i := range rec.Submits {
		seen[string(rec.Submits[i].Content)]++
	}
	for text, n := range seen {
		if n != 1 {
			t.Errorf("%q written %d times", text, n)
		}
	}
	if len(seen) != total || len(rec.Violations) != 0 {
		t.Errorf("the supplier saw %d of %d messages, violations %v", len(seen), total, rec.Violations)
	}
}

// A rate that lags behind the barrier holds dispatched rows back for a moment; whatever comes meanwhile, each of them is
// answered, or is pending again.
func TestWhatWaitsForTheRateIsSentOnceOrPendingAgain(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	r.channel(t, 1, 1, 16)
	r.exec(t, `UPDATE supplier_account SET max_tps = 1`)
	r.exec(t, `UPDATE channel SET drain_seconds = 0`)
	e := r.edge(t)
	eventually(t, "the connection", func() bool { return e.active(1) == 1 })
	e.hints.Hint(t.Context(), 1, r.messages(t, 1, 4))
	eventually(t, "the first answer, and another row dispatched", func() bool {
		return r.core.count() >= 1 && r.number(t, `SELECT count(*) FROM submit_outbox WHERE state = 1`) >= 1 || r.core.count() == 4
	})
	e.stop()
	eventually(t, "nothing dispatched left", func() bool { return r.number(t, `SELECT count(*) FROM submit_outbox WHERE state = 1`) == 0 })
	if pending := r.number(t, `SELECT count(*) FROM submit_outbox`); pending+r.core.count() != 4 {
		t.Errorf("%d results, %d pending, want 4 together", r.core.count(), pending)
	}
	r.set(t, `UPDATE supplier_account SET max_tps = 0`)
	r.edge(t)
	eventually(t, "a result for each", func() bool { return r.core.count() == 4 })
	r.onceEach(t, 4, 1) // the one written at the stop may have been cut
}

// A channel that is refused too much leaves the candidates, for all processes; it goes on with what is queued for it, is
// tried again when its time has come, also by another process, and returns by itself.
func TestBreakerIsPublishedOutlivesItsProcessAndCloses(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	r.channel(t, 1, 1, 16)
	r.smsc.script(func(_ *peer, _ *cmpp.Submit, reply func(uint32)) { reply(13) })
	first := r.edge(t)
	first.hints.Hint(t.Context(), 1, r.messages(t, 1, 60))
	eventually(t, "refusals", func() bool { return r.core.count() == 60 })
	if n := r.number(t, `SELECT count(*) FROM channel_breaker`); n != 0 {
		t.Fatal("open after 60 submits")
	}
	first.hints.Hint(t.Context(), 1, r.messages(t, 1, 60))
	is := func(state int) func() bool {
		return func() bool {
			return r.number(t, `SELECT coalesce(max(state), 0) FROM channel_breaker WHERE channel_id = 1`) == state
		}
	}
	eventually(t, "the breaker open, for everybody to see", is(1))
	eventually(t, "what was queued goes on", func() bool { return r.core.count() == 120 })
	if s := first.state(1); s.Breaker != settings.BreakerOpen.String() || s.Detail == "" || s.State != supplier.Open {
		t.Errorf("status %+v", s)
	}
	first.stop()
	r.exec(t, `UPDATE channel_breaker SET until = clock_timestamp()`)
	second := r.edge(t)
	eventually(t, "half-open", is(2))
	r.smsc.script(nil)
	second.hints.Hint(t.Context(), 1, r.messages(t, 1, 20))
	eventually(t, "closed", is(0))
	if s := second.state(1); s.Breaker != settings.BreakerClosed.String() {
		t.Errorf("status %+v", s)
	}
}

// What an operator has stopped is not dispatched, whatever was queued; the connections stay. The others go on.
func TestStopsHoldWhatTheyName(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	r.channel(t, 1, 1, 16)
	r.channel(t, 2, 1, 16)
	r.exec(t, `UPDATE channel SET access_number = '106' || id`)
	e := r.edge(t)
	eventually(t, "connections", func() bool { return e.active(1) == 1 && e.active(2) == 1 })
	of := func(enterprise int, channel, n int) {
		t.Helper()
		cmds := r.messages(t, channel, n)
		for i := range cmds {
			cmds[i].EnterpriseID = int32(enterprise)
			r.exec(t, `UPDATE submit_outbox SET enterprise_id = $2 WHERE id = $1`, cmds[i].SubmitID, enterprise)
		}
		e.hints.Hint(t.Context(), int32(channel), cmds)
	}
	want := 0
	step := func(what, stop string, enterprise, channel int, known func() bool, expect func(n int) bool) {
		t.Helper()
		r.set(t, stop)
		version := r.number(t, `SELECT version FROM settings_version`)
		eventually(t, what+" known", func() bool { return e.settings() >= int64(version) && known() })
		of(enterprise, channel, 30) // more than a window
		of(2, 2, 5)
		want += 5
		eventually(t, what+": the others", func() bool { return expect(r.core.count()) })
		r.set(t, `DELETE FROM dispatch_stop`)
		want += 30
		eventually(t, what+" lifted", func() bool { return r.core.count() == want })
	}
	always := func() bool { return true }
	others := func(n int) bool { return n == want }
	step("enterprise held", `INSERT INTO dispatch_stop (scope, id, mode) VALUES (2, 1, 1)`, 1, 2, always, others)
	step("application released", `INSERT INTO dispatch_stop (scope, id, mode) VALUES (3, 99, 2)`, 1, 1, always, func(n int) bool { return n == want+30 })
	step("channel locked", `INSERT INTO dispatch_stop (scope, id, mode) VALUES (4, 1, 1)`, 1, 1,
		func() bool { return e.state(1).State == supplier.Stopped }, func(n int) bool { return n == want && e.active(1) == 1 })
	r.set(t, `INSERT INTO dispatch_stop (scope, id, mode) VALUES (1, 0, 1)`)
	eventually(t, "everything stopped", func() bool { return e.state(1).State == supplier.Stopped && e.state(2).State == supplier.Stopped })
	before, _ := r.smsc.total()
	of(1, 1, 10)
	of(2, 2, 10)
	if n, _ := r.smsc.total(); n != before || e.active(1)+e.active(2) != 2 {
		t.Errorf("%d submits written while everything was stopped", n-before)
	}
	r.set(t, `DELETE FROM dispatch_stop`)
	eventually(t, "everything again", func() bool { return r.core.count() == want+20 })
	r.onceEach(t, want+20, 0)
}

// P11: a verification code behind 50,000 marketing messages of its channel is among the next two windows.
func TestVerificationCodePassesABacklog(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	r.channel(t, 1, 1, 16)
	release := r.smsc.hold()
	const backlog = 50_000
	r.exec(t, `INSERT INTO message (id, msg_id, price, phone, accept_session, accepted_at, created_at, enterprise_id, app_id, channel_id, units, price_version, state, bill, charge_on, refund_on, registered, fmt, udhi, pk_total, pk_number, accept_node, dest, src, service, content, lane)
		SELECT $1::bigint + i, $1::bigint + i, 325, 13800000000, 1, now(), now(), 1, 11, 1, 1, 1, 1, 1, 1, 1, 1, 0, 0, 1, 1, 1, '13800000000', '106955', '', convert_to('marketing ' || i, 'UTF8'), 2 FROM generate_series(1, $2::int) i`,
		r.first(t, backlog), backlog)
	r.exec(t, `INSERT INTO submit_outbox (id, pos, message_id, channel_id, enterprise_id, attempt, part, parts, lane) SELECT id, id, id, 1, 1, 1, 1, 1, 2 FROM message`)
	e := r.edge(t)
	eventually(t, "a full window and a full lane", func() bool { n, _ := r.smsc.total(); return n == 16 && e.state(1).Backlog == 64 })
	codes := r.messages(t, 1, 1)
	codes[0].Lane = 0
	r.exec(t, `UPDATE submit_outbox SET lane = 0 WHERE id = $1`, codes[0].SubmitID)
	e.hints.Hint(t.Context(), 1, codes)
	eventually(t, "the code known", func() bool { return e.state(1).Backlog == 65 })
	release(0)
	eventually(t, "the code answered", func() bool {
		r.core.mu.Lock()
		defer r.core.mu.Unlock()
		return len(r.core.results[codes[0].SubmitID]) == 1
	})
	r.smsc.mu.Lock()
	defer r.smsc.mu.Unlock()
	for i, s := range r.smsc.first {
		if string(s.MsgContent) == string(codes[0].Content) {
			if i >= 16+2*16 {
				t.Errorf("the code was submit %d, with 16 in flight when it came", i)
			}
			return
		}
	}
}

// P11: a channel whose supplier answers nothing, with all windows full and a backlog, does not hold up another one.
func TestSilentSupplierHoldsUpNobodyElse(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	r.channel(t, 1, 2, 64)
	r.channel(t, 2, 1, 4)
	r.exec(t, `UPDATE channel SET access_number = '10690' || id, drain_seconds = 0`)
	var silent atomic.Int64
	r.smsc.script(func(_ *peer, s *cmpp.Submit, reply func(uint32)) {
		if strings.HasPrefix(s.SrcID, "106901") {
			silent.Add(1)
			return
		}
		reply(0)
	})
	e := r.edge(t)
	eventually(t, "connections", func() bool { return e.active(1) == 2 && e.active(2) == 1 })
	e.hints.Hint(t.Context(), 1, r.messages(t, 1, 1000))
	eventually(t, "full windows", func() bool { return silent.Load() == 128 })
	for range 5 {
		e.hints.Hint(t.Context(), 2, r.messages(t, 2, 40))
	}
	eventually(t, "a result for each of the other channel", func() bool { return r.core.states()[event.Accepted] == 200 })
	if n := silent.Load(); n != 128 {
		t.Errorf("%d submits written to the silent supplier, its windows take 128", n)
	}
	e.kill()
}

// Channels that leave their account, or change it, take the rates of the new one.
func TestChannelMovesToAnotherAccount(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	r.account(t, 2, 2, 8)
	r.channel(t, 1, 1, 4)
	e := r.edge(t)
	eventually(t, "the connection", func() bool { return e.active(1) == 1 })
	e.hints.Hint(t.Context(), 1, r.messages(t, 1, 5))
	r.set(t, `UPDATE channel SET account_id = 2`)
	e.hints.Hint(t.Context(), 1, r.messages(t, 1, 5))
	eventually(t, "a result for each", func() bool { return r.core.count() == 10 })
	eventually(t, "open again", func() bool {
		r.smsc.mu.Lock()
		defer r.smsc.mu.Unlock()
		return r.smsc.logins == 2 && e.active(1) == 1
	})
	last := r.messages(t, 1, 1)
	eventually(t, "the account in the result", func() bool {
		r.core.mu.Lock()
		defer r.core.mu.Unlock()
		list := r.core.results[last[0].SubmitID]
		return len(list) == 1 && list[0].AccountID == 2
	})
	r.onceEach(t, 11, 0)
	if id := e.state(1).Connections[0].ID; !strings.HasPrefix(id, strconv.Itoa(int(e.node.Number))+"-1-") {
		t.Errorf("connection %q", id)
	}
}
