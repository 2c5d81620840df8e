package cmpp

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"slices"
	"strings"
)

// decoder reads fields from the front of a body. The first error sticks: later reads return zero values, so a Decode
// method reads like the table in the specification and looks at the error once.
//
// Text fields are noted while reading and copied by finish, all into one allocation that holds nothing but text: messages
// are kept for a while, and padding and content would be two thirds of what they keep.
type decoder struct {
	cmd  Command
	body []byte
	off  int
	err  *DecodeError

	texts  [maxTexts]text // the first count are noted
	count  int
	list   []string // recipients, noted as well: list[i] is in the field at listAt + i·width
	listAt int
	width  int
	octets int // of all noted texts
}

// text is a text field that is not empty: body[from:to], to be copied to dst.
type text struct {
	dst      *string
	from, to int
}

// maxTexts is the largest number of single text fields in a message, that of SUBMIT.
const maxTexts = 9

// fail notes the first error and makes every later read fail.
func (d *decoder) fail(field, detail string, result uint32) {
	if d.err == nil {
		d.err = &DecodeError{Command: d.cmd, Field: field, Detail: detail, Result: result}
		d.body = d.body[:d.off]
	}
}

// finish copies the noted texts to their places, or returns the sticky error. Octets that are left over are accepted.
func (d *decoder) finish() error {
	if d.err != nil {
		return d.err
	}
	var all strings.Builder
	all.Grow(d.octets)
	for _, t := range d.texts[:d.count] {
		all.Write(d.body[t.from:t.to])
		*t.dst = all.String()[all.Len()-(t.to-t.from):]
	}
	for i := range d.list {
		at := d.listAt + i*d.width
		from, to := clean(d.body, at, at+d.width)
		all.Write(d.body[from:to])
		d.list[i] = all.String()[all.Len()-(to-from):]
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

// str reads a text field of n octets into dst, which is set by finish.
func (d *decoder) str(field string, n int, dst *string) {
	if !d.need(field, n) {
		return
	}
	from, to := clean(d.body, d.off, d.off+n)
	d.off += n
	if from == to {
		*dst = ""
		return
	}
	d.texts[d.count] = text{dst, from, to}
	d.count++
	d.octets += to - from
}

// tail reads the last text field of a message: up to n octets, fewer if the peer sent fewer.
func (d *decoder) tail(field string, n int, dst *string) {
	d.str(field, min(n, d.left()), dst)
}

// strs reads a count octet and as many text fields of width octets into the array behind list; they are set by finish.
func (d *decoder) strs(field string, width int, list []string) []string {
	list = list[:0]
	n := int(d.u8(field))
	if n*width > d.left() {
		d.fail(field, fmt.Sprintf("%d fields of %d octets promised, %d octets left", n, width, d.left()), resultLength)
		return list
	}
	list = slices.Grow(list, n)[:n]
	d.list, d.listAt, d.width = list, d.off, width
	for range n {
		from, to := clean(d.body, d.off, d.off+width)
		d.octets += to - from
		d.off += width
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

// clean returns which part of the field b[from:to] is its text: it ends at the first zero octet, and the spaces some peers
// pad with do not count.
func clean(b []byte, from, to int) (int, int) {
	if from == to || b[from] == 0 {
		return from, from
	}
	if i := bytes.IndexByte(b[from:to], 0); i >= 0 {
		to = from + i
	}
	for from < to && b[from] == ' ' {
		from++
	}
	for from < to && b[to-1] == ' ' {
		to--
	}
	return from, to
}
