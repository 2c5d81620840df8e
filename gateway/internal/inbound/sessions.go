package inbound

import (
	"slices"
	"sync"

	"cmppgateway/gateway/cmpp"
	"cmppgateway/gateway/internal/session"
)

// Sessions are the live connections of this process's customers, and the SUBMITs whose answer is not written yet. Safe for
// concurrent use.
type Sessions struct {
	mu       sync.RWMutex
	byApp    map[int32][]*session.Session // the slices are replaced, never changed
	onChange func(login bool)

	heldMu    sync.Mutex          // of what follows
	held      map[cmpp.MsgID]bool // true: somebody has asked, and is told when it opens
	onWritten func(ids []cmpp.MsgID)
	onStray   func(app int32, p *cmpp.DeliverResp)
}

func newSessions() *Sessions {
	return &Sessions{byApp: make(map[int32][]*session.Session), held: make(map[cmpp.MsgID]bool)}
}

// Each calls f for every application with live connections. The slice must not be changed.
func (s *Sessions) Each(f func(app int32, links []*session.Session)) {
	s.mu.RLock()
	defer s.mu.RUnlock()
	for app, links := range s.byApp {
		f(app, links)
	}
}

// Unwritten says that id belongs to a SUBMIT of this process whose SUBMIT_RESP is neither written nor given up: its receipt
// has to wait (architecture P7). Only SUBMITs that ask for a receipt are known. Who was told so is told when it has changed.
func (s *Sessions) Unwritten(id cmpp.MsgID) bool {
	s.heldMu.Lock()
	defer s.heldMu.Unlock()
	_, held := s.held[id]
	if held {
		s.held[id] = true
	}
	return held
}

// OnWritten sets the function that is told the ids for which Unwritten has said yes and would now say no. It must not
// block. There is one; set it before the server runs.
func (s *Sessions) OnWritten(f func(ids []cmpp.MsgID)) {
	s.heldMu.Lock()
	defer s.heldMu.Unlock()
	s.onWritten = f
}

// OnChange sets the function called after a login, and whenever a connection has room again for a DELIVER. It must not
// block. There is one; set it before the server runs.
func (s *Sessions) OnChange(f func(login bool)) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.onChange = f
}

// OnStray sets the function that takes answers to no DELIVER of the connection on which they came. It must not block. There
// is one; set it before the server runs.
func (s *Sessions) OnStray(f func(app int32, p *cmpp.DeliverResp)) {
	s.heldMu.Lock()
	defer s.heldMu.Unlock()
	s.onStray = f
}

func (s *Sessions) stray(app int32, p *cmpp.DeliverResp) {
	s.heldMu.Lock()
	tell := s.onStray
	s.heldMu.Unlock()
	if tell != nil {
		tell(app, p)
	}
}

func (s *Sessions) add(app int32, link *session.Session) {
	s.mu.Lock()
	s.byApp[app] = append(slices.Clip(s.byApp[app]), link)
	notify := s.onChange
	s.mu.Unlock()
	if notify != nil {
		link.OnWindow(func() { notify(false) })
		notify(true)
	}
}

func (s *Sessions) remove(app int32, link *session.Session) {
	s.mu.Lock()
	defer s.mu.Unlock()
	rest := slices.DeleteFunc(slices.Clone(s.byApp[app]), func(l *session.Session) bool { return l == link })
	if len(rest) == 0 {
		delete(s.byApp, app)
		return
	}
	s.byApp[app] = rest
}

// hold closes the barrier for the n ids of each request that asks for receipts; before the rows can be seen by anyone.
func (s *Sessions) hold(batch []*request) {
	s.heldMu.Lock()
	defer s.heldMu.Unlock()
	for _, r := range batch {
		for i := range r.receipts() {
			s.held[r.resp.MsgID+cmpp.MsgID(i)] = false
		}
	}
}

// open ends it: the answer was written, or will never be.
func (s *Sessions) open(r *request) {
	if r.receipts() == 0 {
		return
	}
	var asked []cmpp.MsgID
	s.heldMu.Lock()
	for i := range r.receipts() {
		id := r.resp.MsgID + cmpp.MsgID(i)
		if s.held[id] {
			asked = append(asked, id)
		}
		delete(s.held, id)
	}
	tell := s.onWritten
	s.heldMu.Unlock()
	if len(asked) > 0 && tell != nil {
		tell(asked)
	}
}
