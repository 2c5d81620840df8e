package sp

import (
	"encoding/binary"
	"fmt"
)

// Octets of a Msg_Content with a header in front (GSM 03.40), and of the two
// headers.
const (
	oneMessage = 140
	header8    = 6
	header16   = 7
	maxParts   = 255
)

// Reference is the reference of a long message, in a user-data header of 8 or
// 16 bits.
type Reference struct {
	Value uint16
	Wide  bool // 16 bits; otherwise the lower 8 are used
	// Extra puts an element that is not a concatenation in front of it, as some
	// handsets and gateways do.
	Extra bool
}

// Split cuts encoded content into the segments of a long message, each with its
// header, to be sent with UDHI 1. unit is the octets of a character that are
// never cut apart: 2 for UCS2, 1 otherwise. Content that fits into one message
// gives a long message of one segment.
func Split(content []byte, unit int, ref Reference) ([][]byte, error) {
	head := header8
	if ref.Wide {
		head = header16
	}
	if ref.Extra {
		head += 4
	}
	size := (oneMessage - head) / unit * unit
	n := max(1, (len(content)+size-1)/size)
	if n > maxParts {
		return nil, fmt.Errorf("split: %d octets need %d segments, at most %d", len(content), n, maxParts)
	}
	list := make([][]byte, n)
	for i := range list {
		b := make([]byte, 0, head+size)
		b = append(b, byte(head-1))
		if ref.Extra {
			b = append(b, 0x24, 2, 0, 0) // national language single shift, of no effect here
		}
		if ref.Wide {
			b = append(b, 0x08, 4)
			b = binary.BigEndian.AppendUint16(b, ref.Value)
		} else {
			b = append(b, 0x00, 3, byte(ref.Value))
		}
		b = append(b, byte(n), byte(i+1))
		list[i] = append(b, content[i*size:min(len(content), (i+1)*size)]...)
	}
	return list, nil
}
