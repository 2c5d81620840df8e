package cmpp

import (
	"encoding/binary"
	"slices"
	"strconv"
)

// encoder appends fields to a slice. The first error sticks and makes finish give back the slice as it was.
type encoder struct {
	cmd   Command
	dst   []byte
	start int // length of dst before the frame
	err   *EncodeError
}

// begin starts a frame with room for a body of size octets.
func begin(dst []byte, cmd Command, seq uint32, size int) encoder {
	e := encoder{cmd: cmd, start: len(dst), dst: slices.Grow(dst, HeaderLen+size)}
	e.u32(0) // Total_Length, known in finish
	e.u32(uint32(cmd))
	e.u32(seq)
	return e
}

// finish writes Total_Length and returns the slice with the whole frame, or the slice as it was with the error.
func (e *encoder) finish() ([]byte, error) {
	n := len(e.dst) - e.start
	if n > MaxFrame {
		e.fail("Total_Length", strconv.Itoa(n), MaxFrame)
	}
	if e.err != nil {
		return e.dst[:e.start], e.err
	}
	binary.BigEndian.PutUint32(e.dst[e.start:], uint32(n))
	return e.dst, nil
}

func (e *encoder) fail(field, value string, width int) {
	if e.err == nil {
		e.err = &EncodeError{Command: e.cmd, Field: field, Value: value, Width: width}
	}
}

func (e *encoder) u8(n uint8)      { e.dst = append(e.dst, n) }
func (e *encoder) u32(n uint32)    { e.dst = binary.BigEndian.AppendUint32(e.dst, n) }
func (e *encoder) msgID(id MsgID)  { e.dst = binary.BigEndian.AppendUint64(e.dst, uint64(id)) }
func (e *encoder) octets(b []byte) { e.dst = append(e.dst, b...) }

// status writes a result code of one octet in the narrow layout, four in the wide one.
func (e *encoder) status(field string, n uint32, wide bool) {
	switch {
	case wide:
		e.u32(n)
	case n > 0xFF:
		e.fail(field, strconv.FormatUint(uint64(n), 10), 1)
	default:
		e.u8(uint8(n))
	}
}

// zeros is the padding of the widest text field.
var zeros [32]byte

// str writes s padded with zero octets to width (at most 32).
func (e *encoder) str(field, s string, width int) {
	if len(s) > width {
		e.fail(field, s, width)
		return
	}
	e.dst = append(e.dst, s...)
	e.dst = append(e.dst, zeros[:width-len(s)]...)
}

// count writes a one-octet count; unit names what is counted in the error.
func (e *encoder) count(field string, n int, unit string) {
	if n > 0xFF {
		e.fail(field, strconv.Itoa(n)+unit, 1)
		return
	}
	e.u8(uint8(n))
}

// content writes Msg_Length and Msg_Content.
func (e *encoder) content(b []byte) {
	e.count("Msg_Length", len(b), " octets")
	e.octets(b)
}
