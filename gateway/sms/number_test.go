package sms_test

import (
	"errors"
	"strconv"
	"strings"
	"testing"

	"cmppgateway/gateway/sms"
)

func TestNormalizeNumber(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		in   string
		want uint64
	}{
		{"13800138000", 13800138000},
		{"19912345678", 19912345678},
		{"8613800138000", 13800138000},
		{"+8613800138000", 13800138000},
		{"008613800138000", 13800138000},
		{"+86 131 2345 6789", 13123456789},
		{" + 8 6 13123456789 ", 13123456789},
		{"13800138000         ", 13800138000},
		{"1440123456789", 1440123456789},
		{"861440123456789", 1440123456789},
		{"00861410123456789", 1410123456789},
		{"+86 1400123456789", 1400123456789},
	} {
		if got, err := sms.NormalizeNumber(tt.in); err != nil || got != tt.want {
			t.Errorf("NormalizeNumber(%q) = %d, %v; want %d", tt.in, got, err, tt.want)
		}
	}
}

func TestNormalizeNumberRefuses(t *testing.T) {
	t.Parallel()
	for _, in := range []string{
		"", " ", "+", "86", "+86", "0086",
		"1380013800", "138001380001", // 10 and 12 digits
		"12800138000", "23800138000", "03800138000", // no mobile number
		"1450123456789", "1380013800000", "144012345678", "14401234567890", // no machine number
		"+14155552671", // eleven digits that begin with 1, in another country
		"+85291234567", // Hong Kong
		"+008613800138000", "86 86 13800138000", "008600 13800138000", "08613800138000",
		"++8613800138000", "86+13800138000", "13800138000+",
		"1380013800a", "138-0013-8000", "１３８００１３８０００", "13800138000\x00", "\t13800138000",
		"10086", strings.Repeat("1", 21), strings.Repeat("9", 4096),
	} {
		got, err := sms.NormalizeNumber(in)
		fault, ok := errors.AsType[*sms.NumberError](err)
		if !ok {
			t.Errorf("NormalizeNumber(%q) = %d, %v; want a *NumberError", in, got, err)
			continue
		}
		if fault.Value != in || len(err.Error()) > 300 {
			t.Errorf("error for %q names %q in %d octets", in, fault.Value, len(err.Error()))
		}
	}
}

func TestNormalizeNumberDoesNotAllocate(t *testing.T) {
	in := "+86 138 0013 8000"
	if n := testing.AllocsPerRun(100, func() {
		if _, err := sms.NormalizeNumber(in); err != nil {
			t.Error(err)
		}
	}); n != 0 {
		t.Errorf("%v allocations", n)
	}
}

func FuzzNormalizeNumber(f *testing.F) {
	f.Add("+86 138 0013 8000")
	f.Fuzz(func(t *testing.T, in string) {
		n, err := sms.NormalizeNumber(in)
		if err != nil {
			if _, ok := errors.AsType[*sms.NumberError](err); !ok || n != 0 {
				t.Fatalf("%d with error %v", n, err)
			}
			return
		}
		mainland := n >= 13_000_000_000 && n <= 19_999_999_999
		machine := n >= 1_400_000_000_000 && n <= 1_449_999_999_999
		if !mainland && !machine {
			t.Fatalf("NormalizeNumber(%q) = %d", in, n)
		}
		digits := strconv.FormatUint(n, 10)
		if !strings.HasSuffix(strings.ReplaceAll(in, " ", ""), digits) {
			t.Fatalf("NormalizeNumber(%q) = %d", in, n)
		}
		for _, prefix := range []string{"", "86", "+86", "0086", "+86 "} {
			if again, err := sms.NormalizeNumber(prefix + digits); err != nil || again != n {
				t.Fatalf("NormalizeNumber(%q) = %d, %v; want %d", prefix+digits, again, err, n)
			}
		}
	})
}

func BenchmarkNormalizeNumber(b *testing.B) {
	b.ReportAllocs()
	for b.Loop() {
		if _, err := sms.NormalizeNumber("+8613800138000"); err != nil {
			b.Fatal(err)
		}
	}
}
