package render

import (
	"math"
	"testing"
)

func TestNumbers(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ got, want string }{
		{count(0), "0"},
		{count(999), "999"},
		{count(1000), "1,000"},
		{count(-1234567), "−1,234,567"},
		{count(math.MinInt64), "−9,223,372,036,854,775,808"},
		{yuan(325), "0.0325"},
		{yuan(-1), "−0.0001"},
		{yuan(20_000_000), "2,000.0000"},
		{yuan(math.MinInt64), "−922,337,203,685,477.5808"},
		{number(0), "0"},
		{number(194.96), "195"},
		{number(194.94), "194.9"},
		{number(1999.6), "1,999.6"},
		{number(0.0004), "0"},
		{number(-0.0004), "0"},
		{number(-12.34), "−12.3"},
		{number(123456.7), "123,457"},
		{fixed(0.5, 0), "0"},
		{fixed(1234.5678, 2), "1,234.57"},
		{millis(nil, 9), "n/a (n=9)"},
		{octets(1536), "1.5 KiB"},
		{octets(10), "10 B"},
	} {
		if c.got != c.want {
			t.Errorf("%q, want %q", c.got, c.want)
		}
	}
}

func TestAxes(t *testing.T) {
	t.Parallel()
	for _, hi := range []float64{0, 1e-9, 0.3, 1, 7, 200, 203, 1e6} {
		a, ticks := linear(hi, 0, 100)
		if a.hi < hi || ticks[0] != 0 || math.Abs(ticks[len(ticks)-1]-a.hi) > a.hi*1e-9 || len(ticks) > 12 {
			t.Errorf("linear to %g: axis to %g, ticks %v", hi, a.hi, ticks)
		}
		if y := a.at(a.hi); math.Abs(y-100) > 1e-9 {
			t.Errorf("linear to %g: its end is at %g", hi, y)
		}
	}
	for _, c := range [][2]float64{{0, 0}, {1, 1}, {3, 40}, {14, 4100}, {0.001, 1e5}} {
		a, ticks := logarithmic(c[0], c[1], 0, 100)
		if a.lo > max(c[0], smallestLogValue) || a.hi < c[1] || len(ticks) == 0 || len(ticks) > 12 {
			t.Errorf("log %v: axis %g to %g, ticks %v", c, a.lo, a.hi, ticks)
		}
	}
}
