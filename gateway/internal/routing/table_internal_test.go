package routing

import (
	"strings"
	"testing"
)

// The list of today has no segment inside another; that of next year may.
func TestLoadTakesTheLongestPrefix(t *testing.T) {
	t.Parallel()
	for _, rows := range []string{
		"134,mobile,no\n1349,telecom,yes\n13491,unicom,no\n",
		"13491,unicom,no\n1349,telecom,yes\n134,mobile,no\n",
	} {
		var table Table
		if err := table.load(strings.NewReader("prefix,carrier,resale\n" + rows)); err != nil {
			t.Fatal(err)
		}
		for number, want := range map[uint64]segment{
			13480000000: {carrier: Mobile, digits: 3},
			13490000000: {carrier: Telecom, resale: true, digits: 4},
			13491999999: {carrier: Unicom, digits: 5},
			13492000000: {carrier: Telecom, resale: true, digits: 4},
			13500000000: {},
		} {
			if got := table.segment(number, mainlandDigits); got != want {
				t.Errorf("%d is in %+v, want %+v, of\n%s", number, got, want, rows)
			}
		}
	}
}

func TestLoadRefuses(t *testing.T) {
	t.Parallel()
	for _, row := range []string{
		"134,mobile", "134,mobile,no,x", "234,mobile,no", "134000,mobile,no", ",mobile,no", "13x,mobile,no",
		"134,China Mobile,no", "134,mobile,maybe",
	} {
		var table Table
		if err := table.load(strings.NewReader("prefix,carrier,resale\n" + row + "\n")); err == nil {
			t.Errorf("row %q was taken", row)
		}
	}
}
