package session_test

import (
	"context"
	"errors"
	"io"
	"net"
	"sync"
	"sync/atomic"
	"testing"

	"cmppgateway/gateway/cmpp"
	"cmppgateway/gateway/internal/session"
)

// tcpPair logs a client in to a server over loopback.
func tcpPair(tb testing.TB, cfg session.Config) (c, s *session.Session) {
	tb.Helper()
	dialed, accepted := dial(tb)
	wait := attempt(func() (*session.Session, error) {
		return session.Accept(tb.Context(), accepted, cfg, letIn)
	})
	credentials := session.Credentials{SourceAddr: account, Secret: []byte(secret), Version: cmpp.V30}
	c, err := session.Login(tb.Context(), dialed, cfg, credentials)
	if err != nil {
		tb.Fatal(err)
	}
	if s, err = wait(); err != nil {
		tb.Fatal(err)
	}
	return c, s
}

// dial returns both ends of a loopback connection.
func dial(tb testing.TB) (dialed, accepted net.Conn) {
	tb.Helper()
	var listen net.ListenConfig
	listener, err := listen.Listen(tb.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		tb.Fatal(err)
	}
	defer listener.Close()
	var dialer net.Dialer
	if dialed, err = dialer.DialContext(tb.Context(), "tcp", listener.Addr().String()); err != nil {
		tb.Fatal(err)
	}
	if accepted, err = listener.Accept(); err != nil {
		tb.Fatal(err)
	}
	return dialed, accepted
}

// pump keeps s's window full until n calls have been answered.
func pump(tb testing.TB, s *session.Session, n int, pdu cmpp.PDU) {
	tb.Helper()
	room := make(chan struct{}, 1)
	s.OnWindow(func() {
		select {
		case room <- struct{}{}:
		default:
		}
	})
	var answered atomic.Int64
	all := make(chan struct{})
	done := func(o session.Outcome) {
		if o.Err != nil {
			tb.Errorf("call %v: %v", o.Token, o.Err)
		}
		if answered.Add(1) == int64(n) {
			close(all)
		}
	}
	var batch []session.Call
	for sent := 0; sent < n; {
		slots := s.Acquire(n - sent)
		if slots == 0 {
			select {
			case <-room:
				continue
			case <-s.Done():
				tb.Errorf("session ended: %v", s.Cause())
				return
			}
		}
		batch = batch[:0]
		for range slots {
			batch = append(batch, session.Call{PDU: pdu, Done: done})
		}
		if err := s.Send(batch); err != nil {
			tb.Errorf("send: %v", err)
			return
		}
		sent += slots
	}
	select {
	case <-all:
	case <-s.Done():
		tb.Errorf("session ended: %v", s.Cause())
	}
}

// answering replies to everything at once.
func answering(tb testing.TB, taken *atomic.Int64) handler {
	tb.Helper()
	return handler{request: func(s *session.Session, hd cmpp.Header, p cmpp.PDU) {
		taken.Add(1)
		var resp cmpp.PDU
		switch p := p.(type) {
		case *cmpp.Submit:
			resp = &cmpp.SubmitResp{MsgID: cmpp.MsgID(hd.Sequence)}
		case *cmpp.Deliver:
			resp = &cmpp.DeliverResp{MsgID: p.MsgID}
		}
		if err := s.Reply(hd.Sequence, resp, nil); err != nil {
			tb.Errorf("reply: %v", err)
		}
	}}
}

func TestBothDirectionsOverTCP(t *testing.T) {
	t.Parallel()
	const submits, delivers = 20_000, 5_000
	c, s := tcpPair(t, session.Config{Window: 32})
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	var atServer, atClient atomic.Int64
	var ends sync.WaitGroup
	ends.Go(func() {
		if err := c.Run(ctx, answering(t, &atClient)); err != nil {
			t.Errorf("client: %v", err)
		}
	})
	ends.Go(func() {
		err := s.Run(t.Context(), answering(t, &atServer))
		if !errors.Is(err, session.ErrTerminated) && !errors.Is(err, io.EOF) {
			t.Errorf("server: %v", err)
		}
	})
	var pumps sync.WaitGroup
	pumps.Go(func() { pump(t, c, submits, submit("over TCP")) })
	pumps.Go(func() { pump(t, s, delivers, deliver("and back")) })
	pumps.Wait()
	stop()
	ends.Wait()
	if atServer.Load() != submits || atClient.Load() != delivers {
		t.Errorf("server took %d, client %d", atServer.Load(), atClient.Load())
	}
	if !errors.Is(c.Cause(), session.ErrStopped) {
		t.Errorf("client ended by %v", c.Cause())
	}
}

// Our last answer reaches the peer although octets of the peer's are left
// unread, which would make the kernel reset the connection and drop the answer.
func TestLastAnswerIsReadOverTCP(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		status uint32
		want   error
	}{
		"refusal":   {55, nil},
		"TERMINATE": {0, session.ErrTerminated},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			conn, accepted := dial(t)
			wait := attempt(func() (*session.Session, error) {
				s, err := session.Accept(t.Context(), accepted, session.Config{}, func(context.Context, *cmpp.Connect, net.Addr) (session.Welcome, error) {
					return session.Welcome{Status: c.status}, nil
				})
				if err == nil {
					err = s.Run(t.Context(), handler{})
				}
				return s, err
			})
			p := newPeer(t, conn, cmpp.V30)
			octets := encode(t, cmpp.V30, 1, connect(cmpp.V30))
			if c.status == 0 {
				octets = append(octets, encode(t, cmpp.V30, 2, &cmpp.Terminate{})...)
			}
			for i := range 500 { // far more than one read takes
				octets = append(octets, encode(t, cmpp.V30, uint32(i), submit("eager"))...)
			}
			p.raw(octets)
			if _, resp := expect[*cmpp.ConnectResp](p); resp.Status != c.status {
				t.Errorf("status %d, want %d", resp.Status, c.status)
			}
			if c.status == 0 {
				expect[*cmpp.TerminateResp](p)
			}
			p.waitClose()
			_ = conn.Close()
			_, err := wait()
			if refused, ok := errors.AsType[*session.RefusedError](err); ok != (c.status != 0) || ok && refused.Status != c.status {
				t.Errorf("ended by %v", err)
			}
			if c.want != nil && !errors.Is(err, c.want) {
				t.Errorf("ended by %v, want %v", err, c.want)
			}
		})
	}
}

func BenchmarkSubmit(b *testing.B) {
	for name, window := range map[string]int{"window16": 16, "window32": 32, "window128": 128} {
		b.Run(name, func(b *testing.B) {
			c, s := tcpPair(b, session.Config{Window: window})
			var taken atomic.Int64
			var ends sync.WaitGroup
			ends.Go(func() { _ = c.Run(b.Context(), handler{}) })
			ends.Go(func() { _ = s.Run(b.Context(), answering(b, &taken)) })
			pdu := submit("a text of ordinary length, seventy characters or so, as most of them")
			b.ReportAllocs()
			b.ResetTimer()
			pump(b, c, b.N, pdu)
			b.StopTimer()
			b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "submits/s")
			c.Close(nil)
			s.Close(nil)
			ends.Wait()
		})
	}
}
