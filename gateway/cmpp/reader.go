package cmpp

import (
	"encoding/binary"
	"io"
)

const (
	// HeaderLen is the size of a header and so the smallest Total_Length, in octets.
	HeaderLen = 12

	// MaxFrame is the largest frame the codec makes, and the limit for frames taken from a peer unless the caller has
	// another one, in octets. The largest frame that follows the specification has 3491 (99 recipients, 160 octets).
	MaxFrame = 4096
)

// Header is the beginning of every frame.
type Header struct {
	Length   uint32 // Total_Length, the header included
	Command  Command
	Sequence uint32 // a response repeats that of its request; wraps around
}

// readAhead is the initial buffer of a Reader: a window of sixteen common frames in one read.
const readAhead = 8192

// Reader cuts a stream into frames. It is not safe for concurrent use.
type Reader struct {
	src  io.Reader
	max  int
	buf  []byte
	r, w int   // buf[r:w] is read from src and not handed out
	err  error // of src, to be reported once buf[r:w] holds no whole frame
	bad  *FrameError
}

// NewReader returns a Reader of the frames in r that are at most maxFrame octets long; 0 or less means MaxFrame.
func NewReader(r io.Reader, maxFrame int) *Reader {
	if maxFrame <= 0 {
		maxFrame = MaxFrame
	}
	return &Reader{src: r, max: maxFrame, buf: make([]byte, readAhead)}
}

// Next returns the next frame as its header and body. The body is valid until the next call.
//
// A Total_Length that no frame can have is a [*FrameError] as soon as its four octets are read, and every later call
// returns it again. io.EOF means that the stream ended between two frames, io.ErrUnexpectedEOF that it ended inside one.
// Any other error is that of the underlying reader; no octet is lost then, so that a call after a timeout goes on where
// it stopped. See InFrame for whether that is wise.
func (r *Reader) Next() (Header, []byte, error) {
	if r.bad != nil {
		return Header{}, nil, r.bad
	}
	if err := r.fill(4); err != nil {
		return Header{}, nil, err
	}
	length := binary.BigEndian.Uint32(r.buf[r.r:])
	if length < HeaderLen || uint64(length) > uint64(r.max) {
		r.bad = &FrameError{Length: length, Max: r.max, Head: [4]byte(r.buf[r.r:])}
		return Header{}, nil, r.bad
	}
	if err := r.fill(int(length)); err != nil {
		return Header{}, nil, err
	}
	frame := r.buf[r.r : r.r+int(length) : r.r+int(length)]
	r.r += int(length)
	return Header{
		Length:   length,
		Command:  Command(binary.BigEndian.Uint32(frame[4:])),
		Sequence: binary.BigEndian.Uint32(frame[8:]),
	}, frame[HeaderLen:], nil
}

// InFrame reports whether octets of a frame not yet returned have been read. If Next fails with a timeout while InFrame
// is true, the peer stopped inside a frame: close the connection.
func (r *Reader) InFrame() bool { return r.w > r.r }

// maxEmptyReads is how often the source may return no octet and no error before that counts as one.
const maxEmptyReads = 100

// fill reads until n octets are waiting.
func (r *Reader) fill(n int) error {
	if r.w-r.r >= n {
		return nil
	}
	if r.r > 0 {
		r.w = copy(r.buf, r.buf[r.r:r.w])
		r.r = 0
	}
	if n > len(r.buf) {
		r.buf = append(make([]byte, 0, n), r.buf[:r.w]...)[:n]
	}
	for empty := 0; r.w < n; {
		if err := r.err; err != nil {
			r.err = nil
			if err == io.EOF && r.w > 0 { //nolint:errorlint // io.Reader returns io.EOF itself
				return io.ErrUnexpectedEOF
			}
			return err
		}
		var got int
		got, r.err = r.src.Read(r.buf[r.w:])
		r.w += got
		if got > 0 || r.err != nil {
			empty = 0
		} else if empty++; empty == maxEmptyReads {
			return io.ErrNoProgress
		}
	}
	return nil
}
