package ismg

import (
	"cmp"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"maps"
	"net"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"cmppgateway/gateway/cmpp"
	"cmppgateway/simulator/internal/wire"
)

const (
	statusStructure   = 1
	statusUnknown     = 2
	statusSecret      = 3
	statusVersion     = 4
	statusConnections = 56 // too many links of the account, as vendors have it

	writeTimeout    = 30 * time.Second
	finTimeout      = 5 * time.Second
	resultStructure = 1
	resultSequence  = 3

	maxTexts   = 4096             // strings shared per connection; later ones are just not shared
	maxBatch   = 64 << 10         // octets handed to the kernel at once
	splitSize  = 5                // octets per write with SplitWrites
	answerTick = time.Millisecond // no coarser than the runtime's timers are
)

// conn is one connection: its reader is the goroutine of serve, its writer
// another. Below mu of the account: everything that is not said otherwise.
type conn struct {
	srv     *Server
	acct    *account // set before the writer starts
	sock    net.Conn
	id      uint64
	remote  string
	version uint8
	wake    chan struct{} // capacity 1
	over    chan struct{} // closed with the socket
	close   sync.Once
	in, out atomic.Int64 // octets

	state      connState
	due        wire.Queue[item]
	inflight   map[uint32]*submit
	counted    int // of inflight, against the window
	delivers   map[uint32]*delivery
	delivering int
	waiting    []*delivery // for a slot of the DELIVER window
	urgent     []byte      // whole frames to go before anything else
	seq        uint32
	heard      int64 // when the last frame came
	tests      int   // ACTIVE_TESTs since then

	opened, closed, silent    int64
	reason                    string
	submits, activeTests      int
	inflightPeak, deliverPeak int
	scratch, buf              []byte // of the writer
	batch                     []written
	taken                     []taking          // of the reader
	texts                     map[string]string // of the reader
	nudge                     bool              // of the reader: the writer has to know before its timer
}

type connState uint8

const (
	connLive   connState = iota
	connEnding           // TERMINATE sent or answered; closes after what is queued
	connCut              // by FIN: reads on without looking
	connSilent           // neither reads nor writes
	connClosed
)

type itemKind uint8

const (
	itemAnswer  itemKind = iota // SUBMIT_RESP of sub
	itemDeliver                 // DELIVER of del
	itemRetry                   // DELIVER_RESP of transmission try of del is overdue
	itemProbe                   // look whether the link is idle
	itemClose                   // the end of a TERMINATE that was not answered
)

// item is something due on a connection.
type item struct {
	kind itemKind
	try  int
	sub  *submit
	del  *delivery
}

// written is a frame in the writer's buffer, ending at end.
type written struct {
	end int
	sub *submit
	del *delivery
}

func (s *Server) serve(ctx context.Context, sock net.Conn) {
	c := &conn{
		srv: s, sock: sock, id: s.connID.Add(1), remote: sock.RemoteAddr().String(),
		wake: make(chan struct{}, 1), over: make(chan struct{}),
		inflight: map[uint32]*submit{}, delivers: map[uint32]*delivery{}, texts: map[string]string{},
	}
	defer c.shut()
	// Before login there is nobody to say goodbye to.
	stop := context.AfterFunc(ctx, c.shut)
	rd := wire.NewReader(counting{sock, &c.in})
	if !c.login(rd) {
		stop()
		return
	}
	s.log.LogAttrs(ctx, slog.LevelInfo, "supplier link up", slog.String("account", c.acct.spec.ID), slog.Uint64("conn", c.id))
	var wg sync.WaitGroup
	wg.Go(c.write)
	if stop() { // ctx is not done: from now on its end is a TERMINATE
		stop = context.AfterFunc(ctx, func() {
			c.acct.mu.Lock()
			c.terminate(s.clock.Now())
			c.acct.mu.Unlock()
		})
		defer stop()
	}
	reason := c.read(rd)
	c.acct.mu.Lock()
	c.detach(connClosed, reason, s.clock.Now())
	c.acct.mu.Unlock()
	c.shut()
	wg.Wait()
	s.log.LogAttrs(ctx, slog.LevelInfo, "supplier link down",
		slog.String("account", c.acct.spec.ID), slog.Uint64("conn", c.id), slog.String("reason", c.reason))
}

// counting counts the octets read from a connection.
type counting struct {
	net.Conn
	n *atomic.Int64
}

func (c counting) Read(p []byte) (int, error) {
	n, err := c.Conn.Read(p)
	c.n.Add(int64(n))
	return n, err
}

// shut closes the socket; safe to call from anywhere, often.
func (c *conn) shut() {
	c.close.Do(func() {
		_ = c.sock.Close()
		close(c.over)
	})
}

// login reads CONNECT, answers it, and enters the connection into its account.
func (c *conn) login(rd *wire.Reader) bool {
	s := c.srv
	_ = c.sock.SetReadDeadline(time.Now().Add(s.timers.Login))
	f, err := rd.Next()
	if err != nil {
		return false
	}
	_ = c.sock.SetReadDeadline(time.Time{})
	now := s.clock.Now()
	if f.Command != wire.Connect {
		s.violate(Violation{At: now, Conn: c.id, Kind: ViolatedLogin, Detail: fmt.Sprintf("first command %08x", f.Command)})
		return false
	}
	body, err := wire.DecodeConnect(f.Body)
	c.version = body.Version
	answer := cmpp.ConnectResp{}
	if err != nil {
		answer.Status = statusStructure
	} else {
		answer.Status = c.admit(&body, now)
	}
	answer.Version = cmpp.Version(c.version)
	if answer.Status == 0 {
		answer.AuthenticatorISMG = cmpp.AuthISMG(0, answer.Version, body.Auth, []byte(c.acct.spec.Secret))
	}
	s.mu.Lock()
	s.logins = append(s.logins, Login{At: now, Account: body.Source, Remote: c.remote, Status: answer.Status})
	s.mu.Unlock()
	frame, err := answer.Append(nil, answer.Version, f.Sequence)
	if err == nil {
		_ = c.sock.SetWriteDeadline(time.Now().Add(writeTimeout))
		_, err = c.sock.Write(frame)
		c.out.Add(int64(len(frame)))
	}
	if answer.Status != 0 {
		return false
	}
	c.acct.mu.Lock()
	defer c.acct.mu.Unlock()
	if err != nil || c.state != connLive {
		c.detach(connClosed, "login not answered", s.clock.Now())
		return false
	}
	c.heard = s.clock.Now()
	c.push(c.heard+int64(s.timers.ActiveTest), item{kind: itemProbe})
	c.acct.adopt(c)
	return true
}

// admit decides on a CONNECT and takes the account's place for it.
func (c *conn) admit(body *wire.ConnectBody, now int64) (status uint32) {
	s := c.srv
	a := s.byID[body.Source]
	if a == nil {
		return statusUnknown
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	if v := a.spec.Version; v != 0 {
		c.version = v
	}
	switch {
	case !cmpp.CheckAuthSource(body.Auth, body.Source, []byte(a.spec.Secret), body.Timestamp):
		return statusSecret
	case wire.Wide(body.Version) != wire.Wide(c.version):
		return statusVersion
	case a.refuse != 0:
		return a.refuse
	case len(a.live) >= a.spec.MaxConnections:
		s.violate(Violation{At: now, Account: a.spec.ID, Conn: c.id, Kind: ViolatedConnections, Detail: fmt.Sprintf("%d live", len(a.live))})
		return statusConnections
	}
	c.acct, c.opened = a, now
	a.live = append(a.live, c)
	a.history = append(a.history, c)
	return 0
}

func (c *conn) snapshot() Conn {
	return Conn{
		Account: c.acct.spec.ID, ID: c.id, Remote: c.remote, Version: c.version, Opened: c.opened,
		Closed: c.closed, Reason: c.reason, Silent: c.silent, Submits: c.submits, InFlight: len(c.inflight),
		InFlightPeak: c.inflightPeak, DeliverPeak: c.deliverPeak, ActiveTests: c.activeTests,
		BytesIn: c.in.Load(), BytesOut: c.out.Load(),
	}
}

// read handles frames until the connection is over and returns why it is.
func (c *conn) read(rd *wire.Reader) string {
	a := c.acct
	for {
		f, err := rd.Next()
		a.mu.Lock()
		state := c.state
		a.mu.Unlock()
		switch state {
		case connSilent:
			<-c.over
			return "silence"
		case connCut, connClosed:
			if err == nil {
				continue
			}
			return "cut"
		case connLive, connEnding:
		}
		if err != nil {
			return c.readError(err)
		}
		if reason := c.handle(f); reason != "" {
			return reason
		}
		if c.nudge && !rd.Ready() {
			c.nudge = false
			c.signal()
		}
	}
}

func (c *conn) readError(err error) string {
	switch {
	case errors.Is(err, wire.ErrFrameLength):
		c.srv.violate(Violation{At: c.srv.clock.Now(), Account: c.acct.spec.ID, Conn: c.id, Kind: ViolatedFrame, Detail: err.Error()})
		return "frame length"
	case errors.Is(err, io.EOF):
		return "closed by peer"
	}
	return err.Error()
}

// handle takes one frame; a reason ends the connection.
func (c *conn) handle(f wire.Frame) (reason string) {
	now := c.srv.clock.Now()
	a := c.acct
	if f.Command == wire.Submit {
		c.submit(f, now)
		return ""
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	c.heard, c.tests = now, 0
	defer func() { c.nudge = c.nudge || len(c.urgent) > 0 }()
	switch f.Command {
	case wire.Deliver | wire.Response:
		c.delivered(f, now)
	case wire.ActiveTest:
		c.activeTests++
		if !a.ignoreTests {
			c.raw(wire.ActiveTest|wire.Response, f.Sequence, []byte{0})
		}
	case wire.ActiveTest | wire.Response:
	case wire.Terminate:
		c.raw(wire.Terminate|wire.Response, f.Sequence, nil)
		c.end("terminated by peer")
	case wire.Terminate | wire.Response:
		return "terminated"
	case wire.Cancel: // 1: not cancelled, in the layout's width
		refusal := []byte{1}
		if wire.Wide(c.version) {
			refusal = []byte{0, 0, 0, 1}
		}
		c.raw(wire.Cancel|wire.Response, f.Sequence, refusal)
	case wire.Query: // echoes what was asked about, all counters zero
		answer := make([]byte, 51)
		copy(answer, f.Body[:min(19, len(f.Body))])
		c.raw(wire.Query|wire.Response, f.Sequence, answer)
	case wire.Connect:
		c.srv.violate(Violation{At: now, Account: a.spec.ID, Conn: c.id, Kind: ViolatedLogin, Detail: "second CONNECT"})
		return "second CONNECT"
	default:
		c.srv.violate(Violation{At: now, Account: a.spec.ID, Conn: c.id, Kind: ViolatedFrame, Detail: fmt.Sprintf("command %08x", f.Command)})
	}
	return ""
}

// raw queues a whole frame in front of everything else.
func (c *conn) raw(command, seq uint32, body []byte) {
	c.urgent = binary.BigEndian.AppendUint32(c.urgent, uint32(12+len(body))) //nolint:gosec // a few octets
	c.urgent = binary.BigEndian.AppendUint32(c.urgent, command)
	c.urgent = binary.BigEndian.AppendUint32(c.urgent, seq)
	c.urgent = append(c.urgent, body...)
}

// submit takes a SUBMIT: fates and controls first, without the lock, then
// limits, record and schedule.
func (c *conn) submit(f wire.Frame, now int64) {
	s, a := c.srv, c.acct
	var body wire.SubmitBody
	if err := wire.DecodeSubmit(f.Body, c.version, &body); err != nil || body.DestCount == 0 {
		s.violate(Violation{At: now, Account: a.spec.ID, Conn: c.id, Kind: ViolatedFrame, Detail: "SUBMIT that cannot be read"})
		c.refuse(f.Sequence, resultStructure)
		return
	}
	if s.records.Add(int64(body.DestCount)) > int64(s.opts.MaxRecords) {
		s.shed.Add(1)
		c.refuse(f.Sequence, resultFlow)
		return
	}
	deal := a.deal.Load()
	taken := c.taken[:0]
	for i := range body.DestCount {
		taken = append(taken, taking{})
		t := &taken[i]
		c.fill(&t.rec, &body, f.Sequence, i, now)
		t.rec.Fate = deal.deck.Fate(t.rec.Key, t.rec.Attempt)
		t.plan = deal.plan(s.seed, &t.rec)
		s.runControls(&t.rec, &t.plan)
	}
	c.taken = taken
	a.mu.Lock()
	defer a.mu.Unlock()
	c.heard, c.tests = now, 0
	if c.state == connLive || c.state == connEnding {
		c.take(taken, now)
	}
}

// taking is a SUBMIT to one recipient before it is on record.
type taking struct {
	rec  Submit
	plan Plan
}

// fill copies what the record keeps out of the frame.
func (c *conn) fill(r *Submit, b *wire.SubmitBody, seq uint32, i int, now int64) {
	s := c.srv
	dest := b.DestAt(i)
	*r = Submit{
		Account: c.acct.spec.ID, Conn: c.id, Seq: seq, Recv: now,
		Number: string(dest), SrcID: c.intern(b.SrcID), MsgSrc: c.intern(b.MsgSrc), ServiceID: c.intern(b.ServiceID),
		Fmt: b.MsgFmt, UDHI: b.TPUDHI, Registered: b.Registered, PkTotal: b.PkTotal, PkNumber: b.PkNumber,
		Length: len(b.Content), Hash: wire.Hash(b.Content),
	}
	r.Key, _ = wire.NumberKey(r.Number) // a number that is none is key 0, and a violation when prefixes are set
	if concat, ok := wire.DecodeConcat(b.TPUDHI, b.Content); ok {
		r.Concat = Concat(concat)
	}
	if s.opts.KeepContent {
		r.Content = slices.Clone(b.Content)
	}
	r.Attempt = s.attempt(r.Key, r.Part())
}

// intern returns b as a string, shared with earlier equal ones. Of the reader.
func (c *conn) intern(b []byte) string {
	if s, ok := c.texts[string(b)]; ok {
		return s
	}
	s := string(b)
	if len(c.texts) < maxTexts {
		c.texts[s] = s
	}
	return s
}

// refuse answers a SUBMIT that is not put on record.
func (c *conn) refuse(seq, result uint32) {
	c.acct.mu.Lock()
	defer c.acct.mu.Unlock()
	body := make([]byte, 8, 12)
	if wire.Wide(c.version) {
		body = binary.BigEndian.AppendUint32(body, result)
	} else {
		body = append(body, byte(result))
	}
	c.raw(wire.Submit|wire.Response, seq, body)
	c.nudge = true
}

// take judges the limits, puts the SUBMIT on record and schedules what follows.
func (c *conn) take(taken []taking, now int64) {
	a := c.acct
	head := &taken[0].plan
	_, duplicate := c.inflight[taken[0].rec.Seq]
	var result uint32
	var refusal Refusal
	for i := range taken {
		if t := &taken[i]; t.plan.Result != 0 && result == 0 {
			result, refusal = t.plan.Result, RefusedByHook
			if result == t.rec.Fate.Result {
				refusal = RefusedByDeck
			}
		}
		c.judgeCarrier(&taken[i].rec)
	}
	switch {
	case duplicate:
		result, refusal = resultSequence, RefusedByFrame
		c.violated(ViolatedSequence, now, "sequence %d", taken[0].rec.Seq)
	case !head.Uncounted && c.counted >= a.spec.Window:
		result, refusal = resultFlow, RefusedByWindow
		c.violated(ViolatedWindow, now, "%d unanswered", c.counted+1)
	case !a.admit(now, len(taken)):
		result, refusal = resultFlow, RefusedByRate
		c.violated(ViolatedRate, now, "more than %d/s", a.spec.RateLimit)
	}
	if refusal != NotRefused && refusal != RefusedByDeck && refusal != RefusedByHook {
		*head = Plan{Answers: 1}
	}
	var id uint64
	if result == 0 {
		id = a.ids.reserve(now, len(taken))
	}
	c.submits++
	var first *submit
	for i := range taken {
		sub := a.submits.Add()
		sub.Submit, sub.conn = taken[i].rec, c
		sub.Hold, sub.Result, sub.Refusal = int64(head.Hold), result, refusal
		if result == 0 {
			sub.MsgID = id + uint64(i)
		}
		sub.todo = &todo{plan: taken[i].plan}
		if first == nil {
			first = sub
		} else {
			first.todo.also = append(first.todo.also, sub)
		}
	}
	c.begin(first, duplicate, now)
}

// begin schedules the answer and the early reports of sub.
func (c *conn) begin(sub *submit, duplicate bool, now int64) {
	a, t := c.acct, sub.todo
	if sub.Accepted() && sub.Registered == 1 {
		for i, r := range t.plan.Receipts {
			if r.Early {
				t.early++
				a.report(sub, i, r, now+sub.Hold/2)
			}
		}
	}
	if t.plan.Answers == 0 && t.plan.Cut == NoCut {
		a.finish(sub, now)
		return
	}
	if !duplicate {
		c.inflight[sub.Seq] = sub
		c.inflightPeak = max(c.inflightPeak, len(c.inflight))
		if !t.plan.Uncounted {
			c.counted++
		}
	}
	due := now + sub.Hold
	if sub.Hold > 0 {
		due = roundUp(due, answerTick)
	}
	next, ok := c.due.Next()
	c.nudge = c.nudge || !ok || due < next
	c.due.Push(due, item{kind: itemAnswer, sub: sub})
}

// roundUp moves a time to the grid of tick, so that what falls due together
// wakes writers together.
func roundUp(ns int64, tick time.Duration) int64 {
	return (ns + int64(tick) - 1) / int64(tick) * int64(tick)
}

func (c *conn) judgeCarrier(r *Submit) {
	prefixes := c.acct.spec.Prefixes
	if len(prefixes) == 0 {
		return
	}
	number := strconv.FormatUint(r.Key, 10)
	for _, p := range prefixes {
		if strings.HasPrefix(number, p) {
			return
		}
	}
	c.violated(ViolatedCarrier, r.Recv, "recipient outside the prefixes, sequence %d", r.Seq)
}

func (c *conn) violated(kind ViolationKind, now int64, format string, args ...any) {
	c.srv.violate(Violation{At: now, Account: c.acct.spec.ID, Conn: c.id, Kind: kind, Detail: fmt.Sprintf(format, args...)})
}

// delivered takes a DELIVER_RESP.
func (c *conn) delivered(f wire.Frame, now int64) {
	body, err := wire.DecodeMsgIDResult(f.Body, c.version)
	d := c.delivers[f.Sequence]
	if err != nil || d == nil || body.MsgID != d.id {
		c.violated(ViolatedDeliverResp, now, "sequence %d", f.Sequence)
		return
	}
	delete(c.delivers, f.Sequence)
	d.acks++
	d.result = body.Result
	if body.Result != 0 {
		return // its retry is already scheduled
	}
	if d.acked == 0 {
		d.acked = now
	}
	if h := d.holder; h != nil {
		d.holder = nil
		h.delivering--
		h.pump(now)
	}
}

// pump makes waiting DELIVERs due while the window has room.
func (c *conn) pump(now int64) {
	n := min(len(c.waiting), max(0, c.acct.spec.Window-c.delivering))
	for _, d := range c.waiting[:n] {
		c.push(now, item{kind: itemDeliver, del: d})
	}
	c.waiting = c.waiting[n:]
}

// push schedules it on the connection and wakes the writer if it is next.
func (c *conn) push(due int64, it item) {
	next, ok := c.due.Next()
	c.due.Push(due, it)
	if !ok || due < next {
		c.signal()
	}
}

func (c *conn) signal() {
	select {
	case c.wake <- struct{}{}:
	default: // a wake-up is already waiting
	}
}

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

// end starts an orderly end: what is queued in front still goes.
func (c *conn) end(reason string) {
	now := c.srv.clock.Now()
	c.detach(connEnding, reason, now)
	c.due.Push(now+int64(c.srv.timers.Drain), item{kind: itemClose})
	c.signal()
}

// terminate says TERMINATE and closes on its answer or after Timers.Drain.
func (c *conn) terminate(now int64) {
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
	c.counted = 0
	for _, sub := range lost {
		a.finish(sub, now)
	}
}
