package cmpp

import (
	"fmt"
	"strconv"
	"time"
)

// MsgID is a Msg_Id. From the top it holds month (4 bits), day (5), hour (5), minute (6), second (6), gateway code (22) and
// a sequence (16) (CMPP 2.0 §7.4.3.2). Ids of other gateways often ignore that layout: compare them for equality only.
// There is no year, so an id repeats after twelve months; from August on the top bit is set.
type MsgID uint64

// NewMsgID builds the id number seq of gateway at t, printed in Asia/Shanghai. Only the low 22 bits of gateway are used.
func NewMsgID(t time.Time, gateway uint32, seq uint16) MsgID {
	t = t.In(Shanghai)
	_, month, day := t.Date()
	hour, minute, second := t.Clock()
	return packMsgID(uint64(month), uint64(day), uint64(hour), uint64(minute), uint64(second), uint64(gateway), uint64(seq))
}

// Bits of the fields of a MsgID.
const (
	monthShift, monthMask     = 60, 0xF
	dayShift, dayMask         = 55, 0x1F
	hourShift, hourMask       = 50, 0x1F
	minuteShift, minuteMask   = 44, 0x3F
	secondShift, secondMask   = 38, 0x3F
	gatewayShift, gatewayMask = 16, 0x3FFFFF
	seqMask                   = 0xFFFF
)

func packMsgID(month, day, hour, minute, second, gateway, seq uint64) MsgID {
	return MsgID(month<<monthShift | day<<dayShift | hour<<hourShift | minute<<minuteShift | second<<secondShift |
		gateway&gatewayMask<<gatewayShift | seq)
}

// Fields returns the parts of id for display. Nothing guarantees that they are a date.
func (id MsgID) Fields() (month, day, hour, minute, second int, gateway uint32, seq uint16) {
	part := func(shift, mask uint64) int { return int(uint64(id) >> shift & mask) }
	return part(monthShift, monthMask), part(dayShift, dayMask), part(hourShift, hourMask),
		part(minuteShift, minuteMask), part(secondShift, secondMask),
		uint32(part(gatewayShift, gatewayMask)), uint16(id & seqMask)
}

// String returns id as an unsigned decimal number.
func (id MsgID) String() string { return strconv.FormatUint(uint64(id), 10) }

// Lengths of the written forms of an id.
const (
	hexDigits  = 16
	textDigits = 22
)

// ParseMsgID reads an id in one of the forms people write: an unsigned decimal number of up to 20 digits, 16 hex digits in
// either case, or the 22 digits MMDDHHMMSS, gateway (7), sequence (5). Sixteen decimal digits without a leading zero are a
// decimal number, so that ParseMsgID undoes String for every id.
func ParseMsgID(s string) (MsgID, error) {
	switch {
	case len(s) == textDigits:
		return parseMsgIDText(s)
	case len(s) == hexDigits && (s[0] == '0' || !allDigits(s)):
		n, err := strconv.ParseUint(s, 16, 64)
		if err != nil {
			return 0, fmt.Errorf("cmpp: message id %q is not 16 hex digits", s)
		}
		return MsgID(n), nil
	case allDigits(s) && len(s) <= 20:
		n, err := strconv.ParseUint(s, 10, 64)
		if err != nil {
			return 0, fmt.Errorf("cmpp: message id %q does not fit 64 bits", s)
		}
		return MsgID(n), nil
	}
	return 0, fmt.Errorf("cmpp: message id %q is neither decimal, nor 16 hex digits, nor 22 digits", s)
}

// parseMsgIDText reads the 22-digit form. The numbers must fit their bits; whether they are a date is not looked at.
func parseMsgIDText(s string) (MsgID, error) {
	if !allDigits(s) {
		return 0, fmt.Errorf("cmpp: message id %q is not 22 digits", s)
	}
	widths := [...]int{2, 2, 2, 2, 2, 7, 5}
	masks := [...]uint64{monthMask, dayMask, hourMask, minuteMask, secondMask, gatewayMask, seqMask}
	var parts [len(widths)]uint64
	rest := s
	for i, width := range widths {
		for _, c := range []byte(rest[:width]) {
			parts[i] = parts[i]*10 + uint64(c-'0')
		}
		if parts[i] > masks[i] {
			return 0, fmt.Errorf("cmpp: message id %q: %q is above %d", s, rest[:width], masks[i])
		}
		rest = rest[width:]
	}
	return packMsgID(parts[0], parts[1], parts[2], parts[3], parts[4], parts[5], parts[6]), nil
}

func allDigits(s string) bool {
	for i := range len(s) {
		if s[i] < '0' || s[i] > '9' {
			return false
		}
	}
	return s != ""
}
