package settlement_test

import (
	"testing"
	"time"

	"cmppgateway/gateway/internal/message"
)

// A command waits as long as its class of traffic allows, counted from its first time in the queue.
func TestCommandsThatWaitedTooLongExpire(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.link(t, 1, 0, time.Minute)
	for lane, limit := range []time.Duration{time.Minute, 10 * time.Minute, 4 * time.Hour} {
		fresh, old, moved := b.queue(t, spec{}), b.queue(t, spec{}), b.queue(t, spec{})
		dispatched := b.send(t, spec{})
		b.exec(t, `UPDATE submit_outbox SET lane = $1`, lane)
		past := message.FirstID(time.Now().Add(-limit - time.Second))
		young := message.FirstID(time.Now().Add(30*time.Second - limit))
		b.exec(t, `UPDATE submit_outbox SET id = $2, pos = $2 WHERE id = $1`, fresh.submit, young+int64(lane))
		b.exec(t, `UPDATE submit_outbox SET id = $2, pos = $2 WHERE id = $1`, old.submit, past)
		b.exec(t, `UPDATE submit_outbox SET retry_of = $2 WHERE id = $1`, moved.submit, past)
		b.exec(t, `UPDATE submit_outbox SET retry_of = $2 WHERE id = $1`, dispatched.submit, past)
		b.sweep(t)
		for _, m := range []struct {
			what string
			sent
			left bool
		}{{"fresh", fresh, true}, {"old", old, false}, {"moved", moved, false}, {"dispatched", dispatched, true}} {
			if n := b.count(t, `SELECT count(*) FROM submit_outbox WHERE message_id = $1`, m.message); (n == 1) != m.left {
				t.Errorf("lane %d, %s: %d commands left", lane, m.what, n)
			}
			if !m.left {
				b.want(t, m.sent, message.Expired, message.Released, "EXPIRED")
				if n := b.receipts(t, m.sent); n != 1 {
					t.Errorf("lane %d, %s: %d receipts", lane, m.what, n)
				}
			}
		}
		b.exec(t, `DELETE FROM submit_outbox WHERE message_id = ANY($1)`, []int64{dispatched.message})
	}
	b.books(t)
}

func TestWhatIsStoppedEndsOrWaits(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		stop  string
		ended bool // of application 11, enterprise 1
	}{
		"nothing":              {`SELECT`, false},
		"application disabled": {`UPDATE application SET status = 2 WHERE id = 11`, true},
		"enterprise disabled":  {`UPDATE enterprise SET status = 2 WHERE id = 1`, true},
		"application released": {`INSERT INTO dispatch_stop (scope, id, mode) VALUES (3, 11, 2)`, true},
		"enterprise released":  {`INSERT INTO dispatch_stop (scope, id, mode) VALUES (2, 1, 2)`, true},
		"enterprise held":      {`INSERT INTO dispatch_stop (scope, id, mode) VALUES (2, 1, 1)`, false},
		"platform held":        {`INSERT INTO dispatch_stop (scope, id, mode) VALUES (1, 0, 1)`, false},
		"platform released":    {`INSERT INTO dispatch_stop (scope, id, mode) VALUES (1, 0, 2)`, true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := setup(t)
			b.link(t, 1, 0, time.Minute)
			b.link(t, 3, 0, time.Minute)
			m, dispatched, other := b.queue(t, spec{}), b.send(t, spec{}), b.queue(t, spec{app: 14, channel: 3})
			b.exec(t, c.stop)
			b.refresh(t)
			b.sweep(t)
			if !c.ended {
				b.want(t, m, message.Checked, message.Frozen, "")
			} else {
				b.want(t, m, message.Failed, message.Released, "STATUS")
				if n := b.receipts(t, m); n != 1 {
					t.Errorf("%d receipts", n)
				}
			}
			b.want(t, dispatched, message.Checked, message.Frozen, "")
			b.accept(t, dispatched, 5)
			b.want(t, dispatched, message.Submitted, message.Charged, "")
			if name != "platform released" {
				b.want(t, other, message.Checked, message.Frozen, "")
			}
			b.books(t)
		})
	}
}

// What waits for a channel that is locked or refuses too much goes elsewhere while it can, and else waits: the lock of an
// operator and the state of the breaker hold although the channel has connections.
func TestCommandsLeaveAChannelThatIsPassedOver(t *testing.T) {
	t.Parallel()
	const (
		lock    = `INSERT INTO dispatch_stop (scope, id, mode) VALUES (4, 1, 1)`
		release = `INSERT INTO dispatch_stop (scope, id, mode) VALUES (4, 1, 2)`
		breaker = `INSERT INTO channel_breaker (channel_id, state, node, until) VALUES (1, 1, 1, now() + interval '1 min')`
		trial   = `INSERT INTO channel_breaker (channel_id, state, node, until) VALUES (1, 2, 1, now())`
		range0  = `UPDATE channel SET window_size = 65 WHERE id = 1`
		backup  = `INSERT INTO channel_breaker (channel_id, state, node, until) VALUES (2, 1, 1, now() + interval '1 min')`
	)
	for name, c := range map[string]struct {
		state []string
		to    int32 // 0 = it ends with ROUTE
	}{
		"locked":                         {[]string{lock}, 2},
		"locked, the backup off":         {[]string{lock, `UPDATE channel SET enabled = false WHERE id = 2`}, 1},
		"released, the backup off":       {[]string{release, `UPDATE channel SET enabled = false WHERE id = 2`}, 0},
		"released":                       {[]string{release}, 2},
		"breaker open":                   {[]string{breaker}, 2},
		"breaker open, the backup's too": {[]string{breaker, backup}, 1},
		"on trial":                       {[]string{trial}, 1},
		"out of range":                   {[]string{range0}, 2},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := setup(t)
			b.link(t, 1, 0, time.Minute)
			b.link(t, 2, 0, time.Minute)
			m := b.queue(t, spec{})
			for _, sql := range c.state {
				b.exec(t, sql)
			}
			b.refresh(t)
			b.sweep(t)
			b.sweep(t)
			next, waits := b.follow(t, m)
			switch {
			case c.to == 0:
				b.want(t, m, message.Failed, message.Released, "NOROUTE")
			case !waits || next.channel != c.to:
				t.Errorf("on channel %d (%t), want %d", next.channel, waits, c.to)
			}
			b.books(t)
		})
	}
}
