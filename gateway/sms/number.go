package sms

import (
	"bytes"
	"fmt"
)

// NumberError says that a value is no mainland mobile number.
type NumberError struct{ Value string }

func (e *NumberError) Error() string {
	return fmt.Sprintf("sms: %.40q is neither an 11-digit mainland nor a 13-digit machine number", e.Value)
}

// NormalizeNumber returns the one form in which numbers are matched and routed: the digits without country code, as a
// number. It takes the 11 digits of a mainland mobile number (13x–19x) or the 13 of a machine-to-machine one (140–144),
// after +86, 0086, 86 or nothing, with spaces anywhere. Whether the segment is allocated is not asked here. Anything
// else is a *NumberError. It does not allocate when it succeeds.
func NormalizeNumber(s string) (uint64, error) {
	var buf [len("0086") + 13]byte
	d := buf[:0]
	plus := false
	for i := range len(s) {
		switch c := s[i]; {
		case c == ' ':
		case c == '+' && !plus && len(d) == 0:
			plus = true
		case c >= '0' && c <= '9' && len(d) < len(buf):
			d = append(d, c)
		default:
			return 0, &NumberError{Value: s}
		}
	}
	rest, found := bytes.CutPrefix(d, []byte("86"))
	switch {
	case found:
		d = rest
	case plus: // a number of another country, whatever its digits look like
		return 0, &NumberError{Value: s}
	default:
		d = bytes.TrimPrefix(d, []byte("0086"))
	}

	mainland := len(d) == 11 && d[0] == '1' && d[1] >= '3'
	machine := len(d) == 13 && d[0] == '1' && d[1] == '4' && d[2] <= '4'
	if !mainland && !machine {
		return 0, &NumberError{Value: s}
	}
	var n uint64
	for _, c := range d {
		n = n*10 + uint64(c-'0')
	}
	return n, nil
}
