package cmpp_test

import (
	"bytes"
	"errors"
	"reflect"
	"testing"

	"cmppgateway/gateway/cmpp"
)

// fuzzDecode feeds any octets to the decoder of c in both layouts. A failure must be a DecodeError with a Result; a
// message that was decoded must encode, and decode to itself again.
func fuzzDecode(f *testing.F, c cmpp.Command) {
	f.Helper()
	f.Add([]byte(nil), true)
	f.Add(bytes.Repeat([]byte{0xFF}, 64), false)
	for _, g := range goldens {
		if g.pdu.Command() == c {
			f.Add(g.frame()[cmpp.HeaderLen:], g.version.Wide())
		}
	}
	for _, v := range bothVersions {
		frame, err := cmpp.New(c).Append(nil, v, 1)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(frame[cmpp.HeaderLen:], v.Wide())
	}
	f.Fuzz(func(t *testing.T, body []byte, wide bool) {
		v := cmpp.V20
		if wide {
			v = cmpp.V30
		}
		h := cmpp.Header{Command: c}
		first, err := cmpp.Decode(h, body, v)
		if err != nil {
			if e, ok := errors.AsType[*cmpp.DecodeError](err); !ok || e.Command != c || e.Result == 0 || e.Field == "" || first != nil {
				t.Fatalf("%v with the error %#v", first, err)
			}
			return
		}
		written := v
		if r, ok := first.(*cmpp.ConnectResp); ok && r.Status > 0xFF {
			written = cmpp.V30 // its layout followed the length
		}
		if len(body) == 12 && !wide && (c == cmpp.CmdSubmitResp || c == cmpp.CmdDeliverResp) || len(body) == 4 && c == cmpp.CmdCancelResp {
			written = cmpp.V30
		}
		frame, err := first.Append(nil, written, 1)
		if err != nil {
			if e, ok := errors.AsType[*cmpp.EncodeError](err); ok && e.Field == "Total_Length" && len(body) > cmpp.MaxFrame-cmpp.HeaderLen-20 {
				return // longer than any frame a Reader returns
			}
			t.Fatalf("what was decoded does not encode: %v", err)
		}
		second, err := cmpp.Decode(h, frame[cmpp.HeaderLen:], v)
		if err != nil || !reflect.DeepEqual(first, second) {
			t.Fatalf("decoded %+v\nand then %+v, %v", first, second, err)
		}
	})
}

func FuzzConnect(f *testing.F)        { fuzzDecode(f, cmpp.CmdConnect) }
func FuzzConnectResp(f *testing.F)    { fuzzDecode(f, cmpp.CmdConnectResp) }
func FuzzTerminate(f *testing.F)      { fuzzDecode(f, cmpp.CmdTerminate) }
func FuzzTerminateResp(f *testing.F)  { fuzzDecode(f, cmpp.CmdTerminateResp) }
func FuzzSubmit(f *testing.F)         { fuzzDecode(f, cmpp.CmdSubmit) }
func FuzzSubmitResp(f *testing.F)     { fuzzDecode(f, cmpp.CmdSubmitResp) }
func FuzzDeliver(f *testing.F)        { fuzzDecode(f, cmpp.CmdDeliver) }
func FuzzDeliverResp(f *testing.F)    { fuzzDecode(f, cmpp.CmdDeliverResp) }
func FuzzQuery(f *testing.F)          { fuzzDecode(f, cmpp.CmdQuery) }
func FuzzQueryResp(f *testing.F)      { fuzzDecode(f, cmpp.CmdQueryResp) }
func FuzzCancel(f *testing.F)         { fuzzDecode(f, cmpp.CmdCancel) }
func FuzzCancelResp(f *testing.F)     { fuzzDecode(f, cmpp.CmdCancelResp) }
func FuzzActiveTest(f *testing.F)     { fuzzDecode(f, cmpp.CmdActiveTest) }
func FuzzActiveTestResp(f *testing.F) { fuzzDecode(f, cmpp.CmdActiveTestResp) }

// FuzzReader cuts any octets into frames: what comes out, put together, is what went in, and the pieces do not depend on
// how the octets arrived.
func FuzzReader(f *testing.F) {
	f.Add(stream(), uint16(0), uint16(7))
	f.Add([]byte("GET / HTTP/1.1\r\n\r\n"), uint16(100), uint16(1))
	f.Add(unhex("0000000c0000000800000003"+"0000000b"), uint16(12), uint16(3))
	f.Fuzz(func(t *testing.T, in []byte, limit, step uint16) {
		read := func(src *chunks) (out []byte, bad error) {
			src.err = errEnd
			r := cmpp.NewReader(src, int(limit))
			for {
				h, body, err := r.Next()
				if err != nil {
					if r.InFrame() != (len(out) < len(in)) {
						t.Fatalf("InFrame %v with %d of %d octets returned", r.InFrame(), len(out), len(in))
					}
					return out, err
				}
				if int(h.Length) != cmpp.HeaderLen+len(body) {
					t.Fatalf("Total_Length %d with a body of %d", h.Length, len(body))
				}
				out = append(out, in[len(out):len(out)+cmpp.HeaderLen]...)
				out = append(out, body...)
			}
		}
		var pieces [][]byte
		for rest := in; len(rest) > 0; {
			n := min(len(rest), max(int(step), 1))
			pieces, rest = append(pieces, rest[:n]), rest[n:]
		}
		whole := &chunks{}
		if len(in) > 0 {
			whole.parts = [][]byte{in}
		}
		out1, err1 := read(whole)
		out2, err2 := read(&chunks{parts: pieces})
		if !bytes.Equal(out1, out2) || !bytes.HasPrefix(in, out1) || !reflect.DeepEqual(err1, err2) {
			t.Fatalf("at once %x, %v\nin pieces %x, %v", out1, err1, out2, err2)
		}
	})
}

var errEnd = errors.New("end of input")

// FuzzParseReport: 35 octets or more are a report whatever they hold, and a report encodes again in its layout.
func FuzzParseReport(f *testing.F) {
	report := goldenReport()
	for _, v := range bothVersions {
		content, err := report.Append(nil, v)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(content)
		f.Add(content[:35])
	}
	f.Fuzz(func(t *testing.T, content []byte) {
		first, err := cmpp.ParseReport(content)
		if (err == nil) != (len(content) >= 35) {
			t.Fatalf("%d octets: %v", len(content), err)
		}
		if err != nil {
			return
		}
		v := cmpp.V20
		if len(content) >= 71 {
			v = cmpp.V30
		}
		again, err := first.Append(nil, v)
		if err != nil {
			t.Fatal(err)
		}
		if second, err := cmpp.ParseReport(again); err != nil || second != first {
			t.Fatalf("%+v and then %+v, %v", first, second, err)
		}
	})
}

// FuzzParseMsgID: whatever is accepted is an id whose decimal form means the same id.
func FuzzParseMsgID(f *testing.F) {
	for _, s := range []string{"1228428541564616705", "cfdfbec134fdffff", "0102030405000100100001", "0000000000000042", "-1", ""} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		id, err := cmpp.ParseMsgID(s)
		if err != nil {
			if id != 0 {
				t.Fatalf("%d with the error %v", id, err)
			}
			return
		}
		if again, err := cmpp.ParseMsgID(id.String()); err != nil || again != id {
			t.Fatalf("%q is %v, which is %v, %v", s, id, again, err)
		}
	})
}
