package session

import (
	"fmt"
	"io"
	"time"

	"cmppgateway/gateway/cmpp"
)

// outQueue holds what waits for the writer: the octets of all frames in order
// and, per frame, where it ends and who wants to know. Guarded by Session.mu.
type outQueue struct {
	octets            []byte
	frames            []frame
	replies, controls int // frames of that kind
}

// frame is one PDU within outQueue.octets.
type frame struct {
	end     int
	kind    frameKind
	call    *call       // kind request
	written func(error) // kind reply; may be nil
	cause   error       // kind last: why the session ends once this frame is written
}

type frameKind uint8

const (
	request frameKind = iota // a call of ours
	reply                    // an answer of the handler's
	control                  // ACTIVE_TEST and its answer, TERMINATE
	last                     // the final answer; nothing is written after it
)

// append encodes p at the end of the queue; on an error the queue is unchanged.
func (q *outQueue) append(f frame, p cmpp.PDU, v cmpp.Version, seq uint32) error {
	octets, err := p.Append(q.octets, v, seq)
	if err != nil {
		return err
	}
	q.octets = octets
	f.end = len(octets)
	q.frames = append(q.frames, f)
	switch f.kind {
	case reply:
		q.replies++
	case control:
		q.controls++
	case request, last:
	}
	return nil
}

// take empties the queue and returns what it held.
func (q *outQueue) take() outQueue {
	taken := *q
	*q = outQueue{}
	return taken
}

// write is the writer goroutine: one Write for everything queued since the last.
func (s *Session) write() {
	var spare outQueue // storage of the previous write, used again
	for {
		select {
		case <-s.wake:
		case <-s.done:
			return
		}
		for {
			batch := s.nextWrite(&spare)
			if len(batch.frames) == 0 {
				break
			}
			n, err := s.writeOnce(batch.octets)
			if err != nil { // ended first, so that nobody sends the rest here again
				s.Close(fmt.Errorf("session: write: %w", err))
			}
			if end := s.sortWritten(batch.frames, n); end != nil {
				s.end(end)
				return
			}
			if err != nil {
				return
			}
			clear(batch.frames) // what they refer to is over or held elsewhere
			spare = batch
		}
	}
}

// nextWrite swaps the queue against the spare storage and marks its calls as being written.
func (s *Session) nextWrite(spare *outQueue) outQueue {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.life == over || len(s.out.frames) == 0 {
		return outQueue{}
	}
	batch := s.out
	s.out = outQueue{frames: spare.frames[:0]}
	if cap(spare.octets) <= keepBuffer {
		s.out.octets = spare.octets[:0]
	}
	now := s.now()
	for i := range batch.frames {
		if c := batch.frames[i].call; c != nil {
			c.state, c.sentAt = writing, now
		}
	}
	return batch
}

func (s *Session) writeOnce(octets []byte) (int, error) {
	if err := s.conn.SetWriteDeadline(time.Now().Add(s.cfg.WriteTimeout)); err != nil {
		return 0, err
	}
	n, err := s.conn.Write(octets)
	if err == nil && n < len(octets) {
		err = io.ErrShortWrite
	}
	return n, err
}

// sortWritten sorts frames by the octets the kernel took: those wholly inside n
// are in flight, the others were not sent. It returns the cause carried by a
// written last frame.
func (s *Session) sortWritten(frames []frame, n int) (end error) {
	var unsent []*call
	now := s.now()

	s.mu.Lock()
	for i := range frames {
		c := frames[i].call
		if c == nil || c.state != writing { // answered while the write was under way
			continue
		}
		if frames[i].end <= n {
			c.state, c.deadline = inFlight, now+s.cfg.ResponseTimeout
			s.inFlight.push(c)
			continue
		}
		c.state = finished
		delete(s.pending, c.key)
		s.free++
		unsent = append(unsent, c)
	}
	if head := s.inFlight.head; head != nil && head.deadline < s.armed {
		poke(s.kick)
	}
	notify := s.onWindow
	s.mu.Unlock()

	for _, c := range unsent {
		s.tell(c, Outcome{Token: c.token, Sequence: c.key.sequence(), Err: ErrNotSent})
	}
	for i := range frames {
		f := &frames[i]
		whole := f.end <= n
		if f.written != nil {
			var err error
			if !whole {
				err = ErrNotSent
			}
			s.tellWritten(f.written, err)
		}
		if f.kind == last && whole {
			end = f.cause
		}
	}
	if len(unsent) > 0 {
		s.signal(notify)
	}
	return end
}
