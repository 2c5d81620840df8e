package session_test

import (
	"context"
	"errors"
	"io"
	"log/slog"
	"net"
	"strings"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"

	"cmppgateway/gateway/cmpp"
	"cmppgateway/gateway/internal/session"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

const (
	account = "901234"
	secret  = "1234"
)

var versions = []cmpp.Version{cmpp.V20, cmpp.V30}

// peer is the scripted other end: each method is one step of the script. Its
// frames are read by a goroutine of its own, so that the session's writes never
// wait for the script.
type peer struct {
	t      *testing.T
	conn   net.Conn
	v      cmpp.Version
	frames chan frame
}

type frame struct {
	hd  cmpp.Header
	pdu cmpp.PDU
	err error
}

func newPeer(t *testing.T, conn net.Conn, v cmpp.Version) *peer {
	t.Helper()
	p := &peer{t: t, conn: conn, v: v, frames: make(chan frame, 1<<12)}
	var reading sync.WaitGroup
	reading.Go(func() {
		defer close(p.frames)
		r := cmpp.NewReader(conn, cmpp.MaxFrame)
		for {
			hd, body, err := r.Next()
			if err != nil {
				p.frames <- frame{err: err}
				return
			}
			pdu, err := cmpp.Decode(hd, append([]byte(nil), body...), v)
			p.frames <- frame{hd, pdu, err}
		}
	})
	t.Cleanup(func() {
		_ = conn.Close()
		reading.Wait()
	})
	return p
}

func encode(t *testing.T, v cmpp.Version, seq uint32, pdu cmpp.PDU) []byte {
	t.Helper()
	octets, err := pdu.Append(nil, v, seq)
	if err != nil {
		t.Fatalf("encode: %v", err)
	}
	return octets
}

func (p *peer) send(seq uint32, pdu cmpp.PDU) {
	p.t.Helper()
	p.raw(encode(p.t, p.v, seq, pdu))
}

func (p *peer) raw(octets []byte) {
	p.t.Helper()
	if _, err := p.conn.Write(octets); err != nil {
		p.t.Fatalf("peer: write: %v", err)
	}
}

// expect takes the next frame, which must be of type T.
func expect[T cmpp.PDU](p *peer) (cmpp.Header, T) {
	p.t.Helper()
	var want T
	f, ok := <-p.frames
	if !ok || f.err != nil {
		p.t.Fatalf("peer: got %v, want %T", f.err, want)
	}
	got, ok := f.pdu.(T)
	if !ok {
		p.t.Fatalf("peer: got %T, want %T", f.pdu, want)
	}
	return f.hd, got
}

// waitClose expects that nothing but the end of the connection comes.
func (p *peer) waitClose() {
	p.t.Helper()
	f := <-p.frames
	if f.err == nil {
		p.t.Fatalf("peer: got %T, want the end of the connection", f.pdu)
	}
	if !errors.Is(f.err, io.EOF) {
		p.t.Fatalf("peer: got %v, want io.EOF", f.err)
	}
}

// handler calls the functions that are set and answers nothing by itself.
type handler struct {
	request func(s *session.Session, hd cmpp.Header, p cmpp.PDU)
	bad     func(s *session.Session, hd cmpp.Header, err *cmpp.DecodeError)
	late    func(s *session.Session, hd cmpp.Header, p cmpp.PDU, token any)
}

func (h handler) OnRequest(s *session.Session, hd cmpp.Header, p cmpp.PDU) {
	if h.request != nil {
		h.request(s, hd, p)
	}
}

func (h handler) OnBadRequest(s *session.Session, hd cmpp.Header, err *cmpp.DecodeError) {
	if h.bad != nil {
		h.bad(s, hd, err)
	}
}

func (h handler) OnLateResponse(s *session.Session, hd cmpp.Header, p cmpp.PDU, token any) {
	if h.late != nil {
		h.late(s, hd, p, token)
	}
}

// link is a logged-in session under Run and its scripted peer.
type link struct {
	*session.Session
	t      *testing.T
	peer   *peer
	stop   context.CancelFunc // stops Run gracefully
	ended  chan error         // what Run returned
	logged *strings.Builder   // read after the session has ended
}

// setup is what a test may change about its link.
type setup struct {
	cfg     session.Config
	version cmpp.Version              // default V30
	wrap    func(c net.Conn) net.Conn // around the session's end
	handler handler
}

// client logs in as a client and runs the session.
func client(t *testing.T, u setup) *link {
	t.Helper()
	return start(t, u, false)
}

// server lets a scripted client in and runs the session.
func server(t *testing.T, u setup) *link {
	t.Helper()
	return start(t, u, true)
}

func start(t *testing.T, u setup, asServer bool) *link {
	t.Helper()
	if u.version == 0 {
		u.version = cmpp.V30
	}
	logged := new(strings.Builder)
	u.cfg.Log = slog.New(slog.NewTextHandler(logged, nil))
	ours, theirs := net.Pipe()
	if u.wrap != nil {
		ours = u.wrap(ours)
	}
	p := newPeer(t, theirs, u.version)
	s, err := make(chan *session.Session, 1), make(chan error, 1)
	go func() {
		var got *session.Session
		var fault error
		if asServer {
			got, fault = session.Accept(t.Context(), ours, u.cfg, letIn)
		} else {
			got, fault = session.Login(t.Context(), ours, u.cfg,
				session.Credentials{SourceAddr: account, Secret: []byte(secret), Version: u.version})
		}
		s <- got
		err <- fault
	}()
	if asServer {
		p.send(1, connect(u.version))
		expect[*cmpp.ConnectResp](p)
	} else {
		hd, _ := expect[*cmpp.Connect](p)
		p.send(hd.Sequence, &cmpp.ConnectResp{Version: u.version})
	}
	l := &link{Session: <-s, t: t, peer: p, ended: make(chan error, 1), logged: logged}
	if e := <-err; e != nil {
		t.Fatalf("handshake: %v", e)
	}
	ctx, cancel := context.WithCancel(t.Context())
	l.stop = cancel
	go func() { l.ended <- l.Run(ctx, u.handler) }()
	t.Cleanup(func() {
		l.Close(nil)
		<-l.Done()
		cancel()
	})
	return l
}

func connect(v cmpp.Version) *cmpp.Connect {
	ts := cmpp.Timestamp(time.Now())
	return &cmpp.Connect{
		SourceAddr: account, Version: v, Timestamp: ts,
		AuthenticatorSource: cmpp.AuthSource(account, []byte(secret), ts),
	}
}

func letIn(_ context.Context, c *cmpp.Connect, _ net.Addr) (session.Welcome, error) {
	if !cmpp.CheckAuthSource(c.AuthenticatorSource, c.SourceAddr, []byte(secret), c.Timestamp) {
		return session.Welcome{Status: 3}, nil
	}
	return session.Welcome{Secret: []byte(secret), Version: c.Version, Attach: c.SourceAddr}, nil
}

func submit(text string) *cmpp.Submit {
	return &cmpp.Submit{
		PkTotal: 1, PkNumber: 1, RegisteredDelivery: 1, ServiceID: "TEST", MsgSrc: account, FeeType: "01",
		SrcID: "10690001", DestTerminalID: []string{"13800138000"}, MsgContent: []byte(text),
	}
}

func deliver(text string) *cmpp.Deliver {
	return &cmpp.Deliver{MsgID: 7, DestID: "10690001", SrcTerminalID: "13800138000", MsgContent: []byte(text)}
}

// call sends PDUs as one batch, with their index as token, and returns where the outcomes go.
func (l *link) call(pdus ...cmpp.PDU) chan session.Outcome {
	l.t.Helper()
	if got := l.Acquire(len(pdus)); got != len(pdus) {
		l.t.Fatalf("acquired %d slots, want %d", got, len(pdus))
	}
	outcomes, calls := calls(pdus)
	if err := l.Send(calls); err != nil {
		l.t.Fatalf("send: %v", err)
	}
	return outcomes
}

// calls makes calls whose second outcome would panic, the channel having no room for it.
func calls(pdus []cmpp.PDU) (chan session.Outcome, []session.Call) {
	outcomes := make(chan session.Outcome, len(pdus))
	calls := make([]session.Call, len(pdus))
	for i, p := range pdus {
		calls[i] = session.Call{PDU: p, Token: i, Done: func(o session.Outcome) {
			select {
			case outcomes <- o:
			default:
				panic("a call has had two outcomes")
			}
		}}
	}
	return outcomes, calls
}

// wantEnd waits for Run and checks what it returned.
func (l *link) wantEnd(want error) {
	l.t.Helper()
	if got := <-l.ended; !errors.Is(got, want) {
		l.t.Fatalf("Run returned %v, want %v", got, want)
	}
	if want != nil && !errors.Is(l.Cause(), want) {
		l.t.Fatalf("cause %v, want %v", l.Cause(), want)
	}
}

// wantOutcome checks one outcome.
func wantOutcome(t *testing.T, o session.Outcome, token any, err error, sent bool) {
	t.Helper()
	if o.Token != token || !errors.Is(o.Err, err) || o.Sent != sent || (o.Resp != nil) != (err == nil) {
		t.Fatalf("got %+v, want token %v, error %v, sent %v", o, token, err, sent)
	}
}
