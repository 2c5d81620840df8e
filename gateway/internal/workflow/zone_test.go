package workflow_test

import (
	"maps"
	"testing"
	"time"

	"cmppgateway/testenv"
)

func TestInZones(t *testing.T) {
	testenv.InZones(t, "TestMidnightInChina", "TestQuotasAreOfTheDayInChina", "TestFrequencyCountsWhatPassed", "TestTheSameContentAgainIsRefused", "TestScheduledSubmitsWaitForTheirTime")
}

// Quotas begin anew and quiet hours begin at midnight in China, 16:00 UTC, and not a microsecond earlier; At_Time and the
// windows of frequency know no midnight.
func TestMidnightInChina(t *testing.T) {
	t.Parallel()
	url := testenv.DB(t)
	clock := testenv.StopClock(t, url)
	b := setupOn(t, url)
	midnight := time.Now().UTC().Truncate(24 * time.Hour).Add(16 * time.Hour) // ids are of today's leaf, whatever the stopped clock says
	before := midnight.Add(-time.Microsecond)
	b.exec(t, `UPDATE application SET lane = 2 WHERE id = 12;
		INSERT INTO application_policy (app_id, signature_mode, daily_quota) VALUES (11, 0, 2);
		INSERT INTO application_policy (app_id, signature_mode, quiet_from, quiet_until) VALUES (12, 0, 0, 480);
		INSERT INTO enterprise_policy (enterprise_id, freq_hour) VALUES (3, 2)`)
	clock.Set(before)
	for i := range int64(3) {
		b.text(t, 1+i, "hi", number(int(i)))
	}
	b.submit(t, 2, 11, 0, "hi", number(11))
	b.submit(t, 3, 21, 0, "hi", number(21))
	b.submit(t, 1, 31, 0, "at midnight", number(31))
	b.exec(t, `UPDATE inbox SET at_time = $1 WHERE msg_id = 31`, midnight)
	b.start(t) // not earlier: it would take a row before its At_Time is set
	b.settled(t)

	clock.Set(midnight)
	b.text(t, 4, "hi", number(4))
	b.submit(t, 2, 12, 0, "hi", number(12))
	b.submit(t, 3, 22, 0, "hi", number(21))
	b.submit(t, 3, 23, 0, "hi", number(21)) // the third within the hour
	b.settled(t)
	b.until(t, 0, `SELECT (SELECT count(*) FROM inbox) + (SELECT count(*) FROM scheduled)`)

	clock.Set(midnight.Add(8*time.Hour - time.Microsecond))
	b.submit(t, 2, 13, 0, "hi", number(13))
	b.settled(t)
	clock.Set(midnight.Add(8 * time.Hour))
	b.submit(t, 2, 14, 0, "hi", number(14))
	b.settled(t)

	want := map[int64]string{1: "", 2: "", 3: "QUOTA", 4: "", 31: "", 11: "", 12: "RISK", 13: "RISK", 14: "", 21: "", 22: "", 23: "RISK"}
	if got := b.reasons(t); !maps.Equal(got, want) {
		t.Errorf("reasons %v, want %v", got, want)
	}
	china := time.FixedZone("", 8*60*60)
	for _, d := range []struct {
		at   time.Time
		used int64
	}{{before, 2}, {midnight, 2}} {
		if n := b.count(t, `SELECT messages FROM daily_use WHERE app_id = 11 AND day = $1::text::date`, d.at.In(china).Format(time.DateOnly)); n != d.used {
			t.Errorf("%d messages are counted on the day of %s, want %d", n, d.at, d.used)
		}
	}
	if n := b.count(t, `SELECT count(*) FROM message WHERE msg_id IN (4, 31) AND created_at = $1`, midnight); n != 2 {
		t.Errorf("%d messages of midnight, want 2", n)
	}
}
