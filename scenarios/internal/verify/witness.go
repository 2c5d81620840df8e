package verify

import (
	"time"

	"cmppgateway/simulator/ismg"
	"cmppgateway/simulator/sp"
)

// Witness is everything that is known about a finished run.
type Witness struct {
	Terms     Terms
	Customers []sp.Record // by enterprise, in the order of Terms
	Suppliers ismg.Record
	Database  Database
	// Places are the queues polled after the drain and after the stop.
	Places []Place
	// Events are events that the core took, and those of them that it had already, by the
	// gateway's own count.
	Events, Replayed int64
	// Samples are the books of each second; the last is of the end.
	Samples []Sample
	// Faults that were injected, and the submits that were ever seen unknown.
	Faults   []Fault
	Unknowns []UnknownSubmit
}

// Terms are what the scenario says and the run was set up with.
type Terms struct {
	Price int64
	// Kinds of messages by the tag of a customer's record.
	Kinds       []Kind
	Enterprises []Enterprise
	// Accounts by the suppliers' login.
	Accounts map[string]SupplierAccount
	// Backup says that every carrier has a second channel to resend on.
	Backup   bool
	Expected Expected
	// Uplinks that the suppliers were told to send.
	Uplinks []Uplink
	// Isolation says who must not have felt what; empty without Phases.
	Isolation Isolation
}

// Kind is what the scenario says about the messages of a tag.
type Kind struct {
	Name string
	// Units billed, and SUBMITs to a supplier.
	Units, Parts int64
	Long         bool
	// Missing says that its segments do not make a message.
	Missing bool
	// Reason code that a rule of the gateway must have refused it with; 0 is that none
	// may have. Stat is then its receipt's.
	Reason int16
	Stat   string
	// Result of SUBMIT_RESP that is expected.
	Result uint32
}

// Uplink is one message from a handset, sent in one DELIVER or in segments.
type Uplink struct {
	Number, Dest string
	Text         string
	Account      string
	DeliverIDs   []uint64
}

// Isolation are phases with and without a disturbance, and the enterprises that must
// not feel it, as positions in Terms.
type Isolation struct {
	Untouched []int
	Phases    []IsolationPhase
}

// IsolationPhase is a phase; times are on the shared clock.
type IsolationPhase struct {
	From, Until int64
	Disturbed   bool
}

// Enterprise is one account as it was before the load.
type Enterprise struct {
	Name    string
	ID      int32
	Opening int64 // available
	TopUps  int64 // sum of its top-up entries
}

// SupplierAccount is one supplier account with the limits it was given.
type SupplierAccount struct {
	ID          int32
	Connections int
	Window      int
}

// Expected says of what there must be something to examine; where it is zero a
// check without anything to examine is not applicable.
type Expected struct {
	Messages, RefusedSubmits, Receipts, Early int64
	Long, Intercepted                         int64
	Charged, Refunded, Released               map[string]int64 // messages by enterprise
}

// Database is the snapshot.
type Database struct {
	At       time.Time
	Accounts []Account
	Entries  []Entry
	Messages []Message
	Submits  []Submit
	Receipts []Receipt
	Segments []Segment
	Uplinks  []StoredUplink
}

// Segment is a customer's SUBMIT that was joined with others to a message.
type Segment struct {
	Message    int64
	MsgID      uint64
	Number     int16
	Registered int16
}

// StoredUplink is a stored message from a handset, or a segment of one.
type StoredUplink struct {
	EventID       int64
	SupplierMsgID uint64
	Account       int32
	Phone, Dest   string
}

// Account is an account row.
type Account struct {
	ID                int32
	Available, Credit int64
}

// Kinds of account entries (column account_entry.kind).
const (
	TopUp   = 1
	Freeze  = 2
	Charge  = 3
	Release = 4
	Refund  = 5
)

// Entry is an account entry.
type Entry struct {
	ID      int64
	Account int32
	Kind    int16
	N       int64
	Amount  int64
	// Balance is the available balance after the entry; a charge moves none and has
	// none. (A pointer would not do: in a history file a pointer to 0 reads back as nil.)
	Balance    int64
	HasBalance bool
	At         time.Time
}

// delta is what the entry does to the available balance.
func (e *Entry) delta() int64 {
	switch e.Kind {
	case TopUp, Release, Refund:
		return e.Amount
	case Freeze:
		return -e.Amount
	}
	return 0
}

// States of a message (column message.state) that the checks name.
const (
	Checked   = 1
	Submitted = 2
	Unknown   = 3
	Delivered = 4
	Failed    = 5
	Rejected  = 6
	Expired   = 7
	Cancelled = 8
)

// Billing states (column message.bill).
const (
	BillNone     = 0
	BillFrozen   = 1
	BillCharged  = 2
	BillReleased = 3
	BillRefunded = 4
)

// Message is a message row.
type Message struct {
	ID           int64
	MsgID        uint64
	Enterprise   int32
	Phone        uint64
	Price, Units int64
	State, Bill  int16
	Reason       int16
	Registered   int16
	Stat         string
	FreezeEntry  int64
	SettleEntry  int64
	RefundEntry  int64
	AcceptedAt   time.Time
	CreatedAt    time.Time
	FinalAt      *time.Time
}

func (m *Message) amount() int64 { return m.Price * m.Units }

// States of a submit (column submit.state), and of a row still in the outbox.
const (
	SubmitDispatched = 1
	SubmitAccepted   = 2
	SubmitRejected   = 3
	SubmitUnknown    = 4
)

// Submit is a dispatched submit: a row of submit, or of submit_outbox when no
// result has come.
type Submit struct {
	ID, Message, RetryOf int64
	SupplierMsgID        uint64
	Channel, Account     int32
	Result               int64
	Attempt, Part, State int16
	DispatchedAt         time.Time
	RespAt               *time.Time
}

// Receipt is a stored status report.
type Receipt struct {
	EventID       int64
	SupplierMsgID uint64
	Account       int32
	Phone         uint64
	Stat          string
}

// Place is one queue or resource that must be empty, or as expected.
type Place struct {
	Name           string
	Left, Expected int64
	Detail         string
	// AtMost makes anything up to Expected good.
	AtMost bool
	// Witness is M, D or R.
	Witness string
}

// OK says that the place is as it should be.
func (p Place) OK() bool { return p.Left == p.Expected || p.AtMost && p.Left < p.Expected }

// Sample is the books of one enterprise at one moment: the account row, and the
// sums of its entries by kind.
type Sample struct {
	At                                          time.Time
	Enterprise                                  int32
	Available                                   int64
	TopUps, Frozen, Charged, Released, Refunded int64 // sums of entries; Frozen of the freezes
}
