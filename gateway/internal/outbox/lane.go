package outbox

// lane is the local queue of one priority: a FIFO per enterprise, served in turn. Guarded by Source.mu.
type lane struct {
	n     int
	turn  int // index in order of the share served next
	order []*share
	by    map[int32]*share

	floor  int64              // every pending row at or below it is known, or was when it was pulled
	more   bool               // the last pull did not reach the end
	behind map[int32]struct{} // enterprises with rows that were offered and dropped: only a pull may add theirs
}

// share is the commands of one enterprise; head is the index of the oldest.
type share struct {
	enterprise int32
	head       int
	cmds       []*Command
}

func (s *share) len() int { return len(s.cmds) - s.head }

func newLane() lane {
	return lane{by: make(map[int32]*share), behind: make(map[int32]struct{})}
}

func (l *lane) push(c *Command) {
	s := l.by[c.EnterpriseID]
	if s == nil {
		s = &share{enterprise: c.EnterpriseID}
		l.by[c.EnterpriseID] = s
		l.order = append(l.order, s)
	}
	s.cmds = append(s.cmds, c)
	l.n++
}

func (l *lane) pushFront(c *Command) {
	s := l.by[c.EnterpriseID]
	if s == nil {
		l.push(c)
		return
	}
	if s.head > 0 {
		s.head--
		s.cmds[s.head] = c
	} else {
		s.cmds = append([]*Command{c}, s.cmds...)
	}
	l.n++
}

// pop is the oldest command of the enterprise whose turn it is; nil when there is none.
func (l *lane) pop() *Command {
	if l.n == 0 {
		return nil
	}
	l.turn %= len(l.order)
	s := l.order[l.turn]
	c := s.cmds[s.head]
	s.cmds[s.head] = nil
	s.head++
	l.n--
	if s.len() == 0 {
		l.drop(l.turn)
	} else {
		l.turn++
	}
	return c
}

// popNewest takes the newest command of the enterprise with the most, if that has more than atLeast.
func (l *lane) popNewest(atLeast int) *Command {
	most := -1
	for i, s := range l.order {
		if s.len() > atLeast && (most < 0 || s.len() > l.order[most].len()) {
			most = i
		}
	}
	if most < 0 {
		return nil
	}
	s := l.order[most]
	last := len(s.cmds) - 1
	c := s.cmds[last]
	s.cmds[last] = nil
	s.cmds = s.cmds[:last]
	l.n--
	if s.len() == 0 {
		l.drop(most)
	}
	return c
}

func (l *lane) drop(i int) {
	delete(l.by, l.order[i].enterprise)
	l.order = append(l.order[:i], l.order[i+1:]...)
	if l.turn > i {
		l.turn--
	}
}

// miss notes that the row of c is left to the pull.
func (l *lane) miss(c *Command) {
	l.behind[c.EnterpriseID] = struct{}{}
	l.floor = min(l.floor, c.SubmitID-1)
}

// starved says that a pull would help: rows were left to it, and half of the lane is free.
func (l *lane) starved(bound int) bool {
	return (l.more || len(l.behind) > 0) && l.n <= bound/2
}
