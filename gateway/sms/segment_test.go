package sms_test

import (
	"bytes"
	"errors"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"

	"pgregory.net/rapid"

	"cmppgateway/gateway/sms"
)

func TestHasHeader(t *testing.T) {
	t.Parallel()
	for x := range 256 {
		want := x&1 != 0 || x&0x40 != 0
		if got := sms.HasHeader(uint8(x)); got != want {
			t.Errorf("HasHeader(%#02x) = %t, want %t", x, got, want)
		}
	}
}

func TestSplitHeader(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name    string
		header  string
		want    sms.Concat
		concat  bool
		payload string
	}{
		{"8-bit reference", "05 00 03 BA 03 02", sms.Concat{Ref: 0xBA, Total: 3, Number: 2}, true, "4E2D"},
		{"16-bit reference, high octet first", "06 08 04 12 34 02 01", sms.Concat{Ref: 0x1234, Wide: true, Total: 2, Number: 1}, true, "4E2D"},
		{"concatenation, then ports", "0B 00 03 BA 01 01 05 04 15 8A 00 00", sms.Concat{Ref: 0xBA, Total: 1, Number: 1}, true, "01"},
		{"ports, then concatenation", "0B 05 04 15 8A 00 00 00 03 BA 02 01", sms.Concat{Ref: 0xBA, Total: 2, Number: 1}, true, "01"},
		{"element of no octets between", "07 70 00 00 03 BA 02 02", sms.Concat{Ref: 0xBA, Total: 2, Number: 2}, true, "01"},
		{"the last of two counts", "0B 00 03 01 02 01 08 04 00 07 03 03", sms.Concat{Ref: 7, Wide: true, Total: 3, Number: 3}, true, "01"},
		{"ports alone", "06 05 04 15 8A 00 00", sms.Concat{}, false, "01"},
		{"element data that looks like concatenation", "07 70 05 00 03 BA 02 01", sms.Concat{}, false, "01"},
		{"empty header", "00", sms.Concat{}, false, "01"},
		{"no payload", "05 00 03 BA FF FF", sms.Concat{Ref: 0xBA, Total: 255, Number: 255}, true, ""},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			wantHeader, wantPayload := unhex(t, tt.header), unhex(t, tt.payload)
			c, ok, header, payload, err := sms.SplitHeader(slices.Concat(wantHeader, wantPayload))
			if err != nil {
				t.Fatal(err)
			}
			if c != tt.want || ok != tt.concat {
				t.Errorf("concatenation %+v, %t; want %+v, %t", c, ok, tt.want, tt.concat)
			}
			if !bytes.Equal(header, wantHeader) || !bytes.Equal(payload, wantPayload) {
				t.Errorf("header % X, payload % X", header, payload)
			}
		})
	}
}

func TestSplitHeaderRefuses(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name   string
		hex    string
		offset int
	}{
		{"empty content", "", 0},
		{"length beyond the content", "05 00 03 BA 02", 0},
		{"a text without the header announced", "4E2D 6587", 0},
		{"element beyond the header", "05 00 04 BA 02 01 00", 1},
		{"element id without length", "06 00 03 BA 02 01 05", 6},
		{"8-bit concatenation of 4 octets", "06 00 04 BA BA 02 01", 1},
		{"16-bit concatenation of 3 octets", "05 08 03 BA 02 01", 1},
		{"second element faulty", "0A 00 03 BA 02 01 05 04 15 8A 00", 6},
		{"segment 0", "05 00 03 BA 02 00", 1},
		{"segment 3 of 2", "05 00 03 BA 02 03", 1},
		{"segment 1 of 0", "05 00 03 BA 00 01", 1},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			c, ok, _, _, err := sms.SplitHeader(unhex(t, tt.hex))
			fault, is := errors.AsType[*sms.HeaderError](err)
			if !is {
				t.Fatalf("SplitHeader = %+v, %t, %v; want a *HeaderError", c, ok, err)
			}
			if fault.Offset != tt.offset || ok || c != (sms.Concat{}) {
				t.Errorf("fault at %d, want %d: %v; concatenation %+v, %t", fault.Offset, tt.offset, err, c, ok)
			}
		})
	}
}

func TestSplitSizes(t *testing.T) {
	t.Parallel()
	ascii := func(n int) string { return strings.Repeat("a", n) }
	han := func(n int) string { return strings.Repeat("中", n) }
	tests := []struct {
		name string
		text string
		fmt  sms.Fmt
		wide bool
		want []int // octets of each content, header included
	}{
		{"empty", "", sms.FmtASCII, false, []int{0}},
		{"ascii 159", ascii(159), sms.FmtASCII, false, []int{159}},
		{"ascii 160", ascii(160), sms.FmtASCII, false, []int{160}},
		{"ascii 161", ascii(161), sms.FmtASCII, false, []int{140, 6 + 27}},
		{"ascii 161 wide", ascii(161), sms.FmtASCII, true, []int{140, 7 + 28}},
		{"ascii 268", ascii(268), sms.FmtASCII, false, []int{140, 140}},
		{"ascii 269", ascii(269), sms.FmtASCII, false, []int{140, 140, 7}},
		{"ascii 306", ascii(306), sms.FmtASCII, false, []int{140, 140, 6 + 38}},
		{"ucs2 69", han(69), sms.FmtUCS2, false, []int{138}},
		{"ucs2 70", han(70), sms.FmtUCS2, false, []int{140}},
		{"ucs2 71", han(71), sms.FmtUCS2, false, []int{140, 6 + 8}},
		{"ucs2 134", han(134), sms.FmtUCS2, false, []int{140, 140}},
		{"ucs2 135", han(135), sms.FmtUCS2, false, []int{140, 140, 8}},
		{"ucs2 201", han(201), sms.FmtUCS2, false, []int{140, 140, 140}},
		{"ucs2 202", han(202), sms.FmtUCS2, false, []int{140, 140, 140, 8}},
		{"ucs2 68 wide, in one", han(68), sms.FmtUCS2, true, []int{136}},
		{"ucs2 71 wide, even cuts of 132", han(71), sms.FmtUCS2, true, []int{139, 7 + 10}},
		{"ucs2 134 wide", han(134), sms.FmtUCS2, true, []int{139, 139, 7 + 4}},
		{"ucs2 35 emoji", strings.Repeat(emoji, 35), sms.FmtUCS2, false, []int{140}},
		{"ucs2 emoji at the cut", han(66) + emoji + han(10), sms.FmtUCS2, false, []int{6 + 132, 6 + 24}},
		{"ucs2 emoji at the wide cut", han(65) + emoji + han(10), sms.FmtUCS2, true, []int{7 + 130, 7 + 24}},
		{"ucs2 emoji before the cut", han(65) + emoji + han(10), sms.FmtUCS2, false, []int{140, 6 + 20}},
		{"ucs2 134 units with an emoji at the cut", han(66) + emoji + han(66), sms.FmtUCS2, false, []int{6 + 132, 140, 8}},
		{"gb18030 70", han(70), sms.FmtGB18030, false, []int{140}},
		{"gb18030 139", "a" + han(69), sms.FmtGB18030, false, []int{139}},
		{"gb18030 141", "a" + han(70), sms.FmtGB18030, false, []int{6 + 133, 6 + 8}},
		{"gb18030 71 wide", han(71), sms.FmtGB18030, true, []int{7 + 132, 7 + 10}},
		{"gb18030 35 of four octets", strings.Repeat(fourOctet, 35), sms.FmtGB18030, false, []int{140}},
		{"gb18030 36 of four octets", strings.Repeat(fourOctet, 36), sms.FmtGB18030, false, []int{6 + 132, 6 + 12}},
		{"gb18030 ascii is no ascii", ascii(141), sms.FmtGB18030, false, []int{140, 6 + 7}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			segments, err := sms.Split(tt.text, tt.fmt, 0x1234, tt.wide)
			if err != nil {
				t.Fatal(err)
			}
			var got []int
			for _, s := range segments {
				got = append(got, len(s))
			}
			if !slices.Equal(got, tt.want) {
				t.Errorf("contents of %v octets, want %v", got, tt.want)
			}
		})
	}
}

func TestSplitWritesHeaders(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		wide bool
		want string // of the second of two
	}{
		{false, "05 00 03 34 02 02"},
		{true, "06 08 04 12 34 02 02"},
	} {
		segments, err := sms.Split(strings.Repeat("中", 100), sms.FmtUCS2, 0x1234, tt.wide)
		if err != nil || len(segments) != 2 {
			t.Fatalf("Split made %d segments, %v", len(segments), err)
		}
		if want := unhex(t, tt.want); !bytes.HasPrefix(segments[1], want) {
			t.Errorf("second content begins with % X, want % X", segments[1][:len(want)], want)
		}
	}
}

func TestSplitBound(t *testing.T) {
	t.Parallel()
	segments, err := sms.Split(strings.Repeat("a", 255*134), sms.FmtASCII, 1, false)
	if err != nil || len(segments) != 255 {
		t.Errorf("the longest text makes %d segments, %v", len(segments), err)
	}
	if _, err := sms.Split(strings.Repeat("a", 255*134+1), sms.FmtASCII, 1, false); !errors.Is(err, sms.ErrTooLong) {
		t.Errorf("one character more: error %v, want ErrTooLong", err)
	}
}

func TestJoinOfPeers(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name  string
		fmt   sms.Fmt
		parts []string
		want  string
	}{
		{"nothing", sms.FmtUCS2, nil, ""},
		{"ucs2 unit cut at an odd size", sms.FmtUCS2, []string{"4E2D 65", "87"}, "中文"},
		{"surrogate pair cut", sms.FmtUCS2, []string{"0041 D83D", "DE00"}, "A" + emoji},
		{"gb18030 character cut", sms.FmtGB18030, []string{"D6D0 CE", "C4"}, "中文"},
		{"gb18030 four octets in three parts", sms.FmtGB18030, []string{"95", "32 82", "36"}, fourOctet},
		{"mark on the first part only", sms.FmtUCS2, []string{"FFFE 2D4E", "8765"}, "中文"},
		{"little-endian mark on every part", sms.FmtUCS2, []string{"FFFE 2D4E", "FFFE 8765"}, "中文"},
		{"big-endian mark on every part", sms.FmtUCS2, []string{"FEFF 4E2D", "FEFF 6587"}, "中文"},
		{"a later part may begin with U+FEFF", sms.FmtUCS2, []string{"4E2D", "FEFF 6587"}, "中" + mark + "文"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			var parts [][]byte
			for _, p := range tt.parts {
				parts = append(parts, unhex(t, p))
			}
			if got, err := sms.Join(parts, tt.fmt); err != nil || got != tt.want {
				t.Errorf("Join = %q, %v; want %q", got, err, tt.want)
			}
		})
	}
}

func TestJoinMixed(t *testing.T) {
	t.Parallel()
	got, err := sms.JoinMixed([]sms.Part{
		{Fmt: sms.FmtASCII, Payload: []byte("code: ")},
		{Fmt: sms.FmtUCS2, Payload: unhex(t, "4E2D 65")},
		{Fmt: sms.FmtUCS2, Payload: unhex(t, "87")},
		{Fmt: sms.FmtGB18030, Payload: unhex(t, "D6D0")},
		{Fmt: sms.FmtASCII, Payload: []byte(".")},
	})
	if err != nil || got != "code: 中文中." {
		t.Errorf("JoinMixed = %q, %v", got, err)
	}

	_, err = sms.JoinMixed([]sms.Part{
		{Fmt: sms.FmtUCS2, Payload: unhex(t, "4E2D 65")},
		{Fmt: sms.FmtGB18030, Payload: unhex(t, "D6D0")},
		{Fmt: sms.FmtUCS2, Payload: unhex(t, "87")},
	})
	if _, ok := errors.AsType[*sms.TextError](err); !ok {
		t.Errorf("a character cut between formats: error %v, want a *TextError", err)
	}
}

// texts draws texts of up to about five segments, rich in what splitters get wrong.
func texts(f sms.Fmt) *rapid.Generator[string] {
	runes := rapid.RuneFrom([]rune("a1中【】" + mark + "\uFFFD\u0301"))
	if f == sms.FmtASCII {
		runes = rapid.Custom(func(t *rapid.T) rune { return rune(rapid.IntRange(0, 127).Draw(t, "ascii")) })
	} else {
		runes = rapid.OneOf(runes, rapid.RuneFrom([]rune(emoji+fourOctet+tibetan+"丂\U0010FFFF")),
			rapid.Rune().Filter(func(r rune) bool { return r < 0xE000 || r > 0xF8FF }))
	}
	return rapid.Custom(func(t *rapid.T) string {
		s := string(rapid.SliceOfN(runes, 0, 330).Draw(t, "text"))
		if f == sms.FmtUCS2 { // a mark at the very front is no text
			s = strings.TrimLeft(s, mark+swapped)
		}
		return s
	})
}

func textFmts() *rapid.Generator[sms.Fmt] {
	return rapid.SampledFrom([]sms.Fmt{sms.FmtASCII, sms.FmtUCS2, sms.FmtGB18030})
}

func TestSplitProperties(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		f := textFmts().Draw(t, "fmt")
		text := texts(f).Draw(t, "text")
		ref := rapid.Uint16().Draw(t, "ref")
		wide := rapid.Bool().Draw(t, "wide")
		segments, err := sms.Split(text, f, ref, wide)
		if err != nil {
			t.Fatal(err)
		}
		if len(segments) == 1 {
			if got, err := sms.Join(segments, f); err != nil || got != text || len(segments[0]) > sms.MaxOctets(f, false) {
				t.Fatalf("one content of %d octets reads %q, %v", len(segments[0]), got, err)
			}
			return
		}

		whole, err := sms.EncodeText(f, text)
		if err != nil || len(whole) <= sms.MaxOctets(f, false) {
			t.Fatalf("%d segments for a text of %d octets, %v", len(segments), len(whole), err)
		}
		want := sms.Concat{Ref: ref, Wide: wide, Total: uint8(len(segments))}
		if !wide {
			want.Ref &= 0xFF
		}
		var payloads [][]byte
		for i, s := range segments {
			if len(s) > 140 {
				t.Fatalf("segment %d has %d octets", i, len(s))
			}
			want.Number++
			c, ok, header, payload, err := sms.SplitHeader(s)
			if err != nil || !ok || c != want {
				t.Fatalf("segment %d: %+v, %t, %v; want %+v", i, c, ok, err, want)
			}
			if f == sms.FmtUCS2 && len(payload)%2 != 0 {
				t.Fatalf("segment %d: an odd cut of %d octets", i, len(payload))
			}
			// Read after a character, so that a U+FEFF at the front is not taken for a byte-order mark.
			first, err := sms.EncodeText(f, "x")
			if err != nil {
				t.Fatal(err)
			}
			if _, err := sms.DecodeText(f, append(first, payload...)); err != nil {
				t.Fatalf("segment %d does not stand alone: %v", i, err)
			}
			if i < len(segments)-1 && len(payload) <= 140-len(header)-4 {
				t.Fatalf("segment %d has room for another character: %d octets", i, len(s))
			}
			payloads = append(payloads, payload)
		}
		if got, err := sms.Join(payloads, f); err != nil || got != text {
			t.Fatalf("joined to %q, %v", got, err)
		}
	})
}

// Peers cut anywhere; octets are joined before they are read.
func TestJoinAnyCut(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		f := textFmts().Draw(t, "fmt")
		text := texts(f).Draw(t, "text")
		rest, err := sms.EncodeText(f, text)
		if err != nil {
			t.Fatal(err)
		}
		var parts [][]byte
		for len(rest) > 0 {
			n := rapid.IntRange(1, min(140, len(rest))).Draw(t, "cut")
			parts = append(parts, rest[:n])
			rest = rest[n:]
		}
		if got, err := sms.Join(parts, f); err != nil || got != text {
			t.Fatalf("joined to %q, %v", got, err)
		}
	})
}

func TestJoinMixedProperty(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		var want strings.Builder
		var parts []sms.Part
		last := sms.FmtBinary
		for range rapid.IntRange(0, 6).Draw(t, "runs") {
			f := textFmts().Filter(func(f sms.Fmt) bool { return f != last }).Draw(t, "fmt")
			last = f
			text := texts(f).Draw(t, "text")
			want.WriteString(text)
			b, err := sms.EncodeText(f, text)
			if err != nil {
				t.Fatal(err)
			}
			n := rapid.IntRange(0, len(b)).Draw(t, "cut")
			parts = append(parts, sms.Part{Fmt: f, Payload: b[:n]}, sms.Part{Fmt: f, Payload: b[n:]})
		}
		if got, err := sms.JoinMixed(parts); err != nil || got != want.String() {
			t.Fatalf("joined to %q, %v; want %q", got, err, want.String())
		}
	})
}

func FuzzSplitHeader(f *testing.F) {
	f.Add([]byte{5, 0, 3, 0xBA, 2, 1, 0x4E, 0x2D})
	f.Fuzz(func(t *testing.T, content []byte) {
		c, ok, header, payload, err := sms.SplitHeader(content)
		if err != nil {
			if _, is := errors.AsType[*sms.HeaderError](err); !is || ok || c != (sms.Concat{}) || header != nil || payload != nil {
				t.Fatalf("error %v with %+v, %t, % X, % X", err, c, ok, header, payload)
			}
			return
		}
		if !bytes.Equal(slices.Concat(header, payload), content) || len(header) != 1+int(content[0]) {
			t.Fatalf("header % X and payload % X are not the content", header, payload)
		}
		if !ok {
			if c != (sms.Concat{}) {
				t.Fatalf("no segment, but %+v", c)
			}
			return
		}
		if c.Number < 1 || c.Number > c.Total || !c.Wide && c.Ref > 0xFF {
			t.Fatalf("impossible place %+v", c)
		}
		again, ok, _, rest, err := sms.SplitHeader(append(c.Append(nil), payload...))
		if err != nil || !ok || again != c || !bytes.Equal(rest, payload) {
			t.Fatalf("%+v written and read again is %+v, %t, %v", c, again, ok, err)
		}
	})
}

func FuzzJoin(f *testing.F) {
	f.Add(uint8(8), []byte{0x4E, 0x2D, 0x65}, []byte{0x87}, []byte{})
	f.Fuzz(func(t *testing.T, format uint8, a, b, c []byte) {
		f := sms.Fmt(format)
		before := slices.Concat(a, b, c)
		got, err := sms.Join([][]byte{a, b, c}, f)
		if !bytes.Equal(before, slices.Concat(a, b, c)) {
			t.Fatal("the parts were changed")
		}
		if err == nil && !utf8.ValidString(got) {
			t.Fatalf("text %q is no UTF-8", got)
		}
		marked := f == sms.FmtUCS2 && (bytes.HasPrefix(a, []byte{0xFE, 0xFF}) || bytes.HasPrefix(a, []byte{0xFF, 0xFE}))
		if want, wantErr := sms.DecodeText(f, before); !marked && (got != want || (err == nil) != (wantErr == nil)) {
			t.Fatalf("Join = %q, %v; the octets read %q, %v", got, err, want, wantErr)
		}
		mixed, mixedErr := sms.JoinMixed([]sms.Part{{f, a}, {f, b}, {f, c}})
		if mixed != got || (err == nil) != (mixedErr == nil) {
			t.Fatalf("JoinMixed = %q, %v; Join = %q, %v", mixed, mixedErr, got, err)
		}
	})
}
