package session_test

import (
	"errors"
	"io"
	"net"
	"testing"
	"time"

	"cmppgateway/gateway/cmpp"
	"cmppgateway/gateway/internal/session"
)

// Whatever octets a peer sends after its login, the session ends for a reason of
// the link's, its call has one outcome, and no callback is called for nothing.
func FuzzInbound(f *testing.F) {
	seeds := [][]byte{
		[]byte("GET / HTTP/1.1\r\n\r\n"),
		{0, 0, 0, 12, 0, 0, 0, 9, 0, 0, 0, 1},
		{0, 0, 0, 12, 0, 0, 0, 4, 0, 0, 0, 1},
		{0, 0, 0, 12, 0x80, 0, 0, 5, 0, 0, 0, 1},
	}
	for _, p := range []cmpp.PDU{
		submit("hi"), &cmpp.ActiveTest{}, &cmpp.Terminate{}, &cmpp.DeliverResp{}, &cmpp.Query{}, &cmpp.Cancel{}, connect(cmpp.V30),
	} {
		octets, err := p.Append(nil, cmpp.V30, 1)
		if err != nil {
			f.Fatal(err)
		}
		seeds = append(seeds, octets, octets[:len(octets)-1], append(octets, octets...))
	}
	for _, seed := range seeds {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, octets []byte) {
		ours, theirs := net.Pipe()
		wait := attempt(func() (*session.Session, error) {
			return session.Accept(t.Context(), ours, session.Config{}, letIn)
		})
		p := newPeer(t, theirs, cmpp.V30)
		p.send(1, connect(cmpp.V30))
		s, err := wait()
		if err != nil {
			t.Fatal(err)
		}
		s.Acquire(1)
		outcomes, one := calls([]cmpp.PDU{deliver("in flight")})
		if err := s.Send(one); err != nil {
			t.Fatal(err)
		}
		ended := make(chan error, 1)
		go func() {
			ended <- s.Run(t.Context(), handler{
				request: func(s *session.Session, hd cmpp.Header, p cmpp.PDU) {
					if p == nil || hd.Command != p.Command() {
						t.Errorf("handed %T for %v", p, hd.Command)
					}
					_ = s.Reply(hd.Sequence, &cmpp.SubmitResp{}, nil) // may be full or over
				},
				bad: func(_ *session.Session, _ cmpp.Header, err *cmpp.DecodeError) {
					if err == nil || err.Result == 0 {
						t.Errorf("bad request without a result: %v", err)
					}
				},
			})
		}()
		_ = theirs.SetWriteDeadline(time.Now().Add(time.Minute))
		_, _ = theirs.Write(octets) // the session may end at any octet
		_ = theirs.Close()
		if err := <-ended; err == nil || errors.As(err, new(*session.PanicError)) {
			t.Errorf("ended by %v", err)
		} else if errors.Is(err, io.ErrNoProgress) {
			t.Errorf("reader spun: %v", err)
		}
		if o := <-outcomes; o.Err == nil && o.Resp == nil {
			t.Errorf("outcome %+v", o)
		}
	})
}
