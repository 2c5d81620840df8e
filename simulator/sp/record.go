package sp

import (
	"fmt"
	"slices"
)

// Times in records are nanoseconds on the shared clock; 0 means "not".

// State is how far a message came.
type State uint8

// The states of a message.
const (
	Waiting    State = iota // fired, waits for a window slot
	InFlight                // has a slot; its octets have left or are about to
	Answered                // SUBMIT_RESP came in time
	TimedOut                // no SUBMIT_RESP in ResponseTimeout; a late one is noted in Resp
	Unanswered              // the connection was lost after the octets may have left
	NotSent                 // never on the wire: over the cap, or the run ended first
)

// String returns the state's name.
func (s State) String() string {
	names := [...]string{"waiting", "in_flight", "answered", "timed_out", "unanswered", "not_sent"}
	if int(s) < len(names) {
		return names[s]
	}
	return fmt.Sprintf("state(%d)", uint8(s))
}

// MarshalText returns the state's name.
func (s State) MarshalText() ([]byte, error) { return []byte(s.String()), nil }

// Sent is one message and what became of it.
type Sent struct {
	Key    uint64 // of the Message
	Tag    uint16 // of the Message
	Number string // first recipient
	Also   []string
	Count  int // recipients
	SrcID  string
	// Registered is the Registered_Delivery asked for.
	Registered uint8
	Concat     Concat // of the user-data header; zero without one
	Hash       uint64 // of the content without that header, as ismg.ContentHash has it
	Text       []byte // that content itself, of segments only
	Due        int64  // when it should have started
	Fire       int64  // when the pacer woke for it
	Slot       int64  // when it got a window slot
	Write      int64  // when its octets had been handed to the kernel
	Resp       int64  // when the SUBMIT_RESP was read
	Conn       uint64
	Seq        uint32
	State      State
	Result     uint32
	MsgID      uint64
	Answers    int // SUBMIT_RESPs received
}

// Accepted reports whether the peer took the message as far as the customer
// knows, in time or late.
func (s *Sent) Accepted() bool { return s.Resp != 0 && s.Result == 0 }

// Concat is the concatenation element of a user-data header.
type Concat struct {
	Ref           uint16
	Total, Number uint8
}

// Receipt is one status report as received.
type Receipt struct {
	At        int64
	Acked     int64 // when the DELIVER_RESP was handed to the kernel; 0: never
	Conn      uint64
	DeliverID uint64 // Msg_Id of the DELIVER
	MsgID     uint64 // of the message reported on
	Stat      string
	Number    string
	Copy      int // receipts for this MsgID that came before
}

// Uplink is one message from a handset as received.
type Uplink struct {
	At        int64
	Acked     int64
	Conn      uint64
	DeliverID uint64
	Source    string
	Dest      string
	Fmt       uint8
	UDHI      uint8
	Concat    Concat // of the user-data header; zero without one
	Content   []byte // without that header
	Copy      int    // uplinks with this DeliverID that came before
}

// Conn is one connection that logged in.
type Conn struct {
	ID           uint64
	Index        int // which of the account's connections, from 0
	Opened       int64
	Closed       int64 // 0: live
	Reason       string
	Submits      int
	InFlight     int
	InFlightPeak int
	ActiveTests  int // received
	BytesIn      int64
	BytesOut     int64
}

// Login is one attempt to connect and log in that did not succeed.
type Login struct {
	At     int64
	Index  int
	Status uint32 // of CONNECT_RESP; 0 when none came
	Reason string
}

// Record is everything the customer did and saw. It is a copy.
type Record struct {
	Account  string
	Sent     []Sent
	Receipts []Receipt
	Uplinks  []Uplink
	Conns    []Conn
	Refused  []Login
	// Unexpected counts frames that answer nothing or cannot be read.
	Unexpected int
}

// Record returns a copy of what has been recorded so far, taken at one moment.
// The client stands still meanwhile (some 10 ms per 100,000 messages), so do
// not take it within a measured phase; see Counts.
func (c *Client) Record() Record {
	c.mu.Lock()
	defer c.mu.Unlock()
	r := Record{Account: c.cfg.ID, Refused: slices.Clone(c.refused), Unexpected: c.unexpected}
	r.Sent = make([]Sent, 0, c.sent.Len())
	for op := range c.sent.All() {
		r.Sent = append(r.Sent, op.Sent)
	}
	r.Receipts = make([]Receipt, 0, c.receipts.Len())
	for d := range c.receipts.All() {
		r.Receipts = append(r.Receipts, *d)
	}
	for d := range c.uplinks.All() {
		u := *d
		u.Content = slices.Clone(d.Content)
		r.Uplinks = append(r.Uplinks, u)
	}
	for _, l := range c.history {
		r.Conns = append(r.Conns, l.snapshot())
	}
	return r
}

// Counts is a cheap view of the record for progress and drains.
type Counts struct {
	Fired, Waiting, InFlight      int
	Answered, Accepted            int // Accepted includes late answers
	TimedOut, Unanswered, NotSent int
	Receipts, DuplicateReceipts   int
	Uplinks, Live                 int
	Unacked                       int // DELIVERs left unanswered while mute
}

// Counts returns the counters of this moment.
func (c *Client) Counts() Counts {
	c.mu.Lock()
	defer c.mu.Unlock()
	n := c.counts
	n.Live = c.live()
	return n
}
