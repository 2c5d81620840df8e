package routing

import (
	"bytes"
	_ "embed" // segments.csv
	"encoding/csv"
	"errors"
	"fmt"
	"io"
	"slices"
	"strconv"
)

// Carrier is the operator that a number segment is allocated to.
type Carrier uint8

// The carriers. Unknown is the answer for unallocated, satellite and foreign numbers.
const (
	Unknown Carrier = iota
	Mobile
	Unicom
	Telecom
	Broadnet
)

// String returns the name ParseCarrier reads, "unknown" for Unknown.
func (c Carrier) String() string {
	switch c {
	case Unknown:
		return "unknown"
	case Mobile:
		return "mobile"
	case Unicom:
		return "unicom"
	case Telecom:
		return "telecom"
	case Broadnet:
		return "broadnet"
	}
	return "carrier-" + strconv.Itoa(int(c))
}

// ParseCarrier reads "mobile", "unicom", "telecom" or "broadnet"; anything else, "unknown" too, is an error.
func ParseCarrier(s string) (Carrier, error) {
	for c := Mobile; c <= Broadnet; c++ {
		if s == c.String() {
			return c, nil
		}
	}
	return Unknown, fmt.Errorf("routing: carrier %q is none of mobile, unicom, telecom, broadnet", s)
}

//go:embed segments.csv
var segmentsCSV []byte

const (
	mainlandDigits = 11
	machineDigits  = 13
	segmentDigits  = 5      // longest prefix in segments.csv
	firstSegment   = 10_000 // lowest five digits a number begins with
)

// segment is what segments.csv says of one prefix.
type segment struct {
	carrier Carrier
	resale  bool
	digits  uint8 // length of the prefix it was taken from
}

// Rule sends all numbers that begin with Prefix to Carrier, whatever the segment table says.
type Rule struct {
	Prefix  string // 1–13 digits, the first of them 1; without country code
	Carrier Carrier
}

// level holds the rules of one prefix length.
type level struct {
	digits int
	rules  map[uint64]Carrier
}

// Table maps numbers to carriers. It is immutable.
type Table struct {
	levels   []level         // longest prefix first
	segments [10_000]segment // by the first five digits of a number, less firstSegment
}

// New makes a table of the built-in number segments with temporary rules before them; among the rules the longest
// prefix counts. It reports every rule that is faulty: a prefix that is no number prefix or is given twice, a carrier
// that is not one of the four.
func New(rules []Rule) (*Table, error) {
	t := new(Table)
	if err := t.load(bytes.NewReader(segmentsCSV)); err != nil {
		return nil, fmt.Errorf("routing: segments.csv: %w", err)
	}
	var faults []error
	for _, r := range rules {
		if err := t.add(r); err != nil {
			faults = append(faults, fmt.Errorf("routing: rule %q: %w", r.Prefix, err))
		}
	}
	if len(faults) > 0 {
		return nil, errors.Join(faults...)
	}
	slices.SortFunc(t.levels, func(a, b level) int { return b.digits - a.digits })
	return t, nil
}

func (t *Table) load(r io.Reader) error {
	in := csv.NewReader(r)
	in.Comment = '#'
	in.FieldsPerRecord = 3
	rows, err := in.ReadAll()
	if err != nil {
		return err
	}
	for _, row := range rows[1:] { // the first one names the columns
		var s segment
		prefix, err := parsePrefix(row[0], segmentDigits)
		if err != nil {
			return fmt.Errorf("prefix %q: %w", row[0], err)
		}
		if row[1] != Unknown.String() {
			if s.carrier, err = ParseCarrier(row[1]); err != nil {
				return err
			}
		}
		if s.resale = row[2] == "yes"; !s.resale && row[2] != "no" {
			return fmt.Errorf("resale %q of prefix %s is neither yes nor no", row[2], row[0])
		}
		s.digits = uint8(len(row[0]))
		t.fill(prefix, s)
	}
	return nil
}

// fill writes s to every five-digit slot under prefix that no longer prefix has taken.
func (t *Table) fill(prefix uint64, s segment) {
	width := uint64(1)
	for range segmentDigits - int(s.digits) {
		width *= 10
	}
	for i := prefix * width; i < (prefix+1)*width; i++ {
		if old := &t.segments[i-firstSegment]; old.digits <= s.digits {
			*old = s
		}
	}
}

func (t *Table) add(r Rule) error {
	prefix, err := parsePrefix(r.Prefix, machineDigits)
	if err != nil {
		return err
	}
	if r.Carrier < Mobile || r.Carrier > Broadnet {
		return fmt.Errorf("carrier %s is none to route to", r.Carrier)
	}
	digits := len(r.Prefix)
	i := slices.IndexFunc(t.levels, func(l level) bool { return l.digits == digits })
	if i < 0 {
		i = len(t.levels)
		t.levels = append(t.levels, level{digits: digits, rules: make(map[uint64]Carrier)})
	}
	if _, ok := t.levels[i].rules[prefix]; ok {
		return errors.New("prefix given twice")
	}
	t.levels[i].rules[prefix] = r.Carrier
	return nil
}

func parsePrefix(s string, most int) (uint64, error) {
	if s == "" || len(s) > most || s[0] != '1' {
		return 0, fmt.Errorf("want 1 to %d digits beginning with 1", most)
	}
	return strconv.ParseUint(s, 10, 64)
}

// Carrier returns the carrier of an 11-digit mainland or 13-digit machine-to-machine number in the form of
// sms.NormalizeNumber by rules and segments, Unknown for any other. It does not allocate.
func (t *Table) Carrier(number uint64) Carrier { return t.CarrierOf(number, Unknown) }

// CarrierOf is Carrier for a number of which is known, from an import or a supplier's answer, that it was ported to override
// (Unknown when nothing is): rules come before that, the segments behind it.
func (t *Table) CarrierOf(number uint64, override Carrier) Carrier {
	digits := digitsOf(number)
	if digits == 0 {
		return Unknown
	}
	for _, l := range t.levels {
		if l.digits > digits {
			continue
		}
		if c, ok := l.rules[number/pow10[digits-l.digits]]; ok {
			return c
		}
	}
	if override != Unknown {
		return override
	}
	return t.segment(number, digits).carrier
}

// Resale tells whether the segment of number is a virtual operator's. Rules do not change the answer.
func (t *Table) Resale(number uint64) bool { return t.segment(number, digitsOf(number)).resale }

func (t *Table) segment(number uint64, digits int) segment {
	if digits == 0 {
		return segment{}
	}
	first := number / pow10[digits-segmentDigits]
	// 140–144 are machine segments: they exist in the 13-digit form only, and nothing else does.
	if machine := first >= 14_000 && first < 14_500; machine != (digits == machineDigits) {
		return segment{}
	}
	return t.segments[first-firstSegment]
}

var pow10 = [machineDigits]uint64{1, 1e1, 1e2, 1e3, 1e4, 1e5, 1e6, 1e7, 1e8, 1e9, 1e10, 1e11, 1e12}

// digitsOf returns 11 or 13 for a number of that length that begins with 1, else 0.
func digitsOf(number uint64) int {
	switch {
	case number >= 1e10 && number < 2e10:
		return mainlandDigits
	case number >= 1e12 && number < 2e12:
		return machineDigits
	}
	return 0
}
