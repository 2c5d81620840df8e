package ismg

import (
	"cmp"
	"maps"
	"slices"
	"time"

	"cmppgateway/simulator/internal/wire"
)

// end starts an orderly end: what is queued in front still goes.
func (c *conn) end(reason string) {
	now := c.srv.clock.Now()
	c.detach(connEnding, reason, now)
	c.due.Push(now+int64(c.srv.timers.Drain), item{kind: itemClose})
	c.signal()
}

// terminate says TERMINATE and closes on its answer or after Timers.Drain.
func (c *conn) terminate() {
	if c.state != connLive {
		c.shut()
		return
	}
	c.seq++
	c.raw(wire.Terminate, c.seq, nil)
	c.end("terminated")
}

// cut loses the connection in the given way.
func (c *conn) cut(how Cut, now int64) {
	reason := "cut: " + how.String()
	switch how {
	case NoCut:
	case RST:
		c.detach(connClosed, reason, now)
		if l, ok := c.sock.(interface{ SetLinger(sec int) error }); ok {
			_ = l.SetLinger(0)
		}
		c.shut()
	case FIN:
		c.detach(connCut, reason, now)
		if w, ok := c.sock.(interface{ CloseWrite() error }); ok {
			_ = w.CloseWrite()
			_ = c.sock.SetReadDeadline(time.Now().Add(finTimeout))
		} else {
			c.shut()
		}
	case Silence:
		c.detach(connSilent, reason, now)
		_ = c.sock.SetReadDeadline(time.Unix(1, 0))
	}
	c.signal()
}

// detach takes the connection out of its account: unanswered SUBMITs stay
// unanswered (accepted ones are still reported on), reports move on.
func (c *conn) detach(state connState, reason string, now int64) {
	a := c.acct
	was := c.state
	if state > was {
		c.state = state
	}
	if c.reason == "" {
		c.reason = reason
	}
	switch state {
	case connLive, connEnding:
	case connSilent:
		c.silent = now
	case connCut, connClosed:
		if c.closed == 0 {
			c.closed = now
		}
	}
	if was != connLive {
		return
	}
	a.live = slices.DeleteFunc(a.live, func(o *conn) bool { return o == c })
	moved := c.waiting
	c.waiting = nil
	for _, d := range c.delivers {
		if d.holder == c {
			d.holder = nil
			if d.acked == 0 && d.tries < c.srv.timers.DeliverTries {
				moved = append(moved, d)
			}
		}
	}
	c.delivering = 0
	for {
		due, ok := c.due.Next()
		if !ok {
			break
		}
		if it, _ := c.due.Pop(due); it.kind == itemDeliver {
			a.schedule(it.del, max(due, now))
		}
	}
	slices.SortFunc(moved, func(x, y *delivery) int { return cmp.Compare(x.id, y.id) })
	for _, d := range moved {
		a.schedule(d, now)
	}
	lost := slices.SortedFunc(maps.Values(c.inflight), func(x, y *submit) int {
		return cmp.Or(cmp.Compare(x.Recv, y.Recv), cmp.Compare(x.Seq, y.Seq))
	})
	clear(c.inflight)
	c.counted, c.lost = 0, len(lost)
	for _, sub := range lost {
		a.finish(sub, now)
	}
}
