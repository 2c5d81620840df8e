package inbound

import (
	"container/list"
	"net"
	"sync"
	"time"
)

// places are the connections that a server has, by state: strangers have not logged in, the others hold a place of their
// application. A connection is held by its id, so it counts once, however often and in whatever order its end is reported.
type places struct {
	mu        sync.Mutex
	strangers list.List // of *stranger, oldest first
	byApp     map[int32]map[int64]*conn
	loggedIn  int // in byApp, all together
}

// stranger is a connection that has not logged in.
type stranger struct {
	conn  net.Conn
	at    time.Time
	place *list.Element // nil: it has left
	known bool          // it has shown the right secret, so nobody takes its place
}

func newPlaces() *places { return &places{byApp: make(map[int32]map[int64]*conn)} }

// strangerLeast is how long a connection has to log in before a newer one may take its place.
const strangerLeast = time.Second

// arrive gives a place to a connection that has not logged in. With all of them taken, the oldest is closed if it has had
// its time: customers log in at once, whoever holds a place without doing so is none. Otherwise there is no place (nil).
func (p *places) arrive(nc net.Conn, most int, now time.Time) (s *stranger, evicted bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.strangers.Len() >= most {
		oldest := p.oldest()
		if oldest == nil || now.Sub(oldest.at) < strangerLeast {
			return nil, false
		}
		p.depart(oldest)
		_ = oldest.conn.Close() // its goroutine ends with the error of this
		evicted = true
	}
	s = &stranger{conn: nc, at: now}
	s.place = p.strangers.PushBack(s)
	return s, evicted
}

// oldest is the stranger who has been here longest without showing a secret; nil: all have.
func (p *places) oldest() *stranger {
	for e := p.strangers.Front(); e != nil; e = e.Next() {
		if s := e.Value.(*stranger); !s.known {
			return s
		}
	}
	return nil
}

// vouch keeps a stranger's place for as long as its login takes.
func (p *places) vouch(s *stranger) {
	p.mu.Lock()
	defer p.mu.Unlock()
	s.known = true
}

// left gives a stranger's place back; it may have lost it already.
func (p *places) left(s *stranger) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.depart(s)
}

func (p *places) depart(s *stranger) {
	if s.place != nil {
		p.strangers.Remove(s.place)
		s.place = nil
	}
}

// full says which limit keeps an application from another connection.
type full uint8

const (
	vacant full = iota
	fullSystem
	fullAccount
)

// enter takes a place for a connection that logs in. n is how many there are at the limit that refuses it.
func (p *places) enter(c *conn, most, mostOfApp int) (limit full, n int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	own := p.byApp[c.app]
	switch {
	case own[c.id] == c:
		return vacant, 0
	case len(own) >= mostOfApp:
		return fullAccount, len(own)
	case p.loggedIn >= most:
		return fullSystem, p.loggedIn
	}
	if own == nil {
		own = make(map[int64]*conn)
		p.byApp[c.app] = own
	}
	own[c.id] = c
	p.loggedIn++
	return vacant, 0
}

// leave gives the place of c back, the first time it is called.
func (p *places) leave(c *conn) {
	p.mu.Lock()
	defer p.mu.Unlock()
	own := p.byApp[c.app]
	if own[c.id] != c {
		return
	}
	delete(own, c.id)
	p.loggedIn--
	if len(own) == 0 {
		delete(p.byApp, c.app)
	}
}

// run says that the session of c is ready to be ended by others.
func (p *places) run(c *conn, f func()) {
	p.mu.Lock()
	defer p.mu.Unlock()
	f()
	c.running = true
}

// of are the running connections of an application.
func (p *places) of(app int32) (conns []*conn) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, c := range p.byApp[app] {
		if c.running {
			conns = append(conns, c)
		}
	}
	return conns
}

// each calls f for every running connection.
func (p *places) each(f func(c *conn)) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, own := range p.byApp {
		for _, c := range own {
			if c.running {
				f(c)
			}
		}
	}
}

// counts are the connections logged in and those not yet.
func (p *places) counts() (loggedIn, strange int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.loggedIn, p.strangers.Len()
}
