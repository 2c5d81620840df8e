package message

import (
	"fmt"
	"slices"
)

// State of a message (column message.state).
type State int16

// Message states. A message in the inbox has no state yet: it is "accepted".
const (
	Checked State = iota + 1
	Submitted
	Unknown
	Delivered
	Failed
	Rejected
	Expired
	Cancelled
)

var stateNames = [...]string{"", "checked", "submitted", "unknown", "delivered", "failed", "rejected", "expired", "cancelled"}

// String is the word shown to people.
func (s State) String() string {
	if s < Checked || s > Cancelled {
		return fmt.Sprintf("state(%d)", int16(s))
	}
	return stateNames[s]
}

// Final says that nothing moves the message any more.
func (s State) Final() bool { return s >= Delivered && s <= Cancelled }

var stateNext = map[State][]State{
	Checked:   {Submitted, Unknown, Failed, Expired, Cancelled},
	Submitted: {Unknown, Delivered, Failed},
	Unknown:   {Checked, Submitted, Delivered, Failed}, // checked: refused late, and sent again
}

// Can says whether the transition is allowed.
func (s State) Can(to State) bool { return slices.Contains(stateNext[s], to) }

// Submit is the state of one submit: Pending and Dispatched live in submit_outbox, the others in submit.
type Submit int16

// Submit states.
const (
	Pending Submit = iota
	Dispatched
	Accepted
	Refused
	SubmitUnknown
)

var submitNames = [...]string{"pending", "dispatched", "accepted", "rejected", "unknown"}

// String is the word shown to people and carried in events.
func (s Submit) String() string {
	if s < Pending || s > SubmitUnknown {
		return fmt.Sprintf("submit(%d)", int16(s))
	}
	return submitNames[s]
}

var submitNext = map[Submit][]Submit{
	Pending:       {Dispatched},
	Dispatched:    {Pending, Accepted, Refused, SubmitUnknown},
	SubmitUnknown: {Accepted, Refused},
}

// Can says whether the transition is allowed. Pending also ends by deletion of its row (withdrawn).
func (s Submit) Can(to Submit) bool { return slices.Contains(submitNext[s], to) }

// Bill is where a message's money is (column message.bill).
type Bill int16

// Billing states.
const (
	BillNone Bill = iota
	Frozen
	Charged
	Released
	Refunded
)

var billNames = [...]string{"none", "frozen", "charged", "released", "refunded"}

// String is the word shown to people.
func (b Bill) String() string {
	if b < BillNone || b > Refunded {
		return fmt.Sprintf("bill(%d)", int16(b))
	}
	return billNames[b]
}

var billNext = map[Bill][]Bill{Frozen: {Charged, Released}, Charged: {Refunded}}

// Can says whether the transition is allowed.
func (b Bill) Can(to Bill) bool { return slices.Contains(billNext[b], to) }

// EntryKind of an account entry.
type EntryKind int16

// Account entry kinds.
const (
	TopUp EntryKind = iota + 1
	Freeze
	Charge
	Release
	Refund
)

// ChargeOn says which fact charges a message; fixed on the message at freeze.
type ChargeOn int16

// Charge policies.
const (
	ChargeOnAccept ChargeOn = iota + 1
	ChargeOnDeliver
)

// RefundOn says what refunds a charged message; fixed on the message at freeze.
type RefundOn int16

// Refund policies.
const (
	RefundNever RefundOn = iota
	RefundOnFailedReceipt
)

// Lane is the priority of a message inside a channel: the lower the sooner.
type Lane int16

// Lanes.
const (
	Verification Lane = iota
	Notification
	Marketing
)

// ResultClass says what follows a refused submit (architecture §3, supplier result codes).
type ResultClass int16

// Result classes. Codes without one are Terminal.
const (
	RetryOther ResultClass = iota + 1 // at once on the next candidate, then the last channel again after 1 s, 2 s
	RetryLater
	RerouteCarrier
	Terminal
)

// MaxSubmits is how many submits a segment gets in all.
const MaxSubmits = 3
