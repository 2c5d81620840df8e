package enquiry_test

import (
	"testing"
	"time"

	"cmppgateway/gateway/cmpp"
	"cmppgateway/gateway/internal/message"
	"cmppgateway/testenv"
)

func TestInZones(t *testing.T) { testenv.InZones(t, "TestDaysOfQueryEndAtMidnightInChina") }

// The last id before 16:00 UTC and the first one after it are of two days.
func TestDaysOfQueryEndAtMidnightInChina(t *testing.T) {
	t.Parallel()
	b := setup(t)
	midnight := time.Now().UTC().Truncate(24 * time.Hour).Add(16 * time.Hour) // both ids are in today's leaf
	first := message.FirstID(midnight)
	for i, id := range []int64{first - 1, first, first + 1} {
		_, list, _ := b.message(t, 1, 1)
		b.exec(t, `UPDATE message SET id = $1, service = $3 WHERE id = $2`, id, list[0], []byte{byte('a' + i)})
	}
	for _, c := range []struct {
		day  time.Time
		want uint32
	}{{midnight.Add(-time.Millisecond), 1}, {midnight, 2}} {
		day := c.day.In(cmpp.Shanghai).Format("20060102")
		got, err := b.asked.Query(t.Context(), 11, &cmpp.Query{Time: day})
		if err != nil {
			t.Fatal(err)
		}
		if got.MTTLUsr != c.want {
			t.Errorf("%d messages on %s, want %d", got.MTTLUsr, day, c.want)
		}
	}
}
