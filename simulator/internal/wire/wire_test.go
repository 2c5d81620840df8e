package wire_test

import (
	"bytes"
	"encoding/hex"
	"errors"
	"io"
	"strings"
	"testing"
	"testing/iotest"

	"cmppgateway/simulator/internal/wire"
)

// Whole frames with fixed contents: id 901234, secret 1234, timestamp
// 0102030405, recipient 13800138000, Src_Id 10690001, Service_Id TEST, text
// 【测试】hi in fmt 8, a DELIVRD report.
const (
	connect20     = "000000270000000100000001393031323334e45edee925b9c275458dfcc54b2bebd8200614dc45"
	connect30     = "000000270000000100000001393031323334e45edee925b9c275458dfcc54b2bebd8300614dc45"
	connectResp20 = "0000001e80000001000000010030379ada95177b628ad0bc5ddeac0ddd20"
	connectResp30 = "00000021800000010000000100000000af8b00451a390b4990321de5bfca09c230"
	refused20     = "0000001e8000000100000001030000000000000000000000000000000020"
	submit20      = "000000ab00000004000000020000000000000000010101005445535400000000000002000000000000000000000000000000000000000000000008393031323334303130000000000000000000000000000000000000000000000000000000000000000000000000000000313036393030303100000000000000000000000000013133383030313338303030000000000000000000000c30106d4b8bd53011006800690000000000000000"
	submit30      = "000000cf00000004000000020000000000000000010101005445535400000000000002000000000000000000000000000000000000000000000000000000000000000000000008393031323334303130000000000000000000000000000000000000000000000000000000000000000000000000000000313036393030303100000000000000000000000000013133383030313338303030000000000000000000000000000000000000000000000c30106d4b8bd53011006800690000000000000000000000000000000000000000"
	submitResp20  = "000000158000000400000002110c414003e9000100"
	submitResp30  = "000000188000000400000002110c414003e9000100000000"
	report20      = "000000910000000500000009110c414003e9000231303639303030310000000000000000000000000054455354000000000000000000313338303031333830303000000000000000000000013c110c414003e9000144454c495652443234303130323033303432343031303230333035313338303031333830303000000000000000000000000000070000000000000000"
	report30      = "000000b40000000500000009110c414003e90002313036393030303100000000000000000000000000544553540000000000000000003133383030313338303030000000000000000000000000000000000000000000000147110c414003e9000144454c4956524432343031303230333034323430313032303330353133383030313338303030000000000000000000000000000000000000000000000000070000000000000000000000000000000000000000"
)

const (
	v20 = uint8(0x20)
	v30 = uint8(0x30)
)

func raw(t *testing.T, s string) []byte {
	t.Helper()
	b, err := hex.DecodeString(s)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// one reads the single frame in s.
func one(t *testing.T, s string) wire.Frame {
	t.Helper()
	rd := wire.NewReader(bytes.NewReader(raw(t, s)))
	f, err := rd.Next()
	if err != nil {
		t.Fatal(err)
	}
	if _, err := rd.Next(); !errors.Is(err, io.EOF) {
		t.Fatalf("behind the frame: %v, want EOF", err)
	}
	return f
}

func TestConnectFrames(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		frame   string
		version uint8
	}{{connect20, v20}, {connect30, v30}} {
		f := one(t, c.frame)
		got, err := wire.DecodeConnect(f.Body)
		if err != nil {
			t.Fatal(err)
		}
		if f.Command != wire.Connect || f.Sequence != 1 || got.Source != "901234" || got.Version != c.version ||
			got.Timestamp != 102030405 || hex.EncodeToString(got.Auth[:]) != "e45edee925b9c275458dfcc54b2bebd8" {
			t.Errorf("version %02x: %+v %+v", c.version, f, got)
		}
	}
}

func TestConnectRespFrames(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		frame   string
		status  uint32
		version uint8
		auth    string
	}{
		{connectResp20, 0, v20, "30379ada95177b628ad0bc5ddeac0ddd"},
		{connectResp30, 0, v30, "af8b00451a390b4990321de5bfca09c2"},
		{refused20, 3, v20, "00000000000000000000000000000000"},
	} {
		got, err := wire.DecodeConnectResp(one(t, c.frame).Body)
		if err != nil {
			t.Fatal(err)
		}
		if got.Status != c.status || got.Version != c.version || hex.EncodeToString(got.Auth[:]) != c.auth {
			t.Errorf("%s: %+v", c.frame, got)
		}
	}
}

func TestSubmitFrames(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		frame   string
		version uint8
	}{{submit20, v20}, {submit30, v30}} {
		var s wire.SubmitBody
		if err := wire.DecodeSubmit(one(t, c.frame).Body, c.version, &s); err != nil {
			t.Fatal(err)
		}
		if s.PkTotal != 1 || s.PkNumber != 1 || s.Registered != 1 || s.MsgFmt != 8 || s.TPUDHI != 0 ||
			string(s.ServiceID) != "TEST" || string(s.MsgSrc) != "901234" || string(s.SrcID) != "10690001" ||
			s.DestCount != 1 || string(s.DestAt(0)) != "13800138000" ||
			hex.EncodeToString(s.Content) != "30106d4b8bd5301100680069" {
			t.Errorf("version %02x: %+v", c.version, s)
		}
	}
}

func TestSubmitRespFrames(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		frame   string
		version uint8
	}{{submitResp20, v20}, {submitResp30, v30}} {
		got, err := wire.DecodeMsgIDResult(one(t, c.frame).Body, c.version)
		if err != nil || got.MsgID != 1228428541564616705 || got.Result != 0 {
			t.Errorf("version %02x: %+v, %v", c.version, got, err)
		}
	}
}

func TestReportFrames(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		frame   string
		version uint8
	}{{report20, v20}, {report30, v30}} {
		var d wire.DeliverBody
		if err := wire.DecodeDeliver(one(t, c.frame).Body, c.version, &d); err != nil {
			t.Fatal(err)
		}
		if d.MsgID != 0x110c414003e90002 || string(d.Dest) != "10690001" || string(d.Source) != "13800138000" ||
			string(d.ServiceID) != "TEST" || d.Registered != 1 {
			t.Errorf("version %02x: %+v", c.version, d)
		}
		r, err := wire.DecodeReport(d.Content)
		if err != nil {
			t.Fatal(err)
		}
		if r.MsgID != 0x110c414003e90001 || string(r.Stat) != "DELIVRD" || string(r.SubmitTime) != "2401020304" ||
			string(r.DoneTime) != "2401020305" || string(r.Dest) != "13800138000" || r.SMSCSequence != 7 {
			t.Errorf("version %02x: %+v", c.version, r)
		}
	}
}

// TestReaderCuts feeds the same stream whole and octet by octet.
func TestReaderCuts(t *testing.T) {
	t.Parallel()
	stream := raw(t, connect30+submit30+submitResp30+report30)
	for name, src := range map[string]io.Reader{
		"whole":   bytes.NewReader(stream),
		"octets":  iotest.OneByteReader(bytes.NewReader(stream)),
		"dataerr": iotest.DataErrReader(bytes.NewReader(stream)),
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			rd := wire.NewReader(src)
			var commands []uint32
			for {
				f, err := rd.Next()
				if errors.Is(err, io.EOF) {
					break
				}
				if err != nil {
					t.Fatal(err)
				}
				commands = append(commands, f.Command)
			}
			want := []uint32{wire.Connect, wire.Submit, wire.Submit | wire.Response, wire.Deliver}
			if len(commands) != 4 || commands[0] != want[0] || commands[1] != want[1] || commands[2] != want[2] || commands[3] != want[3] {
				t.Errorf("got %x, want %x", commands, want)
			}
		})
	}
}

func TestReaderReady(t *testing.T) {
	t.Parallel()
	rd := wire.NewReader(bytes.NewReader(raw(t, submitResp30+submitResp30+"00000018")))
	var ready []bool
	for range 2 {
		if _, err := rd.Next(); err != nil {
			t.Fatal(err)
		}
		ready = append(ready, rd.Ready())
	}
	if !ready[0] || ready[1] {
		t.Errorf("ready after the frames: %v, want true then false", ready)
	}
}

func TestReaderLongStream(t *testing.T) {
	t.Parallel()
	frame := raw(t, submit30)
	const n = 1000 // many times the buffer
	rd := wire.NewReader(bytes.NewReader(bytes.Repeat(frame, n)))
	for i := range n {
		f, err := rd.Next()
		if err != nil || !bytes.Equal(f.Body, frame[12:]) {
			t.Fatalf("frame %d: %v", i, err)
		}
	}
}

func TestReaderRefuses(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name, stream string
		want         error
	}{
		{"zero", "000000000000000800000001", wire.ErrFrameLength},
		{"eleven", "0000000b0000000800000001", wire.ErrFrameLength},
		{"4097", "000010010000000800000001", wire.ErrFrameLength},
		{"http", hex.EncodeToString([]byte("HTTP/1.1 200")), wire.ErrFrameLength},
		{"inside header", "0000000c0000", io.ErrUnexpectedEOF},
		{"inside body", submit30[:100], io.ErrUnexpectedEOF},
		{"between", "", io.EOF},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			_, err := wire.NewReader(bytes.NewReader(raw(t, c.stream))).Next()
			if !errors.Is(err, c.want) {
				t.Errorf("got %v, want %v", err, c.want)
			}
		})
	}
}

// TestShortBodies cuts every golden body at every length: an error or a value,
// never a panic, and an error for every cut that loses something read.
func TestShortBodies(t *testing.T) {
	t.Parallel()
	body20, body30 := one(t, submit20).Body, one(t, submit30).Body
	var s wire.SubmitBody
	for n := range len(body20) - 8 { // without Reserve it is still whole
		if wire.DecodeSubmit(body20[:n], v20, &s) == nil {
			t.Fatalf("2.0 SUBMIT of %d octets was taken", n)
		}
	}
	for n := range len(body30) - 20 {
		if wire.DecodeSubmit(body30[:n], v30, &s) == nil {
			t.Fatalf("3.0 SUBMIT of %d octets was taken", n)
		}
	}
	lying := bytes.Clone(body30)
	lying[128] = 200 // DestUsr_tl
	if err := wire.DecodeSubmit(lying, v30, &s); !errors.Is(err, wire.ErrShort) {
		t.Errorf("lying DestUsr_tl: %v", err)
	}
}

func TestNumberKey(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		in   string
		key  uint64
		good bool
	}{
		{"13800138000", 13800138000, true},
		{"8613800138000", 13800138000, true},
		{"+8613800138000", 13800138000, true},
		{"008613800138000", 13800138000, true},
		{" 13800138000 ", 13800138000, true},
		{"1064900000001", 1064900000001, true},
		{"86", 86, true},
		{"", 0, false},
		{"1380013800a", 0, false},
		{strings.Repeat("1", 20), 0, false},
	} {
		if key, good := wire.NumberKey(c.in); key != c.key && good || good != c.good {
			t.Errorf("%q: got %d %v, want %d %v", c.in, key, good, c.key, c.good)
		}
	}
}

func TestDecodeConcat(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name, content string
		udhi          uint8
		want          wire.Concat
		ok            bool
	}{
		{"eight bit", "050003ab0302616263", 1, wire.Concat{Ref: 0xab, Total: 3, Number: 2}, true},
		{"sixteen bit", "060804abcd0302616263", 1, wire.Concat{Ref: 0xabcd, Total: 3, Number: 2}, true},
		{"raw udhi bit", "050003ab0302", 0x40, wire.Concat{Ref: 0xab, Total: 3, Number: 2}, true},
		{"behind ports", "0b05040b8423f00003ab0302", 1, wire.Concat{Ref: 0xab, Total: 3, Number: 2}, true},
		{"no header", "050003ab0302", 0, wire.Concat{}, false},
		{"empty", "", 1, wire.Concat{}, false},
		{"lying header length", "ff0003ab0302", 1, wire.Concat{}, false},
		{"lying element length", "0500ffab0302", 1, wire.Concat{}, false},
		{"other element", "0405020b84", 1, wire.Concat{}, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			got, ok := wire.DecodeConcat(c.udhi, raw(t, c.content))
			if got != c.want || ok != c.ok {
				t.Errorf("got %+v %v, want %+v %v", got, ok, c.want, c.ok)
			}
		})
	}
}

func TestQueueOrder(t *testing.T) {
	t.Parallel()
	var q wire.Queue[int]
	dues := []int64{5, 3, 9, 3, 1, 5, 3}
	for i, due := range dues {
		q.Push(due, i)
	}
	if _, ok := q.Pop(0); ok {
		t.Fatal("something was due before its time")
	}
	var got []int
	for {
		due, ok := q.Next()
		if !ok {
			break
		}
		i, _ := q.Pop(due)
		got = append(got, i)
	}
	want := []int{4, 1, 3, 6, 0, 5, 2}
	for i := range want {
		if len(got) != len(want) || got[i] != want[i] {
			t.Fatalf("got %v, want %v", got, want)
		}
	}
}

func TestSlabKeepsPlaces(t *testing.T) {
	t.Parallel()
	var s wire.Slab[int]
	var pointers []*int
	for i := range 5000 {
		p := s.Add()
		*p = i
		pointers = append(pointers, p)
	}
	i := 0
	for p := range s.All() {
		if p != pointers[i] || *p != i {
			t.Fatalf("element %d moved or changed", i)
		}
		i++
	}
	if i != 5000 || s.Len() != 5000 {
		t.Errorf("walked %d of %d", i, s.Len())
	}
}

// FuzzFrames reads any stream as frames and any body as every PDU.
func FuzzFrames(f *testing.F) {
	for _, s := range []string{connect20, connect30, connectResp20, connectResp30, submit20, submit30, submitResp20, submitResp30, report20, report30} {
		b, err := hex.DecodeString(s)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(b)
	}
	f.Fuzz(func(t *testing.T, stream []byte) {
		rd := wire.NewReader(bytes.NewReader(stream))
		total := 0
		for {
			frame, err := rd.Next()
			if err != nil {
				return
			}
			if total += 12 + len(frame.Body); total > len(stream) {
				t.Fatalf("%d octets of frames out of %d", total, len(stream))
			}
			for _, version := range []uint8{v20, v30} {
				decodeAll(t, frame.Body, version)
			}
		}
	})
}

func decodeAll(t *testing.T, body []byte, version uint8) {
	t.Helper()
	var s wire.SubmitBody
	if wire.DecodeSubmit(body, version, &s) == nil {
		for i := range s.DestCount {
			if len(s.DestAt(i)) > s.DestWidth {
				t.Fatal("recipient wider than its field")
			}
		}
		_, _ = wire.DecodeConcat(s.TPUDHI, s.Content)
	}
	var d wire.DeliverBody
	if wire.DecodeDeliver(body, version, &d) == nil && len(d.Content) > len(body) {
		t.Fatal("content longer than the body")
	}
	_, _ = wire.DecodeConnect(body)
	_, _ = wire.DecodeConnectResp(body)
	_, _ = wire.DecodeMsgIDResult(body, version)
	_, _ = wire.DecodeReport(body)
}
