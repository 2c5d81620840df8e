package sms

import (
	"bytes"
	"errors"
	"fmt"
	"strings"
)

// Information elements of the user-data header that make several short messages one (3GPP TS 23.040 §9.2.3.24).
const (
	elementConcat8  = 0x00 // RR TT NN
	elementConcat16 = 0x08 // RRRR TT NN
)

// ErrTooLong says that a text needs more than the 255 segments a header can count.
var ErrTooLong = errors.New("sms: text needs more than 255 segments")

// HeaderError says that the user-data header of a Msg_Content is not what its own lengths claim.
type HeaderError struct {
	Offset int // octet of the content at which the fault shows
	Detail string
}

func (e *HeaderError) Error() string {
	return fmt.Sprintf("sms: user-data header at octet %d: %s", e.Offset, e.Detail)
}

// Concat is the place of one segment in a long message.
type Concat struct {
	Ref    uint16 // the same in all segments of a message; 0–255 unless Wide
	Wide   bool   // 16-bit reference: a header of 7 octets, not 6
	Total  uint8  // 1–255
	Number uint8  // 1–Total
}

// Append appends the user-data header that holds c and nothing else: 05 00 03 RR TT NN, or 06 08 04 RR RR TT NN.
func (c Concat) Append(dst []byte) []byte {
	if c.Wide {
		return append(dst, 6, elementConcat16, 4, byte(c.Ref>>8), byte(c.Ref), c.Total, c.Number)
	}
	return append(dst, 5, elementConcat8, 3, byte(c.Ref), c.Total, c.Number)
}

func (c Concat) headerLen() int {
	if c.Wide {
		return 7
	}
	return 6
}

// HasHeader tells whether TP_udhi announces a user-data header: bit 0 as CMPP has it, or bit 6 as some gateways copy it
// from the raw short message.
func HasHeader(tpudhi uint8) bool { return tpudhi&0x41 != 0 }

// SplitHeader parts a content whose TP_udhi announces a header. header is the whole header with its length octet, payload
// what follows; both alias content. ok tells that the message is a segment of a longer one, c which: elements may come in
// any order and number, and the last concatenation element counts. It returns a *HeaderError when a length points
// outside of what is there, or when a segment's number is not within 1–Total, for such a set could never be complete.
func SplitHeader(content []byte) (c Concat, ok bool, header, payload []byte, err error) {
	if len(content) == 0 {
		return c, false, nil, nil, &HeaderError{Detail: "announced, but the content is empty"}
	}
	end := 1 + int(content[0])
	if end > len(content) {
		return c, false, nil, nil, &HeaderError{
			Detail: fmt.Sprintf("length %d in a content of %d octets", content[0], len(content)),
		}
	}
	for i := 1; i < end; {
		if i+2 > end {
			return Concat{}, false, nil, nil, &HeaderError{Offset: i, Detail: "element without a length"}
		}
		id, next := content[i], i+2+int(content[i+1])
		if next > end {
			return Concat{}, false, nil, nil, &HeaderError{
				Offset: i, Detail: fmt.Sprintf("element %#02x of %d octets leaves the header", id, content[i+1]),
			}
		}
		if id == elementConcat8 || id == elementConcat16 {
			if c, err = parseConcat(id, content[i+2:next]); err != nil {
				return Concat{}, false, nil, nil, &HeaderError{Offset: i, Detail: err.Error()}
			}
			ok = true
		}
		i = next
	}
	return c, ok, content[:end:end], content[end:], nil
}

func parseConcat(id byte, data []byte) (Concat, error) {
	c := Concat{Wide: id == elementConcat16}
	want := 3
	if c.Wide {
		want = 4
	}
	if len(data) != want {
		return c, fmt.Errorf("concatenation element of %d octets, not %d", len(data), want)
	}
	c.Ref = uint16(data[0])
	if c.Wide {
		c.Ref = c.Ref<<8 | uint16(data[1])
	}
	c.Total, c.Number = data[want-2], data[want-1]
	if c.Number == 0 || c.Number > c.Total {
		return c, fmt.Errorf("segment %d of %d", c.Number, c.Total)
	}
	return c, nil
}

// Split encodes text and cuts it into the contents of as many short messages as it takes. A text that fits one message
// is returned as one content without a header; else each content is at most 140 octets, its header included, and begins
// with Concat{ref, wide, total, number}; of ref only the low octet is sent unless wide. A cut never goes through a
// character: not inside a surrogate pair, nor inside a GB18030 character. Long ASCII is cut at 134 octets, for a longer
// segment is refused wherever 140 is taken as the limit of a content with a header.
// Errors are those of EncodeText, and ErrTooLong.
func Split(text string, f Fmt, ref uint16, wide bool) ([][]byte, error) {
	octets, err := EncodeText(f, text)
	if err != nil {
		return nil, err
	}
	if len(octets) <= MaxOctets(f, false) {
		return [][]byte{octets}, nil
	}
	return split(octets, f, Concat{Ref: ref, Wide: wide}, nil)
}

// cut returns how many of octets, which hold whole characters of f, go into a segment with the given room.
func cut(f Fmt, octets []byte, room int) int {
	if len(octets) <= room {
		return len(octets)
	}
	switch f {
	case FmtUCS2:
		n := room &^ 1
		if octets[n-2]&0xFC == 0xD8 { // a high surrogate would be the last unit
			n -= 2
		}
		return n
	case FmtGB18030:
		n := 0
		for {
			next := n + gb18030Len(octets[n:])
			if next > room {
				return n
			}
			n = next
		}
	case FmtASCII, FmtSIM, FmtBinary:
	}
	return room
}

// Join puts the payloads of one long message, in order and all in format f, together again. It joins the octets before
// it decodes them, for peers cut characters in half. Errors are those of DecodeText, Offset counted in the joined
// octets.
func Join(parts [][]byte, f Fmt) (string, error) {
	if f == FmtUCS2 && len(parts) > 1 {
		parts = dropMarks(parts)
	}
	if len(parts) == 1 {
		return DecodeText(f, parts[0])
	}
	return DecodeText(f, bytes.Join(parts, nil))
}

// dropMarks removes from every later part the byte-order mark that the first one begins with: some peers encode each
// segment by itself.
func dropMarks(parts [][]byte) [][]byte {
	var mark []byte
	for _, m := range [][]byte{{0xFF, 0xFE}, {0xFE, 0xFF}} {
		if bytes.HasPrefix(parts[0], m) {
			mark = m
		}
	}
	if mark == nil {
		return parts
	}
	out := [][]byte{parts[0]}
	for _, p := range parts[1:] {
		out = append(out, bytes.TrimPrefix(p, mark))
	}
	return out
}

// Part is the payload of one segment with the format its own SUBMIT or DELIVER named.
type Part struct {
	Fmt     Fmt
	Payload []byte
}

// JoinMixed is Join for a long message whose segments, in order, do not all have the same format: neighbours of equal
// format are joined as octets, then the texts are put together.
func JoinMixed(parts []Part) (string, error) {
	var text strings.Builder
	for i := 0; i < len(parts); {
		f := parts[i].Fmt
		var run [][]byte
		for ; i < len(parts) && parts[i].Fmt == f; i++ {
			run = append(run, parts[i].Payload)
		}
		s, err := Join(run, f)
		if err != nil {
			return "", err
		}
		text.WriteString(s)
	}
	return text.String(), nil
}
