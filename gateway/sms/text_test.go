package sms_test

import (
	"bytes"
	"encoding/hex"
	"errors"
	"strings"
	"testing"
	"unicode/utf8"

	"cmppgateway/gateway/sms"
)

const (
	emoji     = "\U0001F600" // UTF-16 D83D DE00
	fourOctet = "\U00020000" // GB18030 95 32 82 36
	tibetan   = "\u0F40"     // GB18030 81 32 EE 38, one UTF-16 unit
	private   = "\uE000"     // no agreed GB18030 code
	mark      = "\uFEFF"     // byte-order mark
	swapped   = "\uFFFE"     // what the mark looks like in the other order
	broken    = "ab\xC0cd"   // no UTF-8 at octet 2
	signed    = "【某某】您的验证码是" // an everyday text
)

func unhex(tb testing.TB, s string) []byte {
	tb.Helper()
	b, err := hex.DecodeString(strings.ReplaceAll(s, " ", ""))
	if err != nil {
		tb.Fatal(err)
	}
	return b
}

func TestCodecVectors(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name string
		fmt  sms.Fmt
		text string
		hex  string
	}{
		{"ascii", sms.FmtASCII, "Hi 1\n", "48 69 20 31 0A"},
		{"ascii empty", sms.FmtASCII, "", ""},
		{"ucs2 empty", sms.FmtUCS2, "", ""},
		{"gb18030 empty", sms.FmtGB18030, "", ""},
		{"ucs2 chinese", sms.FmtUCS2, "中A", "4E2D 0041"},
		{"ucs2 surrogate pair", sms.FmtUCS2, emoji, "D83D DE00"},
		{"ucs2 last of all planes", sms.FmtUCS2, "\U0010FFFF", "DBFF DFFF"},
		{"ucs2 replacement character as such", sms.FmtUCS2, "\uFFFD", "FFFD"},
		{"ucs2 mark inside", sms.FmtUCS2, "a" + mark, "0061 FEFF"},
		{"gb18030 two octets", sms.FmtGB18030, "中文", "D6D0 CEC4"},
		{"gb18030 one octet", sms.FmtGB18030, "ab", "61 62"},
		{"gb18030 second octet in ascii", sms.FmtGB18030, "丂", "81 40"},
		{"gb18030 four octets", sms.FmtGB18030, tibetan, "81 32 EE 38"},
		{"gb18030 supplementary plane", sms.FmtGB18030, fourOctet, "95 32 82 36"},
		{"gb18030 replacement character as such", sms.FmtGB18030, "\uFFFD", "84 31 A4 37"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			want := unhex(t, tt.hex)
			got, err := sms.EncodeText(tt.fmt, tt.text)
			if err != nil || !bytes.Equal(got, want) {
				t.Errorf("EncodeText = % X, %v; want % X", got, err, want)
			}
			text, err := sms.DecodeText(tt.fmt, want)
			if err != nil || text != tt.text {
				t.Errorf("DecodeText = %q, %v; want %q", text, err, tt.text)
			}
		})
	}
}

// What peers send and this gateway never would.
func TestDecodeTextOfPeers(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name string
		fmt  sms.Fmt
		hex  string
		want string
	}{
		{"little-endian with mark", sms.FmtUCS2, "FFFE 3000 2D4E", "0中"},
		{"little-endian surrogate pair", sms.FmtUCS2, "FFFE 3DD8 00DE", emoji},
		{"big-endian with mark", sms.FmtUCS2, "FEFF 0030", "0"},
		{"marks one after the other", sms.FmtUCS2, "FEFF FEFF 0030", "0"},
		{"mark alone", sms.FmtUCS2, "FFFE", ""},
		{"euro sign of code page 936", sms.FmtGB18030, "80 31", "€1"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			got, err := sms.DecodeText(tt.fmt, unhex(t, tt.hex))
			if err != nil || got != tt.want {
				t.Errorf("DecodeText = %q, %v; want %q", got, err, tt.want)
			}
		})
	}
}

func TestDecodeTextRefuses(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name   string
		fmt    sms.Fmt
		hex    string
		offset int
	}{
		{"utf-8 named ascii", sms.FmtASCII, "41 E4B8AD", 1},
		{"odd length", sms.FmtUCS2, "4E2D 00", 2},
		{"high surrogate alone", sms.FmtUCS2, "0041 D83D 0042", 2},
		{"high surrogate at the end", sms.FmtUCS2, "0041 D83D", 2},
		{"low surrogate alone", sms.FmtUCS2, "DE00 0041", 0},
		{"pair in the wrong order", sms.FmtUCS2, "DE00 D83D", 0},
		{"half a pair after a mark", sms.FmtUCS2, "FFFE 3DD8", 2},
		{"half a character", sms.FmtGB18030, "D6D0 CE", 2},
		{"half a four-octet character", sms.FmtGB18030, "61 95 32 82", 1},
		{"lead octet out of range", sms.FmtGB18030, "61 FF 40", 1},
		{"trail octet out of range", sms.FmtGB18030, "D6 20", 0},
		{"trail octet 7F", sms.FmtGB18030, "D6D0 D67F", 2},
		{"second octet 3A", sms.FmtGB18030, "95 3A 82 36", 0},
		{"four octets, third out of range", sms.FmtGB18030, "95 32 41 36", 0},
		{"four octets, fourth out of range", sms.FmtGB18030, "95 32 82 3A", 0},
		{"four octets beyond Unicode", sms.FmtGB18030, "D6D0 FE 39 FE 39", 2},
		{"fault after an honest U+FFFD", sms.FmtGB18030, "84 31 A4 37 FE 39 FE 39", 4},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			got, err := sms.DecodeText(tt.fmt, unhex(t, tt.hex))
			fault, ok := errors.AsType[*sms.TextError](err)
			if !ok {
				t.Fatalf("DecodeText = %q, %v; want a *TextError", got, err)
			}
			if fault.Fmt != tt.fmt || fault.Offset != tt.offset {
				t.Errorf("fault in %s at %d, want %s at %d: %v", fault.Fmt, fault.Offset, tt.fmt, tt.offset, err)
			}
		})
	}
}

func TestEncodeTextRefuses(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name   string
		fmt    sms.Fmt
		text   string
		offset int
		names  string
	}{
		{"chinese in ascii", sms.FmtASCII, "ok 中国", 3, "U+4E2D"},
		{"no utf-8 in ascii", sms.FmtASCII, broken, 2, "0xC0"},
		{"no utf-8 in ucs2", sms.FmtUCS2, broken, 2, "0xC0"},
		{"no utf-8 in gb18030", sms.FmtGB18030, broken, 2, "0xC0"},
		{"swapped mark first", sms.FmtUCS2, swapped + "a", 0, "U+FFFE"},
		{"offset counts the dropped mark", sms.FmtUCS2, mark + "\xC0", 3, "0xC0"},
		{"private use in gb18030", sms.FmtGB18030, "a" + private, 1, "U+E000"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			got, err := sms.EncodeText(tt.fmt, tt.text)
			fault, ok := errors.AsType[*sms.TextError](err)
			if !ok {
				t.Fatalf("EncodeText = % X, %v; want a *TextError", got, err)
			}
			if fault.Fmt != tt.fmt || fault.Offset != tt.offset || !strings.Contains(err.Error(), tt.names) {
				t.Errorf("fault %v, want one in %s at %d naming %s", err, tt.fmt, tt.offset, tt.names)
			}
		})
	}
}

func TestFormatsWithoutText(t *testing.T) {
	t.Parallel()
	for _, f := range []sms.Fmt{sms.FmtSIM, sms.FmtBinary, 9, 25, 0xF6} {
		_, decodeErr := sms.DecodeText(f, []byte("ab"))
		_, encodeErr := sms.EncodeText(f, "ab")
		_, splitErr := sms.Split("ab", f, 1, false)
		_, joinErr := sms.Join([][]byte{{'a'}, {'b'}}, f)
		for _, err := range []error{decodeErr, encodeErr, splitErr, joinErr} {
			if fault, ok := errors.AsType[*sms.FmtError](err); !ok || fault.Fmt != f {
				t.Errorf("format %s: error %v, want a *FmtError naming it", f, err)
			}
		}
	}
}

// Every character of Unicode comes back from UCS2, and from GB18030 unless it is for private use.
func TestEveryCharacterComesBack(t *testing.T) {
	t.Parallel()
	for r := rune(0); r <= utf8.MaxRune; r++ {
		if !utf8.ValidRune(r) || r == 0xFEFF {
			continue
		}
		for _, f := range []sms.Fmt{sms.FmtUCS2, sms.FmtGB18030} {
			refused := f == sms.FmtUCS2 && r == 0xFFFE || f == sms.FmtGB18030 && r >= 0xE000 && r <= 0xF8FF
			b, err := sms.EncodeText(f, string(r))
			if refused != (err != nil) {
				t.Fatalf("%U in %s: error %v, want one: %t", r, f, err, refused)
			}
			if refused {
				continue
			}
			if got, err := sms.DecodeText(f, b); err != nil || got != string(r) {
				t.Fatalf("%U in %s is % X and comes back as %q, %v", r, f, b, got, err)
			}
		}
	}
}

func TestByteOrderMarkIsNoText(t *testing.T) {
	t.Parallel()
	b, err := sms.EncodeText(sms.FmtUCS2, mark+"a")
	if err != nil || !bytes.Equal(b, []byte{0, 'a'}) {
		t.Errorf("EncodeText = % X, %v", b, err)
	}
	if n := sms.Units(mark+strings.Repeat("中", 70), sms.RuleCN7067); n != 1 {
		t.Errorf("mark and 70 characters are %d units, want 1", n)
	}
}

func TestPickFmt(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]sms.Fmt{
		"": sms.FmtASCII, "abc\x7f": sms.FmtASCII, "é": sms.FmtUCS2, signed: sms.FmtUCS2, emoji: sms.FmtUCS2,
	} {
		if got := sms.PickFmt(text); got != want {
			t.Errorf("PickFmt(%q) = %s, want %s", text, got, want)
		}
	}
}

func TestMaxOctets(t *testing.T) {
	t.Parallel()
	for _, f := range []sms.Fmt{sms.FmtASCII, sms.FmtSIM, sms.FmtBinary, sms.FmtUCS2, sms.FmtGB18030, 25} {
		want := 140
		if f == sms.FmtASCII {
			want = 160
		}
		if got := sms.MaxOctets(f, false); got != want {
			t.Errorf("MaxOctets(%s, false) = %d, want %d", f, got, want)
		}
		if got := sms.MaxOctets(f, true); got != 140 {
			t.Errorf("MaxOctets(%s, true) = %d, want 140", f, got)
		}
	}
}

func TestFmtString(t *testing.T) {
	t.Parallel()
	for f, want := range map[sms.Fmt]string{
		sms.FmtASCII: "ascii", sms.FmtSIM: "sim", sms.FmtBinary: "binary", sms.FmtUCS2: "ucs2",
		sms.FmtGB18030: "gb18030", 25: "fmt-25",
	} {
		if got := f.String(); got != want {
			t.Errorf("Fmt(%d).String() = %q, want %q", uint8(f), got, want)
		}
	}
}

func FuzzDecodeText(f *testing.F) {
	f.Add(uint8(8), []byte{0xFF, 0xFE, 0x30, 0x00})
	f.Fuzz(func(t *testing.T, format uint8, content []byte) {
		f := sms.Fmt(format)
		text, err := sms.DecodeText(f, content)
		if err != nil {
			_, isText := errors.AsType[*sms.TextError](err)
			_, isFmt := errors.AsType[*sms.FmtError](err)
			if !isText && !isFmt {
				t.Fatalf("error of an unpromised type: %v", err)
			}
			return
		}
		if !utf8.ValidString(text) {
			t.Fatalf("text %q is no UTF-8", text)
		}
		again, err := sms.EncodeText(f, text)
		if err != nil {
			privateUse := func(r rune) bool { return r >= 0xE000 && r <= 0xF8FF }
			if f == sms.FmtGB18030 && strings.ContainsFunc(text, privateUse) || strings.HasPrefix(text, swapped) {
				return
			}
			t.Fatalf("text %q cannot be encoded again: %v", text, err)
		}
		back, err := sms.DecodeText(f, again)
		if want := text; err != nil || back != want {
			t.Fatalf("text %q comes back as %q, %v", text, back, err)
		}
	})
}

func BenchmarkDecodeText(b *testing.B) {
	chinese := strings.Repeat(signed, 7)[:3*70]
	for _, bb := range []struct {
		name string
		fmt  sms.Fmt
		text string
	}{
		{"ascii-160", sms.FmtASCII, strings.Repeat("0123456789", 16)},
		{"ucs2-70", sms.FmtUCS2, chinese},
		{"gb18030-70", sms.FmtGB18030, chinese},
	} {
		content, err := sms.EncodeText(bb.fmt, bb.text)
		if err != nil {
			b.Fatal(err)
		}
		b.Run(bb.name, func(b *testing.B) {
			b.ReportAllocs()
			b.SetBytes(int64(len(content)))
			for b.Loop() {
				if _, err := sms.DecodeText(bb.fmt, content); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
