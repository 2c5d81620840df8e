package message

import "fmt"

// Reason says why a message was refused by the gateway (column message.reason); NoReason for all others.
type Reason int16

// Refusal reasons. System is for a row that fails alone with a permanent error (data §1.11).
const (
	NoReason Reason = iota
	ReasonSignature
	ReasonTemplate
	ReasonKeyword
	ReasonBlacklist
	ReasonRisk
	ReasonQuota
	ReasonBalance
	ReasonRoute
	ReasonStatus
	ReasonFormat
	ReasonExpired
	ReasonSystem
)

var reasons = [...]struct{ word, stat string }{
	{"", ""},
	{"SIGNATURE", "SIGFAIL"},
	{"TEMPLATE", "TPLFAIL"},
	{"KEYWORD", "KEYWORD"},
	{"BLACKLIST", "BLACK"},
	{"RISK", "RISK"},
	{"QUOTA", "QUOTA"},
	{"BALANCE", "BALANCE"},
	{"ROUTE", "NOROUTE"},
	{"STATUS", "STATUS"},
	{"FORMAT", "FORMAT"},
	{"EXPIRED", "EXPIRED"},
	{"SYSTEM", "SYSTEM"},
}

// String is the word shown to people, as in failed/ROUTE.
func (r Reason) String() string {
	if r < NoReason || int(r) >= len(reasons) {
		return fmt.Sprintf("reason(%d)", int16(r))
	}
	return reasons[r].word
}

// Stat is the at most 7 octets that the customer's failed receipt carries.
func (r Reason) Stat() string {
	if r < NoReason || int(r) >= len(reasons) {
		return "UNKNOWN"
	}
	return reasons[r].stat
}

// StatCancelled is what the receipt of a message carries that its customer cancelled.
const StatCancelled = "DELETED"

// StatDelivered is the only Stat that means delivered.
const StatDelivered = "DELIVRD"

// FinalStat says whether a supplier's Stat ends the message. ACCEPTD is intermediate, as is an empty one.
func FinalStat(stat string) bool { return stat != "" && stat != "ACCEPTD" }
