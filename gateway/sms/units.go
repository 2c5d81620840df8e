package sms

import "fmt"

// UnitRule says how many billing units a text is.
type UnitRule uint8

const (
	// RuleCN7067 is the usual rule in China: every character counts one whatever its kind, one outside the basic plane
	// two; up to 70 are one unit, more are ceil(n/67).
	RuleCN7067 UnitRule = iota
	// RuleGSM160153 bills pure ASCII by the seven-bit sizes: up to 160 characters are one unit, more are ceil(n/153).
	// Any other text is billed by RuleCN7067.
	RuleGSM160153
)

// String returns the name ParseUnitRule reads.
func (r UnitRule) String() string {
	switch r {
	case RuleCN7067:
		return "cn-70-67"
	case RuleGSM160153:
		return "gsm-160-153"
	}
	return fmt.Sprintf("unit-rule-%d", uint8(r))
}

// ParseUnitRule reads "cn-70-67" or "gsm-160-153".
func ParseUnitRule(s string) (UnitRule, error) {
	for _, r := range []UnitRule{RuleCN7067, RuleGSM160153} {
		if s == r.String() {
			return r, nil
		}
	}
	return 0, fmt.Errorf("sms: unit rule %q is neither cn-70-67 nor gsm-160-153", s)
}

// Units returns the billing units of the whole text of a message (signature and appended text included), at least 1.
// It is the commercial rule, not the number of segments on the wire, which may be larger by a surrogate pair at a cut,
// by a 7-octet header or by ASCII cut at 134.
func Units(text string, r UnitRule) int {
	if r == RuleGSM160153 && isASCII(text) {
		return units(len(text), 160, 153)
	}
	n := 0
	for _, c := range trimMark(text) {
		n++
		if c > 0xFFFF {
			n++
		}
	}
	return units(n, 70, 67)
}

// UnitsBinary returns the billing units of a message in format SIM or binary whose content, without concatenation
// headers, has so many octets: up to 140 are one unit, more are ceil(octets/134), the segments it takes.
func UnitsBinary(octets int) int { return units(octets, 140, 134) }

func units(n, single, each int) int {
	if n <= single {
		return 1
	}
	return (n + each - 1) / each
}
