package delivery_test

import (
	"testing"
	"time"

	"cmppgateway/gateway/cmpp"
	"cmppgateway/testenv"
)

func TestInZones(t *testing.T) {
	testenv.InZones(t, "TestReportTimesAroundMidnightInChina", "TestLeasesAreOfTheirLength", "TestReceiptAsTheCustomerExpectsIt", "TestLeaseOfAKilledProcessEnds", "TestOnlyTheAcceptingNodeClaimsEarly", "TestNobodyComes")
}

// Submit_time and Done_time are minutes of the clock in China: the day changes at 16:00 UTC.
func TestReportTimesAroundMidnightInChina(t *testing.T) {
	t.Parallel()
	b := setup(t)
	p := b.boot(t)
	c := p.connect(t, 1, cmpp.V30, accept)
	midnight := time.Date(2026, 12, 31, 16, 0, 0, 0, time.UTC)
	id, err := p.node.IDs.Next(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	b.exec(t, `INSERT INTO delivery (id, pos, message_id, msg_id, accept_session, accepted_at, done_at, app_id, kind, accept_node, stat, dest, src, service)
		VALUES ($1, $1, 1, 7, 1, $2, $3, 1, 1, $4, 'DELIVRD', '13800000001', '1069', '')`, id, midnight.Add(-time.Second), midnight, p.node.Number)
	p.nudge()
	report, err := cmpp.ParseReport(c.next().MsgContent)
	if err != nil {
		t.Fatal(err)
	}
	if report.SubmitTime != "2612312359" || report.DoneTime != "2701010000" {
		t.Errorf("submitted %s, done %s; want 2612312359 and 2701010000", report.SubmitTime, report.DoneTime)
	}
	eventually(t, "row gone", func() bool { return b.rows(t, 1) == 0 })
}

// A claim lasts its lease by PostgreSQL's clock, wherever that is; so does the wait after a refusal.
func TestLeasesAreOfTheirLength(t *testing.T) {
	t.Parallel()
	b := setup(t)
	p := b.boot(t)
	c := p.connect(t, 1, cmpp.V30, func(deliver) (uint32, bool) { return 0, false }) // never answers
	p.receipt(t, 1)
	c.next()
	if n := b.count(t, `SELECT count(*) FROM delivery WHERE claim IS NOT NULL AND lease <= clock_timestamp() + $1::interval AND lease > created_at + $1::interval`, b.cfg.Lease); n != 1 {
		t.Errorf("%d claims end %s after they were made, want 1", n, b.cfg.Lease)
	}
}
