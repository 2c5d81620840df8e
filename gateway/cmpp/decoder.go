package cmpp

import (
	"encoding/binary"
	"fmt"
	"slices"
)

// decoder reads fields from the front of a body. The first error sticks: later reads return zero values, so a Decode
// method reads like the table in the specification and looks at the error once.
//
// The first text field copies the body up to span once, and every text is a part of that copy: one allocation a message,
// and no bookkeeping per field. Content is not text and aliases the body.
type decoder struct {
	cmd  Command
	body []byte
	off  int
	span int    // octets worth copying when the first text is read: up to the last text there is
	text string // copy of the body's beginning
	err  *DecodeError
}

// fail notes the first error and makes every later read fail.
func (d *decoder) fail(field, detail string, result uint32) {
	if d.err == nil {
		d.err = &DecodeError{Command: d.cmd, Field: field, Detail: detail, Result: result}
		d.body = d.body[:d.off]
	}
}

// finish returns the sticky error. Octets that are left over are accepted.
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
	return d.left() >= n || d.short(field, n)
}

// short notes that n octets are not there, and returns false.
func (d *decoder) short(field string, n int) bool {
	if d.err == nil { // a broken frame is short of every later field as well: format one text
		d.fail(field, fmt.Sprintf("needs %d octets at offset %d, the body has %d", n, d.off, len(d.body)), resultStructure)
	}
	return false
}

func (d *decoder) u8(field string) uint8 {
	if !d.need(field, 1) {
		return 0
	}
	d.off++
	return d.body[d.off-1]
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
	from := d.off
	d.off += n
	if n == 0 || d.body[from] == 0 {
		return ""
	}
	if len(d.text) < d.off {
		d.text = string(d.body[:max(d.span, d.off)])
	}
	return clean(d.text[from:d.off])
}

// tail reads the last text field of a message: up to n octets, fewer if the peer sent fewer.
func (d *decoder) tail(field string, n int) string {
	return d.str(field, min(n, d.left()))
}

// strs reads a count octet and as many text fields of width octets into the array behind list.
func (d *decoder) strs(field string, width int, list []string) []string {
	list = list[:0]
	n := int(d.u8(field))
	if n*width > d.left() {
		d.fail(field, fmt.Sprintf("%d fields of %d octets promised, %d octets left", n, width, d.left()), resultLength)
		return list
	}
	list = slices.Grow(list, n)
	for range n {
		list = append(list, d.str(field, width))
	}
	return list
}

// content reads a length octet called "Msg_Length" and that many octets, which alias the body.
func (d *decoder) content() []byte {
	n := int(d.u8("Msg_Length"))
	if n == 0 {
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

// clean is the text of a field: it ends at the first zero octet, and the spaces some peers pad with do not count.
func clean(s string) string {
	for i := range len(s) {
		if s[i] == 0 {
			s = s[:i]
			break
		}
	}
	for s != "" && s[0] == ' ' {
		s = s[1:]
	}
	for s != "" && s[len(s)-1] == ' ' {
		s = s[:len(s)-1]
	}
	return s
}
