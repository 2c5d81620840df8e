package sms

import "errors"

// Ref16 marks a Long.Ref of 16 bits.
const Ref16 = 1 << 16

// Long is a whole message that travels in as many parts as it takes.
type Long struct {
	Fmt     Fmt    // of Content
	Header  bool   // Content begins with a user-data header, without concatenation, that every part is to carry
	Content []byte // the whole message
	OutFmt  Fmt    // of the parts; that of Content when it holds no text
	Ref     uint32 // reference of the parts, 0..255; Ref16 and more: its 16 low bits in headers of 16-bit references
}

// errRoom says that the elements of a header leave no room for a payload.
var errRoom = errors.New("sms: the header leaves no room for a payload")

// OutFmt is the format in which a message in format f is sent where wish is preferred (nil: none is): wish if it can hold
// the text, else UCS2; formats that hold no text stay. It returns the errors of DecodeText.
func OutFmt(f Fmt, payload []byte, wish *Fmt) (Fmt, error) {
	if f == FmtSIM || f == FmtBinary {
		return f, nil
	}
	text, err := DecodeText(f, payload)
	if err != nil {
		return f, err
	}
	want := f
	if wish != nil {
		want = *wish
	}
	if _, err := EncodeText(want, text); err == nil {
		return want, nil
	}
	return FmtUCS2, nil
}

// Payload is the content without its header. It returns a *HeaderError.
func (l *Long) Payload() (header, payload []byte, err error) {
	if !l.Header {
		return nil, l.Content, nil
	}
	_, _, header, payload, err = SplitHeader(l.Content)
	return header, payload, err
}

// Parts cuts the message into the contents of its parts, in order; udhi says whether they begin with a header. A message
// that fits one part is one, without a concatenation header. A cut never goes through a character. Equal values give equal
// parts, so that each part can be made when it is needed. Errors are those of SplitHeader, DecodeText and EncodeText, and
// ErrTooLong.
func (l *Long) Parts() (parts [][]byte, udhi bool, err error) {
	header, payload, err := l.Payload()
	if err != nil {
		return nil, false, err
	}
	octets := payload
	if l.Fmt != FmtSIM && l.Fmt != FmtBinary {
		text, err := DecodeText(l.Fmt, payload)
		if err != nil {
			return nil, false, err
		}
		if octets, err = EncodeText(l.OutFmt, text); err != nil {
			return nil, false, err
		}
	}
	var elements []byte
	if len(header) > 0 {
		elements = header[1:]
	}
	if one := withElements(nil, elements, octets); len(one) <= MaxOctets(l.OutFmt, len(elements) > 0) {
		return [][]byte{one}, len(elements) > 0, nil
	}
	parts, err = split(octets, l.OutFmt, Concat{Ref: uint16(l.Ref), Wide: l.Ref >= Ref16}, elements)
	return parts, true, err
}

// withElements is octets behind a header of the elements, if there are any.
func withElements(concat, elements, octets []byte) []byte {
	n := len(concat) + len(elements)
	if n == 0 {
		return octets
	}
	out := make([]byte, 0, 1+n+len(octets))
	out = append(out, byte(n)) // a header is at most 140 octets, split sees to it
	out = append(out, concat...)
	out = append(out, elements...)
	return append(out, octets...)
}

// split cuts octets, which hold whole characters of f, into contents that begin with head and the elements.
func split(octets []byte, f Fmt, head Concat, elements []byte) ([][]byte, error) {
	room := MaxOctets(f, true) - head.headerLen() - len(elements)
	if room < 4 { // the longest character
		return nil, errRoom
	}
	var payloads [][]byte
	for len(octets) > 0 {
		if len(payloads) == 255 {
			return nil, ErrTooLong
		}
		n := cut(f, octets, room)
		payloads = append(payloads, octets[:n])
		octets = octets[n:]
	}
	contents := make([][]byte, len(payloads))
	head.Total = uint8(len(payloads)) // at most 255, checked above
	for i, p := range payloads {
		head.Number++
		contents[i] = withElements(head.Append(nil)[1:], elements, p)
	}
	return contents, nil
}

// Elements is the header of a segment without its concatenation elements: what the other elements are when the segments
// are joined. nil = there are no others. header is one that SplitHeader returned.
func Elements(header []byte) []byte {
	var rest []byte
	for i := 1; i+1 < len(header); {
		next := i + 2 + int(header[i+1])
		if id := header[i]; id != elementConcat8 && id != elementConcat16 {
			rest = append(rest, header[i:next]...)
		}
		i = next
	}
	if rest == nil {
		return nil
	}
	return append([]byte{byte(len(rest))}, rest...)
}

// JoinContents is the whole message of segments, in order, each as its SUBMIT had it: Msg_Fmt, header and payload. Octets
// are joined before they are decoded, for peers cut characters in half. Texts whose segments name different formats become
// UCS2. The result is no valid text when the segments are none; who decodes it finds out.
func JoinContents(parts []Part, header []byte) (f Fmt, udhi bool, content []byte) {
	f, same := parts[0].Fmt, true
	for _, p := range parts {
		same = same && p.Fmt == f
	}
	var octets []byte
	text, err := JoinMixed(parts)
	switch {
	case err == nil && !same:
		f = FmtUCS2
		octets, err = EncodeText(f, text)
	case err == nil:
		octets, err = EncodeText(f, text)
	}
	if err != nil || octets == nil {
		octets = nil
		for _, p := range parts {
			octets = append(octets, p.Payload...)
		}
	}
	elements := Elements(header)
	if elements == nil {
		return f, false, octets
	}
	return f, true, append(elements, octets...)
}
