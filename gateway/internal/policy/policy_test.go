package policy_test

import (
	"strings"
	"testing"

	"cmppgateway/gateway/internal/policy"
	"cmppgateway/gateway/sms"
)

func encode(t *testing.T, f sms.Fmt, s string) []byte {
	t.Helper()
	b, err := sms.EncodeText(f, s)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

func TestReadContent(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name    string
		fmt     sms.Fmt
		udhi    uint8
		content []byte
		rule    sms.UnitRule
		units   int
		bad     bool
	}{
		{"plain", sms.FmtUCS2, 0, encode(t, sms.FmtUCS2, "【测试】hi"), sms.RuleCN7067, 1, false},
		{"odd UCS2", sms.FmtUCS2, 0, []byte{0x30}, sms.RuleCN7067, 1, true},
		{"unknown format", 7, 0, []byte("x"), sms.RuleCN7067, 1, true},
		{"lying header", sms.FmtUCS2, 1, []byte{200, 0, 3}, sms.RuleCN7067, 1, true},
		{"160 ASCII in one frame are three units", sms.FmtASCII, 0, []byte(strings.Repeat("a", 160)), sms.RuleCN7067, 3, false},
		{"160 ASCII by the other rule", sms.FmtASCII, 0, []byte(strings.Repeat("a", 160)), sms.RuleGSM160153, 1, false},
		{"binary", sms.FmtBinary, 0, make([]byte, 140), sms.RuleCN7067, 1, false},
		{"segment", sms.FmtUCS2, 0x40, append([]byte{5, 0, 3, 9, 2, 1}, encode(t, sms.FmtUCS2, strings.Repeat("字", 67))...), sms.RuleCN7067, 1, false},
		{"segment that ends inside a character", sms.FmtUCS2, 1, []byte{5, 0, 3, 9, 2, 1, 0x30, 0x10, 0x6d}, sms.RuleCN7067, 1, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			got := policy.ReadContent(c.fmt, c.udhi, c.content, c.rule)
			if got.Units != c.units || (got.Err != nil) != c.bad {
				t.Fatalf("%d units, error %v; want %d, error %t", got.Units, got.Err, c.units, c.bad)
			}
		})
	}
	if got := policy.WholeText(strings.Repeat("字", 135), sms.RuleCN7067); got.Units != 3 || got.Err != nil {
		t.Errorf("joined text: %+v", got)
	}
}
