package session_test

import (
	"errors"
	"io"
	"net"
	"os"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"cmppgateway/gateway/cmpp"
	"cmppgateway/gateway/internal/session"
)

// gated is a connection whose writes wait while it is closed.
type gated struct {
	net.Conn
	closed atomic.Bool
	open   chan struct{}
}

func (c *gated) Write(p []byte) (int, error) {
	if c.closed.Load() {
		<-c.open
	}
	return c.Conn.Write(p)
}

// echo answers every SUBMIT with its content's length as Msg_Id.
func echo(t *testing.T) handler {
	t.Helper()
	return handler{request: func(s *session.Session, hd cmpp.Header, p cmpp.PDU) {
		resp := &cmpp.SubmitResp{MsgID: cmpp.MsgID(len(p.(*cmpp.Submit).MsgContent))}
		if err := s.Reply(hd.Sequence, resp, nil); err != nil && !errors.Is(err, session.ErrClosed) {
			t.Errorf("reply: %v", err)
		}
	}}
}

func TestSilentPeerIsTestedThenCut(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		l := server(t, setup{cfg: session.Config{IdleInterval: 30 * time.Second, ResponseTimeout: 10 * time.Second, Tries: 3}})
		begin := time.Now()
		seqs := map[uint32]bool{}
		for i := range 3 {
			hd, _ := expect[*cmpp.ActiveTest](l.peer)
			seqs[hd.Sequence] = true
			if at, want := time.Since(begin), time.Duration(30+10*i)*time.Second; at != want {
				t.Errorf("test %d after %v, want %v", i+1, at, want)
			}
		}
		if len(seqs) != 3 {
			t.Errorf("%d different sequences in 3 tests", len(seqs))
		}
		l.wantEnd(session.ErrDead)
		if at := time.Since(begin); at != 60*time.Second {
			t.Errorf("cut after %v, want 1m0s", at)
		}
		l.peer.waitClose()
	})
}

func TestAnyFrameProvesLife(t *testing.T) {
	t.Parallel()
	for name, frame := range map[string]cmpp.PDU{
		"ACTIVE_TEST_RESP": &cmpp.ActiveTestResp{},
		"ACTIVE_TEST":      &cmpp.ActiveTest{},
		"SUBMIT":           submit("alive"),
		"stray answer":     &cmpp.DeliverResp{},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				l := server(t, setup{cfg: session.Config{IdleInterval: 30 * time.Second, ResponseTimeout: 10 * time.Second, Tries: 2}})
				for range 20 { // 20 times one miss, never two in a row
					begin := time.Now()
					for {
						if _, ok := (<-l.peer.frames).pdu.(*cmpp.ActiveTest); ok {
							break
						}
					}
					if at := time.Since(begin); at != 30*time.Second && at != 25*time.Second {
						t.Fatalf("test after %v of silence", at)
					}
					time.Sleep(5 * time.Second)
					l.peer.send(1, frame)
					time.Sleep(5 * time.Second)
				}
				if err := l.Cause(); err != nil {
					t.Errorf("link ended: %v", err)
				}
			})
		})
	}
}

// An old peer's answer to ACTIVE_TEST has no reserved octet.
func TestShortActiveTestResp(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		l := server(t, setup{cfg: session.Config{IdleInterval: 30 * time.Second, Tries: 1}})
		for range 5 {
			hd, _ := expect[*cmpp.ActiveTest](l.peer)
			octets := encode(t, cmpp.V20, hd.Sequence, &cmpp.ActiveTestResp{})[:12]
			octets[3] = 12
			l.peer.raw(octets)
		}
		if err := l.Cause(); err != nil {
			t.Errorf("link ended: %v", err)
		}
	})
}

func TestLinkTestIsAnsweredDuringAFlood(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var taken atomic.Int32
		l := server(t, setup{handler: handler{request: func(*session.Session, cmpp.Header, cmpp.PDU) { taken.Add(1) }}})
		for i := range 500 {
			l.peer.send(uint32(i), submit("flood"))
			if i%100 == 50 {
				l.peer.send(uint32(i), &cmpp.ActiveTest{})
				if hd, _ := expect[*cmpp.ActiveTestResp](l.peer); hd.Sequence != uint32(i) || hd.Length != 13 {
					t.Errorf("answer %+v to %d", hd, i)
				}
			}
		}
		synctest.Wait()
		if taken.Load() != 500 {
			t.Errorf("handler took %d of 500", taken.Load())
		}
	})
}

func TestFramesCutAtEveryOctet(t *testing.T) {
	t.Parallel()
	stream := encode(t, cmpp.V30, 1, submit("one"))
	stream = append(stream, encode(t, cmpp.V30, 2, &cmpp.ActiveTest{})...)
	stream = append(stream, encode(t, cmpp.V30, 3, submit("three"))...)
	check := func(t *testing.T, p *peer) {
		t.Helper()
		ids := map[uint32]cmpp.MsgID{}
		for range 3 {
			f := <-p.frames
			switch resp := f.pdu.(type) {
			case *cmpp.SubmitResp:
				ids[f.hd.Sequence] = resp.MsgID
			case *cmpp.ActiveTestResp:
				ids[f.hd.Sequence] = 0
			default:
				t.Fatalf("got %T, %v", f.pdu, f.err)
			}
		}
		if len(ids) != 3 || ids[1] != 3 || ids[3] != 5 {
			t.Fatalf("answers %v", ids)
		}
	}
	synctest.Test(t, func(t *testing.T) {
		l := server(t, setup{handler: echo(t)})
		for cut := range len(stream) + 1 {
			l.peer.raw(stream[:cut])
			time.Sleep(9 * time.Second) // a pause the frame timeout still allows
			l.peer.raw(stream[cut:])
			check(t, l.peer)
		}
		for i := range stream {
			l.peer.raw(stream[i : i+1])
		}
		check(t, l.peer)
	})
}

func TestStallInsideAFrame(t *testing.T) {
	t.Parallel()
	octets := encode(t, cmpp.V30, 1, submit("stalled"))
	for _, cut := range []int{1, 3, 4, 11, 12, len(octets) - 1} {
		synctest.Test(t, func(t *testing.T) {
			l := server(t, setup{handler: echo(t), cfg: session.Config{FrameTimeout: 8 * time.Second, IdleInterval: time.Hour}})
			time.Sleep(50 * time.Minute) // silence between frames is no fault of the reader's
			l.peer.raw(octets)
			expect[*cmpp.SubmitResp](l.peer)
			begin := time.Now()
			l.peer.raw(octets[:cut])
			l.wantEnd(session.ErrStalled)
			if at := time.Since(begin); at != 8*time.Second {
				t.Errorf("cut at octet %d: ended after %v, want 8s", cut, at)
			}
			l.peer.waitClose()
		})
	}
}

// Octets that trickle do not extend the time a frame has.
func TestTrickle(t *testing.T) {
	t.Parallel()
	octets := encode(t, cmpp.V30, 1, submit("trickle"))
	synctest.Test(t, func(t *testing.T) {
		l := server(t, setup{cfg: session.Config{FrameTimeout: 8 * time.Second}})
		begin := time.Now()
		for i := range octets {
			if _, err := l.peer.conn.Write(octets[i : i+1]); err != nil {
				break
			}
			time.Sleep(time.Second)
		}
		l.wantEnd(session.ErrStalled)
		if at := time.Since(begin); at > 10*time.Second {
			t.Errorf("ended after %v, want about 8s", at)
		}
	})
}

// Frames that follow each other without a pause each have their own time.
func TestFrameTimeStartsAnew(t *testing.T) {
	t.Parallel()
	octets := encode(t, cmpp.V30, 1, submit("and the next"))
	half := len(octets) / 2
	synctest.Test(t, func(t *testing.T) {
		l := server(t, setup{handler: echo(t), cfg: session.Config{FrameTimeout: 8 * time.Second}})
		l.peer.raw(octets[:half])
		for range 10 {
			time.Sleep(6 * time.Second)
			l.peer.raw(append(append([]byte(nil), octets[half:]...), octets[:half]...))
			expect[*cmpp.SubmitResp](l.peer)
		}
	})
}

func TestBadLengthCloses(t *testing.T) {
	t.Parallel()
	for _, length := range []byte{0, 11} {
		synctest.Test(t, func(t *testing.T) {
			l := server(t, setup{})
			l.peer.raw([]byte{0, 0, 0, length})
			err := <-l.ended
			if bad, ok := errors.AsType[*cmpp.FrameError](err); !ok || bad.Length != uint32(length) {
				t.Errorf("length %d: ended by %v", length, err)
			}
			l.peer.waitClose()
		})
	}
}

func TestUndecodableRequestKeepsTheLink(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		h := echo(t)
		h.bad = func(s *session.Session, hd cmpp.Header, err *cmpp.DecodeError) {
			if e := s.Reply(hd.Sequence, &cmpp.SubmitResp{Result: err.Result}, nil); e != nil {
				t.Errorf("reply: %v", e)
			}
		}
		l := server(t, setup{handler: h})
		octets := encode(t, cmpp.V30, 5, submit("0123456789"))
		octets[len(octets)-31] = 200 // Msg_Length, before 10 octets of content and 20 of LinkID
		l.peer.raw(octets)
		if hd, resp := expect[*cmpp.SubmitResp](l.peer); hd.Sequence != 5 || resp.Result == 0 {
			t.Errorf("answer %+v to sequence %d", resp, hd.Sequence)
		}
		l.peer.send(6, submit("good"))
		if _, resp := expect[*cmpp.SubmitResp](l.peer); resp.Result != 0 {
			t.Errorf("answer %+v to a good one", resp)
		}
	})
}

func TestUnknownCommandsKeepTheLink(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		l := server(t, setup{handler: echo(t)})
		for i := range 3 {
			l.peer.raw([]byte{0, 0, 0, 12, 0, 0, 0, 9, 0, 0, 0, byte(i)})    // FWD
			l.peer.raw([]byte{0, 0, 0, 12, 0x80, 0, 0, 9, 0, 0, 0, byte(i)}) // its answer
			l.peer.send(uint32(i), deliver("the wrong way"))
		}
		l.peer.send(9, submit("ok"))
		expect[*cmpp.SubmitResp](l.peer)
		l.Close(nil)
		l.wantEnd(session.ErrClosed)
		if n := strings.Count(l.logged.String(), "command not served"); n != 1 {
			t.Errorf("logged %d times: %s", n, l.logged)
		}
		if n := strings.Count(l.logged.String(), "answer dropped"); n != 1 {
			t.Errorf("logged %d times: %s", n, l.logged)
		}
	})
}

func TestSecondConnect(t *testing.T) {
	t.Parallel()
	for _, start := range []func(*testing.T, setup) *link{client, server} {
		synctest.Test(t, func(t *testing.T) {
			l := start(t, setup{})
			l.peer.send(77, connect(cmpp.V30))
			if hd, resp := expect[*cmpp.ConnectResp](l.peer); hd.Sequence != 77 || resp.Status == 0 {
				t.Errorf("answer %+v to sequence %d", resp, hd.Sequence)
			}
			l.wantEnd(session.ErrSecondConnect)
			l.peer.waitClose()
		})
	}
}

func TestPeerTerminates(t *testing.T) {
	t.Parallel()
	for _, start := range []func(*testing.T, setup) *link{client, server} {
		synctest.Test(t, func(t *testing.T) {
			l := start(t, setup{})
			outcomes := l.call(deliver("in flight"))
			<-l.peer.frames
			l.peer.send(12, &cmpp.Terminate{})
			if hd, _ := expect[*cmpp.TerminateResp](l.peer); hd.Sequence != 12 {
				t.Errorf("answered %d, want 12", hd.Sequence)
			}
			l.wantEnd(session.ErrTerminated)
			wantOutcome(t, <-outcomes, 0, session.ErrClosed, true)
			l.peer.waitClose()
			if l.Acquire(1) != 0 || l.Free() != 0 {
				t.Error("slots after the end")
			}
		})
	}
}

// Once the peer's TERMINATE is being answered, a call would be lost for certain.
func TestNoCallsBehindTheLastAnswer(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		gate := &gated{open: make(chan struct{})}
		l := client(t, setup{wrap: func(c net.Conn) net.Conn {
			gate.Conn = c
			return gate
		}})
		l.Acquire(1)
		gate.closed.Store(true)
		l.peer.send(1, &cmpp.Terminate{})
		synctest.Wait()
		outcomes, one := calls([]cmpp.PDU{submit("too late")})
		if err := l.Send(one); !errors.Is(err, session.ErrClosed) {
			t.Errorf("send: %v", err)
		}
		wantOutcome(t, <-outcomes, 0, session.ErrNotSent, false)
		close(gate.open)
		expect[*cmpp.TerminateResp](l.peer)
		l.wantEnd(session.ErrTerminated)
	})
}

func TestGracefulStop(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		answer func(l *link, seq uint32)
		after  time.Duration
	}{
		"answered": {func(l *link, seq uint32) { l.peer.send(seq, &cmpp.TerminateResp{}) }, 0},
		"closed":   {func(l *link, _ uint32) { _ = l.peer.conn.Close() }, 0},
		"crossed": {func(l *link, _ uint32) {
			l.peer.send(5, &cmpp.Terminate{})
			expect[*cmpp.TerminateResp](l.peer)
		}, 0},
		"ignored": {func(*link, uint32) {}, 5 * time.Second},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				l := client(t, setup{})
				outcomes := l.call(submit("answered"), submit("in flight"))
				answered, _ := expect[*cmpp.Submit](l.peer)
				expect[*cmpp.Submit](l.peer)
				l.Acquire(1)
				begin := time.Now()
				l.stop()
				hd, _ := expect[*cmpp.Terminate](l.peer)

				late, one := calls([]cmpp.PDU{submit("too late")})
				if err := l.Send(one); !errors.Is(err, session.ErrClosed) {
					t.Errorf("send while stopping: %v", err)
				}
				wantOutcome(t, <-late, 0, session.ErrNotSent, false)
				if l.Free() != 0 {
					t.Error("slots while stopping")
				}
				l.peer.send(answered.Sequence, &cmpp.SubmitResp{}) // still taken
				wantOutcome(t, <-outcomes, 0, nil, true)

				c.answer(l, hd.Sequence)
				if err := <-l.ended; err != nil {
					t.Errorf("Run returned %v", err)
				}
				if took := time.Since(begin); took != c.after || !errors.Is(l.Cause(), session.ErrStopped) {
					t.Errorf("stopped after %v by %v", took, l.Cause())
				}
				wantOutcome(t, <-outcomes, 1, session.ErrClosed, true)
			})
		})
	}
}

func TestCloseBeforeRun(t *testing.T) {
	t.Parallel()
	ours, theirs := net.Pipe()
	wait := attempt(func() (*session.Session, error) {
		return session.Accept(t.Context(), theirs, session.Config{}, letIn)
	})
	s, err := login(t.Context(), ours, cmpp.V30)
	if err != nil {
		t.Fatal(err)
	}
	other, err := wait()
	if err != nil {
		t.Fatal(err)
	}
	other.Close(nil)
	s.Acquire(1)
	outcomes, one := calls([]cmpp.PDU{submit("queued")})
	if err := s.Send(one); err != nil {
		t.Fatalf("send: %v", err)
	}
	written := make(chan error, 1)
	if err := s.Reply(1, &cmpp.DeliverResp{}, func(err error) { written <- err }); err != nil {
		t.Fatalf("reply: %v", err)
	}
	broken := errors.New("broken")
	s.Close(broken)
	s.Close(nil)
	wantOutcome(t, <-outcomes, 0, session.ErrNotSent, false)
	if err := <-written; !errors.Is(err, session.ErrNotSent) {
		t.Errorf("reply told %v", err)
	}
	if err := s.Run(t.Context(), handler{}); !errors.Is(err, broken) {
		t.Errorf("Run returned %v", err)
	}
	if err := s.Reply(1, &cmpp.DeliverResp{}, func(error) { t.Error("told twice") }); !errors.Is(err, session.ErrClosed) {
		t.Errorf("reply after the end: %v", err)
	}
}

func TestReplyTellsWhenWritten(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		gate := &gated{open: make(chan struct{})}
		l := server(t, setup{wrap: func(c net.Conn) net.Conn {
			gate.Conn = c
			return gate
		}})
		gate.closed.Store(true)
		written := make(chan error, 1)
		if err := l.Reply(3, &cmpp.SubmitResp{}, func(err error) { written <- err }); err != nil {
			t.Fatalf("reply: %v", err)
		}
		synctest.Wait()
		if len(written) != 0 {
			t.Error("told before the write")
		}
		close(gate.open)
		if err := <-written; err != nil {
			t.Errorf("told %v", err)
		}
		expect[*cmpp.SubmitResp](l.peer)
	})
}

// A peer that never reads is cut by the write timeout, and what waits for it is bounded.
func TestSlowReader(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		gate := &stuck{}
		l := server(t, setup{
			cfg:  session.Config{OutQueue: 10, WriteTimeout: 7 * time.Second},
			wrap: func(c net.Conn) net.Conn { gate.Conn = c; return gate },
		})
		gate.on.Store(true)
		begin := time.Now()
		told := make(chan error, 100)
		tell := func(err error) { told <- err }
		if err := l.Reply(0, &cmpp.SubmitResp{}, tell); err != nil {
			t.Fatalf("reply: %v", err)
		}
		synctest.Wait() // the writer has taken it and waits for the peer
		queued := 0
		for queued < 50 && !errors.Is(l.Reply(1, &cmpp.SubmitResp{}, tell), session.ErrQueueFull) {
			queued++
		}
		if queued != 10 {
			t.Errorf("%d replies queued, want 10", queued)
		}
		l.wantEnd(os.ErrDeadlineExceeded)
		if at := time.Since(begin); at != 7*time.Second {
			t.Errorf("cut after %v, want 7s", at)
		}
		for range 11 {
			if err := <-told; !errors.Is(err, session.ErrNotSent) {
				t.Errorf("told %v", err)
			}
		}
	})
}

// stuck is a connection whose peer stops reading.
type stuck struct {
	net.Conn
	on       atomic.Bool
	deadline time.Time
}

func (c *stuck) SetWriteDeadline(t time.Time) error {
	c.deadline = t
	return c.Conn.SetWriteDeadline(t)
}

func (c *stuck) Write(p []byte) (int, error) {
	if c.on.Load() {
		time.Sleep(time.Until(c.deadline))
		return 0, os.ErrDeadlineExceeded
	}
	return c.Conn.Write(p)
}

func TestPeerThatAsksAndNeverReads(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		gate := &stuck{}
		l := server(t, setup{
			cfg:  session.Config{WriteTimeout: time.Hour},
			wrap: func(c net.Conn) net.Conn { gate.Conn = c; return gate },
		})
		gate.on.Store(true)
		octets := encode(t, cmpp.V30, 1, &cmpp.ActiveTest{})
		l.peer.raw(octets)
		synctest.Wait() // the writer has taken it and waits for the peer
		for range session.MaxControls + 1 {
			if _, err := l.peer.conn.Write(octets); err != nil {
				break
			}
		}
		l.wantEnd(session.ErrSlowPeer)
	})
}

func TestPeerCloses(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		l := client(t, setup{})
		outcomes := l.call(submit("in flight"))
		expect[*cmpp.Submit](l.peer)
		_ = l.peer.conn.Close()
		l.wantEnd(io.EOF)
		wantOutcome(t, <-outcomes, 0, session.ErrClosed, true)
		if err := l.Run(t.Context(), handler{}); !errors.Is(err, io.EOF) {
			t.Errorf("Run again returned %v", err)
		}
	})
}

func TestPanicEndsOnlyItsSession(t *testing.T) {
	t.Parallel()
	boom := func() { panic("boom") }
	for name, provoke := range map[string]struct {
		handler handler
		do      func(l *link)
	}{
		"OnRequest": {
			handler{request: func(*session.Session, cmpp.Header, cmpp.PDU) { boom() }},
			func(l *link) { l.peer.send(1, submit("x")) },
		},
		"OnBadRequest": {
			handler{bad: func(*session.Session, cmpp.Header, *cmpp.DecodeError) { boom() }},
			func(l *link) { l.peer.raw([]byte{0, 0, 0, 12, 0, 0, 0, 4, 0, 0, 0, 1}) },
		},
		"OnLateResponse": {
			handler{late: func(*session.Session, cmpp.Header, cmpp.PDU, any) { boom() }},
			func(l *link) {
				<-l.call(deliver("x"))
				hd, _ := expect[*cmpp.Deliver](l.peer)
				l.peer.send(hd.Sequence, &cmpp.DeliverResp{})
			},
		},
		"Done": {handler{}, func(l *link) {
			l.Acquire(1)
			if err := l.Send([]session.Call{{PDU: deliver("x"), Done: func(session.Outcome) { boom() }}}); err != nil {
				l.t.Errorf("send: %v", err)
			}
			hd, _ := expect[*cmpp.Deliver](l.peer)
			l.peer.send(hd.Sequence, &cmpp.DeliverResp{})
		}},
		"written": {handler{}, func(l *link) {
			if err := l.Reply(1, &cmpp.SubmitResp{}, func(error) { boom() }); err != nil {
				l.t.Errorf("reply: %v", err)
			}
		}},
		"OnWindow": {handler{}, func(l *link) {
			l.OnWindow(boom)
			l.call(deliver("x"))
		}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				l := server(t, setup{handler: provoke.handler, cfg: session.Config{ResponseTimeout: time.Second}})
				l.Acquire(2)
				outcomes, two := calls([]cmpp.PDU{deliver("a"), deliver("b")})
				if name == "Done" { // others in flight still learn their end
					if err := l.Send(two); err != nil {
						t.Fatalf("send: %v", err)
					}
					expect[*cmpp.Deliver](l.peer)
					expect[*cmpp.Deliver](l.peer)
				}
				provoke.do(l)
				err := <-l.ended
				if p, ok := errors.AsType[*session.PanicError](err); !ok || p.Value != "boom" || len(p.Stack) == 0 {
					t.Errorf("ended by %v", err)
				}
				if name == "Done" {
					wantOutcome(t, <-outcomes, (<-outcomes).Token.(int)^1, session.ErrClosed, true)
				}
			})
		})
	}
}

// The handler keeps what it was given; the next frame must not change it.
func TestContentBelongsToTheHandler(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		kept := make(chan *cmpp.Submit, 100)
		l := server(t, setup{handler: handler{request: func(_ *session.Session, _ cmpp.Header, p cmpp.PDU) {
			kept <- p.(*cmpp.Submit)
		}}})
		for i := range 100 {
			l.peer.send(uint32(i), submit(strings.Repeat(string(rune('!'+i%90)), 100)))
		}
		synctest.Wait()
		for i := range 100 {
			if p := <-kept; string(p.MsgContent) != strings.Repeat(string(rune('!'+i%90)), 100) {
				t.Fatalf("request %d was overwritten: %q", i, p.MsgContent)
			}
		}
	})
}
