package session

import (
	"context"
	"slices"

	"cmppgateway/gateway/cmpp"
)

// Probe asks a running session's peer for a sign of life: it sends ACTIVE_TEST and waits until any frame arrives (true), or
// the session begins to end or ctx is done (false). It closes nothing. Probes that overlap share one ACTIVE_TEST. A session
// whose Run was not called yet counts as alive.
func (s *Session) Probe(ctx context.Context) (alive bool) {
	heard := make(chan struct{})
	s.mu.Lock()
	if s.life != running {
		alive = s.life == fresh
		s.mu.Unlock()
		return alive
	}
	first := len(s.probes) == 0
	s.probes = append(s.probes, heard)
	s.probing.Store(true) // before the ACTIVE_TEST is queued, so that no answer is missed
	seq := s.nextKey(cmpp.CmdActiveTest).sequence()
	s.mu.Unlock()
	if first {
		// It fails when more answers than anybody reads are queued: then a frame of the peer's own may still come.
		_ = s.control(frame{kind: control}, &cmpp.ActiveTest{}, seq)
	}
	select {
	case <-heard:
		return true
	case <-s.done:
	case <-ctx.Done():
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.probes = slices.DeleteFunc(s.probes, func(c chan struct{}) bool { return c == heard })
	s.probing.Store(len(s.probes) > 0)
	return false
}

// heard tells the probes that a frame came. Reader only.
func (s *Session) heard() {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, c := range s.probes {
		close(c)
	}
	s.probes = nil
	s.probing.Store(false)
}
