package cmpp

import (
	"encoding/binary"
	"fmt"
	"strings"
)

// decoder reads fields from the front of a body. The first error sticks: later reads return zero values, so a Decode
// method reads like the table in the specification and looks at the error once.
type decoder struct {
	cmd  Command
	body []byte
	text string // copy of body from which text fields are cut; only for messages that have any
	off  int
	err  *DecodeError
}

func (d *decoder) fail(field, detail string, result uint32) {
	if d.err == nil {
		d.err = &DecodeError{Command: d.cmd, Field: field, Detail: detail, Result: result}
	}
}

// finish returns the sticky error as an error value; octets that are left over are accepted.
func (d *decoder) finish() error {
	if d.err != nil {
		return d.err
	}
	return nil
}

// left returns how many octets have not been read.
func (d *decoder) left() int { return len(d.body) - d.off }

// need reports whether n more octets may be read.
func (d *decoder) need(field string, n int) bool {
	if d.err == nil && d.left() >= n {
		return true
	}
	d.short(field, n)
	return false
}

func (d *decoder) short(field string, n int) {
	d.fail(field, fmt.Sprintf("needs %d octets at offset %d, the body has %d", n, d.off, len(d.body)), resultStructure)
}

func (d *decoder) u8(field string) uint8 {
	if !d.need(field, 1) {
		return 0
	}
	b := d.body[d.off]
	d.off++
	return b
}

func (d *decoder) u32(field string) uint32 {
	if !d.need(field, 4) {
		return 0
	}
	n := binary.BigEndian.Uint32(d.body[d.off:])
	d.off += 4
	return n
}

// status reads a result code of one octet in the narrow layout, four in the wide one.
func (d *decoder) status(field string, wide bool) uint32 {
	if wide {
		return d.u32(field)
	}
	return uint32(d.u8(field))
}

func (d *decoder) msgID() MsgID {
	if !d.need("Msg_Id", 8) {
		return 0
	}
	n := binary.BigEndian.Uint64(d.body[d.off:])
	d.off += 8
	return MsgID(n)
}

func (d *decoder) digest(field string) (sum [16]byte) {
	if d.need(field, len(sum)) {
		d.off += copy(sum[:], d.body[d.off:])
	}
	return sum
}

// str reads a text field of n octets.
func (d *decoder) str(field string, n int) string {
	if !d.need(field, n) {
		return ""
	}
	s := d.text[d.off : d.off+n]
	d.off += n
	return clean(s)
}

// tail reads the last text field of a message: up to n octets, fewer if the peer sent fewer.
func (d *decoder) tail(field string, n int) string {
	return d.str(field, min(n, d.left()))
}

// content reads a length octet called "Msg_Length" and that many octets, which alias the body.
func (d *decoder) content() []byte {
	n := int(d.u8("Msg_Length"))
	if d.err != nil || n == 0 {
		return nil
	}
	if n > d.left() {
		d.fail("Msg_Length", fmt.Sprintf("%d octets promised, %d left", n, d.left()), resultLength)
		return nil
	}
	b := d.body[d.off : d.off+n : d.off+n]
	d.off += n
	return b
}

// clean cuts a fixed-width text at its first zero octet and drops the spaces some peers pad with.
func clean(s string) string {
	if s == "" || s[0] == 0 {
		return ""
	}
	if i := strings.IndexByte(s, 0); i >= 0 {
		s = s[:i]
	}
	return strings.Trim(s, " ")
}
