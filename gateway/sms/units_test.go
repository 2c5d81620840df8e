package sms_test

import (
	"strings"
	"testing"
	"unicode/utf16"

	"pgregory.net/rapid"

	"cmppgateway/gateway/sms"
)

func TestUnits(t *testing.T) {
	t.Parallel()
	ascii := func(n int) string { return strings.Repeat("a", n) }
	han := func(n int) string { return strings.Repeat("中", n) }
	tests := []struct {
		name    string
		text    string
		cn, gsm int
	}{
		{"empty", "", 1, 1},
		{"1", han(1), 1, 1},
		{"69", han(69), 1, 1},
		{"70", han(70), 1, 1},
		{"71", han(71), 2, 2},
		{"134", han(134), 2, 2},
		{"135", han(135), 3, 3},
		{"201", han(201), 3, 3},
		{"202", han(202), 4, 4},
		{"ascii 70", ascii(70), 1, 1},
		{"ascii 71", ascii(71), 2, 1},
		{"ascii 140", ascii(140), 3, 1},
		{"ascii 159", ascii(159), 3, 1},
		{"ascii 160", ascii(160), 3, 1},
		{"ascii 161", ascii(161), 3, 2},
		{"ascii 306", ascii(306), 5, 2},
		{"ascii 307", ascii(307), 5, 3},
		{"one character makes the text chinese", ascii(159) + "中", 3, 3},
		{"latin letter outside of ascii", strings.Repeat("é", 71), 2, 2},
		{"35 emoji", strings.Repeat(emoji, 35), 1, 1},
		{"36 emoji", strings.Repeat(emoji, 36), 2, 2},
		{"69 and an emoji", han(69) + emoji, 2, 2},
		{"134 units with emoji", han(132) + emoji, 2, 2},
		{"signature counts", "【某某】" + han(66), 1, 1},
		{"signature counts, one more", "【某某】" + han(67), 2, 2},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			if got := sms.Units(tt.text, sms.RuleCN7067); got != tt.cn {
				t.Errorf("cn-70-67: %d units, want %d", got, tt.cn)
			}
			if got := sms.Units(tt.text, sms.RuleGSM160153); got != tt.gsm {
				t.Errorf("gsm-160-153: %d units, want %d", got, tt.gsm)
			}
		})
	}
}

// The units are the segments of the wire when no surrogate pair lies at a cut.
func TestUnitsFollowSegments(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		text := texts(sms.FmtUCS2).Draw(t, "text")
		n := len(utf16.Encode([]rune(text)))
		want := 1
		for n > 70 && want*67 < n {
			want++
		}
		got := sms.Units(text, sms.RuleCN7067)
		if got != want {
			t.Fatalf("%d UTF-16 units are %d billing units, want %d", n, got, want)
		}
		segments, err := sms.Split(text, sms.FmtUCS2, 1, false)
		if err != nil {
			t.Fatal(err)
		}
		pairs := n - len([]rune(text))
		if len(segments) < got || pairs == 0 && len(segments) != got {
			t.Fatalf("%d units, %d segments, %d surrogate pairs", got, len(segments), pairs)
		}
	})
}

func TestUnitsBinary(t *testing.T) {
	t.Parallel()
	for octets, want := range map[int]int{0: 1, 1: 1, 139: 1, 140: 1, 141: 2, 268: 2, 269: 3} {
		if got := sms.UnitsBinary(octets); got != want {
			t.Errorf("UnitsBinary(%d) = %d, want %d", octets, got, want)
		}
	}
}

func TestUnitRuleNames(t *testing.T) {
	t.Parallel()
	for name, want := range map[string]sms.UnitRule{"cn-70-67": sms.RuleCN7067, "gsm-160-153": sms.RuleGSM160153} {
		got, err := sms.ParseUnitRule(name)
		if err != nil || got != want || got.String() != name {
			t.Errorf("ParseUnitRule(%q) = %s, %v", name, got, err)
		}
	}
	for _, name := range []string{"", "CN-70-67", "cn-70-66"} {
		if got, err := sms.ParseUnitRule(name); err == nil {
			t.Errorf("ParseUnitRule(%q) = %s, want an error", name, got)
		}
	}
	if r := sms.UnitRule(0); r != sms.RuleCN7067 {
		t.Errorf("the default rule is %s", r)
	}
}

func BenchmarkUnits(b *testing.B) {
	for _, bb := range []struct{ name, text string }{
		{"ascii-160", strings.Repeat("0123456789", 16)},
		{"chinese-201", strings.Repeat("中", 201)},
	} {
		for _, rule := range []sms.UnitRule{sms.RuleCN7067, sms.RuleGSM160153} {
			b.Run(bb.name+"/"+rule.String(), func(b *testing.B) {
				b.ReportAllocs()
				for b.Loop() {
					sms.Units(bb.text, rule)
				}
			})
		}
	}
}
