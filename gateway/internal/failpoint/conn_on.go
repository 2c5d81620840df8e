//go:build failpoint

package failpoint

import (
	"encoding/binary"
	"net"
)

// Conn is c, but a SUBMIT among the frames written is cut in half when MidWrite is due.
func Conn(c net.Conn) net.Conn { return &cutter{c} }

type cutter struct{ net.Conn }

const (
	header = 12
	submit = 4
)

// Write writes as far as the middle of the first SUBMIT and passes the point there.
func (c *cutter) Write(b []byte) (int, error) {
	if !Armed(MidWrite) {
		return c.Conn.Write(b)
	}
	for at := 0; at+header <= len(b); {
		size := int(binary.BigEndian.Uint32(b[at:]))
		if size < header || at+size > len(b) {
			break
		}
		if binary.BigEndian.Uint32(b[at+4:]) == submit {
			half := at + size/2
			n, err := c.Conn.Write(b[:half])
			if err != nil {
				return n, err
			}
			Hit(MidWrite)
			rest, err := c.Conn.Write(b[half:])
			return n + rest, err
		}
		at += size
	}
	return c.Conn.Write(b)
}
