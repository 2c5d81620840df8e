package wire

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"
)

// Command words of CMPP 3.0 §8.2 that cross an SP–ISMG link. A response is
// its request with the top bit set.
const (
	Connect    uint32 = 0x00000001
	Terminate  uint32 = 0x00000002
	Submit     uint32 = 0x00000004
	Deliver    uint32 = 0x00000005
	Query      uint32 = 0x00000006
	Cancel     uint32 = 0x00000007
	ActiveTest uint32 = 0x00000008
	// Response is the bit that turns a request's command into its response's.
	Response uint32 = 0x80000000
)

const (
	headerLen = 12
	// MaxFrame is the largest frame read, header included. The largest legal
	// one (99 recipients, 160 octets, CMPP 3.0) has 3491 octets.
	MaxFrame = 4096
)

// ErrFrameLength reports a Total_Length outside 12…MaxFrame. The stream cannot
// be read any further.
var ErrFrameLength = errors.New("frame length out of range")

// Frame is one whole frame. Body excludes the header and is valid until the
// next call of Reader.Next.
type Frame struct {
	Command  uint32
	Sequence uint32
	Body     []byte
}

// Reader cuts a stream into frames, many per read when the peer wrote many.
// Not safe for concurrent use.
type Reader struct {
	src        io.Reader
	buf        []byte
	start, end int
}

// NewReader returns a Reader of src.
func NewReader(src io.Reader) *Reader {
	return &Reader{src: src, buf: make([]byte, 8*MaxFrame)}
}

// Next returns the next frame. It returns io.EOF between frames,
// io.ErrUnexpectedEOF inside one, and ErrFrameLength for an impossible length.
func (r *Reader) Next() (Frame, error) {
	if err := r.fill(headerLen); err != nil {
		return Frame{}, err
	}
	total := binary.BigEndian.Uint32(r.buf[r.start:])
	if total < headerLen || total > MaxFrame {
		return Frame{}, fmt.Errorf("%w: %d", ErrFrameLength, total)
	}
	n := int(total)
	if err := r.fill(n); err != nil {
		if errors.Is(err, io.EOF) {
			err = io.ErrUnexpectedEOF
		}
		return Frame{}, err
	}
	b := r.buf[r.start : r.start+n]
	r.start += n
	return Frame{
		Command:  binary.BigEndian.Uint32(b[4:]),
		Sequence: binary.BigEndian.Uint32(b[8:]),
		Body:     b[headerLen:],
	}, nil
}

// Ready reports whether Next can return without reading from the source, so
// that a caller can handle everything one read brought before it acts.
func (r *Reader) Ready() bool {
	have := r.end - r.start
	if have < headerLen {
		return false
	}
	total := binary.BigEndian.Uint32(r.buf[r.start:])
	return total < headerLen || total > MaxFrame || have >= int(total)
}

// fill makes at least n octets available from start.
func (r *Reader) fill(n int) error {
	if r.end-r.start >= n {
		return nil
	}
	if r.start == r.end {
		r.start, r.end = 0, 0
	} else if len(r.buf)-r.start < n {
		r.end = copy(r.buf, r.buf[r.start:r.end])
		r.start = 0
	}
	for r.end-r.start < n {
		m, err := r.src.Read(r.buf[r.end:])
		r.end += m
		if r.end-r.start >= n {
			return nil
		}
		if err != nil {
			if errors.Is(err, io.EOF) && r.end > r.start {
				return io.ErrUnexpectedEOF
			}
			return err
		}
	}
	return nil
}
