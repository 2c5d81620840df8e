package sp

import (
	"net"
	"sync"
	"sync/atomic"
	"time"
)

// stopReading is a rate at which nothing is read at all.
const stopReading = -1

// throttle slows the readers of a client down. Safe for concurrent use.
type throttle struct {
	mu      sync.Mutex
	rate    int           // octets per second; 0: as they come; stopReading: none
	changed chan struct{} // closed at the next change
}

func (t *throttle) set(rate int) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.rate = rate
	if t.changed != nil {
		close(t.changed)
	}
	t.changed = nil
}

func (t *throttle) get() (rate int, changed <-chan struct{}) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.changed == nil {
		t.changed = make(chan struct{})
	}
	return t.rate, t.changed
}

// slowStep is how often a slow reader reads.
const slowStep = 20 * time.Millisecond

// reader counts the octets read from a connection, and reads them as slowly as
// its client was told.
type reader struct {
	net.Conn
	n    *atomic.Int64
	slow *throttle
	over <-chan struct{}
}

func (r reader) Read(p []byte) (int, error) {
	for {
		rate, changed := r.slow.get()
		if rate == 0 {
			break
		}
		wait := make(<-chan time.Time)
		if rate > 0 {
			timer := time.NewTimer(slowStep)
			defer timer.Stop()
			wait = timer.C
		}
		select {
		case <-wait:
			p = p[:min(len(p), max(1, int(int64(rate)*int64(slowStep)/int64(time.Second))))]
		case <-changed:
			continue
		case <-r.over:
			return 0, net.ErrClosed
		}
		break
	}
	n, err := r.Conn.Read(p)
	r.n.Add(int64(n))
	return n, err
}
