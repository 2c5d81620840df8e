package session

// SetSequence makes the next call of ours take the number after seq.
func (s *Session) SetSequence(seq uint32) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.seq = seq
}

// Accounts returns how the window is divided: the three sum up to it.
func (s *Session) Accounts() (free, reserved, pending int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.free, s.reserved, len(s.pending)
}

// MaxControls is the bound on link-test answers queued.
const MaxControls = maxControls
