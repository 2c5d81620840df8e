package ismg

import (
	"encoding/csv"
	"fmt"
	"io"
	"slices"
	"strconv"

	"cmppgateway/simulator/internal/wire"
)

// Times in records are nanoseconds on the shared clock; 0 means "not".

// Refusal says who refused a SUBMIT.
type Refusal uint8

// The refusers.
const (
	NotRefused      Refusal = iota
	RefusedByDeck           // the card dealt
	RefusedByRate           // more than rate_limit
	RefusedByWindow         // more than window
	RefusedByFrame          // broken structure, recipient or sequence
	RefusedByHook           // a Control changed the result
)

// String returns the refuser's name; empty for NotRefused.
func (r Refusal) String() string {
	names := [...]string{"", "deck", "rate", "window", "frame", "hook"}
	if int(r) < len(names) {
		return names[r]
	}
	return fmt.Sprintf("refusal(%d)", uint8(r))
}

// MarshalText returns the refuser's name.
func (r Refusal) MarshalText() ([]byte, error) { return []byte(r.String()), nil }

// Submit is one SUBMIT as received, one per recipient of a group send.
type Submit struct {
	Account string
	Conn    uint64 // connection, unique within the server
	Seq     uint32
	Recv    int64 // when the frame was read
	Sent    int64 // when the answer was handed to the kernel; 0: never
	Hold    int64 // planned Sent − Recv

	Number     string // first recipient as sent
	Key        uint64 // the number without country code
	SrcID      string
	MsgSrc     string
	ServiceID  string
	Fmt        uint8
	UDHI       uint8
	Registered uint8
	PkTotal    uint8 // of the SUBMIT
	PkNumber   uint8
	Concat     Concat // of the user-data header; zero without one
	Length     int    // octets of content
	Hash       uint64 // ContentHash of the content
	Content    []byte // only with Options.KeepContent

	Attempt int    // SUBMITs of this number and part seen before, on any account
	Fate    Fate   // dealt for this attempt
	Result  uint32 // given; 0 means accepted, whether or not the answer got out
	Refusal Refusal
	MsgID   uint64 // given; 0 when refused
	Stat    string // of the first report written; empty before
}

// Accepted reports whether the supplier took the message.
func (s *Submit) Accepted() bool { return s.Result == 0 }

// Part is the segment number within a long message, from 1; 1 for a short one.
func (s *Submit) Part() uint8 {
	if s.Concat.Number > 0 {
		return s.Concat.Number
	}
	return max(s.PkNumber, 1)
}

// Concat is the concatenation element of a user-data header.
type Concat struct {
	Ref           uint16
	Total, Number uint8
}

// Report is one status report.
type Report struct {
	Account   string
	MsgID     uint64 // of the SUBMIT reported on
	Number    string
	Stat      string
	Copy      int    // 0 first, 1 its repetition or contradiction
	Early     bool   // planned before the SUBMIT_RESP
	WrongSize bool   // of the other version's length
	DeliverID uint64 // Msg_Id of the DELIVER itself
	Conn      uint64 // connection of the last transmission
	Due       int64  // planned
	First     int64  // first transmission
	Last      int64  // last transmission
	Acked     int64  // DELIVER_RESP with result 0
	Result    uint32 // of the last DELIVER_RESP
	Tries     int    // transmissions
	Acks      int    // DELIVER_RESPs
}

// Uplink is one message from a handset.
type Uplink struct {
	Account   string
	DeliverID uint64
	Source    string // handset
	Dest      string // access number
	Fmt       uint8
	UDHI      uint8
	Content   []byte
	Conn      uint64
	Due       int64
	First     int64
	Last      int64
	Acked     int64
	Result    uint32
	Tries     int
	Acks      int
}

// Conn is one connection that logged in.
type Conn struct {
	Account      string
	ID           uint64
	Remote       string
	Version      uint8
	Opened       int64
	Closed       int64  // 0: live
	Reason       string // why it closed
	Silent       int64  // when it fell silent; 0: it did not
	Submits      int
	InFlight     int // unanswered SUBMITs now; 0 after its end
	Lost         int // unanswered SUBMITs at its end
	InFlightPeak int
	DeliverPeak  int // most unanswered DELIVERs
	ActiveTests  int // received
	BytesIn      int64
	BytesOut     int64
}

// Login is one CONNECT and its answer.
type Login struct {
	At      int64
	Account string // as claimed
	Remote  string
	Status  uint32
}

// ViolationKind is a broken rule of the protocol or of the contract.
type ViolationKind string

// The kinds of violation.
const (
	ViolatedWindow      ViolationKind = "window"       // more unanswered SUBMITs than allowed
	ViolatedRate        ViolationKind = "rate"         // more SUBMITs per second than allowed
	ViolatedSequence    ViolationKind = "sequence"     // Sequence_Id used by an unanswered SUBMIT
	ViolatedConnections ViolationKind = "connections"  // login beyond max_connections
	ViolatedCarrier     ViolationKind = "carrier"      // recipient outside prefixes
	ViolatedFrame       ViolationKind = "frame"        // length, command or field that cannot be
	ViolatedLogin       ViolationKind = "login"        // first frame is not CONNECT, or a second CONNECT
	ViolatedDeliverResp ViolationKind = "deliver_resp" // answer to no DELIVER, or with another Msg_Id
)

// Violation is one broken rule.
type Violation struct {
	At      int64
	Account string // empty before login
	Conn    uint64
	Kind    ViolationKind
	Detail  string
}

// Record is everything the suppliers saw and did, each slice in order of time
// within an account. It is a copy.
type Record struct {
	Submits    []Submit
	Reports    []Report
	Uplinks    []Uplink
	Conns      []Conn
	Logins     []Login
	Violations []Violation
}

// ContentHash is the hash kept in Submit.Hash (64-bit FNV-1a).
func ContentHash(content []byte) uint64 { return wire.Hash(content) }

// Record returns a copy of what has been recorded so far, each account at one
// moment. The account stands still while it is copied (some 10 ms per 100,000
// messages), so do not take it within a measured phase; see Counts.
func (s *Server) Record() Record {
	var r Record
	for _, a := range s.accounts {
		a.mu.Lock()
		for sub := range a.submits.All() {
			r.Submits = append(r.Submits, sub.Submit)
		}
		for d := range a.deliveries.All() {
			if d.up != nil {
				r.Uplinks = append(r.Uplinks, d.uplink(a.spec.ID))
			} else {
				r.Reports = append(r.Reports, d.report())
			}
		}
		for _, c := range a.history {
			r.Conns = append(r.Conns, c.snapshot())
		}
		a.mu.Unlock()
	}
	s.mu.Lock()
	r.Logins = slices.Clone(s.logins)
	r.Violations = slices.Clone(s.violations)
	s.mu.Unlock()
	return r
}

// Counts is a cheap view of one account's record, for progress, rates and
// drains.
type Counts struct {
	Account  string
	Live     int // connections
	Submits  int // one per recipient
	Accepted int
	Refused  int
	InFlight int // unanswered SUBMITs on live connections
	Reports  int // planned so far; those of unanswered SUBMITs come later
	Uplinks  int
	Acked    int // reports and uplinks acknowledged
	Homeless int // DELIVERs that wait for a login
	Denied   int // logins refused
}

// Counts returns the counters of every account, in the profile's order.
func (s *Server) Counts() []Counts {
	list := make([]Counts, 0, len(s.accounts))
	for _, a := range s.accounts {
		a.mu.Lock()
		n := a.counts
		n.Account, n.Live, n.Homeless = a.spec.ID, len(a.live), a.orphans.Len()
		for _, c := range a.live {
			n.InFlight += len(c.inflight)
		}
		a.mu.Unlock()
		list = append(list, n)
	}
	return list
}

// StatementHeader is the first line of the daily statement.
var StatementHeader = []string{"account", "msg_id", "number", "src_id", "submit_time", "result", "stat", "segments"}

// WriteStatement writes the supplier's daily statement as CSV, one line per
// SUBMIT and recipient in order of time within an account, from the record
// alone. msg_id is decimal, submit_time RFC 3339 in Asia/Shanghai with
// milliseconds, stat that of the first report (empty without one), segments
// always 1, since every segment of a long message has a line of its own.
func (s *Server) WriteStatement(w io.Writer) error {
	out := csv.NewWriter(w)
	if err := out.Write(StatementHeader); err != nil {
		return fmt.Errorf("write statement: %w", err)
	}
	row := make([]string, len(StatementHeader))
	for _, sub := range s.Record().Submits {
		row[0] = sub.Account
		row[1] = strconv.FormatUint(sub.MsgID, 10)
		row[2] = sub.Number
		row[3] = sub.SrcID
		row[4] = s.clock.Time(sub.Recv).In(shanghai).Format("2006-01-02T15:04:05.000Z07:00")
		row[5] = strconv.FormatUint(uint64(sub.Result), 10)
		row[6] = sub.Stat
		row[7] = "1"
		if err := out.Write(row); err != nil {
			return fmt.Errorf("write statement: %w", err)
		}
	}
	out.Flush()
	if err := out.Error(); err != nil {
		return fmt.Errorf("write statement: %w", err)
	}
	return nil
}
