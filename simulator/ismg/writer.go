package ismg

import (
	"context"
	"log/slog"
	"time"

	"cmppgateway/gateway/cmpp"
	"cmppgateway/simulator/internal/wire"
)

// write is the connection's writer. Each round takes everything due into one
// buffer and hands it to the kernel at once.
func (c *conn) write() {
	a, clock := c.acct, c.srv.clock
	timer := time.NewTimer(time.Hour)
	defer timer.Stop()
	for {
		now := clock.Now()
		a.mu.Lock()
		next, more := c.collect(now)
		a.mu.Unlock()
		if len(c.buf) > 0 {
			at := clock.Now()
			n, err := c.send(c.buf)
			a.mu.Lock()
			c.wrote(n, at)
			a.mu.Unlock()
			if err != nil {
				c.shut() // the reader gives the reason
				return
			}
		}
		if !more {
			return
		}
		timer.Reset(clock.Until(next))
		select {
		case <-c.wake:
		case <-timer.C:
		case <-c.over:
			return
		}
	}
}

// send writes b, whole or in pieces.
func (c *conn) send(b []byte) (n int, err error) {
	c.acct.mu.Lock()
	piece := len(b)
	if c.acct.split {
		piece = splitSize
	}
	c.acct.mu.Unlock()
	_ = c.sock.SetWriteDeadline(time.Now().Add(writeTimeout))
	for n < len(b) && err == nil {
		var m int
		m, err = c.sock.Write(b[n:min(n+piece, len(b))])
		n += m
	}
	c.out.Add(int64(n))
	return n, err
}

// collect fills buf and batch with what is due. It returns when the next thing
// is due; more is false when the writer is done.
func (c *conn) collect(now int64) (next int64, more bool) {
	c.batch = c.batch[:0]
	c.buf = append(c.buf[:0], c.urgent...)
	c.urgent = c.urgent[:0]
	switch c.state {
	case connEnding:
		// Nothing but what is queued already: the peer is going.
	case connCut, connSilent, connClosed:
		c.buf = c.buf[:0]
		return 0, false
	case connLive:
	}
	for len(c.buf) < maxBatch {
		it, ok := c.due.Pop(now)
		if !ok {
			break
		}
		switch it.kind {
		case itemAnswer:
			c.answer(it.sub, now)
		case itemDeliver:
			c.deliver(it.del, now)
		case itemRetry:
			c.retry(it.del, it.try, now)
		case itemProbe:
			c.probe(now)
		case itemClose:
			c.shut()
		case itemFrame:
			h := it.frame
			c.obey(wire.Frame{Command: h.command, Sequence: h.seq, Body: h.body}, now)
			c.buf = append(c.buf, c.urgent...)
			c.urgent = c.urgent[:0]
		}
		if c.state != connLive && c.state != connEnding {
			// An answer, or a link test, ended the connection: what comes
			// after it is not written.
			break
		}
	}
	if c.state != connLive && c.state != connEnding {
		return 0, false
	}
	next, ok := c.due.Next()
	if !ok {
		next = now + int64(time.Hour)
	}
	return next, true
}

// answer writes the SUBMIT_RESP of sub, or what its plan has in place of it.
func (c *conn) answer(sub *submit, now int64) {
	t := sub.todo
	if t == nil {
		return
	}
	if t.early > 0 {
		t.ready = true
		return
	}
	if t.plan.Cut != NoCut {
		c.cut(t.plan.Cut, now)
		return
	}
	// Out of the window before the octets leave: the peer's next SUBMIT may be
	// here before the write returns.
	c.settled(sub)
	p := cmpp.SubmitResp{MsgID: cmpp.MsgID(sub.MsgID), Result: sub.Result}
	for range t.plan.Answers {
		frame, err := p.Append(c.buf, cmpp.Version(c.version), sub.Seq+t.plan.SeqShift)
		if err != nil {
			c.srv.log.LogAttrs(context.Background(), slog.LevelError, "answer not encodable", slog.Any("error", err))
			return
		}
		c.buf = frame
	}
	c.batch = append(c.batch, written{end: len(c.buf), sub: sub})
}

// settled takes sub out of the unanswered ones.
func (c *conn) settled(sub *submit) {
	if c.inflight[sub.Seq] != sub {
		return
	}
	delete(c.inflight, sub.Seq)
	if sub.todo == nil || !sub.todo.plan.Uncounted {
		c.counted--
	}
}

// deliver writes the DELIVER of d, or keeps it for a slot of the window.
func (c *conn) deliver(d *delivery, now int64) {
	if d.acked != 0 && !d.replay {
		return
	}
	if c.delivering >= c.acct.spec.Window {
		c.waiting = append(c.waiting, d)
		return
	}
	c.seq++
	frame, err := c.appendDeliver(c.buf, d, c.seq, now)
	if err != nil {
		c.srv.log.LogAttrs(context.Background(), slog.LevelError, "deliver not encodable", slog.Any("error", err))
		return
	}
	c.buf = frame
	c.delivers[c.seq] = d
	c.delivering++
	c.deliverPeak = max(c.deliverPeak, c.delivering)
	d.holder, d.conn, d.replay = c, c.id, false
	d.tries++
	c.due.Push(now+int64(c.srv.timers.DeliverTimeout), item{kind: itemRetry, del: d, try: d.tries})
	c.batch = append(c.batch, written{end: len(c.buf), del: d})
}

// retry gives up waiting for the answer to a transmission of d.
func (c *conn) retry(d *delivery, try int, now int64) {
	if d.holder != c || d.tries != try {
		return
	}
	d.holder = nil
	c.delivering--
	c.pump(now)
	if d.tries < c.srv.timers.DeliverTries {
		c.acct.schedule(d, now)
	}
}

// probe tests a silent link and closes a dead one.
func (c *conn) probe(now int64) {
	t := &c.srv.timers
	idle := c.heard + int64(t.ActiveTest) + int64(c.tests)*int64(t.ActiveTestTimeout)
	if now >= idle {
		if c.tests >= t.ActiveTestTries {
			c.detach(connClosed, "active test unanswered", now)
			c.shut()
			return
		}
		c.tests++
		c.seq++
		c.rawTest()
		idle += int64(t.ActiveTestTimeout)
	}
	c.due.Push(max(idle, now+1), item{kind: itemProbe})
}

// rawTest appends an ACTIVE_TEST to the writer's buffer.
func (c *conn) rawTest() {
	frame, err := (&cmpp.ActiveTest{}).Append(c.buf, cmpp.Version(c.version), c.seq)
	if err == nil {
		c.buf = frame
	}
}

// wrote books the frames of which all octets were taken by the kernel at at.
func (c *conn) wrote(n int, at int64) {
	a := c.acct
	for _, w := range c.batch {
		sent := w.end <= n
		if sub := w.sub; sub != nil {
			if sent {
				sub.Sent = at
				for _, other := range sub.also() {
					other.Sent = at
				}
			}
			a.finish(sub, at)
			continue
		}
		d := w.del
		if sent {
			d.last = at
			if d.first == 0 {
				d.first = at
			}
			if d.sub != nil && d.sub.Stat == "" {
				d.sub.Stat = d.stat
			}
		}
		if d.early && d.tries == 1 {
			d.sub.conn.earlyWritten(d.sub, at)
		}
	}
}

func (s *submit) also() []*submit {
	if s.todo == nil {
		return nil
	}
	return s.todo.also
}

// earlyWritten lets the answer of sub go when its last early report has gone.
func (c *conn) earlyWritten(sub *submit, now int64) {
	t := sub.todo
	if t == nil {
		return
	}
	t.early--
	if t.early == 0 && t.ready {
		c.push(now, item{kind: itemAnswer, sub: sub})
	}
}
