package sp

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"cmppgateway/gateway/cmpp"
	"cmppgateway/simulator/internal/wire"
)

const (
	loginTimeout = 10 * time.Second
	writeTimeout = 30 * time.Second
	byeTimeout   = time.Second
	idleTries    = 3
)

// link is one live connection. Its reader is the goroutine of Client.keep, its
// writer another. mu of the client guards what is not said otherwise.
type link struct {
	c            *Client
	sock         net.Conn
	id           uint64
	index        int
	version      uint8
	wake         chan struct{} // capacity 1
	over         chan struct{} // closed with the socket
	close        sync.Once
	in, bytesOut atomic.Int64

	ending   bool
	detached bool
	out      []*op          // have a slot, not written yet
	pending  map[uint32]*op // written or being written, unanswered
	used     int            // slots: out plus the pending that have not timed out
	acks     []ack
	urgent   []byte // whole frames to go first
	seq      uint32
	heard    int64
	tests    int

	opened, closed       int64
	reason               string
	submits, activeTests int
	inflightPeak         int

	buf   []byte   // of the writer
	batch []mark   // of the writer
	one   []string // of the writer
	nudge bool     // of the reader: there is something to write
}

// ack is a DELIVER to answer.
type ack struct {
	seq     uint32
	id      uint64
	receipt *Receipt
	uplink  *Uplink
}

// mark is a frame in the writer's buffer, ending at end.
type mark struct {
	end int
	op  *op
	ack ack
}

type statusError struct{ status uint32 }

func (e *statusError) Error() string { return fmt.Sprintf("login refused with status %d", e.status) }

// connect makes one connection and serves it until it is over; served is false
// when it never logged in.
func (c *Client) connect(ctx context.Context, index int) (served bool, err error) {
	dialer := net.Dialer{Timeout: loginTimeout}
	sock, err := dialer.DialContext(ctx, "tcp", c.cfg.Addr)
	if err != nil {
		return false, fmt.Errorf("connect: %w", err)
	}
	l := &link{
		c: c, sock: sock, id: c.linkID.Add(1), index: index, version: c.cfg.Version,
		wake: make(chan struct{}, 1), over: make(chan struct{}), pending: map[uint32]*op{},
	}
	defer l.shut()
	stop := context.AfterFunc(ctx, l.shut)
	rd := wire.NewReader(reader{sock, &l.in, &c.slow, l.over})
	if err := l.login(rd); err != nil {
		stop()
		return false, err
	}
	if stop() { // from now on the end of ctx is a TERMINATE
		stop = context.AfterFunc(ctx, func() {
			c.mu.Lock()
			l.terminate()
			c.mu.Unlock()
		})
		defer stop()
	}
	l.attach()
	c.cfg.Log.LogAttrs(ctx, slog.LevelInfo, "customer link up", slog.String("account", c.cfg.ID), slog.Uint64("conn", l.id))
	var wg sync.WaitGroup
	wg.Go(l.write)
	reason := l.read(rd)
	c.mu.Lock()
	l.detach(reason)
	c.mu.Unlock()
	l.shut()
	wg.Wait()
	c.cfg.Log.LogAttrs(ctx, slog.LevelInfo, "customer link down",
		slog.String("account", c.cfg.ID), slog.Uint64("conn", l.id), slog.String("reason", l.reason))
	return true, nil
}

func (l *link) shut() {
	l.close.Do(func() {
		_ = l.sock.Close()
		close(l.over)
	})
}

func (l *link) login(rd *wire.Reader) error {
	cfg := &l.c.cfg
	_ = l.sock.SetDeadline(time.Now().Add(loginTimeout))
	at := cmpp.Timestamp(time.Now())
	l.seq = 1
	p := cmpp.Connect{
		SourceAddr: cfg.ID, AuthenticatorSource: cmpp.AuthSource(cfg.ID, []byte(cfg.Secret), at),
		Version: cmpp.Version(cfg.Version), Timestamp: at,
	}
	frame, err := p.Append(nil, p.Version, l.seq)
	if err != nil {
		return fmt.Errorf("login: %w", err)
	}
	n, err := l.sock.Write(frame)
	l.bytesOut.Add(int64(n))
	if err != nil {
		return fmt.Errorf("login: %w", err)
	}
	f, err := rd.Next()
	if err != nil {
		return fmt.Errorf("login: %w", err)
	}
	if f.Command != wire.Connect|wire.Response || f.Sequence != l.seq {
		return fmt.Errorf("login: answered by command %08x, sequence %d", f.Command, f.Sequence)
	}
	answer, err := wire.DecodeConnectResp(f.Body)
	if err != nil {
		return fmt.Errorf("login: %w", err)
	}
	if answer.Status != 0 {
		return &statusError{answer.Status}
	}
	if wire.Wide(answer.Version) != wire.Wide(l.version) {
		l.version = answer.Version
	}
	_ = l.sock.SetDeadline(time.Time{})
	return nil
}

// attach enters the link into its client and takes what waits.
func (l *link) attach() {
	c := l.c
	c.mu.Lock()
	defer c.mu.Unlock()
	now := c.clock.Now()
	l.opened, l.heard = now, now
	c.history = append(c.history, l)
	if l.ending || c.offline != nil {
		l.ending = false
		l.terminate()
		return
	}
	c.links[l.index] = l
	l.refill(now)
	c.changed()
}

func (l *link) snapshot() Conn {
	return Conn{
		ID: l.id, Index: l.index, Opened: l.opened, Closed: l.closed, Reason: l.reason, Submits: l.submits,
		InFlight: len(l.pending), InFlightPeak: l.inflightPeak, ActiveTests: l.activeTests,
		BytesIn: l.in.Load(), BytesOut: l.bytesOut.Load(),
	}
}

// slots returns how many more messages the window allows.
func (l *link) slots() int {
	if l.ending || l.detached {
		return 0
	}
	return l.c.cfg.Window - l.used
}

// take gives a slot to o.
func (l *link) take(o *op, now int64) {
	// now may be from before the pacer had the lock.
	o.Slot, o.Conn = max(now, o.Fire), l.id
	l.c.move(o, InFlight)
	l.used++
	l.inflightPeak = max(l.inflightPeak, l.used)
	l.out = append(l.out, o)
}

func (l *link) fill(f *fifo, now int64) {
	for f.len() > 0 && l.slots() > 0 {
		l.take(f.pop(), now)
	}
}

// refill uses free slots for what waits.
func (l *link) refill(now int64) {
	l.fill(&l.c.pinned[l.index], now)
	l.fill(&l.c.waiting, now)
}

func (l *link) signal() {
	select {
	case l.wake <- struct{}{}:
	default: // a wake-up is already waiting
	}
}

// read handles frames until the link is over and returns why.
func (l *link) read(rd *wire.Reader) string {
	for {
		f, err := rd.Next()
		if err != nil {
			if errors.Is(err, io.EOF) {
				return "closed by peer"
			}
			return err.Error()
		}
		if reason := l.handle(f); reason != "" {
			return reason
		}
		if l.nudge && !rd.Ready() {
			l.nudge = false
			l.signal()
		}
	}
}

func (l *link) handle(f wire.Frame) (reason string) {
	c := l.c
	now := c.clock.Now()
	c.mu.Lock()
	defer c.mu.Unlock()
	l.heard, l.tests = now, 0
	switch f.Command {
	case wire.Submit | wire.Response:
		l.answered(f, now)
	case wire.Deliver:
		l.delivered(f, now)
	case wire.ActiveTest:
		l.activeTests++
		l.raw(wire.ActiveTest|wire.Response, f.Sequence, []byte{0})
	case wire.ActiveTest | wire.Response:
	case wire.Terminate:
		l.raw(wire.Terminate|wire.Response, f.Sequence, nil)
		l.bye("terminated by peer")
	case wire.Terminate | wire.Response:
		return "terminated"
	default:
		c.unexpected++
	}
	l.nudge = l.nudge || len(l.urgent)+len(l.acks)+len(l.out) > 0
	return ""
}

// raw queues a whole frame in front of everything else.
func (l *link) raw(command, seq uint32, body []byte) {
	l.urgent = binary.BigEndian.AppendUint32(l.urgent, uint32(12+len(body)))
	l.urgent = binary.BigEndian.AppendUint32(l.urgent, command)
	l.urgent = binary.BigEndian.AppendUint32(l.urgent, seq)
	l.urgent = append(l.urgent, body...)
}

// answered takes a SUBMIT_RESP.
func (l *link) answered(f wire.Frame, now int64) {
	c := l.c
	o := l.pending[f.Sequence]
	body, err := wire.DecodeMsgIDResult(f.Body, l.version)
	if o == nil || err != nil {
		c.unexpected++
		return
	}
	if o.Answers++; o.Answers > 1 {
		return // answered before: the entry is kept to count repetitions
	}
	o.Resp, o.Result, o.MsgID = now, body.Result, body.MsgID
	if body.Result == 0 {
		c.counts.Accepted++
	}
	if o.State == InFlight {
		c.move(o, Answered)
		l.used--
		l.refill(now)
	}
}

// delivered takes a DELIVER.
func (l *link) delivered(f wire.Frame, now int64) {
	c := l.c
	var body wire.DeliverBody
	if err := wire.DecodeDeliver(f.Body, l.version, &body); err != nil {
		c.unexpected++
		return
	}
	a := ack{seq: f.Sequence, id: body.MsgID}
	if body.Registered == 1 {
		report, err := wire.DecodeReport(body.Content)
		if err != nil {
			c.unexpected++
			return
		}
		a.receipt = c.receipts.Add()
		*a.receipt = Receipt{
			At: now, Conn: l.id, DeliverID: body.MsgID, MsgID: report.MsgID, Stat: string(report.Stat),
			Number: string(report.Dest), Copy: c.seenID[report.MsgID],
		}
		c.seenID[report.MsgID]++
		c.counts.Receipts++
		if a.receipt.Copy > 0 {
			c.counts.DuplicateReceipts++
		}
	} else {
		a.uplink = c.uplinks.Add()
		*a.uplink = Uplink{
			At: now, Conn: l.id, DeliverID: body.MsgID, Source: string(body.Source), Dest: string(body.Dest),
			Fmt: body.MsgFmt, UDHI: body.TPUDHI, Content: slices.Clone(wire.Text(body.TPUDHI, body.Content)), Copy: c.seenUplink[body.MsgID],
		}
		if concat, ok := wire.DecodeConcat(body.TPUDHI, body.Content); ok {
			a.uplink.Concat = Concat(concat)
		}
		c.seenUplink[body.MsgID]++
		c.counts.Uplinks++
	}
	if c.mute {
		c.counts.Unacked++
	} else {
		l.acks = append(l.acks, a)
	}
	c.changed()
}

// write is the link's writer: everything there is goes out in one write.
func (l *link) write() {
	c := l.c
	// How often time-outs and idleness are looked at.
	tick := min(max(min(c.cfg.ResponseTimeout, c.cfg.Idle)/4, 10*time.Millisecond), time.Second)
	timer := time.NewTimer(tick)
	defer timer.Stop()
	for {
		c.mu.Lock()
		if l.detached {
			c.mu.Unlock()
			return
		}
		l.collect()
		c.mu.Unlock()
		if len(l.buf) > 0 {
			_ = l.sock.SetWriteDeadline(time.Now().Add(writeTimeout))
			n, err := l.sock.Write(l.buf)
			at := c.clock.Now()
			l.bytesOut.Add(int64(n))
			c.mu.Lock()
			l.wrote(n, at)
			c.mu.Unlock()
			if err != nil {
				l.shut() // the reader gives the reason
				return
			}
		}
		select {
		case <-l.wake:
		case <-timer.C:
			timer.Reset(tick)
			c.mu.Lock()
			dead := l.look(c.clock.Now())
			c.mu.Unlock()
			if dead {
				l.shut()
				return
			}
		case <-l.over:
			return
		}
	}
}

// collect fills buf and batch with all there is to write.
func (l *link) collect() {
	v := cmpp.Version(l.version)
	l.batch = l.batch[:0]
	l.buf = append(l.buf[:0], l.urgent...)
	l.urgent = l.urgent[:0]
	for _, a := range l.acks {
		p := cmpp.DeliverResp{MsgID: cmpp.MsgID(a.id)}
		if frame, err := p.Append(l.buf, v, a.seq); err == nil {
			l.buf = frame
			l.batch = append(l.batch, mark{end: len(frame), ack: a})
		}
	}
	l.acks = l.acks[:0]
	for _, o := range l.out {
		l.seq++
		frame, err := l.appendSubmit(o.msg)
		if err != nil {
			l.c.cfg.Log.LogAttrs(context.Background(), slog.LevelError, "submit not encodable", slog.Any("error", err))
			l.used--
			l.c.drop(o)
			continue
		}
		l.buf = frame
		o.Seq = l.seq
		l.pending[l.seq] = o
		l.submits++
		l.batch = append(l.batch, mark{end: len(frame), op: o})
	}
	clear(l.out)
	l.out = l.out[:0]
}

func (l *link) appendSubmit(m *Message) ([]byte, error) {
	cfg := &l.c.cfg
	l.one = append(append(l.one[:0], m.Number), m.Also...)
	service := m.ServiceID
	if service == "" {
		service = cfg.ServiceID
	}
	p := cmpp.Submit{
		PkTotal: max(m.PkTotal, 1), PkNumber: max(m.PkNumber, 1), RegisteredDelivery: m.Registered,
		MsgLevel: m.Level, ServiceID: service, FeeUserType: 2, TPUDHI: m.UDHI, MsgFmt: m.Fmt, MsgSrc: cfg.ID,
		FeeType: "01", FeeCode: "0", ValidTime: m.ValidTime, AtTime: m.AtTime, SrcID: m.SrcID,
		DestTerminalID: l.one, MsgContent: m.Content,
	}
	return p.Append(l.buf, cmpp.Version(l.version), l.seq)
}

// wrote books the frames of which all octets were taken by the kernel. Of the
// others the peer cannot have a whole frame: they wait for another connection.
func (l *link) wrote(n int, at int64) {
	var back []*op
	for _, m := range l.batch {
		sent := m.end <= n
		switch {
		case m.op == nil && sent && m.ack.receipt != nil:
			m.ack.receipt.Acked = at
		case m.op == nil && sent && m.ack.uplink != nil:
			m.ack.uplink.Acked = at
		case m.op == nil:
		case sent:
			m.op.Write = at
			if m.op.Resp != 0 { // the answer was faster than this line
				m.op.Write = min(at, m.op.Resp)
			}
		case l.pending[m.op.Seq] == m.op && m.op.State == InFlight:
			delete(l.pending, m.op.Seq)
			l.used--
			back = append(back, m.op)
		}
	}
	l.putBack(back)
}

// putBack returns messages that did not leave to the head of their queues.
func (l *link) putBack(ops []*op) {
	if len(ops) == 0 {
		return
	}
	var free, pinned []*op
	for _, o := range ops {
		o.Slot, o.Conn, o.Seq = 0, 0, 0
		l.c.move(o, Waiting)
		if o.msg.Conn > 0 {
			pinned = append(pinned, o)
		} else {
			free = append(free, o)
		}
	}
	l.c.pinned[l.index].unshift(pinned)
	l.c.waiting.unshift(free)
	if len(free) > 0 && !l.c.ended {
		for _, other := range l.c.links {
			if other != nil && other != l {
				other.refill(l.c.clock.Now())
				other.signal()
			}
		}
	}
}

// look times out old SUBMITs and tests an idle link; true means it is dead.
func (l *link) look(now int64) (dead bool) {
	c := l.c
	limit := now - int64(c.cfg.ResponseTimeout)
	for _, o := range l.pending {
		if o.State == InFlight && o.Slot < limit {
			c.move(o, TimedOut)
			l.used--
		}
	}
	l.refill(now)
	idle := int64(c.cfg.Idle) * int64(l.tests+1)
	if now-l.heard < idle {
		return false
	}
	if l.tests >= idleTries {
		l.detach("active test unanswered")
		return true
	}
	l.tests++
	l.seq++
	l.raw(wire.ActiveTest, l.seq, nil)
	l.signal()
	return false
}

// terminate says TERMINATE and closes on its answer or after byeTimeout.
func (l *link) terminate() {
	if l.ending || l.detached {
		return
	}
	if l.opened == 0 { // not attached yet; attach will do it
		l.ending = true
		return
	}
	l.seq++
	l.raw(wire.Terminate, l.seq, nil)
	l.bye("terminated")
}

// bye ends the link when what is queued has gone and the peer closed.
func (l *link) bye(reason string) {
	l.ending = true
	if l.reason == "" {
		l.reason = reason
	}
	if l.c.links[l.index] == l {
		l.c.links[l.index] = nil
		l.c.changed()
	}
	_ = l.sock.SetReadDeadline(time.Now().Add(byeTimeout))
	l.signal()
}

// detach takes the link out of its client: what may have left is Unanswered,
// what had a slot only waits again.
func (l *link) detach(reason string) {
	if l.detached {
		return
	}
	c := l.c
	l.detached = true
	l.closed = c.clock.Now()
	if l.reason == "" {
		l.reason = reason
	}
	if c.links[l.index] == l {
		c.links[l.index] = nil
		c.changed()
	}
	for _, o := range l.pending {
		if o.State == InFlight {
			c.move(o, Unanswered)
		}
	}
	l.used = 0
	out := l.out
	l.out = nil
	l.putBack(out)
	l.signal()
}
