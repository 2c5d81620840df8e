package inbound_test

import (
	"sync"
	"testing"

	"cmppgateway/gateway/cmpp"
)

// Who was told that an answer is not written yet is told when it is, for each recipient, and when it never will be.
func TestWhoAskedIsToldWhenTheAnswerIsWritten(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.start(t)
	sessions := b.server.Sessions()
	var mu sync.Mutex
	told := map[cmpp.MsgID]bool{}
	sessions.OnWritten(func(ids []cmpp.MsgID) {
		mu.Lock()
		defer mu.Unlock()
		for _, id := range ids {
			told[id] = true
		}
	})
	// asked finds the ids that are held, by trying the first ones of the last seconds.
	asked := func(n int) (ids []cmpp.MsgID) {
		t.Helper()
		eventually(t, "ids held", func() bool {
			next, err := b.node.MsgIDs.Take(t.Context(), 1)
			if err != nil {
				t.Fatal(err)
			}
			ids = ids[:0]
			for k := range cmpp.MsgID(70) { // 64 values of the second's 6 bits are a minute
				for i := range cmpp.MsgID(1024) {
					if id := next&^0xFFFF - k<<38 + i; sessions.Unwritten(id) {
						ids = append(ids, id)
					}
				}
			}
			return len(ids) == n
		})
		return ids
	}
	all := func(ids []cmpp.MsgID) func() bool {
		return func() bool {
			mu.Lock()
			defer mu.Unlock()
			for _, id := range ids {
				if !told[id] {
					return false
				}
			}
			return true
		}
	}
	c := b.customer(t, cmpp.V30)
	c.accepted(sms(numbers(2)...)) // nobody asked
	unlock := b.lock(t)
	c.submit(sms(numbers(3)...))
	ids := asked(3)
	if all(ids[:1])() {
		t.Error("told before")
	}
	unlock()
	if _, resp := c.answer(); resp.Result != 0 {
		t.Fatalf("result %d", resp.Result)
	}
	eventually(t, "written", all(ids))
	unlock = b.lock(t)
	c.submit(sms())
	ids = asked(1)
	_ = c.conn.Close()
	unlock()
	eventually(t, "never written", all(ids))
	mu.Lock()
	defer mu.Unlock()
	if len(told) != 4 {
		t.Errorf("%d were told, 4 asked for", len(told))
	}
}

// An answer to no DELIVER of its connection is handed on with the application that gave it, and harms nothing.
func TestStrayAnswersAreHandedOn(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.start(t)
	type stray struct {
		app int32
		p   cmpp.DeliverResp
	}
	got := make(chan stray, 1)
	b.server.Sessions().OnStray(func(app int32, p *cmpp.DeliverResp) { got <- stray{app, *p} })
	c := b.customer(t, cmpp.V30)
	c.send(4711, &cmpp.DeliverResp{MsgID: 5, Result: 1})
	if s := <-got; s.app != 11 || s.p.MsgID != 5 || s.p.Result != 1 {
		t.Errorf("handed on: %+v", s)
	}
	c.accepted(sms())
}
