package ismg

import (
	"encoding/binary"
	"fmt"
	"slices"
	"time"

	"cmppgateway/simulator/internal/wire"
)

// Action is what becomes of a command that a Rule matches.
type Action string

// The actions.
const (
	Ignore Action = "silence" // the command is read, and nothing comes back
	Refuse Action = "error"   // it is answered with Rule.Status
	Defer  Action = "delay"   // it is handled as usual Rule.Wait later; SUBMIT is answered later
)

// Rule is what is done with commands of one kind instead of handling them.
type Rule struct {
	Account string // whose; empty is every account
	// Command is CONNECT, SUBMIT, QUERY, CANCEL, ACTIVE_TEST or TERMINATE.
	Command string
	Action  Action
	// Status is the Status, Result or Success_Id of an error; ACTIVE_TEST_RESP
	// and TERMINATE_RESP have none.
	Status uint32
	// Skip commands that match pass first; then the rule holds for Count of
	// them, for all when Count is 0.
	Skip, Count int
	// Wait of a delay, at most a minute.
	Wait time.Duration
}

var ruleCommands = map[string]uint32{
	"CONNECT": wire.Connect, "SUBMIT": wire.Submit, "QUERY": wire.Query, "CANCEL": wire.Cancel,
	"ACTIVE_TEST": wire.ActiveTest, "TERMINATE": wire.Terminate,
}

// Validate returns every impossible value.
func (r *Rule) Validate() FaultsError {
	var f FaultsError
	if _, ok := ruleCommands[r.Command]; !ok {
		f.add("command", "%q is not CONNECT, SUBMIT, QUERY, CANCEL, ACTIVE_TEST or TERMINATE", r.Command)
	}
	switch r.Action {
	case Ignore:
	case Refuse:
		if r.Status == 0 || r.Status > 255 {
			f.add("status", "%d of an error is not in 1…255", r.Status)
		}
		if r.Command == "ACTIVE_TEST" || r.Command == "TERMINATE" {
			f.add("action", "%s has no error", r.Command)
		}
	case Defer:
		if r.Wait <= 0 || r.Wait > time.Minute {
			f.add("wait", "%s of a delay is not in 0s…1m", r.Wait)
		}
	default:
		f.add("action", "%q is not silence, error or delay", r.Action)
	}
	if r.Skip < 0 || r.Count < 0 {
		f.add("skip", "skip %d or count %d is negative", r.Skip, r.Count)
	}
	return f
}

// rule is a Rule in force.
type rule struct {
	Rule

	command uint32
	seen    int
}

// AddRule puts r in force behind the rules already there and returns a function
// that takes it out, and says how many commands it had met.
func (s *Server) AddRule(r Rule) (remove func() (met int), err error) {
	if f := r.Validate(); len(f) > 0 {
		return nil, f
	}
	if r.Account != "" {
		if _, err := s.account(r.Account); err != nil {
			return nil, err
		}
	}
	x := &rule{Rule: r, command: ruleCommands[r.Command]}
	s.controlMu.Lock()
	s.rules = append(s.rules, x)
	s.ruled.Store(true)
	s.controlMu.Unlock()
	if x.command == wire.Submit {
		return s.submitRule(x), nil
	}
	return func() int {
		s.controlMu.Lock()
		defer s.controlMu.Unlock()
		s.rules = slices.DeleteFunc(s.rules, func(o *rule) bool { return o == x })
		s.ruled.Store(len(s.rules) > 0)
		return x.met()
	}, nil
}

func (r *rule) met() int {
	n := max(0, r.seen-r.Skip)
	if r.Count > 0 {
		n = min(n, r.Count)
	}
	return n
}

// hit counts a command that matches and says whether the rule holds for it.
func (r *rule) hit() bool {
	r.seen++
	return r.seen > r.Skip && (r.Count == 0 || r.seen <= r.Skip+r.Count)
}

// submitRule is a rule about SUBMIT: it changes plans, as every Control does, so
// that limits, records and reports stay right.
func (s *Server) submitRule(x *rule) (remove func() int) {
	take := s.Control(func(sub *Submit, p *Plan) bool {
		if x.Account != "" && sub.Account != x.Account || !x.hit() {
			return false
		}
		switch x.Action {
		case Ignore:
			return Silent()(sub, p)
		case Refuse:
			return Answer(x.Status)(sub, p)
		case Defer:
			return Late(x.Wait)(sub, p)
		}
		return false
	})
	return func() int {
		take()
		s.controlMu.Lock()
		defer s.controlMu.Unlock()
		s.rules = slices.DeleteFunc(s.rules, func(o *rule) bool { return o == x })
		s.ruled.Store(len(s.rules) > 0)
		return x.met()
	}
}

// ruleFor returns the first rule that holds for a command of the account.
func (s *Server) ruleFor(account string, command uint32) (Rule, bool) {
	if command == wire.Submit || !s.ruled.Load() {
		return Rule{}, false
	}
	s.controlMu.Lock()
	defer s.controlMu.Unlock()
	for _, x := range s.rules {
		if x.command == command && (x.Account == "" || x.Account == account) && x.hit() {
			return x.Rule, true
		}
	}
	return Rule{}, false
}

// ruled does what a rule says with a frame of a live connection; false means that
// the frame is to be handled as usual, now or when it comes back from its delay.
func (c *conn) ruled(f wire.Frame, now int64) bool {
	r, ok := c.srv.ruleFor(c.acct.spec.ID, f.Command)
	if !ok {
		return false
	}
	c.acct.mu.Lock()
	defer c.acct.mu.Unlock()
	c.heard, c.tests = now, 0
	switch r.Action {
	case Ignore:
	case Refuse:
		c.raw(f.Command|wire.Response, f.Sequence, c.errorBody(f, r.Status))
		c.nudge = true
	case Defer:
		c.push(now+int64(r.Wait), item{kind: itemFrame, frame: &heldFrame{command: f.Command, seq: f.Sequence, body: slices.Clone(f.Body)}})
	}
	return true
}

// heldFrame is a command whose handling waits.
type heldFrame struct {
	command, seq uint32
	body         []byte
}

// errorBody is the body of the response that refuses f.
func (c *conn) errorBody(f wire.Frame, status uint32) []byte {
	wide := wire.Wide(c.version)
	switch f.Command {
	case wire.Cancel:
		if wide {
			return binary.BigEndian.AppendUint32(nil, status)
		}
		return []byte{byte(status)}
	case wire.Query:
		b := make([]byte, 51)
		copy(b, f.Body[:min(19, len(f.Body))])
		return b
	}
	return nil
}

// ruledLogin does what a rule says with a CONNECT: silent leaves it unanswered,
// status refuses it.
func (c *conn) ruledLogin(account string) (silent bool, status uint32) {
	r, ok := c.srv.ruleFor(account, wire.Connect)
	if !ok {
		return false, 0
	}
	switch r.Action {
	case Ignore:
		return true, 0
	case Refuse:
		return false, r.Status
	case Defer:
		timer := time.NewTimer(r.Wait)
		defer timer.Stop()
		select {
		case <-timer.C:
		case <-c.over:
		}
	}
	return false, 0
}

// SendLongUplink sends a handset's text in segments of a long message, in the
// order given (indices of segments; nil is the natural order, an index may come
// twice or never), and returns the Msg_Ids of the DELIVERs in that order. Text
// that fits one message goes as one segment with a header.
func (s *Server) SendLongUplink(id, source, dest, text string, ref uint16, wide bool, order []int) ([]uint64, error) {
	format, content := encodeLong(text)
	size, n := uplinkSegments(format, content, wide)
	if n > 255 {
		return nil, fmt.Errorf("send long uplink: %d segments, at most 255", n)
	}
	if order == nil {
		for i := range n {
			order = append(order, i)
		}
	}
	ids := make([]uint64, 0, len(order))
	for _, i := range order {
		if i < 0 || i >= n {
			return ids, fmt.Errorf("send long uplink: segment %d of %d", i, n)
		}
		head := []byte{5, 0, 3, byte(ref), byte(n), byte(i + 1)}
		if wide {
			head = []byte{6, 8, 4, byte(ref >> 8), byte(ref), byte(n), byte(i + 1)}
		}
		got, err := s.SendUplinkContent(id, source, dest, format, 1, append(head, content[i*size:min(len(content), (i+1)*size)]...))
		if err != nil {
			return ids, err
		}
		ids = append(ids, got)
	}
	return ids, nil
}

// UplinkSegments is how many segments SendLongUplink makes of a text.
func UplinkSegments(text string, wide bool) int {
	format, content := encodeLong(text)
	_, n := uplinkSegments(format, content, wide)
	return n
}

// uplinkSegments is the octets of text in a segment, and the segments of content.
func uplinkSegments(format uint8, content []byte, wide bool) (size, n int) {
	size = 134
	if wide {
		size = 133
	}
	if format == 8 {
		size = size / 2 * 2
	}
	return size, max(1, (len(content)+size-1)/size)
}

// otherLayout is the version whose report has the other length: 60 octets for 71
// and the reverse.
func otherLayout(version uint8) uint8 {
	if wire.Wide(version) {
		return 0x20
	}
	return 0x30
}
