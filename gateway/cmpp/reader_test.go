package cmpp_test

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"testing"
	"testing/iotest"

	"cmppgateway/gateway/cmpp"
)

// stream is all golden frames in one go.
func stream() []byte {
	var b []byte
	for _, g := range goldens {
		b = append(b, g.frame()...)
	}
	return b
}

// wantStream reads the golden frames off r and then wants end.
func wantStream(t *testing.T, r *cmpp.Reader, end error) {
	t.Helper()
	for _, g := range goldens {
		h, body, err := r.Next()
		if err != nil {
			t.Fatalf("%s: %v", g.name, err)
		}
		if h.Sequence != g.seq || h.Command != g.pdu.Command() || !bytes.Equal(body, g.frame()[cmpp.HeaderLen:]) {
			t.Fatalf("%s: %+v %x", g.name, h, body)
		}
		if len(body) != cap(body) {
			t.Fatalf("%s: the body has room for %d octets of the next frame", g.name, cap(body)-len(body))
		}
	}
	if _, _, err := r.Next(); !errors.Is(err, end) {
		t.Fatalf("at the end: %v, want %v", err, end)
	}
}

// chunks returns one slice per Read, then err.
type chunks struct {
	parts [][]byte
	err   error
}

func (c *chunks) Read(p []byte) (int, error) {
	if len(c.parts) == 0 {
		return 0, c.err
	}
	n := copy(p, c.parts[0])
	if c.parts[0] = c.parts[0][n:]; len(c.parts[0]) == 0 {
		c.parts = c.parts[1:]
	}
	return n, nil
}

func TestReaderHoweverTheStreamArrives(t *testing.T) {
	t.Parallel()
	sources := map[string]func(io.Reader) io.Reader{
		"all at once":         func(r io.Reader) io.Reader { return r },
		"octet by octet":      iotest.OneByteReader,
		"half reads":          iotest.HalfReader,
		"data with the error": iotest.DataErrReader,
	}
	for name, wrap := range sources {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			wantStream(t, cmpp.NewReader(wrap(bytes.NewReader(stream())), 0), io.EOF)
		})
	}
}

func TestReaderEverySplit(t *testing.T) {
	t.Parallel()
	all := stream()
	for i := 1; i < len(all); i++ {
		wantStream(t, cmpp.NewReader(&chunks{parts: [][]byte{all[:i], all[i:]}, err: io.EOF}, 0), io.EOF)
	}
}

// TestReaderWraps reads more than the buffer holds, with a frame across every place where it is moved.
func TestReaderWraps(t *testing.T) {
	t.Parallel()
	frame, err := submitOf(99, 160).Append(nil, cmpp.V30, 7)
	if err != nil {
		t.Fatal(err)
	}
	r := cmpp.NewReader(bytes.NewReader(bytes.Repeat(frame, 20)), 0)
	for i := range 20 {
		h, body, err := r.Next()
		if err != nil || h.Sequence != 7 || !bytes.Equal(body, frame[cmpp.HeaderLen:]) {
			t.Fatalf("frame %d: %+v, %d octets, %v", i, h, len(body), err)
		}
	}
	if _, _, err := r.Next(); err != io.EOF { //nolint:errorlint // the documented value
		t.Fatal(err)
	}
}

func TestReaderEnd(t *testing.T) {
	t.Parallel()
	frame := goldens[0].frame()
	for n := range len(frame) + 1 {
		want := io.ErrUnexpectedEOF
		if n == 0 || n == len(frame) {
			want = io.EOF
		}
		r := cmpp.NewReader(bytes.NewReader(append(bytes.Clone(frame), frame[:n]...)), 0)
		if _, _, err := r.Next(); err != nil {
			t.Fatalf("whole frame: %v", err)
		}
		if n == len(frame) {
			if _, _, err := r.Next(); err != nil {
				t.Fatalf("second whole frame: %v", err)
			}
		}
		if _, _, err := r.Next(); err != want { //nolint:errorlint // callers compare with io.EOF
			t.Errorf("stream ends after %d octets of the second frame: %v, want %v", n, err, want)
		}
	}
}

// TestReaderTimeout: a read error in the middle loses nothing and InFrame tells where it happened.
func TestReaderTimeout(t *testing.T) {
	t.Parallel()
	g := goldens[0]
	frame := g.frame()
	for n := range frame {
		src := &chunks{err: os.ErrDeadlineExceeded}
		if n > 0 {
			src.parts = [][]byte{bytes.Clone(frame[:n])}
		}
		r := cmpp.NewReader(src, 0)
		if r.InFrame() {
			t.Error("a new Reader is inside a frame")
		}
		for range 2 {
			if _, _, err := r.Next(); !errors.Is(err, os.ErrDeadlineExceeded) {
				t.Fatalf("after %d octets: %v", n, err)
			}
			if r.InFrame() != (n > 0) {
				t.Errorf("after %d octets: InFrame %v", n, r.InFrame())
			}
		}
		src.parts = [][]byte{bytes.Clone(frame[n:])}
		h, body, err := r.Next()
		if err != nil || h.Sequence != g.seq || !bytes.Equal(body, frame[cmpp.HeaderLen:]) {
			t.Errorf("resumed after %d octets: %+v %x %v", n, h, body, err)
		}
		if r.InFrame() {
			t.Errorf("resumed after %d octets: still inside a frame", n)
		}
	}
}

// TestReaderBadLength: the first four octets are enough to refuse, and the refusal stays.
func TestReaderBadLength(t *testing.T) {
	t.Parallel()
	u32 := func(n uint32) string { return string(binary.BigEndian.AppendUint32(nil, n)) }
	tests := map[string]struct {
		head   string
		max    int
		length uint32
	}{
		"zero":                {u32(0), 0, 0},
		"four":                {u32(4), 0, 4},
		"one below a header":  {u32(11), 0, 11},
		"one above the limit": {u32(4097), 0, 4097},
		"above own limit":     {u32(13), 12, 13},
		"2^31":                {u32(1 << 31), 0, 1 << 31},
		"2^31 and no limit":   {u32(1 << 31), 1<<31 - 1, 1 << 31},
		"2^32-1":              {u32(1<<32 - 1), 0, 1<<32 - 1},
		"HTTP":                {"GET / HTTP/1.1\r\n\r\n", 0, 0x47455420},
		"HTTP answer":         {"HTTP", 0, 1213486160},
		"AMQP":                {"AMQP\x00\x00\x09\x01", 0, 1095586128},
		"TLS":                 {"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03", 0, 0x16030102},
		"remote desktop":      {"\x03\x00\x00\x2f\x2a\xe0", 0, 50331695},
		"PROXY":               {"PROXY TCP4 192.0.2.1 192.0.2.2 1 2\r\n", 0, 0x50524f58},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			good := goldens[0].frame()
			if tt.max == 12 {
				good = goldens[11].frame()
			}
			r := cmpp.NewReader(&chunks{parts: [][]byte{good, []byte(tt.head)}, err: errors.New("read on")}, tt.max)
			if _, _, err := r.Next(); err != nil {
				t.Fatalf("the frame before: %v", err)
			}
			for range 2 {
				_, body, err := r.Next()
				e, ok := errors.AsType[*cmpp.FrameError](err)
				if !ok || body != nil {
					t.Fatalf("%x, %v", body, err)
				}
				if e.Length != tt.length || string(e.Head[:]) != tt.head[:4] {
					t.Errorf("%+v", e)
				}
				if want := max(tt.max, 0); want != 0 && e.Max != want || want == 0 && e.Max != cmpp.MaxFrame {
					t.Errorf("limit %d", e.Max)
				}
				if want := fmt.Sprintf("%q", tt.head[:4]); !strings.Contains(e.Error(), want) {
					t.Errorf("message %q does not show %s", e, want)
				}
			}
		})
	}
}

// TestReaderLimits: the bounds themselves are frames.
func TestReaderLimits(t *testing.T) {
	t.Parallel()
	for _, n := range []int{cmpp.HeaderLen, cmpp.HeaderLen + 1, cmpp.MaxFrame, 100_000} {
		frame := make([]byte, n)
		binary.BigEndian.PutUint32(frame, uint32(n))
		for _, limit := range []int{0, -1, n, 200_000} {
			_, body, err := cmpp.NewReader(bytes.NewReader(frame), limit).Next()
			if fits := n <= cmpp.MaxFrame || limit >= n; (err == nil) != fits || fits && len(body) != n-cmpp.HeaderLen {
				t.Errorf("%d octets with limit %d: body %d, %v", n, limit, len(body), err)
			}
		}
	}
}

func TestReaderSilentSource(t *testing.T) {
	t.Parallel()
	r := cmpp.NewReader(&chunks{}, 0)
	if _, _, err := r.Next(); !errors.Is(err, io.ErrNoProgress) {
		t.Errorf("a source that returns nothing for ever: %v", err)
	}
}
