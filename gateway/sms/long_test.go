package sms_test

import (
	"bytes"
	"errors"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"cmppgateway/gateway/sms"
)

// rejoin puts parts together as a receiver does.
func rejoin(t interface{ Fatalf(string, ...any) }, f sms.Fmt, parts [][]byte) (text string, header []byte) {
	list := make([]sms.Part, len(parts))
	for i, p := range parts {
		c, ok, h, payload, err := sms.SplitHeader(p)
		if err != nil || len(parts) > 1 && (!ok || int(c.Total) != len(parts) || int(c.Number) != i+1) {
			t.Fatalf("part %d: %+v, %t, %v", i+1, c, ok, err)
		}
		if len(p) > 140 {
			t.Fatalf("part %d has %d octets", i+1, len(p))
		}
		if _, err := sms.DecodeText(f, payload); err != nil {
			t.Fatalf("part %d is cut through a character: %v", i+1, err)
		}
		if i == 0 {
			header = h
		}
		list[i] = sms.Part{Fmt: f, Payload: payload}
	}
	text, err := sms.JoinMixed(list)
	if err != nil {
		t.Fatalf("join: %v", err)
	}
	return text, sms.Elements(header)
}

func TestLongMessageIsCutAndJoined(t *testing.T) {
	t.Parallel()
	port := []byte{6, 5, 4, 0x15, 0x81, 0, 0} // UDHL and one element: application ports
	rapid.Check(t, func(t *rapid.T) {
		text := rapid.StringOfN(rapid.SampledFrom([]rune("a中😀é【】退\n")), 61, 800, -1).Draw(t, "text")
		out := rapid.SampledFrom([]sms.Fmt{sms.FmtUCS2, sms.FmtGB18030}).Draw(t, "format")
		l := sms.Long{Fmt: sms.FmtUCS2, OutFmt: out, Ref: uint32(rapid.IntRange(0, 255).Draw(t, "reference"))}
		if rapid.Bool().Draw(t, "wide") {
			l.Ref |= sms.Ref16 | 0xAB00
		}
		octets, err := sms.EncodeText(sms.FmtUCS2, text)
		if err != nil {
			t.Fatalf("%v", err)
		}
		if l.Content = octets; rapid.Bool().Draw(t, "ports") {
			l.Header, l.Content = true, append(slices.Clone(port), octets...)
		}
		parts, udhi, err := l.Parts()
		if err != nil {
			t.Fatalf("%v", err)
		}
		again, _, _ := l.Parts()
		if !slices.EqualFunc(parts, again, bytes.Equal) {
			t.Fatalf("cut differently the second time")
		}
		if !udhi {
			if len(parts) != 1 || len(parts[0]) > 140 {
				t.Fatalf("%d parts without a header, %d octets", len(parts), len(parts[0]))
			}
			if got, err := sms.DecodeText(out, parts[0]); err != nil || got != text {
				t.Fatalf("%q, %v", got, err)
			}
			return
		}
		got, elements := rejoin(t, out, parts)
		if got != text || l.Header != bytes.Equal(elements, port) {
			t.Fatalf("%q became %q, elements % x", text, got, elements)
		}
	})
}

func TestLongMessageEdges(t *testing.T) {
	t.Parallel()
	ucs2 := func(s string) []byte {
		b, err := sms.EncodeText(sms.FmtUCS2, s)
		if err != nil {
			t.Fatal(err)
		}
		return b
	}
	for _, c := range []struct {
		name  string
		long  sms.Long
		parts int
	}{
		{"70 characters", sms.Long{Fmt: 8, OutFmt: 8, Content: ucs2(strings.Repeat("中", 70))}, 1},
		{"71 characters", sms.Long{Fmt: 8, OutFmt: 8, Content: ucs2(strings.Repeat("中", 71))}, 2},
		{"134 characters", sms.Long{Fmt: 8, OutFmt: 8, Content: ucs2(strings.Repeat("中", 134))}, 2},
		{"134 characters, 7-octet header", sms.Long{Fmt: 8, OutFmt: 8, Ref: sms.Ref16, Content: ucs2(strings.Repeat("中", 134))}, 3},
		{"emoji at the cut", sms.Long{Fmt: 8, OutFmt: 8, Content: ucs2(strings.Repeat("中", 66) + "😀" + strings.Repeat("中", 66))}, 3},
		{"160 octets of ASCII", sms.Long{Fmt: 0, OutFmt: 0, Content: bytes.Repeat([]byte{'a'}, 160)}, 1},
		{"161 octets of ASCII", sms.Long{Fmt: 0, OutFmt: 0, Content: bytes.Repeat([]byte{'a'}, 161)}, 2},
		{"ASCII sent as UCS2", sms.Long{Fmt: 0, OutFmt: 8, Content: bytes.Repeat([]byte{'a'}, 160)}, 3},
		{"140 octets of binary", sms.Long{Fmt: 4, OutFmt: 4, Content: make([]byte, 140)}, 1},
		{"141 octets of binary", sms.Long{Fmt: 4, OutFmt: 4, Content: make([]byte, 141)}, 2},
	} {
		parts, _, err := c.long.Parts()
		if err != nil || len(parts) != c.parts {
			t.Errorf("%s: %d parts, %v, want %d", c.name, len(parts), err, c.parts)
		}
	}
	if _, _, err := (&sms.Long{Fmt: 0, OutFmt: 0, Content: make([]byte, 256*134)}).Parts(); !errors.Is(err, sms.ErrTooLong) {
		t.Errorf("256 parts: %v", err)
	}
	if _, _, err := (&sms.Long{Fmt: 4, OutFmt: 4, Header: true, Content: append([]byte{132, 0x70, 130}, make([]byte, 260)...)}).Parts(); err == nil {
		t.Error("a header without room for a payload is accepted")
	}
}

func TestOutFmt(t *testing.T) {
	t.Parallel()
	ascii, gb := sms.FmtASCII, sms.FmtGB18030
	for _, c := range []struct {
		f       sms.Fmt
		payload []byte
		wish    *sms.Fmt
		want    sms.Fmt
	}{
		{0, []byte("abc"), nil, 0},
		{8, []byte{0x4E, 0x2D}, &ascii, 8},
		{8, []byte{0, 'a'}, &ascii, 0},
		{8, []byte{0x4E, 0x2D}, &gb, 15},
		{4, []byte{1, 2}, &gb, 4},
	} {
		if got, err := sms.OutFmt(c.f, c.payload, c.wish); err != nil || got != c.want {
			t.Errorf("%s: %s, %v, want %s", c.f, got, err, c.want)
		}
	}
	if _, err := sms.OutFmt(8, []byte{1}, nil); err == nil {
		t.Error("half a character is a text")
	}
}

func TestJoinContents(t *testing.T) {
	t.Parallel()
	header := []byte{5, 0, 3, 1, 2, 1}
	mark := []byte{0xFE, 0xFF}
	for _, c := range []struct {
		name   string
		parts  []sms.Part
		header []byte
		fmt    sms.Fmt
		udhi   bool
		want   []byte
	}{
		{"cut through a character", []sms.Part{{Fmt: 8, Payload: []byte{0x4E}}, {Fmt: 8, Payload: []byte{0x2D}}}, header, 8, false, []byte{0x4E, 0x2D}},
		{"marks of each segment", []sms.Part{{Fmt: 8, Payload: append(mark, 0x4E, 0x2D)}, {Fmt: 8, Payload: append(mark, 0x65, 0x87)}}, header, 8, false, []byte{0x4E, 0x2D, 0x65, 0x87}},
		{"two formats", []sms.Part{{Fmt: 0, Payload: []byte("a")}, {Fmt: 8, Payload: []byte{0x4E, 0x2D}}}, header, 8, false, []byte{0, 'a', 0x4E, 0x2D}},
		{"binary", []sms.Part{{Fmt: 4, Payload: []byte{0xFF}}, {Fmt: 4, Payload: []byte{0}}}, []byte{8, 0, 3, 1, 2, 1, 0x70, 1, 9}, 4, true, []byte{3, 0x70, 1, 9, 0xFF, 0}},
		{"no text", []sms.Part{{Fmt: 0, Payload: []byte{0xFF}}, {Fmt: 0, Payload: []byte("b")}}, header, 0, false, []byte{0xFF, 'b'}},
	} {
		f, udhi, content := sms.JoinContents(c.parts, c.header)
		if f != c.fmt || udhi != c.udhi || !bytes.Equal(content, c.want) {
			t.Errorf("%s: %s, %t, % x", c.name, f, udhi, content)
		}
	}
}
