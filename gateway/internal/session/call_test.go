package session_test

import (
	"errors"
	"math"
	"math/rand/v2"
	"net"
	"os"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"cmppgateway/gateway/cmpp"
	"cmppgateway/gateway/internal/session"
)

func TestAnswersInAnyOrder(t *testing.T) {
	t.Parallel()
	for _, v := range versions {
		synctest.Test(t, func(t *testing.T) {
			l := client(t, setup{version: v})
			outcomes := l.call(submit("a"), submit("b"), submit("c"))
			var seqs []uint32
			for range 3 {
				hd, _ := expect[*cmpp.Submit](l.peer)
				seqs = append(seqs, hd.Sequence)
			}
			time.Sleep(time.Second)
			for _, i := range []int{2, 0, 1} {
				l.peer.send(seqs[i], &cmpp.SubmitResp{MsgID: cmpp.MsgID(100 + i)})
				o := <-outcomes
				wantOutcome(t, o, i, nil, true)
				if got := o.Resp.(*cmpp.SubmitResp).MsgID; got != cmpp.MsgID(100+i) || o.Sequence != seqs[i] || o.RTT != time.Second {
					t.Errorf("call %d got Msg_Id %d, sequence %d, RTT %v", i, got, o.Sequence, o.RTT)
				}
			}
			if l.InFlight() != 0 || l.Free() != 16 {
				t.Errorf("in flight %d, free %d", l.InFlight(), l.Free())
			}
		})
	}
}

func TestWindow(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		l := client(t, setup{cfg: session.Config{Window: 4}})
		if got := l.Acquire(-1); got != 0 {
			t.Errorf("acquired %d of -1", got)
		}
		if got := l.Acquire(10); got != 4 || l.Free() != 0 || l.Acquire(1) != 0 {
			t.Errorf("acquired %d of a window of 4, %d left", got, l.Free())
		}
		l.Release(2)
		l.Release(100) // more than is reserved: only what is
		if l.Free() != 4 {
			t.Errorf("free %d after release, want 4", l.Free())
		}

		l.Acquire(1)
		outcomes, two := calls([]cmpp.PDU{submit("a"), submit("b")})
		if err := l.Send(two); !errors.Is(err, session.ErrWindow) {
			t.Errorf("two calls on one slot: %v", err)
		}
		wantOutcome(t, <-outcomes, 0, session.ErrNotSent, false)
		wantOutcome(t, <-outcomes, 1, session.ErrNotSent, false)
		if free, reserved, pending := l.Accounts(); free != 3 || reserved != 1 || pending != 0 {
			t.Errorf("free %d, reserved %d, pending %d", free, reserved, pending)
		}
		l.Release(1)

		outcomes = l.call(submit("a"), submit("b"), submit("c"), submit("d"))
		if l.InFlight() != 4 || l.Acquire(1) != 0 {
			t.Errorf("in flight %d, and a slot beyond the window", l.InFlight())
		}
		freed := make(chan int, 1)
		l.OnWindow(func() { freed <- l.Free() })
		hd, _ := expect[*cmpp.Submit](l.peer)
		l.peer.send(hd.Sequence, &cmpp.SubmitResp{})
		if got := <-freed; got != 1 {
			t.Errorf("%d slots free when told so, want 1", got)
		}
		wantOutcome(t, <-outcomes, 0, nil, true)
	})
}

// Four senders, a peer that answers in random order or not at all: it never
// holds more than the window, and every call has one outcome.
func TestWindowIsNeverExceeded(t *testing.T) {
	t.Parallel()
	const window, senders, each = 8, 4, 300
	const seed = 7
	synctest.Test(t, func(t *testing.T) {
		l := client(t, setup{cfg: session.Config{Window: window, ResponseTimeout: time.Second}})
		room := make(chan struct{}, senders)
		l.OnWindow(func() {
			for range senders {
				select {
				case room <- struct{}{}:
				default:
				}
			}
		})
		var mu sync.Mutex
		ends := map[int]int{}
		var sending sync.WaitGroup
		for sender := range senders {
			sending.Go(func() {
				random := rand.New(rand.NewPCG(seed, uint64(sender)))
				for sent := 0; sent < each; {
					n := l.Acquire(min(1+random.IntN(5), each-sent))
					if n == 0 {
						<-room
						continue
					}
					if n > 1 && random.IntN(4) == 0 {
						l.Release(1)
						n--
					}
					batch := make([]session.Call, n)
					for i := range batch {
						token := sender*each + sent + i
						batch[i] = session.Call{PDU: submit("x"), Token: token, Done: func(o session.Outcome) {
							mu.Lock()
							defer mu.Unlock()
							ends[o.Token.(int)]++
						}}
					}
					if err := l.Send(batch); err != nil {
						t.Errorf("send: %v", err)
						return
					}
					sent += n
				}
			})
		}
		random := rand.New(rand.NewPCG(seed, 99))
		var held []uint32
		most, ignored := 0, 0 // ignored: never answered, and holding a slot still
		for seen := 0; seen < senders*each || len(held) > 0; {
			select {
			case f := <-l.peer.frames:
				if f.err != nil {
					t.Fatalf("peer: %v", f.err)
				}
				seen++
				if random.IntN(20) == 0 {
					ignored++
				} else {
					held = append(held, f.hd.Sequence)
				}
				most = max(most, len(held)+ignored)
				continue
			default:
			}
			if len(held) == 0 || random.IntN(3) == 0 {
				synctest.Wait()
				if len(held) == 0 && len(l.peer.frames) == 0 && seen < senders*each {
					time.Sleep(time.Second) // all slots wait for their timeout
					ignored = 0
				}
				continue
			}
			i := random.IntN(len(held))
			l.peer.send(held[i], &cmpp.SubmitResp{})
			held = slices.Delete(held, i, i+1)
		}
		time.Sleep(time.Second)
		synctest.Wait()
		sending.Wait()
		mu.Lock()
		defer mu.Unlock()
		if most != window {
			t.Errorf("seed %d: the peer held %d at most, window %d", seed, most, window)
		}
		for token := range senders * each {
			if ends[token] != 1 {
				t.Fatalf("seed %d: call %d has %d outcomes", seed, token, ends[token])
			}
		}
		if free, reserved, pending := l.Accounts(); free != window || reserved != 0 || pending != 0 {
			t.Errorf("seed %d: free %d, reserved %d, pending %d", seed, free, reserved, pending)
		}
	})
}

func TestTimeoutFreesTheSlotOnceAndKeepsTheToken(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		type lateAnswer struct {
			seq   uint32
			id    cmpp.MsgID
			token any
		}
		late := make(chan lateAnswer, 4)
		l := client(t, setup{
			cfg: session.Config{Window: 3, ResponseTimeout: 10 * time.Second},
			handler: handler{late: func(_ *session.Session, hd cmpp.Header, p cmpp.PDU, token any) {
				late <- lateAnswer{hd.Sequence, p.(*cmpp.SubmitResp).MsgID, token}
			}},
		})
		first := l.call(submit("a"), submit("b"))
		begin := time.Now()
		hd, _ := expect[*cmpp.Submit](l.peer)
		expect[*cmpp.Submit](l.peer)
		time.Sleep(4 * time.Second)
		second := l.call(submit("c"))
		wantOutcome(t, <-first, 0, session.ErrTimeout, true)
		wantOutcome(t, <-first, 1, session.ErrTimeout, true)
		if waited := time.Since(begin); waited != 10*time.Second {
			t.Errorf("timed out after %v, want 10s", waited)
		}
		if l.Free() != 2 || l.InFlight() != 1 {
			t.Errorf("free %d, in flight %d, want 2 and 1", l.Free(), l.InFlight())
		}

		l.peer.send(hd.Sequence, &cmpp.SubmitResp{MsgID: 42})
		if got := <-late; got != (lateAnswer{hd.Sequence, 42, 0}) {
			t.Errorf("late answer %+v", got)
		}
		l.peer.send(hd.Sequence, &cmpp.SubmitResp{MsgID: 43}) // and once more
		synctest.Wait()
		if len(late) != 0 || l.Free() != 2 {
			t.Errorf("%d more late answers, free %d", len(late), l.Free())
		}

		wantOutcome(t, <-second, 0, session.ErrTimeout, true)
		if waited := time.Since(begin); waited != 14*time.Second || l.Free() != 3 {
			t.Errorf("the later call timed out after %v, free %d", waited, l.Free())
		}
	})
}

func TestOneNumberInBothDirections(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		requests := make(chan uint32, 1)
		l := client(t, setup{handler: handler{request: func(s *session.Session, hd cmpp.Header, p cmpp.PDU) {
			requests <- hd.Sequence
			if err := s.Reply(hd.Sequence, &cmpp.DeliverResp{MsgID: p.(*cmpp.Deliver).MsgID}, nil); err != nil {
				t.Errorf("reply: %v", err)
			}
		}}})
		outcomes := l.call(submit("a"))
		hd, _ := expect[*cmpp.Submit](l.peer)
		l.peer.send(hd.Sequence, deliver("up"))
		if got := <-requests; got != hd.Sequence {
			t.Errorf("request %d, want %d", got, hd.Sequence)
		}
		if answer, _ := expect[*cmpp.DeliverResp](l.peer); answer.Sequence != hd.Sequence {
			t.Errorf("answered %d, want %d", answer.Sequence, hd.Sequence)
		}
		l.peer.send(hd.Sequence, &cmpp.DeliverResp{}) // answers no call of ours: another command
		synctest.Wait()
		if l.InFlight() != 1 {
			t.Error("the call was ended by an answer to another command")
		}
		l.peer.send(hd.Sequence, &cmpp.SubmitResp{})
		wantOutcome(t, <-outcomes, 0, nil, true)
	})
}

func TestSequenceWrapsAndAvoidsOutstanding(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		l := client(t, setup{cfg: session.Config{ResponseTimeout: time.Second}})
		l.SetSequence(math.MaxUint32 - 2)
		outcomes := l.call(submit("a"), submit("b"), submit("c"), submit("d"))
		want := []uint32{math.MaxUint32 - 1, math.MaxUint32, 0, 1}
		for i := range want {
			if hd, _ := expect[*cmpp.Submit](l.peer); hd.Sequence != want[i] {
				t.Errorf("frame %d has sequence %d, want %d", i, hd.Sequence, want[i])
			}
		}
		l.peer.send(0, &cmpp.SubmitResp{}) // number 0 is free again, the others outstanding
		wantOutcome(t, <-outcomes, 2, nil, true)
		l.SetSequence(math.MaxUint32 - 2)
		l.call(submit("e"), submit("f"))
		for _, want := range []uint32{0, 2} {
			if hd, _ := expect[*cmpp.Submit](l.peer); hd.Sequence != want {
				t.Errorf("sequence %d, want %d", hd.Sequence, want)
			}
		}
		time.Sleep(2 * time.Second) // all timed out: still taken, for their late answers
		l.SetSequence(math.MaxUint32 - 2)
		l.call(submit("g"))
		if hd, _ := expect[*cmpp.Submit](l.peer); hd.Sequence != 3 {
			t.Errorf("sequence %d, want 3", hd.Sequence)
		}
	})
}

func TestAnswerThatCannotBeDecoded(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		l := client(t, setup{})
		outcomes := l.call(submit("a"))
		hd, _ := expect[*cmpp.Submit](l.peer)
		octets := encode(t, cmpp.V30, hd.Sequence, &cmpp.SubmitResp{})[:15]
		octets[3] = 15
		l.peer.raw(octets)
		wantOutcome(t, <-outcomes, 0, session.ErrBadResponse, true)
		if l.Free() != 16 {
			t.Errorf("free %d, want 16", l.Free())
		}
	})
}

func TestCallThatCannotBeEncoded(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		l := client(t, setup{})
		long := submit("long")
		long.ServiceID = "more than ten octets"
		l.Acquire(4)
		outcomes, batch := calls([]cmpp.PDU{submit("a"), long, nil, &cmpp.SubmitResp{}})
		if err := l.Send(batch); !errors.Is(err, session.ErrNotSent) {
			t.Errorf("send: %v", err)
		}
		for token := 1; token <= 3; token++ {
			wantOutcome(t, <-outcomes, token, session.ErrNotSent, false)
		}
		hd, _ := expect[*cmpp.Submit](l.peer)
		l.peer.send(hd.Sequence, &cmpp.SubmitResp{})
		wantOutcome(t, <-outcomes, 0, nil, true)
		if l.Free() != 16 {
			t.Errorf("free %d, want 16", l.Free())
		}
	})
}

// limited is a connection whose kernel takes so many octets more and then fails.
type limited struct {
	net.Conn
	left int // -1: no limit
	fail error
}

func (c *limited) Write(p []byte) (int, error) {
	if c.left < 0 {
		return c.Conn.Write(p)
	}
	n := min(len(p), c.left)
	c.left -= n
	if c.left == 0 {
		return n, c.fail
	}
	return n, nil
}

// The kernel takes k octets of a reply and three calls, for every k.
func TestPartialWrite(t *testing.T) {
	t.Parallel()
	requests := []cmpp.PDU{submit("first"), submit("the second"), submit("x")}
	answer := &cmpp.DeliverResp{}
	ends := []int{len(encode(t, cmpp.V30, 1, answer))}
	for _, p := range requests {
		ends = append(ends, ends[len(ends)-1]+len(encode(t, cmpp.V30, 1, p)))
	}
	for k := range ends[len(ends)-1] + 1 {
		synctest.Test(t, func(t *testing.T) {
			conn := &limited{left: -1, fail: os.ErrDeadlineExceeded}
			l := client(t, setup{wrap: func(c net.Conn) net.Conn {
				conn.Conn = c
				return conn
			}})
			synctest.Wait() // nobody is writing
			conn.left = k
			written := make(chan error, 1)
			if err := l.Reply(1, answer, func(err error) { written <- err }); err != nil {
				t.Fatalf("reply: %v", err)
			}
			l.Acquire(3)
			outcomes, batch := calls(requests)
			_ = l.Send(batch) // may find the session over already, which its calls must not show
			l.wantEnd(os.ErrDeadlineExceeded)
			if err := <-written; (err == nil) != (k >= ends[0]) {
				t.Errorf("%d octets: reply told %v", k, err)
			}
			for range requests {
				o := <-outcomes
				sent := k >= ends[o.Token.(int)+1]
				err := session.ErrNotSent
				if sent {
					err = session.ErrClosed
				}
				wantOutcome(t, o, o.Token, err, sent)
			}
			if free, reserved, pending := l.Accounts(); free != 16 || reserved != 0 || pending != 0 {
				t.Errorf("%d octets: free %d, reserved %d, pending %d", k, free, reserved, pending)
			}
		})
	}
}

// watched reports the size of each write.
type watched struct {
	net.Conn
	writes chan int
}

func (c *watched) Write(p []byte) (int, error) {
	c.writes <- len(p)
	return c.Conn.Write(p)
}

func TestBatchIsOneWrite(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		writes := make(chan int, 16)
		l := client(t, setup{cfg: session.Config{Window: 32}, wrap: func(c net.Conn) net.Conn { return &watched{c, writes} }})
		<-writes // CONNECT
		batch := make([]cmpp.PDU, 32)
		for i := range batch {
			batch[i] = submit("same length")
		}
		l.call(batch...)
		synctest.Wait()
		if got, want := <-writes, 32*len(encode(t, cmpp.V30, 1, batch[0])); got != want || len(writes) != 0 {
			t.Errorf("first write has %d octets, %d more writes; want one of %d", got, len(writes), want)
		}
	})
}

// An answer to a frame that we have not begun to write is nobody's.
func TestAnswerBeforeTheWrite(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		gate := &gated{open: make(chan struct{})}
		l := client(t, setup{wrap: func(c net.Conn) net.Conn {
			gate.Conn = c
			return gate
		}})
		gate.closed.Store(true)
		first := l.call(submit("being written"))
		synctest.Wait()
		second := l.call(submit("queued"))
		l.peer.send(2, &cmpp.SubmitResp{}) // CONNECT had 1
		wantOutcome(t, <-first, 0, nil, true)
		l.peer.send(3, &cmpp.SubmitResp{})
		synctest.Wait()
		if len(second) != 0 || l.InFlight() != 1 {
			t.Error("an answer ended a call that was not written")
		}
		close(gate.open)
		expect[*cmpp.Submit](l.peer)
		hd, _ := expect[*cmpp.Submit](l.peer)
		l.peer.send(hd.Sequence, &cmpp.SubmitResp{})
		wantOutcome(t, <-second, 0, nil, true)
		if l.Free() != 16 {
			t.Errorf("free %d, want 16", l.Free())
		}
	})
}
