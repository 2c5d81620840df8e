package delivery_test

import (
	"runtime"
	"testing"
	"time"

	"cmppgateway/gateway/cmpp"
	"cmppgateway/gateway/internal/session"
)

// Receipts gather while the customers are away, half of them were in flight when the connections broke, and more come while
// they are taken: each reaches its customer once, at the first try, and no goroutine is made for any of them.
// Not parallel: it counts the goroutines of the process.
//
//nolint:paralleltest // see above
func TestReceiptStorm(t *testing.T) {
	const apps, each, window = 4, 1000, 32
	b := setup(t)
	b.cfg.DeliverWindow = window
	p := b.boot(t)
	connect := func(answer answers) (list []*customer) {
		for app := int32(1); app <= apps; app++ {
			for range 2 {
				list = append(list, p.connectWith(t, app, cmpp.V30, session.Config{Window: window}, answer))
			}
		}
		return list
	}
	first := connect(silence)
	for app := int32(1); app <= apps; app++ {
		b.many(t, p, app, each)
	}
	p.nudge()
	for _, c := range first {
		c.next() // something is in flight on each
	}
	for _, c := range first {
		c.end()
	}
	eventually(t, "what was in flight is back, and cost nothing", func() bool {
		return b.count(t, "SELECT count(*) FROM delivery WHERE claim IS NULL AND attempts = 0") == apps*each
	})
	calm := runtime.NumGoroutine()
	links := connect(accept)
	most := 0
	seen := map[cmpp.MsgID]bool{}
	second := make([]int, apps*2)
	for app := int32(1); app <= apps; app++ {
		b.many(t, p, app, each)
		p.nudge()
	}
	limit := time.Now().Add(2 * patience)
	for len(seen) < 2*apps*each {
		for i, c := range links {
			for more := true; more; {
				select {
				case d := <-c.delivers:
					second[i]++
					if seen[d.MsgID] {
						t.Fatalf("DELIVER %d came twice", d.MsgID)
					}
					seen[d.MsgID] = true
				default:
					more = false
				}
			}
		}
		most = max(most, runtime.NumGoroutine())
		if time.Now().After(limit) {
			t.Fatalf("%d of %d receipts came", len(seen), 2*apps*each)
		}
		time.Sleep(time.Millisecond)
	}
	eventually(t, "all acknowledged", func() bool { return b.count(t, "SELECT count(*) FROM delivery") == 0 })
	// Both ends of a connection have a handful of goroutines; the database's pool has a few of its own.
	if extra, bound := most-calm, 8*len(links)+16; extra > bound {
		t.Errorf("%d goroutines more during the storm, want at most %d", extra, bound)
	}
	for i, n := range second {
		if n == 0 {
			t.Errorf("connection %d got nothing", i)
		}
	}
	if n := p.value(t, "cmppgw_delivery_duplicates_total"); n != 0 {
		t.Errorf("%v DELIVERs were repeated", n)
	}
}

// A customer that reads nothing fills its own windows, and nothing else; its end costs no budget.
func TestCustomerThatNeverReads(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.cfg.DeliverWindow = 256
	p := b.boot(t)
	deaf, c := p.connect(t, 1, cmpp.V30, nil), p.connect(t, 2, cmpp.V30, accept)
	const n = 600
	b.many(t, p, 1, n)
	b.many(t, p, 2, n)
	p.nudge()
	for range n {
		c.next()
	}
	eventually(t, "rows gone", func() bool { return b.rows(t, 2) == 0 })
	eventually(t, "its window is full", func() bool { return deaf.server.Free() == 0 })
	deaf.end()
	eventually(t, "everything is back", func() bool {
		return b.count(t, "SELECT count(*) FROM delivery WHERE app_id = 1 AND claim IS NULL AND attempts = 0") == n
	})
}

// The oldest deliveries of an application that has too many are dead letters; nobody else's are.
func TestTooManyWait(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.cfg.BacklogMax, b.cfg.Sweep = 500, 20*time.Millisecond
	p := b.boot(t)
	b.many(t, p, 1, 800)
	b.many(t, p, 2, 400)
	b.many(t, p, 7, 501)
	eventually(t, "the bound is kept", func() bool {
		return b.rows(t, 1) == 500 && b.rows(t, 7) == 500 && p.value(t, "cmppgw_delivery_waiting") == 1400 && p.value(t, "cmppgw_delivery_waiting_most") == 500
	})
	if n := b.count(t, "SELECT count(*) FROM dead_letter WHERE kind = 'delivery' AND reason LIKE 'too many%'"); n != 301 || b.rows(t, 2) != 400 {
		t.Errorf("%d dead letters, %d rows of an application that has not too many", n, b.rows(t, 2))
	}
	if n := b.count(t, "SELECT count(*) FROM dead_letter l WHERE id > (SELECT min(id) FROM delivery WHERE app_id = (convert_from(l.raw, 'UTF8')::jsonb->>'app_id')::int)"); n != 0 {
		t.Errorf("%d were not the oldest", n)
	}
}
