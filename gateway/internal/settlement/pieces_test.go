package settlement_test

import (
	"bytes"
	"testing"

	"cmppgateway/gateway/internal/event"
	"cmppgateway/gateway/internal/message"
	"cmppgateway/gateway/sms"
)

// long makes a message of 200 letters, which its customer sent in two segments of which the first wants no receipt.
func (b *bench) long(tb testing.TB) sent {
	tb.Helper()
	m := b.queue(tb, spec{parts: 2})
	b.exec(tb, `UPDATE message SET segments = 2, out_fmt = 0, ref = 7, content = $2 WHERE id = $1`, m.message, bytes.Repeat([]byte{'a'}, 200))
	for i := range 3 {
		b.exec(tb, `INSERT INTO message_segment (message_id, msg_id, set_key, hash, accept_session, accepted_at, app_id, number, registered, accept_node)
			VALUES ($1, $2, 1, 1, $2, now(), 11, $3, $4, 1)`, m.message, 100+i, min(i+1, 2), min(i, 1))
	}
	return m
}

func (b *bench) told(tb testing.TB, m sent) (list string) {
	tb.Helper()
	if err := b.QueryRow(tb.Context(), `SELECT coalesce(string_agg(msg_id || ' ' || accept_session || ' ' || stat, ', ' ORDER BY msg_id), '') FROM delivery WHERE message_id = $1`, m.message).Scan(&list); err != nil {
		tb.Fatal(err)
	}
	return list
}

func (b *bench) part(m sent, i int, state string, code uint32, msgID uint64) event.SubmitResult {
	p := m
	p.submit = m.parts[i]
	return b.result(p, state, code, msgID)
}

func TestEverySegmentOfTheCustomerIsTold(t *testing.T) {
	t.Parallel()
	b := setup(t)
	m := b.long(t)
	b.dispatch(t, m.parts...)
	b.apply(t, b.part(m, 0, event.Accepted, 0, 51), b.part(m, 1, event.Accepted, 0, 52))
	b.report(t, 1, 51, m.phone, "DELIVRD")
	b.settle(t)
	if got := b.told(t, m); got != "" {
		t.Errorf("told %q before the last part ended", got)
	}
	b.report(t, 1, 52, m.phone, "DELIVRD")
	b.settle(t)
	b.want(t, m, message.Delivered, message.Charged, "DELIVRD")
	if got, want := b.told(t, m), "101 101 DELIVRD, 102 102 DELIVRD"; got != want {
		t.Errorf("told %q, want %q", got, want)
	}
	b.books(t)
}

// A long message that goes to the next candidate as a whole is cut as that one wants it.
func TestALongMessageIsCutAnewForAnotherChannel(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.exec(t, `UPDATE channel SET long_fmt = 8, long_ref16 = true WHERE id = 2`)
	b.refresh(t)
	m := b.long(t)
	b.dispatch(t, m.parts...)
	b.apply(t, b.part(m, 0, event.Rejected, 8, 0))
	b.apply(t, b.part(m, 1, event.Rejected, 8, 0))
	if n := b.count(t, `SELECT count(*) FROM submit_outbox WHERE message_id = $1 AND channel_id = 2 AND parts = 4 AND attempt = 2`, m.message); n != 4 {
		t.Fatalf("%d commands for the next candidate, want 4 of UCS2", n)
	}
	if n := b.count(t, `SELECT count(*) FROM message WHERE id = $1 AND parts = 4 AND out_fmt = 8 AND ref >= 65536`, m.message); n != 1 {
		t.Error("the message does not say how it is cut now")
	}
	var parts []sms.Part
	b.hints.mu.Lock()
	for _, c := range b.hints.cmds {
		concat, ok, _, payload, err := sms.SplitHeader(c.Content)
		if err != nil || !ok || !concat.Wide || int16(concat.Number) != c.Part || concat.Total != 4 || c.Fmt != 8 {
			t.Errorf("part %d: %+v, %v", c.Part, concat, err)
		}
		parts = append(parts, sms.Part{Fmt: sms.Fmt(c.Fmt), Payload: payload})
	}
	b.hints.mu.Unlock()
	if text, err := sms.JoinMixed(parts); err != nil || text != string(bytes.Repeat([]byte{'a'}, 200)) {
		t.Errorf("goes out as %q, %v", text, err)
	}
	// All four refused as well: the message ends, and is told once for each segment.
	rows, err := b.Query(t.Context(), `SELECT id FROM submit_outbox WHERE message_id = $1 ORDER BY part`, m.message)
	if err != nil {
		t.Fatal(err)
	}
	m.parts = m.parts[:0]
	for rows.Next() {
		var id int64
		if err := rows.Scan(&id); err != nil {
			t.Fatal(err)
		}
		m.parts = append(m.parts, id)
	}
	b.dispatch(t, m.parts...)
	m.channel, m.attempt = 2, 2
	b.apply(t, b.part(m, 0, event.Rejected, 5, 0), b.part(m, 1, event.Rejected, 5, 0), b.part(m, 2, event.Rejected, 5, 0), b.part(m, 3, event.Rejected, 5, 0))
	b.want(t, m, message.Failed, message.Released, "REJECTD")
	if got, want := b.told(t, m), "101 101 REJECTD, 102 102 REJECTD"; got != want {
		t.Errorf("told %q, want %q", got, want)
	}
	b.books(t)
}
