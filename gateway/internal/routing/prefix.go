package routing

import (
	"fmt"
	"regexp"
	"strconv"
	"strings"
)

// tail is what may follow the digits of a regular expression that is a plain prefix: nothing, anything, or digits; a count
// must fill the number up.
var tail = regexp.MustCompile(`^(?:\.\*|\[0-9\]\*|\\d\*)?\$?$|^(?:\\d|\[0-9\])\{(\d{1,2})\}\$?$`)

// ParsePrefix reads the prefix of a temporary rule: 1 to 13 digits beginning with 1, or a regular expression that says no
// more than that, such as ^1380028, ^1380028.* or ^1380028\d{4}$. Anything else is an error: a rule that is more than a
// prefix would be applied to other numbers than it names.
func ParsePrefix(s string) (string, error) {
	fail := func(why string) (string, error) {
		return "", fmt.Errorf("prefix %q: %s; want 1 to %d digits beginning with 1, or the same as an anchored expression such as ^1380028", s, why, machineDigits)
	}
	text, anchored := strings.CutPrefix(s, "^")
	digits := text[:len(text)-len(strings.TrimLeft(text, "0123456789"))]
	rest := text[len(digits):]
	if rest != "" && !anchored {
		return fail("not anchored by ^")
	}
	m := tail.FindStringSubmatch(rest)
	if m == nil {
		return fail("more than a prefix")
	}
	if _, err := parsePrefix(digits, machineDigits); err != nil {
		return fail(err.Error())
	}
	// An expression that names the length must name that of the numbers which begin so.
	whole := mainlandDigits
	if machine(digits) {
		whole = machineDigits
	}
	length := len(digits)
	switch {
	case m[1] != "":
		n, err := strconv.Atoi(m[1])
		if err != nil {
			return fail(err.Error())
		}
		if length += n; digits == "1" || digits == "14" {
			return fail("numbers that begin so have 11 or 13 digits")
		}
	case rest != "$":
		return digits, nil
	}
	if length != whole {
		return fail(fmt.Sprintf("%d digits in all, numbers that begin so have %d", length, whole))
	}
	return digits, nil
}

// machine says that numbers with this prefix have 13 digits.
func machine(digits string) bool {
	return strings.HasPrefix(digits, "14") && len(digits) > 2 && digits[2] <= '4'
}
