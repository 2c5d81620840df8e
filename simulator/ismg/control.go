package ismg

import (
	"errors"
	"fmt"
	"slices"
	"time"
)

// Plan is what the supplier is about to do with one SUBMIT. A Control may
// change it.
type Plan struct {
	// Result of the SUBMIT_RESP.
	Result uint32
	// Hold is the time from receiving the SUBMIT to writing the answer.
	Hold time.Duration
	// Answers is how many SUBMIT_RESPs are written: 1, or 0 to stay silent.
	Answers int
	// SeqShift is added to the Sequence_Id of the answer.
	SeqShift uint32
	// Cut, when set, cuts the connection in place of the answer.
	Cut Cut
	// Receipts are the reports to send if the message is accepted.
	Receipts []Receipt
	// Uncounted leaves the SUBMIT out of the window's count: the peer is
	// expected to give up on it before the answer.
	Uncounted bool
}

// Receipt is one planned status report.
type Receipt struct {
	// Delay from the answer (from receiving the SUBMIT when there is none).
	Delay time.Duration
	Stat  string
	// Early writes the report before the SUBMIT_RESP, half-way through Hold.
	Early bool
	// Elsewhere sends it on another connection of the account when there is one.
	Elsewhere bool
	// WrongSize gives it the length of the other version's report: 60 octets on
	// a 3.0 link, 71 on a 2.x one.
	WrongSize bool
}

// Control looks at a SUBMIT after its fate was dealt and may change its plan;
// limits (window, rate) are judged afterwards and win. It is removed when it
// returns true. Controls run one at a time on the connections' readers: they
// must not block, keep their arguments, or add and remove controls.
type Control func(s *Submit, p *Plan) (done bool)

type control struct{ f Control }

// Control adds f behind the controls already there and returns a function that
// removes it. Controls run in the order they were added.
func (s *Server) Control(f Control) (remove func()) {
	c := &control{f: f}
	s.controlMu.Lock()
	defer s.controlMu.Unlock()
	s.controls = append(s.controls, c)
	s.controlled.Store(true)
	return func() {
		s.controlMu.Lock()
		defer s.controlMu.Unlock()
		s.controls = slices.DeleteFunc(s.controls, func(o *control) bool { return o == c })
		s.controlled.Store(len(s.controls) > 0)
	}
}

func (s *Server) runControls(sub *Submit, p *Plan) {
	if !s.controlled.Load() {
		return
	}
	s.controlMu.Lock()
	defer s.controlMu.Unlock()
	s.controls = slices.DeleteFunc(s.controls, func(c *control) bool { return c.f(sub, p) })
	s.controlled.Store(len(s.controls) > 0)
}

// Limit makes f apply to the next n SUBMITs that match only; a nil match
// matches all.
func Limit(n int, match func(*Submit) bool, f Control) Control {
	return func(s *Submit, p *Plan) bool {
		if match != nil && !match(s) {
			return false
		}
		if n--; n < 0 {
			return true
		}
		return f(s, p) || n == 0
	}
}

// Of matches the SUBMITs of one account.
func Of(account string) func(*Submit) bool {
	return func(s *Submit) bool { return s.Account == account }
}

// Late holds answers d longer (fault-supplier-late).
func Late(d time.Duration) Control {
	return func(_ *Submit, p *Plan) bool {
		p.Hold += d
		p.Uncounted = true
		return false
	}
}

// Twice writes every answer twice (fault-supplier-twice).
func Twice() Control {
	return func(_ *Submit, p *Plan) bool {
		p.Answers = 2
		return false
	}
}

// Disorder holds every second answer d longer, so that answers leave out of
// order within the window (fault-supplier-disorder).
func Disorder(d time.Duration) Control {
	odd := false
	return func(_ *Submit, p *Plan) bool {
		if odd = !odd; odd {
			p.Hold += d
		}
		return false
	}
}

// Silent accepts without an answer (fault-supplier-silent); the report comes.
func Silent() Control {
	return func(_ *Submit, p *Plan) bool {
		p.Answers = 0
		p.Uncounted = true
		return false
	}
}

// WrongSeq answers with a Sequence_Id the peer has not used
// (fault-supplier-wrong-seq).
func WrongSeq() Control {
	return func(_ *Submit, p *Plan) bool {
		p.SeqShift = wrongSeqShift
		p.Uncounted = true
		return false
	}
}

// Answer gives every SUBMIT this result (fault-primary-rejects with 8 or any
// other refusal).
func Answer(result uint32) Control {
	return func(_ *Submit, p *Plan) bool {
		p.Result = result
		return false
	}
}

// EarlyReceipt writes the report before the answer (fault-receipt-early).
func EarlyReceipt() Control {
	return func(_ *Submit, p *Plan) bool {
		if len(p.Receipts) > 0 {
			p.Receipts[0].Early = true
		}
		return false
	}
}

// ReceiptAgain repeats the report after delay (fault-receipt-twice).
func ReceiptAgain(delay time.Duration) Control {
	return func(_ *Submit, p *Plan) bool {
		if len(p.Receipts) > 0 {
			again := p.Receipts[0]
			again.Early = false
			again.Delay += delay
			p.Receipts = append(p.Receipts, again)
		}
		return false
	}
}

// Contradict follows the report with one that says stat after delay
// (fault-receipt-contradict).
func Contradict(stat string, delay time.Duration) Control {
	return func(_ *Submit, p *Plan) bool {
		if len(p.Receipts) > 0 {
			p.Receipts = append(p.Receipts, Receipt{Delay: p.Receipts[0].Delay + delay, Stat: stat})
		}
		return false
	}
}

// Elsewhere sends reports on another connection (fault-receipt-elsewhere).
func Elsewhere() Control {
	return func(_ *Submit, p *Plan) bool {
		for i := range p.Receipts {
			p.Receipts[i].Elsewhere = true
		}
		return false
	}
}

// WrongSize gives reports the other version's length.
func WrongSize() Control {
	return func(_ *Submit, p *Plan) bool {
		for i := range p.Receipts {
			p.Receipts[i].WrongSize = true
		}
		return false
	}
}

// Every makes f apply to every nth SUBMIT that matches only, the first of them
// included; a nil match matches all.
func Every(n int, match func(*Submit) bool, f Control) Control {
	count := 0
	return func(s *Submit, p *Plan) bool {
		if match != nil && !match(s) {
			return false
		}
		count++
		return (count-1)%max(n, 1) == 0 && f(s, p)
	}
}

// NoReceipts sends none (fault-receipt-never).
func NoReceipts() Control {
	return func(_ *Submit, p *Plan) bool {
		p.Receipts = nil
		return false
	}
}

// Cut is a way to lose a connection.
type Cut uint8

// The ways.
const (
	NoCut   Cut = iota
	RST         // reset: what was not sent is gone
	FIN         // orderly half-close; what still arrives is not looked at
	Silence     // the socket stays open, nothing is read or written any more
)

// String returns the way's name.
func (c Cut) String() string {
	switch c {
	case NoCut:
		return "none"
	case RST:
		return "rst"
	case FIN:
		return "fin"
	case Silence:
		return "silence"
	}
	return fmt.Sprintf("cut(%d)", uint8(c))
}

// ErrUnknown reports an account or connection that is not there.
var ErrUnknown = errors.New("no such account or live connection")

// Live returns the logged-in connections that are neither cut nor silent.
func (s *Server) Live() []Conn {
	var live []Conn
	for _, a := range s.accounts {
		a.mu.Lock()
		for _, c := range a.live {
			live = append(live, c.snapshot())
		}
		a.mu.Unlock()
	}
	return live
}

// Cut cuts one connection. Reports that were waiting on it move to the
// account's other connections, or wait for the next login. A silent connection
// can be cut again by RST or FIN. Cut returns the connection as it was at that
// moment, which tells how many SUBMITs were outstanding.
func (s *Server) Cut(conn uint64, how Cut) (Conn, error) {
	for _, a := range s.accounts {
		if c, ok := a.cutOne(conn, how, s.clock.Now()); ok {
			return c, nil
		}
	}
	return Conn{}, fmt.Errorf("cut connection %d: %w", conn, ErrUnknown)
}

func (a *account) cutOne(conn uint64, how Cut, now int64) (Conn, bool) {
	a.mu.Lock()
	defer a.mu.Unlock()
	for _, c := range a.history {
		if c.id == conn && c.closed == 0 {
			was := c.snapshot()
			c.cut(how, now)
			return was, true
		}
	}
	return Conn{}, false
}

// Terminate starts a polite end of one connection: TERMINATE, and close on its
// answer. SUBMITs unanswered by then stay unanswered.
func (s *Server) Terminate(conn uint64) error {
	for _, a := range s.accounts {
		a.mu.Lock()
		for _, c := range a.live {
			if c.id == conn {
				c.terminate()
				a.mu.Unlock()
				return nil
			}
		}
		a.mu.Unlock()
	}
	return fmt.Errorf("terminate connection %d: %w", conn, ErrUnknown)
}

// Limits are what an account may do; they can change while it is logged in.
type Limits struct {
	MaxConnections int
	Window         int
	RateLimit      int
}

// Limits returns the limits of an account.
func (s *Server) Limits(id string) (Limits, error) {
	a, err := s.account(id)
	if err != nil {
		return Limits{}, err
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	return Limits{a.spec.MaxConnections, a.spec.Window, a.spec.RateLimit}, nil
}

// SetLimits changes the limits of an account. Connections beyond the new
// maximum stay open; with how other than NoCut the newest of them are cut.
func (s *Server) SetLimits(id string, l Limits, how Cut) error {
	a, err := s.account(id)
	if err != nil {
		return err
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	a.spec.MaxConnections, a.spec.Window = l.MaxConnections, l.Window
	a.setRate(l.RateLimit)
	for how != NoCut && len(a.live) > l.MaxConnections {
		a.live[len(a.live)-1].cut(how, s.clock.Now())
	}
	return nil
}

// RefuseLogins answers every CONNECT of an account with status; 0 takes
// logins again. Live connections stay.
func (s *Server) RefuseLogins(id string, status uint32) error {
	return s.set(id, func(a *account) { a.refuse = status })
}

// IgnoreActiveTest leaves the account's ACTIVE_TESTs unanswered.
func (s *Server) IgnoreActiveTest(id string, on bool) error {
	return s.set(id, func(a *account) { a.ignoreTests = on })
}

// SplitWrites hands octets to the kernel a few at a time.
func (s *Server) SplitWrites(id string, on bool) error {
	return s.set(id, func(a *account) { a.split = on })
}

// SetBehaviour changes how an account answers from the next SUBMIT on.
func (s *Server) SetBehaviour(id string, b Behaviour) error {
	if f := b.Validate("behaviour"); len(f) > 0 {
		return f
	}
	return s.set(id, func(a *account) { a.deal.Store(s.dealer(&b)) })
}

func (s *Server) set(id string, f func(*account)) error {
	a, err := s.account(id)
	if err != nil {
		return err
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	f(a)
	return nil
}

// Replay sends the account's last n acknowledged DELIVERs once more, with the
// Msg_Ids they had, and returns how many there were (fault-replay).
func (s *Server) Replay(id string, n int) (int, error) {
	a, err := s.account(id)
	if err != nil {
		return 0, err
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	var acked []*delivery
	for d := range a.deliveries.All() {
		if d.acked != 0 && d.holder == nil {
			acked = append(acked, d)
		}
	}
	acked = acked[max(0, len(acked)-n):]
	now := s.clock.Now()
	for _, d := range acked {
		d.replay = true
		a.schedule(d, now)
	}
	return len(acked), nil
}

// SendUplink sends a handset's text to an access number and returns the Msg_Id
// of the DELIVER. Text of 7-bit characters goes as fmt 0, anything else as
// UCS2; it must fit one message (160 or 70 characters). Without a connection
// it waits for the next login.
func (s *Server) SendUplink(id, source, dest, text string) (uint64, error) {
	format, content, err := encodeText(text)
	if err != nil {
		return 0, fmt.Errorf("send uplink: %w", err)
	}
	return s.SendUplinkContent(id, source, dest, format, 0, content)
}

// SendUplinkContent is SendUplink for octets: a segment of a long uplink has
// udhi 1 and its header at the start of content. At most 160 octets.
func (s *Server) SendUplinkContent(id, source, dest string, format, udhi uint8, content []byte) (uint64, error) {
	a, err := s.account(id)
	if err != nil {
		return 0, err
	}
	if len(source) > 21 || len(dest) > 21 || len(content) > 160 {
		return 0, fmt.Errorf("send uplink: source, dest or content too long (%d, %d, %d octets)", len(source), len(dest), len(content))
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	now := s.clock.Now()
	a.counts.Uplinks++
	d := a.deliveries.Add()
	d.id, d.due = a.ids.next(now), now
	d.up = &uplinkText{source: source, dest: dest, format: format, udhi: udhi, content: slices.Clone(content)}
	a.schedule(d, now)
	return d.id, nil
}
