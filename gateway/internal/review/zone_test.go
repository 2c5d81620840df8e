package review_test

import (
	"testing"
	"time"

	"cmppgateway/gateway/internal/message"
	"cmppgateway/testenv"
)

func TestInZones(t *testing.T) {
	testenv.InZones(t, "TestTheQuotaOfTheDayItWasSentOnGoesBack", "TestDecisions", "TestSweep")
}

// A refused message was counted on the day of China it was sent on, whenever the decision comes.
func TestTheQuotaOfTheDayItWasSentOnGoesBack(t *testing.T) {
	t.Parallel()
	b := setup(t)
	midnight := time.Now().UTC().Truncate(24 * time.Hour).Add(16 * time.Hour)
	china := time.FixedZone("", 8*60*60)
	var ids []int64
	b.exec(t, `DELETE FROM daily_use`)
	for _, at := range []time.Time{midnight.Add(-time.Microsecond), midnight} {
		id := b.hold(t, 1, 13800000001, "")
		b.exec(t, `UPDATE message SET created_at = $2 WHERE id = $1`, id, at)
		ids = append(ids, id)
	}
	b.exec(t, `DELETE FROM daily_use`)
	for i, day := range []string{midnight.Add(-time.Second).In(china).Format(time.DateOnly), midnight.In(china).Format(time.DateOnly)} {
		b.exec(t, `INSERT INTO daily_use (enterprise_id, day, app_id, messages) VALUES (1, $1::text::date, 11, $2)`, day, 10*(i+1))
	}
	for i, want := range []int64{9, 19} {
		if o := b.decide(t, b.Reject, ids[i]); o.Refused[ids[i]] != message.ReasonKeyword {
			t.Fatalf("not refused: %+v", o)
		}
		if n := b.count(t, `SELECT messages FROM daily_use WHERE app_id = 11 ORDER BY day OFFSET $1 LIMIT 1`, i); n != want {
			t.Errorf("day %d: %d messages, want %d", i, n, want)
		}
	}
}
