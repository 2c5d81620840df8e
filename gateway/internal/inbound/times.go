package inbound

import (
	"time"

	"cmppgateway/gateway/cmpp"
)

// parseTime reads a time of SMPP (3.3, and 3.4 for relative ones), YYMMDDhhmmsstnnp. Absolute: t is tenths of a second, nn
// the distance from UTC in quarter hours, p is + for zones ahead of it (China is 032+). Relative, p is R: years, months,
// days, hours, minutes and seconds from now on, by the calendar of China; tnn is not looked at. ok is false when s is none.
func parseTime(s string, now time.Time) (at time.Time, ok bool) {
	if len(s) != 16 {
		return time.Time{}, false
	}
	for i := range 15 {
		if s[i] < '0' || s[i] > '9' {
			return time.Time{}, false
		}
	}
	two := func(i int) int { return int(s[i]-'0')*10 + int(s[i+1]-'0') }
	if s[15] == 'R' {
		rest := time.Duration(two(6))*time.Hour + time.Duration(two(8))*time.Minute + time.Duration(two(10))*time.Second
		return now.In(cmpp.Shanghai).AddDate(two(0), two(2), two(4)).Add(rest).UTC(), true
	}
	year, month, day := 2000+two(0), time.Month(two(2)), two(4)
	hour, minute, second := two(6), two(8), two(10)
	quarters := two(13)
	if hour > 23 || minute > 59 || second > 59 || quarters > 48 || day == 0 {
		return time.Time{}, false
	}
	switch s[15] {
	case '+':
		quarters = -quarters
	case '-':
	default:
		return time.Time{}, false
	}
	at = time.Date(year, month, day, hour, minute, second, int(s[12]-'0')*1e8, time.UTC)
	if at.Month() != month || at.Day() != day { // 30 February
		return time.Time{}, false
	}
	return at.Add(time.Duration(quarters) * 15 * time.Minute), true
}
