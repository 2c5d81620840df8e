package render

import (
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	"cmppgateway/reports/result"
)

// na is what stands for a number that was not measured.
const na = "n/a"

// count groups the digits of an integer by thousands.
func count(n int64) string {
	s := strconv.FormatInt(n, 10)
	sign := ""
	if n < 0 {
		sign, s = "−", s[1:]
	}
	for i := len(s) - 3; i > 0; i -= 3 {
		s = s[:i] + "," + s[i:]
	}
	return sign + s
}

// yuan prints 1/10,000 yuan as yuan with four decimals, exactly.
func yuan(n int64) string {
	sign := ""
	u := uint64(n)
	if n < 0 {
		sign, u = "−", -u
	}
	return fmt.Sprintf("%s%s.%04d", sign, count(int64(u/10000)), u%10000)
}

// number prints v with up to three decimals where they matter, never an exponent.
// One decimal stays until 10,000, so that a value never rounds across its limit unseen.
func number(v float64) string {
	a := math.Abs(v)
	switch {
	case a >= 10_000:
		return trim(v, 0)
	case a >= 10:
		return trim(v, 1)
	case a >= 1 || a == 0:
		return trim(v, 2)
	default:
		return trim(v, 3)
	}
}

func trim(v float64, decimals int) string {
	s := fixed(v, decimals)
	if strings.Contains(s, ".") {
		s = strings.TrimRight(strings.TrimRight(s, "0"), ".")
	}
	return s
}

func optional(v *float64) string {
	if v == nil {
		return na
	}
	return number(*v)
}

// rate prints transactions per second with one decimal.
func rate(v *float64) string {
	if v == nil {
		return na
	}
	return fixed(*v, 1)
}

// fixed prints v with that many decimals, its whole part grouped by thousands.
func fixed(v float64, decimals int) string {
	s := strconv.FormatFloat(math.Abs(v), 'f', decimals, 64)
	whole, frac, _ := strings.Cut(s, ".")
	for i := len(whole) - 3; i > 0; i -= 3 {
		whole = whole[:i] + "," + whole[i:]
	}
	if frac != "" {
		whole += "." + frac
	}
	if v < 0 && strings.Trim(s, "0.") != "" {
		whole = "−" + whole
	}
	return whole
}

// millis prints a percentile; below the sample minimum it says how many there were.
func millis(v *float64, n int64) string {
	if v == nil {
		return fmt.Sprintf("%s (n=%s)", na, count(n))
	}
	switch {
	case *v >= 100:
		return fixed(*v, 0)
	case *v >= 10:
		return fixed(*v, 1)
	default:
		return fixed(*v, 2)
	}
}

func percent(v *float64) string {
	if v == nil {
		return na
	}
	return fixed(*v*100, 1) + " %"
}

func seconds(v *float64) string {
	if v == nil {
		return na
	}
	return fixed(*v, 1) + " s"
}

func octets(n int64) string {
	switch {
	case n >= 1<<30:
		return fixed(float64(n)/(1<<30), 1) + " GiB"
	case n >= 1<<20:
		return fixed(float64(n)/(1<<20), 1) + " MiB"
	case n >= 1<<10:
		return fixed(float64(n)/(1<<10), 1) + " KiB"
	}
	return count(n) + " B"
}

func instant(t time.Time) string { return t.UTC().Format("2006-01-02 15:04:05") + " UTC" }

// elapsed prints a moment as seconds since the run started.
func elapsed(t *time.Time, start time.Time) string {
	if t == nil {
		return na
	}
	return fixed(t.Sub(start).Seconds(), 1) + " s"
}

func sortedKeys[V any](m map[string]V) []string {
	keys := make([]string, 0, len(m))
	for k := range m {
		keys = append(keys, k)
	}
	slices.Sort(keys)
	return keys
}

func statusText(s result.Status) string { return strings.ReplaceAll(string(s), "_", " ") }
