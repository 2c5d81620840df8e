package session

import (
	"context"
	"time"

	"cmppgateway/gateway/cmpp"
)

// keeper is the state of the link tests; it lives on Run's goroutine.
type keeper struct {
	seen    time.Duration // last inbound frame taken into account
	tests   int           // ACTIVE_TEST sent since then
	testDue time.Duration // instant of the next test, or of giving up
	stopDue time.Duration // instant to stop waiting for TERMINATE_RESP; 0 while not stopping
}

// keep works all time-outs of the session with one timer until the session ends.
func (s *Session) keep(ctx context.Context) {
	k := keeper{seen: -1}
	stop := ctx.Done()
	timer := time.NewTimer(0)
	defer timer.Stop()
	for {
		select {
		case <-s.done:
			return
		case <-stop:
			stop = nil
			k.stopDue = s.now() + min(terminateWait, s.cfg.ResponseTimeout)
			s.terminate()
		case <-timer.C:
		case <-s.kick:
		}
		now := s.now()
		next := s.expire(now, min(s.testLink(&k, now), k.stop(s, now)))
		timer.Reset(next - now)
	}
}

const never = time.Duration(1<<63 - 1)

// stop gives up waiting for TERMINATE_RESP when it is time.
func (k *keeper) stop(s *Session, now time.Duration) (next time.Duration) {
	if k.stopDue == 0 {
		return never
	}
	if now >= k.stopDue {
		s.Close(ErrStopped)
	}
	return k.stopDue
}

// testLink sends ACTIVE_TEST to a silent peer and closes the link of a dead one.
// Any inbound frame proves life.
func (s *Session) testLink(k *keeper, now time.Duration) (next time.Duration) {
	if seen := time.Duration(s.seen.Load()); seen != k.seen {
		k.seen, k.tests, k.testDue = seen, 0, seen+s.cfg.IdleInterval
	}
	if now < k.testDue {
		return k.testDue
	}
	if k.tests >= s.cfg.Tries {
		s.Close(ErrDead)
		return never
	}
	s.mu.Lock()
	seq := s.nextKey(cmpp.CmdActiveTest).sequence()
	s.mu.Unlock()
	if err := s.control(frame{kind: control}, &cmpp.ActiveTest{}, seq); err != nil {
		s.Close(err)
		return never
	}
	k.tests++
	k.testDue = now + s.cfg.ResponseTimeout
	return k.testDue
}

// terminate queues TERMINATE and lets no more calls in.
func (s *Session) terminate() {
	s.mu.Lock()
	s.stopping = true
	seq := s.nextKey(cmpp.CmdTerminate).sequence()
	s.mu.Unlock()
	if err := s.control(frame{kind: control}, &cmpp.Terminate{}, seq); err != nil {
		s.Close(ErrStopped)
	}
}

func (s *Session) isStopping() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.stopping
}

// expire ends overdue calls, freeing their slots, and arms the keeper for the
// next one or for next, whichever is earlier.
func (s *Session) expire(now, next time.Duration) time.Duration {
	var overdue []*call
	s.mu.Lock()
	for c := s.inFlight.head; c != nil && c.deadline <= now; c = s.inFlight.head {
		s.inFlight.remove(c)
		c.state = finished
		delete(s.pending, c.key)
		s.free++
		s.late.add(c.key, c.token)
		overdue = append(overdue, c)
	}
	if head := s.inFlight.head; head != nil {
		next = min(next, head.deadline)
	}
	s.armed = next
	notify := s.onWindow
	s.mu.Unlock()

	for _, c := range overdue {
		s.tell(c, Outcome{Token: c.token, Sequence: c.key.sequence(), Err: ErrTimeout, Sent: true})
	}
	if len(overdue) > 0 {
		s.signal(notify)
	}
	return next
}
