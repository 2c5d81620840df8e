package wire

import (
	"bytes"
	"encoding/binary"
	"errors"
	"strings"
)

// ErrShort reports a body that ends before its fields do, or an inner length
// larger than what is left.
var ErrShort = errors.New("body too short")

// Wide reports whether version uses the 3.0 layout (major nibble ≥ 3).
func Wide(version uint8) bool { return version>>4 >= 3 }

// ConnectBody is the body of CONNECT (CMPP 3.0 §8.4.1.1).
type ConnectBody struct {
	Source    string
	Auth      [16]byte
	Version   uint8
	Timestamp uint32
}

// DecodeConnect reads the 27 octets of CONNECT.
func DecodeConnect(b []byte) (ConnectBody, error) {
	var c ConnectBody
	if len(b) < 27 {
		return c, ErrShort
	}
	c.Source = string(cut(b[0:6]))
	copy(c.Auth[:], b[6:22])
	c.Version = b[22]
	c.Timestamp = binary.BigEndian.Uint32(b[23:])
	return c, nil
}

// ConnectRespBody is the body of CONNECT_RESP (CMPP 3.0 §8.4.1.2).
type ConnectRespBody struct {
	Status  uint32
	Auth    [16]byte
	Version uint8
}

// DecodeConnectResp tells the layout by the body's length: 18 octets carry a
// status of one octet, 21 carry four.
func DecodeConnectResp(b []byte) (ConnectRespBody, error) {
	var c ConnectRespBody
	switch {
	case len(b) >= 21:
		c.Status = binary.BigEndian.Uint32(b)
		copy(c.Auth[:], b[4:20])
		c.Version = b[20]
	case len(b) >= 18:
		c.Status = uint32(b[0])
		copy(c.Auth[:], b[1:17])
		c.Version = b[17]
	default:
		return c, ErrShort
	}
	return c, nil
}

// SubmitBody is what the simulator looks at in a SUBMIT (CMPP 3.0 §8.4.3.1).
// Slices alias the frame.
type SubmitBody struct {
	PkTotal, PkNumber    uint8
	Registered, MsgLevel uint8
	ServiceID            []byte
	TPUDHI, MsgFmt       uint8
	MsgSrc               []byte
	SrcID                []byte
	Dest                 []byte // DestCount fields of DestWidth octets
	DestCount, DestWidth int
	Content              []byte
}

// DestAt returns recipient i, cut at its padding.
func (s *SubmitBody) DestAt(i int) []byte {
	return cut(s.Dest[i*s.DestWidth : (i+1)*s.DestWidth])
}

// DecodeSubmit reads a SUBMIT body into s. Missing octets of the last field
// (Reserve or LinkID) are tolerated, as suppliers do.
func DecodeSubmit(b []byte, version uint8, s *SubmitBody) error {
	// Offsets of CMPP 2.0 from the start of the body; 3.0 has eleven octets
	// more of Fee_terminal_Id and one of Fee_terminal_type before TP_pId.
	shift, width, destType := 0, 21, 0
	if Wide(version) {
		shift, width, destType = 12, 32, 1
	}
	fixed := 117 + shift // up to and including DestUsr_tl
	if len(b) < fixed {
		return ErrShort
	}
	s.PkTotal, s.PkNumber = b[8], b[9]
	s.Registered, s.MsgLevel = b[10], b[11]
	s.ServiceID = cut(b[12:22])
	s.TPUDHI, s.MsgFmt = b[45+shift], b[46+shift]
	s.MsgSrc = cut(b[47+shift : 53+shift])
	s.SrcID = cut(b[95+shift : 116+shift])
	s.DestCount, s.DestWidth = int(b[116+shift]), width
	rest := b[fixed:]
	n := s.DestCount * width
	if len(rest) < n+destType+1 {
		return ErrShort
	}
	s.Dest = rest[:n]
	rest = rest[n+destType:]
	length := int(rest[0])
	if len(rest)-1 < length {
		return ErrShort
	}
	s.Content = rest[1 : 1+length]
	return nil
}

// MsgIDResult is the body of SUBMIT_RESP and of DELIVER_RESP: Msg_Id and a
// Result of one octet (2.x) or four (3.0).
type MsgIDResult struct {
	MsgID  uint64
	Result uint32
}

// DecodeMsgIDResult reads the body of SUBMIT_RESP or DELIVER_RESP.
func DecodeMsgIDResult(b []byte, version uint8) (MsgIDResult, error) {
	var r MsgIDResult
	width := 1
	if Wide(version) {
		width = 4
	}
	if len(b) < 8+width {
		return r, ErrShort
	}
	r.MsgID = binary.BigEndian.Uint64(b)
	if width == 4 {
		r.Result = binary.BigEndian.Uint32(b[8:])
	} else {
		r.Result = uint32(b[8])
	}
	return r, nil
}

// DeliverBody is what the simulator looks at in a DELIVER (CMPP 3.0 §8.4.5.1).
// Slices alias the frame.
type DeliverBody struct {
	MsgID          uint64
	Dest           []byte
	ServiceID      []byte
	TPUDHI, MsgFmt uint8
	Source         []byte
	Registered     uint8
	Content        []byte
}

// DecodeDeliver reads a DELIVER body into d.
func DecodeDeliver(b []byte, version uint8, d *DeliverBody) error {
	width, srcType := 21, 0
	if Wide(version) {
		width, srcType = 32, 1
	}
	fixed := 42 + width + srcType + 2 // up to and including Msg_Length
	if len(b) < fixed {
		return ErrShort
	}
	d.MsgID = binary.BigEndian.Uint64(b)
	d.Dest = cut(b[8:29])
	d.ServiceID = cut(b[29:39])
	d.TPUDHI, d.MsgFmt = b[40], b[41]
	d.Source = cut(b[42 : 42+width])
	d.Registered = b[42+width+srcType]
	length := int(b[fixed-1])
	if len(b)-fixed < length {
		return ErrShort
	}
	d.Content = b[fixed : fixed+length]
	return nil
}

// ReportBody is a status report, the content of a DELIVER whose
// Registered_Delivery is 1. Slices alias the frame.
type ReportBody struct {
	MsgID                uint64
	Stat                 []byte
	SubmitTime, DoneTime []byte
	Dest                 []byte
	SMSCSequence         uint32
}

// DecodeReport reads a status report of 60 (2.x) or 71 (3.0) octets, telling
// them apart by length.
func DecodeReport(b []byte) (ReportBody, error) {
	var r ReportBody
	width := 21
	switch {
	case len(b) >= 71:
		width = 32
	case len(b) < 60:
		return r, ErrShort
	}
	r.MsgID = binary.BigEndian.Uint64(b)
	r.Stat = cut(b[8:15])
	r.SubmitTime, r.DoneTime = cut(b[15:25]), cut(b[25:35])
	r.Dest = cut(b[35 : 35+width])
	r.SMSCSequence = binary.BigEndian.Uint32(b[35+width:])
	return r, nil
}

// Concat is a concatenation element of a user-data header.
type Concat struct {
	Ref           uint16
	Total, Number uint8
}

// DecodeConcat finds the concatenation element at the start of content whose
// TP_udhi says it has a header (GSM 03.40 §9.2.3.24). ok is false when there
// is no header, no such element, or the header is broken.
func DecodeConcat(udhi uint8, content []byte) (c Concat, ok bool) {
	if udhi&0x41 == 0 || len(content) == 0 || len(content) < 1+int(content[0]) {
		return c, false
	}
	header := content[1 : 1+int(content[0])]
	for len(header) >= 2 {
		id, n := header[0], int(header[1])
		if len(header) < 2+n {
			return c, false
		}
		v := header[2 : 2+n]
		switch {
		case id == 0x00 && n == 3:
			return Concat{Ref: uint16(v[0]), Total: v[1], Number: v[2]}, true
		case id == 0x08 && n == 4:
			return Concat{Ref: binary.BigEndian.Uint16(v), Total: v[2], Number: v[3]}, true
		}
		header = header[2+n:]
	}
	return c, false
}

// Text is content without its user-data header, when TP_udhi says that it has
// one.
func Text(udhi uint8, content []byte) []byte {
	if udhi&0x41 == 0 || len(content) == 0 || len(content) < 1+int(content[0]) {
		return content
	}
	return content[1+int(content[0]):]
}

// NumberKey reads a recipient as the decimal number it is, without a leading
// +86, 0086 or 86 and without spaces. ok is false for anything else.
func NumberKey(number string) (key uint64, ok bool) {
	s := strings.TrimPrefix(strings.TrimPrefix(strings.TrimSpace(number), "+"), "00")
	if len(s) >= 13 && strings.HasPrefix(s, "86") {
		s = s[2:]
	}
	if s == "" || len(s) > 19 {
		return 0, false
	}
	for i := range len(s) {
		d := s[i] - '0'
		if d > 9 {
			return 0, false
		}
		key = key*10 + uint64(d)
	}
	return key, true
}

// Hash returns the 64-bit FNV-1a hash of content.
func Hash(content []byte) uint64 {
	h := uint64(14695981039346656037)
	for _, b := range content {
		h ^= uint64(b)
		h *= 1099511628211
	}
	return h
}

// cut ends an octet string at its first NUL and drops trailing spaces.
func cut(b []byte) []byte {
	if i := bytes.IndexByte(b, 0); i >= 0 {
		b = b[:i]
	}
	return bytes.TrimRight(b, " ")
}
