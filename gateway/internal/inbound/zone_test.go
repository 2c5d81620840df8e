package inbound_test

import (
	"testing"
	"time"

	"cmppgateway/gateway/internal/inbound"
	"cmppgateway/testenv"
)

func TestInZones(t *testing.T) {
	testenv.InZones(t, "TestParseTime", "TestRelativeTimesFollowTheCalendarOfChina", "TestAtTimeIsStored", "TestRowsSayWhatTheCustomerSaid")
}

// At 16:00 UTC of 31 January it is February in China: a month more is 28 days, not 31, and a second earlier it is the other
// way round. Absolute times name their zone.
func TestRelativeTimesFollowTheCalendarOfChina(t *testing.T) {
	t.Parallel()
	midnight := time.Date(2026, 1, 31, 16, 0, 0, 0, time.UTC)
	for _, c := range []struct {
		text      string
		now, want time.Time
	}{
		{"000100000000000R", midnight.Add(-time.Second), time.Date(2026, 3, 3, 15, 59, 59, 0, time.UTC)},
		{"000100000000000R", midnight, time.Date(2026, 2, 28, 16, 0, 0, 0, time.UTC)},
		{"260131235959032+", midnight, midnight.Add(-time.Second)},
		{"260201000000032+", midnight, midnight},
		{"260131160000000+", midnight, midnight},
	} {
		for _, zone := range []*time.Location{time.UTC, time.Local, time.FixedZone("", -8*60*60)} {
			if at, ok := inbound.ParseTime(c.text, c.now.In(zone)); !ok || !at.Equal(c.want) {
				t.Errorf("%s at %s: %s, %t, want %s", c.text, c.now.In(zone), at, ok, c.want)
			}
		}
	}
}
