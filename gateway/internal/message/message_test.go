package message_test

import (
	"context"
	"testing"
	"time"

	"cmppgateway/gateway/internal/message"
)

func TestTransitionTables(t *testing.T) {
	t.Parallel()
	states := map[[2]message.State]bool{
		{message.Checked, message.Submitted}: true, {message.Checked, message.Unknown}: true, {message.Checked, message.Failed}: true,
		{message.Checked, message.Expired}: true, {message.Checked, message.Cancelled}: true,
		{message.Submitted, message.Unknown}: true, {message.Submitted, message.Delivered}: true, {message.Submitted, message.Failed}: true,
		{message.Unknown, message.Checked}: true, {message.Unknown, message.Submitted}: true, {message.Unknown, message.Delivered}: true, {message.Unknown, message.Failed}: true,
	}
	for from := message.Checked; from <= message.Cancelled; from++ {
		leaves := false
		for to := message.Checked; to <= message.Cancelled; to++ {
			if got := from.Can(to); got != states[[2]message.State{from, to}] {
				t.Errorf("message %s → %s: allowed %t", from, to, got)
			}
			leaves = leaves || from.Can(to)
		}
		if from.Final() == leaves {
			t.Errorf("message %s: final %t, but leaves %t", from, from.Final(), leaves)
		}
	}
	submits := map[[2]message.Submit]bool{
		{message.Pending, message.Dispatched}: true, {message.Dispatched, message.Pending}: true,
		{message.Dispatched, message.Accepted}: true, {message.Dispatched, message.Refused}: true, {message.Dispatched, message.SubmitUnknown}: true,
		{message.SubmitUnknown, message.Accepted}: true, {message.SubmitUnknown, message.Refused}: true,
	}
	for from := message.Pending; from <= message.SubmitUnknown; from++ {
		for to := message.Pending; to <= message.SubmitUnknown; to++ {
			if got := from.Can(to); got != submits[[2]message.Submit{from, to}] {
				t.Errorf("submit %s → %s: allowed %t", from, to, got)
			}
		}
	}
	bills := map[[2]message.Bill]bool{{message.Frozen, message.Charged}: true, {message.Frozen, message.Released}: true, {message.Charged, message.Refunded}: true}
	for from := message.BillNone; from <= message.Refunded; from++ {
		for to := message.BillNone; to <= message.Refunded; to++ {
			if got := from.Can(to); got != bills[[2]message.Bill{from, to}] {
				t.Errorf("bill %s → %s: allowed %t", from, to, got)
			}
		}
	}
}

func TestReasonStatFitsTheReport(t *testing.T) {
	t.Parallel()
	want := map[string]string{"SIGNATURE": "SIGFAIL", "TEMPLATE": "TPLFAIL", "KEYWORD": "KEYWORD", "BLACKLIST": "BLACK", "RISK": "RISK", "QUOTA": "QUOTA", "BALANCE": "BALANCE", "ROUTE": "NOROUTE", "STATUS": "STATUS", "FORMAT": "FORMAT", "EXPIRED": "EXPIRED", "SYSTEM": "SYSTEM"}
	for r := message.ReasonSignature; r <= message.ReasonSystem; r++ {
		if got := r.Stat(); got != want[r.String()] || len(got) > 7 || got == "" {
			t.Errorf("%s: Stat %q, want %q", r, got, want[r.String()])
		}
	}
}

func TestIDsAscendAndCarryTheirNode(t *testing.T) {
	t.Parallel()
	at := time.Date(2026, 8, 25, 1, 2, 3, 4e6, time.UTC)
	clock := at
	ids := message.NewIDs(7, at.Add(-time.Second), at.Add(time.Hour), func() time.Time { return clock })
	last := int64(0)
	for i := range 40_000 { // more than two milliseconds' worth, with a clock that steps back
		if i == 20_000 {
			clock = at.Add(-time.Hour)
		}
		id, err := ids.Next(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		if id <= last {
			t.Fatalf("id %d after %d", id, last)
		}
		if message.NodeOf(id) != 7 || message.TimeOf(id).Sub(at).Abs() > 5*time.Millisecond {
			t.Fatalf("id %d: node %d, time %s", id, message.NodeOf(id), message.TimeOf(id))
		}
		last = id
	}
	if message.FirstID(at) > last || message.FirstID(at.Add(time.Second)) < last {
		t.Fatal("FirstID does not bound the ids of its time")
	}
}

func TestIDsStayInsideTheLease(t *testing.T) {
	t.Parallel()
	at := time.Date(2026, 8, 25, 0, 0, 0, 0, time.UTC)
	// The bound found on the lease lies ahead of the clock, as after a kill and a restart in the same millisecond.
	ids := message.NewIDs(1, at.Add(time.Second), at.Add(time.Second+time.Millisecond), func() time.Time { return at })
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if id, err := ids.Next(ctx); err == nil {
		t.Fatalf("id %d issued beyond the lease", id)
	}
	ids.Extend(at.Add(2 * time.Second))
	id, err := ids.Next(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if got := message.TimeOf(id); !got.After(at.Add(time.Second)) || !got.Before(at.Add(2*time.Second)) {
		t.Fatalf("id of %s, want it strictly inside the lease", got)
	}
}
