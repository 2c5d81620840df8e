package sms

import (
	"bytes"
	"fmt"
	"strconv"
	"strings"
	"unicode/utf16"
	"unicode/utf8"

	"golang.org/x/text/encoding/simplifiedchinese"
)

// Fmt is the Msg_Fmt octet of SUBMIT and DELIVER: how Msg_Content is to be read.
type Fmt uint8

// The formats CMPP 3.0 names. Peers also send private values; those carry no text as far as this package is concerned.
const (
	FmtASCII   Fmt = 0  // one octet per character, seven bits used
	FmtSIM     Fmt = 3  // SIM write, opaque octets
	FmtBinary  Fmt = 4  // opaque octets
	FmtUCS2    Fmt = 8  // UTF-16, big-endian unless a byte-order mark says otherwise
	FmtGB18030 Fmt = 15 // GBK and its superset GB18030: one, two or four octets per character
)

// String returns a short lower-case name, or "fmt-N" for a value without one.
func (f Fmt) String() string {
	switch f {
	case FmtASCII:
		return "ascii"
	case FmtSIM:
		return "sim"
	case FmtBinary:
		return "binary"
	case FmtUCS2:
		return "ucs2"
	case FmtGB18030:
		return "gb18030"
	}
	return "fmt-" + strconv.Itoa(int(f))
}

// FmtError says that a Msg_Fmt holds no text: SIM write, binary, or a value this package does not know. The octets can
// still be relayed as they are.
type FmtError struct{ Fmt Fmt }

func (e *FmtError) Error() string { return fmt.Sprintf("sms: Msg_Fmt %d holds no text", uint8(e.Fmt)) }

// TextError says that text and format do not agree.
type TextError struct {
	Fmt    Fmt
	Offset int // octets before the fault, in the input
	Detail string
}

func (e *TextError) Error() string {
	return fmt.Sprintf("sms: %s text at octet %d: %s", e.Fmt, e.Offset, e.Detail)
}

const (
	byteOrderMark = '\uFEFF'
	markSwapped   = '\uFFFE' // a noncharacter: what the mark looks like in the other byte order
)

// DecodeText reads content (without its user-data header) as the text that f says it is. It is strict: octets that are
// no text in f are an error and never become replacement characters, so that what is screened and billed is what is
// sent. A byte-order mark decides the order of UCS2 and is not part of the text.
// It returns a *FmtError when f holds no text and a *TextError when b is not well formed.
func DecodeText(f Fmt, b []byte) (string, error) {
	switch f {
	case FmtASCII:
		if i := highOctet(b); i >= 0 {
			return "", &TextError{Fmt: f, Offset: i, Detail: "octet " + hexOctet(b[i]) + " has the eighth bit set"}
		}
		return string(b), nil
	case FmtUCS2:
		return decodeUCS2(b)
	case FmtGB18030:
		return decodeGB18030(b)
	case FmtSIM, FmtBinary:
	}
	return "", &FmtError{Fmt: f}
}

// EncodeText is the inverse of DecodeText: big-endian UCS2 without a byte-order mark, GB18030 in its shortest form.
// It returns a *FmtError when f holds no text and a *TextError naming the first rune that f cannot hold (or the first
// octet of s that is no UTF-8).
func EncodeText(f Fmt, s string) ([]byte, error) {
	switch f {
	case FmtASCII:
		for i, r := range s {
			if r >= utf8.RuneSelf {
				return nil, unfit(f, s, i, r)
			}
		}
		return []byte(s), nil
	case FmtUCS2:
		return encodeUCS2(s)
	case FmtGB18030:
		return encodeGB18030(s)
	case FmtSIM, FmtBinary:
	}
	return nil, &FmtError{Fmt: f}
}

// PickFmt returns the format to send s in: ASCII when every character is, else UCS2.
func PickFmt(s string) Fmt {
	if isASCII(s) {
		return FmtASCII
	}
	return FmtUCS2
}

// MaxOctets returns the most octets Msg_Content may have, the user-data header included: 160 for ASCII without a header,
// else 140. (The letter of CMPP 3.0 §8.4.3 says fewer than 160; every peer sends and takes 160.)
func MaxOctets(f Fmt, udhi bool) int {
	if f == FmtASCII && !udhi {
		return 160
	}
	return 140
}

func decodeUCS2(b []byte) (string, error) {
	if len(b)%2 != 0 {
		return "", &TextError{Fmt: FmtUCS2, Offset: len(b) - 1, Detail: "odd number of octets"}
	}
	hi, lo, start := 0, 1, 0
	if len(b) >= 2 && b[0] == 0xFF && b[1] == 0xFE {
		hi, lo, start = 1, 0, 2
	}
	unit := func(i int) rune { return rune(b[i+hi])<<8 | rune(b[i+lo]) }
	for start < len(b) && unit(start) == byteOrderMark {
		start += 2
	}

	var out strings.Builder
	out.Grow((len(b) - start) / 2 * 3) // three octets of UTF-8 for every unit at most
	for i := start; i < len(b); i += 2 {
		r := unit(i)
		if utf16.IsSurrogate(r) {
			pair := rune(utf8.RuneError)
			if i+2 < len(b) {
				pair = utf16.DecodeRune(r, unit(i+2))
			}
			if pair == utf8.RuneError {
				return "", &TextError{Fmt: FmtUCS2, Offset: i, Detail: "surrogate without its other half"}
			}
			r = pair
			i += 2
		}
		out.WriteRune(r)
	}
	return out.String(), nil
}

func encodeUCS2(s string) ([]byte, error) {
	body := trimMark(s)
	skipped := len(s) - len(body)
	out := make([]byte, 0, 2*len(body))
	for i, r := range body {
		switch {
		case r == utf8.RuneError && !validAt(body, i), i == 0 && r == markSwapped:
			return nil, unfit(FmtUCS2, s, skipped+i, r)
		case r > 0xFFFF:
			h, l := utf16.EncodeRune(r)
			out = append(out, byte(h>>8), byte(h), byte(l>>8), byte(l))
		default:
			out = append(out, byte(r>>8), byte(r))
		}
	}
	return out, nil
}

func decodeGB18030(b []byte) (string, error) {
	if highOctet(b) < 0 {
		return string(b), nil
	}
	for i := 0; i < len(b); {
		n := gb18030Len(b[i:])
		if n == 2 && b[i+1] < 0x40 { // the decoder takes a second octet 3A–3F for a digit
			return "", noGB18030(b, i)
		}
		i += n
	}
	out, err := simplifiedchinese.GB18030.NewDecoder().Bytes(b)
	if err != nil {
		return "", &TextError{Fmt: FmtGB18030, Detail: err.Error()}
	}
	// The decoder writes U+FFFD for what it cannot read; find out whether one was really sent.
	if bytes.ContainsRune(out, utf8.RuneError) {
		if i := badGB18030(b); i >= 0 {
			return "", noGB18030(b, i)
		}
	}
	return string(out), nil
}

func encodeGB18030(s string) ([]byte, error) {
	for i, r := range s {
		// Private-use characters have no agreed code: the encoder writes what its own decoder reads differently.
		if r == utf8.RuneError && !validAt(s, i) || r >= 0xE000 && r <= 0xF8FF {
			return nil, unfit(FmtGB18030, s, i, r)
		}
	}
	out, err := simplifiedchinese.GB18030.NewEncoder().Bytes([]byte(s))
	if err != nil { // cannot be: every other character has a code
		return nil, &TextError{Fmt: FmtGB18030, Detail: err.Error()}
	}
	return out, nil
}

// gb18030Len returns the length of the character that b, which is not empty, begins with: by form, not by assignment,
// and never more than len(b).
func gb18030Len(b []byte) int {
	switch {
	case b[0] <= 0x80 || b[0] == 0xFF || len(b) == 1:
		return 1
	case b[1] >= 0x30 && b[1] <= 0x39:
		return min(4, len(b))
	}
	return 2
}

// badGB18030 returns the offset of the first octets in b that are no character, -1 when there are none.
func badGB18030(b []byte) int {
	replacement := []byte{0x84, 0x31, 0xA4, 0x37} // U+FFFD, honestly sent
	for i := 0; i < len(b); {
		c := b[i : i+gb18030Len(b[i:])]
		out, err := simplifiedchinese.GB18030.NewDecoder().Bytes(c)
		if err != nil || bytes.ContainsRune(out, utf8.RuneError) && !bytes.Equal(c, replacement) {
			return i
		}
		i += len(c)
	}
	return -1
}

func noGB18030(b []byte, i int) *TextError {
	return &TextError{Fmt: FmtGB18030, Offset: i, Detail: "octet " + hexOctet(b[i]) + " begins no character"}
}

func highOctet(b []byte) int {
	for i, c := range b {
		if c >= utf8.RuneSelf {
			return i
		}
	}
	return -1
}

func isASCII(s string) bool {
	for i := range len(s) {
		if s[i] >= utf8.RuneSelf {
			return false
		}
	}
	return true
}

// trimMark removes what a text file's byte-order mark leaves in front of a text: invisible, and read as a mark again by
// the receiver.
func trimMark(s string) string { return strings.TrimLeft(s, string(byteOrderMark)) }

// validAt tells whether the U+FFFD found at s[i] was written as such, and is not Go's reading of a broken octet.
func validAt(s string, i int) bool {
	_, width := utf8.DecodeRuneInString(s[i:])
	return width > 1
}

func unfit(f Fmt, s string, i int, r rune) *TextError {
	if r == utf8.RuneError && !validAt(s, i) {
		return &TextError{Fmt: f, Offset: i, Detail: "octet " + hexOctet(s[i]) + " is no UTF-8"}
	}
	return &TextError{Fmt: f, Offset: i, Detail: fmt.Sprintf("%U does not fit", r)}
}

func hexOctet(b byte) string { return fmt.Sprintf("0x%02X", b) }
