package policy_test

import (
	"strings"
	"testing"

	"cmppgateway/gateway/internal/message"
	"cmppgateway/gateway/internal/policy"
	"cmppgateway/gateway/sms"
)

func TestEvaluate(t *testing.T) {
	t.Parallel()
	text := func(f sms.Fmt, s string) []byte {
		b, err := sms.EncodeText(f, s)
		if err != nil {
			t.Fatal(err)
		}
		return b
	}
	good := policy.Facts{EnterpriseActive: true, ApplicationActive: true, Fmt: sms.FmtUCS2, Content: text(sms.FmtUCS2, "【测试】hi"), Number: "+86 138 0013 8000"}
	with := func(change func(*policy.Facts)) policy.Facts {
		f := good
		change(&f)
		return f
	}
	for _, c := range []struct {
		name   string
		facts  policy.Facts
		reason message.Reason
		units  int
	}{
		{"plain", good, message.NoReason, 1},
		{"enterprise disabled", with(func(f *policy.Facts) { f.EnterpriseActive = false }), message.ReasonStatus, 1},
		{"application disabled", with(func(f *policy.Facts) { f.ApplicationActive = false }), message.ReasonStatus, 1},
		{"status before format", with(func(f *policy.Facts) { f.ApplicationActive, f.Number = false, "x" }), message.ReasonStatus, 1},
		{"no number", with(func(f *policy.Facts) { f.Number = "12" }), message.ReasonFormat, 1},
		{"odd UCS2", with(func(f *policy.Facts) { f.Content = []byte{0x30} }), message.ReasonFormat, 1},
		{"unknown format", with(func(f *policy.Facts) { f.Fmt = 7 }), message.ReasonFormat, 1},
		{"lying header", with(func(f *policy.Facts) { f.UDHI, f.Content = 1, []byte{200, 0, 3} }), message.ReasonFormat, 1},
		{"160 ASCII in one frame are three units", with(func(f *policy.Facts) { f.Fmt, f.Content = sms.FmtASCII, []byte(strings.Repeat("a", 160)) }), message.NoReason, 3},
		{"160 ASCII by the other rule", with(func(f *policy.Facts) {
			f.Fmt, f.Content, f.UnitRule = sms.FmtASCII, []byte(strings.Repeat("a", 160)), sms.RuleGSM160153
		}), message.NoReason, 1},
		{"binary", with(func(f *policy.Facts) { f.Fmt, f.Content = sms.FmtBinary, make([]byte, 140) }), message.NoReason, 1},
		{"segment of a long message", with(func(f *policy.Facts) {
			f.UDHI, f.Content = 0x40, append([]byte{5, 0, 3, 9, 2, 1}, text(sms.FmtUCS2, strings.Repeat("字", 67))...)
		}), message.NoReason, 1},
		{"segment that ends inside a character", with(func(f *policy.Facts) { f.UDHI, f.Content = 1, []byte{5, 0, 3, 9, 2, 1, 0x30, 0x10, 0x6d} }), message.NoReason, 1},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			v := policy.Evaluate(c.facts)
			if v.Reason != c.reason || v.Units != c.units {
				t.Fatalf("reason %q, %d units; want %q, %d", v.Reason, v.Units, c.reason, c.units)
			}
			if c.reason == message.NoReason && v.Phone != 13800138000 {
				t.Fatalf("phone %d", v.Phone)
			}
		})
	}
}
