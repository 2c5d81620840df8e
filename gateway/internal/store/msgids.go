package store

import (
	"context"
	"fmt"
	"sync"
	"time"

	"cmppgateway/gateway/cmpp"
)

const perSecond = 1 << 16 // a Msg_Id has 16 bits of sequence within its second

// MsgIDs issues the customers' Msg_Ids of one node: second, gateway code (configured base + node number), sequence. Seconds
// begin after the time found on the node's lease and end before the one written to it, so no Msg_Id comes twice while the
// year lasts. Safe for concurrent use.
type MsgIDs struct {
	code uint32

	mu     sync.Mutex
	second int64     // Unix time of the second in use
	next   int       // next sequence in it
	turned time.Time // when it came into use (monotonic)
	until  int64     // first second that may not be used
	grown  chan struct{}
}

func newMsgIDs(code uint32, after, until time.Time) *MsgIDs {
	return &MsgIDs{code: code, second: after.Unix(), next: perSecond, until: until.Unix(), grown: make(chan struct{})}
}

func (m *MsgIDs) extend(until time.Time) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if s := until.Unix(); s > m.until {
		m.until = s
		close(m.grown)
		m.grown = make(chan struct{})
	}
}

// last is the end of the last second used, the zero time when none was.
func (m *MsgIDs) last() time.Time {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.turned.IsZero() {
		return time.Time{}
	}
	return time.Unix(m.second+1, 0)
}

// Take is the first of n consecutive Msg_Ids of one second, n in 1..65536. When the second is spent it waits for the next
// one, and without a valid node lease for that.
func (m *MsgIDs) Take(ctx context.Context, n int) (cmpp.MsgID, error) {
	if n < 1 || n > perSecond {
		return 0, fmt.Errorf("msg ids: %d asked for, 1..%d allowed", n, perSecond)
	}
	for {
		id, wait, grown := m.take(n)
		if id != 0 {
			return id, nil
		}
		var turn <-chan time.Time // nil, thus never, when the lease is what is missing
		if wait > 0 {
			turn = time.After(wait)
		}
		select {
		case <-grown:
		case <-turn:
		case <-ctx.Done():
			return 0, fmt.Errorf("msg ids: waiting: %w", ctx.Err())
		}
	}
}

// take is the id, or 0 with how long to wait for the next second, 0 for an extended lease.
func (m *MsgIDs) take(n int) (cmpp.MsgID, time.Duration, <-chan struct{}) {
	m.mu.Lock()
	defer m.mu.Unlock()
	now := time.Now()
	second := now.Unix()
	if second <= m.second { // the clock has not passed the second in use; it may even have stepped back
		if m.next+n > perSecond {
			// A whole second after the turn the next one is due, whatever the clock says.
			if wait := time.Second - now.Sub(m.turned); !m.turned.IsZero() && wait > 0 {
				return 0, wait, m.grown
			}
			second = m.second + 1
		} else {
			second = m.second
		}
	}
	if second >= m.until {
		return 0, 0, m.grown
	}
	if second > m.second {
		m.second, m.next, m.turned = second, 0, now
	}
	id := cmpp.NewMsgID(time.Unix(m.second, 0), m.code, uint16(m.next))
	m.next += n
	return id, 0, m.grown
}
