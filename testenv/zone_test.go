package testenv_test

import (
	"os"
	"testing"
	"time"

	"cmppgateway/testenv"
)

func TestInZones(t *testing.T) { testenv.InZones(t, "TestZones") }

// Outside of InZones there is nothing to see.
func TestZones(t *testing.T) {
	t.Parallel()
	local, database := os.Getenv("TESTENV_LOCAL_ZONE"), os.Getenv("TESTENV_DATABASE_ZONE")
	if local == "" {
		return
	}
	_, offset := time.Now().Zone()
	var zone string
	if err := connect(t, testenv.DB(t)).QueryRow(t.Context(), `SHOW timezone`).Scan(&zone); err != nil {
		t.Fatal(err)
	}
	if zone != database || zone == local || offset != map[string]int{"UTC": 0, "Asia/Shanghai": 8 * 60 * 60}[local] {
		t.Errorf("process %d s from UTC, want %s; database %s, want %s", offset, local, zone, database)
	}
}

func TestStopClock(t *testing.T) {
	t.Parallel()
	url := testenv.DB(t)
	clock := testenv.StopClock(t, url)
	conn := connect(t, url)
	for _, at := range []time.Time{time.Date(2026, 8, 25, 15, 59, 59, 999_999_000, time.UTC), time.Date(2026, 8, 25, 16, 0, 0, 0, time.UTC)} {
		clock.Set(at)
		var a, b, c time.Time
		if err := conn.QueryRow(t.Context(), `SELECT now(), clock_timestamp(), statement_timestamp()`).Scan(&a, &b, &c); err != nil {
			t.Fatal(err)
		}
		if !a.Equal(at) || !b.Equal(at) || !c.Equal(at) {
			t.Errorf("%s, %s, %s; want %s", a, b, c, at)
		}
	}
}
