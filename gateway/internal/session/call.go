package session

import "time"

// call is one request of ours between Send and its outcome; see doc.go for its life.
// All fields but key, token and done are guarded by Session.mu.
type call struct {
	key        key
	token      any
	done       func(Outcome)
	state      callState
	sentAt     time.Duration // instant the write began
	deadline   time.Duration // instant the answer is overdue
	prev, next *call
}

type callState uint8

const (
	queued   callState = iota // waiting for the writer
	writing                   // in the write under way
	inFlight                  // handed to the kernel whole
	finished                  // its outcome is told, or about to be by who set this
)

// callList is a doubly linked list in order of deadline. As all calls have the
// same timeout, that is the order of their writes.
type callList struct{ head, tail *call }

func (l *callList) push(c *call) {
	c.prev, c.next = l.tail, nil
	if l.tail == nil {
		l.head = c
	} else {
		l.tail.next = c
	}
	l.tail = c
}

func (l *callList) remove(c *call) {
	if c.prev == nil {
		l.head = c.next
	} else {
		c.prev.next = c.next
	}
	if c.next == nil {
		l.tail = c.prev
	} else {
		c.next.prev = c.prev
	}
	c.prev, c.next = nil, nil
}

// lateTable remembers the tokens of timed-out calls until their answer comes,
// the session ends, or maxLate others have timed out after them.
type lateTable struct {
	tokens map[key]any
	order  []key // oldest first; a key stays after its answer came, until its turn
}

func (t *lateTable) add(k key, token any) {
	if t.tokens == nil {
		t.tokens = make(map[key]any)
	}
	if len(t.order) >= maxLate {
		delete(t.tokens, t.order[0])
		t.order = t.order[1:]
	}
	t.tokens[k] = token
	t.order = append(t.order, k)
}

func (t *lateTable) has(k key) bool {
	_, ok := t.tokens[k]
	return ok
}

func (t *lateTable) take(k key) (token any, ok bool) {
	token, ok = t.tokens[k]
	delete(t.tokens, k)
	return token, ok
}
