package ismg

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
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

	opened, closed, silent     int64
	reason                     string
	submits, activeTests, lost int
	inflightPeak, deliverPeak  int
	scratch, buf               []byte // of the writer
	batch                      []written
	taken                      []taking          // of the reader
	texts                      map[string]string // of the reader
	nudge                      bool              // of the reader: the writer has to know before its timer
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
	itemFrame                   // a command whose handling a rule delayed
)

// item is something due on a connection.
type item struct {
	kind itemKind
	try  int
	sub  *submit
	del  *delivery

	frame *heldFrame
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
			c.terminate()
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
		silent, status := c.ruledLogin(body.Source)
		if silent {
			_, _ = io.Copy(io.Discard, c.sock) // until the peer gives up, or the server ends
			return false
		}
		if answer.Status = status; status == 0 {
			answer.Status = c.admit(&body, now)
		}
	}
	answer.Version = cmpp.Version(c.version)
	if answer.Status == 0 {
		answer.AuthenticatorISMG = cmpp.AuthISMG(0, answer.Version, body.Auth, []byte(c.acct.spec.Secret))
	}
	s.mu.Lock()
	s.logins = append(s.logins, Login{At: now, Account: body.Source, Remote: c.remote, Status: answer.Status})
	s.mu.Unlock()
	if a := s.byID[body.Source]; a != nil && answer.Status != 0 {
		a.mu.Lock()
		a.counts.Denied++
		a.mu.Unlock()
	}
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
		Closed: c.closed, Reason: c.reason, Silent: c.silent, Submits: c.submits, InFlight: len(c.inflight), Lost: c.lost,
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
	if c.ruled(f, now) {
		return ""
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	c.heard, c.tests = now, 0
	defer func() { c.nudge = c.nudge || len(c.urgent) > 0 }()
	return c.obey(f, now)
}

// obey does what a command other than SUBMIT asks for; the account is locked.
func (c *conn) obey(f wire.Frame, now int64) (reason string) {
	a := c.acct
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
	c.urgent = binary.BigEndian.AppendUint32(c.urgent, uint32(12+len(body)))
	c.urgent = binary.BigEndian.AppendUint32(c.urgent, command)
	c.urgent = binary.BigEndian.AppendUint32(c.urgent, seq)
	c.urgent = append(c.urgent, body...)
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
		c.acct.counts.Acked++
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
