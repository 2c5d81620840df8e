package settlement_test

import (
	"testing"
	"time"

	"cmppgateway/gateway/internal/config"
	"cmppgateway/gateway/internal/message"
	"cmppgateway/gateway/internal/store"
)

// link says in the database what an edge knows of a channel: since when it is down, if it is, and its lease.
func (b *bench) link(tb testing.TB, channel int32, down, lease time.Duration) {
	tb.Helper()
	b.exec(tb, `INSERT INTO channel_lease (channel_id, node, epoch, fence, lease_until, down_since)
		VALUES ($1, 1, 1, 1, now() + $2::interval, CASE WHEN $3::interval > '0' THEN now() - $3::interval END)
		ON CONFLICT (channel_id) DO UPDATE SET lease_until = excluded.lease_until, down_since = excluded.down_since`, channel, lease, down)
}

func TestReroute(t *testing.T) {
	t.Parallel()
	const up, long, short, lapsed = time.Duration(0), 20 * time.Second, 2 * time.Second, -20 * time.Second
	for name, c := range map[string]struct {
		disable []int32
		links   func(*bench)
		to      int32 // 0 = it ends, as failed/ROUTE
	}{
		"up":                           {nil, func(b *bench) { b.link(b.t, 1, up, time.Minute); b.link(b.t, 2, up, time.Minute) }, 1},
		"disabled":                     {[]int32{1}, func(b *bench) { b.link(b.t, 2, up, time.Minute) }, 2},
		"disabled, the backup down":    {[]int32{1}, func(b *bench) { b.link(b.t, 2, long, time.Minute) }, 2},
		"disabled, no backup":          {[]int32{1, 2}, func(*bench) {}, 0},
		"down for long":                {nil, func(b *bench) { b.link(b.t, 1, long, time.Minute); b.link(b.t, 2, up, time.Minute) }, 2},
		"down for long, no other up":   {nil, func(b *bench) { b.link(b.t, 1, long, time.Minute); b.link(b.t, 2, long, time.Minute) }, 1},
		"down for long, the other off": {[]int32{2}, func(b *bench) { b.link(b.t, 1, long, time.Minute); b.link(b.t, 2, up, time.Minute) }, 1},
		"down for a moment":            {nil, func(b *bench) { b.link(b.t, 1, short, time.Minute); b.link(b.t, 2, up, time.Minute) }, 1},
		"owner gone":                   {nil, func(b *bench) { b.link(b.t, 1, up, lapsed); b.link(b.t, 2, up, time.Minute) }, 2},
		"not opened yet":               {nil, func(b *bench) { b.link(b.t, 2, up, time.Minute) }, 1},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := setup(t)
			m, dispatched := b.queue(t, spec{}), b.send(t, spec{})
			b.t = t
			c.links(b)
			b.exec(t, `UPDATE channel SET enabled = false WHERE id = ANY($1)`, c.disable)
			b.refresh(t)
			b.sweep(t)
			b.sweep(t)
			if n := b.count(t, `SELECT count(*) FROM submit_outbox WHERE id = $1 AND state = 1`, dispatched.submit); n != 1 {
				t.Error("a dispatched command was withdrawn")
			}
			next, waits := b.follow(t, m)
			switch {
			case c.to == 0:
				b.want(t, m, message.Failed, message.Released, "NOROUTE")
				if waits || b.receipts(t, m) != 1 {
					t.Errorf("command left %t, %d receipts", waits, b.receipts(t, m))
				}
			case next.channel != c.to || next.attempt != 1:
				t.Errorf("on channel %d as attempt %d, want %d and 1", next.channel, next.attempt, c.to)
			case c.to == 1 && next.submit != m.submit:
				t.Error("the command was replaced although it stays")
			case c.to != 1:
				if n := b.count(t, `SELECT retry_of FROM submit_outbox WHERE id = $1`, next.submit); n != m.submit {
					t.Errorf("linked to %d, want %d", n, m.submit)
				}
				if len(b.hints.cmds) != 1 || b.hints.cmds[0].SubmitID != next.submit || b.hints.cmds[0].ChannelID != c.to {
					t.Errorf("hinted: %+v", b.hints.cmds)
				}
				b.dispatch(t, next.submit)
				b.accept(t, next, 5)
				b.want(t, m, message.Submitted, message.Charged, "")
			}
			b.books(t)
		})
	}
}

// A resend that is moved keeps its place in the chain: it does not go back to who refused it while there is another.
func TestRerouteKeepsTheChain(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.exec(t, `INSERT INTO channel_group_member (group_id, channel_id, priority) VALUES (1, 3, 2)`)
	b.refresh(t)
	m := b.send(t, spec{})
	b.reject(t, m, 8)
	b.exec(t, `UPDATE channel SET enabled = false WHERE id = 2`)
	b.refresh(t)
	b.sweep(t)
	moved, _ := b.follow(t, m)
	if moved.channel != 3 || moved.attempt != 2 {
		t.Fatalf("on channel %d as attempt %d, want 3 and 2", moved.channel, moved.attempt)
	}
	b.dispatch(t, moved.submit)
	b.reject(t, moved, 8)
	if last := b.next(t, moved); last.channel != 3 || last.attempt != 3 {
		t.Errorf("then on channel %d as attempt %d, want 3 again and 3", last.channel, last.attempt)
	}
	b.books(t)
}

// More commands than one transaction takes.
func TestSweepsGoOn(t *testing.T) {
	t.Parallel()
	b := setup(t)
	for range 450 {
		b.queue(t, spec{})
	}
	b.exec(t, `UPDATE message SET valid_until = now() - interval '1 s' WHERE id % 2 = 0`)
	b.sweep(t)
	if n := b.count(t, `SELECT count(*) FROM submit_outbox o JOIN message m ON m.id = o.message_id WHERE m.id % 2 = 0`); n != 0 {
		t.Errorf("%d expired commands left", n)
	}
	b.exec(t, `UPDATE channel SET enabled = false WHERE id = 1`)
	b.refresh(t)
	b.sweep(t)
	if n := b.count(t, `SELECT count(*) FROM submit_outbox WHERE channel_id = 1`); n != 0 {
		t.Errorf("%d commands of the disabled channel left", n)
	}
	b.books(t)
}

// A dispatched command without an outcome becomes unknown once its answer is overdue, and its late answer still counts.
func TestOverdueAnswers(t *testing.T) {
	t.Parallel()
	b := setup(t)
	fresh, stale, orphan := b.send(t, spec{}), b.send(t, spec{}), b.send(t, spec{})
	b.exec(t, `UPDATE submit_outbox SET at = now() - interval '71 s' WHERE id <> $1`, fresh.submit)
	b.exec(t, `UPDATE submit_outbox SET node = 200 WHERE id = $1`, orphan.submit) // of a node that is not alive: its adopter's
	b.sweep(t)
	b.want(t, fresh, message.Checked, message.Frozen, "")
	b.want(t, orphan, message.Checked, message.Frozen, "")
	b.want(t, stale, message.Unknown, message.Frozen, "")
	if n := b.count(t, `SELECT count(*) FROM unknown_submit WHERE submit_id = $1 AND supplier_account = 1`, stale.submit); n != 1 {
		t.Errorf("%d unknown submits, want 1", n)
	}
	b.accept(t, stale, 7)
	b.want(t, stale, message.Submitted, message.Charged, "")
	if n := b.count(t, `SELECT count(*) FROM unknown_submit`); n != 0 {
		t.Errorf("%d unknown submits left", n)
	}
	b.books(t)
}

// A sweep that met a command before the barrier took it leaves it to the barrier.
func TestSweepsYieldToTheBarrier(t *testing.T) { //nolint:tparallel // the cases share a database
	t.Parallel()
	b := setup(t)
	for name, sweepable := range map[string]string{
		"expired":  `UPDATE message SET valid_until = now() - interval '1 s' WHERE id = $1`,
		"disabled": `UPDATE submit_outbox SET channel_id = 9 WHERE message_id = $1`,
	} {
		t.Run(name, func(t *testing.T) {
			m := b.queue(t, spec{})
			b.exec(t, sweepable, m.message)
			tx, err := b.Begin(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			if _, err := tx.Exec(t.Context(), store.SupplierBarrier, []int64{m.submit}, b.id(t), b.node.Number); err != nil {
				t.Fatal(err)
			}
			swept := make(chan error, 1)
			go func() { swept <- b.Sweep(t.Context()) }()
			for b.count(t, `SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() AND wait_event_type = 'Lock'`) == 0 {
				select {
				case err := <-swept:
					t.Fatalf("the sweep did not wait: %v", err)
				case <-time.After(5 * time.Millisecond):
				}
			}
			if err := tx.Commit(t.Context()); err != nil {
				t.Fatal(err)
			}
			if err := <-swept; err != nil {
				t.Fatal(err)
			}
			b.want(t, m, message.Checked, message.Frozen, "")
			if n := b.count(t, `SELECT count(*) FROM submit_outbox WHERE message_id = $1 AND state = 1`, m.message); n != 1 {
				t.Error("the dispatched command is gone")
			}
			b.accept(t, m, uint64(m.submit))
		})
	}
	b.books(t)
}

// A dispatched command that its owner takes back while the sweep waits for it is pending again, and no unknown submit.
func TestSweepYieldsToTheOwner(t *testing.T) {
	t.Parallel()
	b := setup(t)
	m := b.queue(t, spec{})
	batch := b.id(t)
	b.exec(t, store.SupplierBarrier, []int64{m.submit}, batch, b.node.Number)
	b.exec(t, `UPDATE submit_outbox SET at = now() - interval '80 s'`)
	tx, err := b.Begin(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if _, err := tx.Exec(t.Context(), store.SupplierUndispatch, []int64{m.submit}, b.node.Number, batch); err != nil {
		t.Fatal(err)
	}
	swept := make(chan error, 1)
	go func() { swept <- b.Sweep(t.Context()) }()
	for b.count(t, `SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() AND wait_event_type = 'Lock'`) == 0 {
		select {
		case err := <-swept:
			t.Fatalf("the sweep did not wait: %v", err)
		case <-time.After(5 * time.Millisecond):
		}
	}
	if err := tx.Commit(t.Context()); err != nil {
		t.Fatal(err)
	}
	if err := <-swept; err != nil {
		t.Fatal(err)
	}
	b.want(t, m, message.Checked, message.Frozen, "")
	if next, waits := b.follow(t, m); !waits || next.submit != m.submit {
		t.Error("the command is gone")
	}
	if n := b.count(t, `SELECT count(*) FROM submit_exception`); n != 0 {
		t.Errorf("%d exceptions, want none", n)
	}
}

// At the bound of parked receipts those of the account that has most of them are not taken, and what waits is counted.
func TestParkingIsBounded(t *testing.T) {
	t.Parallel()
	b := setup(t, func(c *config.Config) { c.Settlement.ParkedMax, c.Settlement.UnknownAlert = 100, time.Minute })
	old, young := b.send(t, spec{}), b.send(t, spec{})
	b.exec(t, `UPDATE submit_outbox SET at = now() - interval '10 min' WHERE id = $1`, old.submit)
	b.lose(t, old)
	b.lose(t, young)
	park := func(account int32, from, to int) {
		t.Helper()
		b.exec(t, `INSERT INTO receipt_parked (event_id, supplier_msg_id, phone, at, next_try_at, supplier_account, stat, submit_time, done_time)
			SELECT i, i, 0, now(), now() + interval '1 h', $1, 'DELIVRD', '', '' FROM generate_series($2::int, $3::int) i`, account, from, to)
	}
	for _, c := range []struct {
		account  int32
		from, to int
		full     [4]bool // of accounts 1, 2, 3 and one without any
	}{
		{1, 1, 90, [4]bool{}},
		{2, 101, 109, [4]bool{}},
		{3, 201, 201, [4]bool{true, false, false, false}},
		{2, 301, 400, [4]bool{true, true, false, false}},
	} {
		park(c.account, c.from, c.to)
		b.sweep(t)
		for i, want := range c.full {
			if got := b.Full(int32(i + 1)); got != want {
				t.Errorf("after %d..%d: account %d full %t, want %t", c.from, c.to, i+1, got, want)
			}
		}
	}
	b.exec(t, `DELETE FROM receipt_parked WHERE event_id > 10`)
	b.sweep(t)
	if b.Full(1) {
		t.Error("full still")
	}
	if got := b.waiting(t); got["unknown"] != 2 || got["overdue"] != 1 || got["parked"] != 10 || got["refused_part"] != 0 {
		t.Errorf("gauges %v", got)
	}
}

// waiting is the gauge of what waits, by place.
func (b *bench) waiting(tb testing.TB) map[string]float64 {
	tb.Helper()
	families, err := b.registry.Gather()
	if err != nil {
		tb.Fatal(err)
	}
	got := map[string]float64{}
	for _, f := range families {
		if f.GetName() == "cmppgw_settlement_waiting" {
			for _, m := range f.GetMetric() {
				got[m.GetLabel()[0].GetValue()] = m.GetGauge().GetValue()
			}
		}
	}
	return got
}
