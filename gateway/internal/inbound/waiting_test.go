package inbound_test

import (
	"testing"
	"time"

	"cmppgateway/gateway/cmpp"
)

const (
	waitColumns = "id, msg_id, session, seq, accepted_at, valid_until, enterprise_id, app_id, weight, node, registered, fmt, udhi, pk_total, pk_number, dest, src, service, content"

	moveScheduled = `WITH gone AS (DELETE FROM inbox RETURNING *) INSERT INTO scheduled (due_at, msg_ids, ` + waitColumns + `) SELECT now() + interval '1 hour', ARRAY[msg_id], ` + waitColumns + ` FROM gone`
	moveSegment   = `WITH gone AS (DELETE FROM inbox RETURNING *) INSERT INTO segment_wait (set_id, set_key, waits_since, due_at, ` + waitColumns + `) SELECT id, 1, now(), now() + interval '1 hour', ` + waitColumns + ` FROM gone`
	moveJoined    = `WITH gone AS (DELETE FROM inbox RETURNING *) INSERT INTO message_segment (message_id, msg_id, set_key, hash, accept_session, accepted_at, app_id, number, registered, accept_node)
		SELECT id, msg_id, 1, 1, session, accepted_at, app_id, 1, registered, node FROM gone`
)

// PostgreSQL commits, its answer is lost, and the workflow moves the row to another waiting place before the commit is
// repeated: it is there once.
func TestAmbiguousCommitOfRowsThatWait(t *testing.T) {
	t.Parallel()
	for place, move := range map[string]string{"scheduled": moveScheduled, "segment_wait": moveSegment, "message_segment": moveJoined} {
		t.Run(place, func(t *testing.T) {
			t.Parallel()
			b := setup(t)
			var p *proxy
			p, b.url = through(t, b.url)
			b.start(t)
			c := b.customer(t, cmpp.V30)
			c.accepted(sms())
			b.exec(t, "DELETE FROM inbox")
			p.cutAfterCommit(func() { b.exec(t, move) })
			id := c.accepted(marked())
			if p.cuts.Load() != 1 {
				t.Fatal("the answer was not cut")
			}
			if n := b.count(t, "SELECT count(*) FROM inbox"); n != 0 {
				t.Errorf("%d rows in the inbox again", n)
			}
			if n := b.count(t, "SELECT count(*) FROM "+place+" WHERE msg_id = $1", int64(id)); n != 1 {
				t.Errorf("%d rows in their place, want 1", n)
			}
		})
	}
}

func TestAtTimeIsStored(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.start(t)
	c := b.customer(t, cmpp.V20)
	at := time.Now().Add(time.Hour).Truncate(time.Second)
	p := sms()
	p.AtTime, p.ValidTime = stamp(at), stamp(at.Add(30*24*time.Hour))
	c.accepted(p)
	var stored, until time.Time
	if err := b.QueryRow(t.Context(), "SELECT at_time, valid_until FROM inbox").Scan(&stored, &until); err != nil {
		t.Fatal(err)
	}
	if !stored.Equal(at) || !until.Equal(at.Add(7*24*time.Hour)) {
		t.Errorf("at %s, valid until %s; want %s and 7 days more", stored, until, at)
	}
	p.AtTime = stamp(time.Now().Add(-time.Hour))
	c.accepted(p)
	if n := b.count(t, "SELECT count(*) FROM inbox WHERE at_time IS NULL"); n != 1 {
		t.Errorf("%d rows without a time, want the one whose time has passed", n)
	}
	// Another time makes another message of it.
	p.AtTime = ""
	c.send(c.seq, p)
	if _, resp := c.answer(); resp.Result != 0 || b.count(t, "SELECT count(*) FROM inbox") != 3 {
		t.Errorf("result %d", resp.Result)
	}
}

// At its bound, an application may complete long messages but begin no more; its other SUBMITs pass.
func TestLongMessagesAreBounded(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.cfg.SegmentSetsMax = 2
	b.start(t)
	c := b.customer(t, cmpp.V30)
	segment := func(ref, number byte) *cmpp.Submit {
		p := sms()
		p.TPUDHI, p.MsgFmt, p.MsgContent = 1, 8, []byte{5, 0, 3, ref, 2, number, 0x4F, 0x60}
		return p
	}
	c.accepted(segment(1, 1))
	b.exec(t, moveSegment)
	b.exec(t, "UPDATE segment_wait SET set_key = 5")
	b.exec(t, "INSERT INTO segment_wait (set_id, set_key, waits_since, due_at, "+waitColumns+") SELECT id + 1, 6, now(), now() + interval '1 hour', id + 1, "+waitColumns[len("id, "):]+" FROM segment_wait")
	ref := byte(1)
	eventually(t, "result 8", func() bool {
		ref++
		c.submit(segment(ref, 1))
		_, resp := c.answer()
		return resp.Result == 8
	})
	c.accepted(sms())
	if b.metric(t, "cmppgw_inbound_limited_total", "waiting") == 0 {
		t.Error("the refusal is not counted")
	}
}
