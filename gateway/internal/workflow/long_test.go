package workflow_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"cmppgateway/gateway/internal/wake"
	"cmppgateway/gateway/sms"
)

// cutText cuts a text as a customer does.
func cutText(t *testing.T, text string, ref uint16, wide bool) [][]byte {
	t.Helper()
	list, err := sms.Split(text, sms.FmtUCS2, ref, wide)
	if err != nil {
		t.Fatal(err)
	}
	return list
}

// segment puts one segment into the inbox, as received on a session of its own.
func (b *bench) segment(t *testing.T, msgID int64, content []byte, dest ...string) {
	t.Helper()
	id, err := b.ids.Next(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	b.exec(t, `INSERT INTO inbox (id, pos, msg_id, enterprise_id, app_id, node, session, seq, weight, registered, fmt, udhi, pk_total, pk_number, dest, src, service, accepted_at, content)
		VALUES ($1, $1, $2, 1, 11, 1, $2, 1, $3, 1, 8, 1, 1, 1, $4, '1069', '', now(), $5)`, id, msgID, len(dest), []byte(strings.Join(dest, ",")), content)
}

// until waits for a number.
func (b *bench) until(t *testing.T, want int64, sql string, args ...any) {
	t.Helper()
	deadline := time.Now().Add(30 * time.Second)
	for {
		n := b.count(t, sql, args...)
		if n == want {
			return
		}
		if time.Now().After(deadline) {
			t.Fatalf("%s: %d after 30 s, want %d", sql, n, want)
		}
		b.bus.Publish(wake.Inbox)
	}
}

// told are the receipts, as Msg_Id and Stat.
func (b *bench) told(t *testing.T) []string {
	t.Helper()
	rows, err := b.Query(t.Context(), `SELECT msg_id || ' ' || stat || ' ' || accept_session FROM delivery ORDER BY msg_id`)
	if err != nil {
		t.Fatal(err)
	}
	var list []string
	for rows.Next() {
		var s string
		if err := rows.Scan(&s); err != nil {
			t.Fatal(err)
		}
		list = append(list, s)
	}
	return list
}

func TestALongMessageIsOneMessage(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.exec(t, `UPDATE channel SET long_ref16 = true`)
	text := "【签名】" + strings.Repeat("中", 196) // with the signature 200 characters: 3 units
	parts := cutText(t, text, 0x1234, true)
	if len(parts) != 4 {
		t.Fatalf("%d segments", len(parts))
	}
	b.start(t)
	to := []string{number(1), "+86" + number(2)}
	for _, i := range []int{3, 0, 3, 2, 1} {
		b.segment(t, int64(100*(i+1)), parts[i], to...)
		b.until(t, 0, `SELECT count(*) FROM inbox`)
	}
	if n := b.count(t, `SELECT count(*) FROM segment_wait`); n != 0 {
		t.Fatalf("%d segments still wait", n)
	}
	rows, err := b.Query(t.Context(), `SELECT msg_id || ' ' || phone || ' ' || parts || ' of ' || segments || ' units ' || units || ' group ' || recipients || ' state ' || state FROM message ORDER BY msg_id`)
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for rows.Next() {
		var s string
		if err := rows.Scan(&s); err != nil {
			t.Fatal(err)
		}
		got = append(got, s)
	}
	if want := []string{"100 13800000001 4 of 4 units 3 group 2 state 1", "101 13800000002 4 of 4 units 3 group 1 state 1"}; !slices.Equal(got, want) {
		t.Errorf("messages %q", got)
	}
	if n := b.count(t, `SELECT amount FROM account_entry WHERE kind = 2 AND account_id = 1`); n != 2*3*325 {
		t.Errorf("frozen %d", n)
	}
	// Every Msg_Id belongs to its recipient's message, the repeated one too.
	if n := b.count(t, `SELECT count(*) FROM message_segment s JOIN message m ON m.id = s.message_id WHERE s.msg_id % 100 = m.msg_id % 100 AND s.number = s.msg_id / 100 AND s.accept_session = s.msg_id - s.msg_id % 100`); n != 8 {
		t.Errorf("%d segments of messages are as they should be, want 8", n)
	}
	// What the edge is given is the text again, in the channel's form.
	b.hints.mu.Lock()
	defer b.hints.mu.Unlock()
	byMessage := map[int64][]sms.Part{}
	for _, c := range b.hints.cmds {
		concat, ok, _, payload, err := sms.SplitHeader(c.Content)
		if err != nil || !ok || !concat.Wide || int16(concat.Number) != c.Part || c.Parts != 4 || c.PkNumber != c.Part || c.PkTotal != 4 || c.UDHI != 1 || len(c.Content) > 140 {
			t.Errorf("part %d of %d: %+v, %v", c.Part, c.Parts, concat, err)
		}
		byMessage[c.MessageID] = append(byMessage[c.MessageID], sms.Part{Fmt: sms.Fmt(c.Fmt), Payload: payload})
	}
	for id, list := range byMessage {
		if joined, err := sms.JoinMixed(list); err != nil || joined != text {
			t.Errorf("message %d goes out as %q, %v", id, joined, err)
		}
	}
	if len(byMessage) != 2 {
		t.Errorf("commands of %d messages", len(byMessage))
	}
}

func TestPolicySeesTheWholeTextAndEverySegmentIsTold(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.exec(t, `INSERT INTO keyword (word, action) VALUES ('禁止的词', 1)`)
	text := strings.Repeat("中", 65) + "禁止的词" + strings.Repeat("中", 20) // the cut goes through the word
	parts := cutText(t, text, 7, false)
	b.segment(t, 100, parts[1], number(1))
	b.segment(t, 200, parts[0], number(1))
	b.start(t)
	b.settled(t)
	if got := b.told(t); !slices.Equal(got, []string{"100 KEYWORD 100", "200 KEYWORD 200"}) {
		t.Errorf("receipts %q", got)
	}
	if n := b.count(t, `SELECT count(*) FROM submit_outbox`) + b.count(t, `SELECT count(*) FROM account_entry WHERE kind = 2`); n != 0 {
		t.Errorf("%d commands and freezes of a refused message", n)
	}
}

func TestAnIncompleteLongMessageExpires(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.cfg.SegmentExpiry = 200 * time.Millisecond
	parts := cutText(t, strings.Repeat("中", 150), 7, false)
	b.segment(t, 100, parts[0], number(1))
	b.segment(t, 200, parts[2], number(1))
	b.segment(t, 300, parts[2], number(2)) // of another message
	b.start(t)
	b.until(t, 3, `SELECT count(*) FROM message WHERE state = 7 AND reason = 11 AND bill = 0 AND final_at IS NOT NULL`)
	if got := b.told(t); !slices.Equal(got, []string{"100 EXPIRED 100", "200 EXPIRED 200", "300 EXPIRED 300"}) {
		t.Errorf("receipts %q", got)
	}
	if n := b.count(t, `SELECT count(*) FROM segment_wait`) + b.count(t, `SELECT count(*) FROM inbox`) + b.count(t, `SELECT count(*) FROM submit_outbox`); n != 0 {
		t.Errorf("%d rows wait still", n)
	}
}

func TestALateRepetitionGetsTheReceiptOfItsMessage(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.cfg.SegmentExpiry = 300 * time.Millisecond
	parts := cutText(t, strings.Repeat("中", 100), 7, false)
	b.segment(t, 100, parts[0], number(1))
	b.segment(t, 200, parts[1], number(1))
	b.segment(t, 300, parts[1], number(1)) // in the same batch
	b.start(t)
	b.until(t, 1, `SELECT count(*) FROM message`)
	b.segment(t, 400, parts[0], number(1)) // its message is under way
	b.until(t, 4, `SELECT count(*) FROM message_segment`)
	b.exec(t, `UPDATE message SET state = 4, stat = 'DELIVRD', final_at = now()`)
	b.segment(t, 500, parts[1], number(1)) // its message has ended
	b.until(t, 5, `SELECT count(*) FROM message_segment`)
	b.until(t, 0, `SELECT count(*) FROM segment_wait`)
	if got := b.told(t); !slices.Equal(got, []string{"500 DELIVRD 500"}) {
		t.Errorf("receipts %q", got)
	}
	if n := b.count(t, `SELECT count(*) FROM message`); n != 1 {
		t.Errorf("%d messages", n)
	}
	// Afterwards, another text under the same reference is a message of its own.
	other := cutText(t, strings.Repeat("国", 100), 7, false)
	b.segment(t, 600, other[1], number(1))
	b.segment(t, 700, other[0], number(1))
	b.until(t, 2, `SELECT count(*) FROM message`)
	if n := b.count(t, `SELECT count(*) FROM message_segment WHERE msg_id IN (600, 700) AND message_id = (SELECT max(id) FROM message)`); n != 2 {
		t.Errorf("%d segments of the second text", n)
	}
}

func TestASegmentThatFailsAloneIsRefused(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.exec(t, `ALTER TABLE segment_wait ADD CONSTRAINT never CHECK (msg_id <> 200)`)
	parts := cutText(t, strings.Repeat("中", 100), 7, false)
	for i := range 8 {
		b.segment(t, int64(1000+i), cutText(t, strings.Repeat("国", 100), uint16(i), false)[0], number(2))
	}
	b.segment(t, 200, parts[0], number(1))
	b.start(t)
	b.settled(t)
	if got := b.told(t); !slices.Equal(got, []string{"200 SYSTEM 200"}) {
		t.Errorf("receipts %q", got)
	}
	if n := b.count(t, `SELECT count(*) FROM segment_wait`); n != 8 {
		t.Errorf("%d segments wait, want the 8 others", n)
	}
}

func TestScheduledSubmitsWaitForTheirTime(t *testing.T) {
	t.Parallel()
	b := setup(t)
	parts := cutText(t, strings.Repeat("中", 100), 7, false)
	b.submit(t, 1, 100, 0, "later", number(1))
	b.submit(t, 1, 200, 0, "expires before", number(1))
	b.submit(t, 1, 300, 0, "passed", number(1))
	b.segment(t, 400, parts[0], number(1))
	b.segment(t, 500, parts[1], number(1))
	b.exec(t, `UPDATE inbox SET at_time = now() + interval '1 hour'`)
	b.exec(t, `UPDATE inbox SET valid_until = now() + interval '1 minute' WHERE msg_id = 200`)
	b.exec(t, `UPDATE inbox SET at_time = now() - interval '1 minute' WHERE msg_id = 300`)
	b.start(t)
	b.settled(t)
	if n := b.count(t, `SELECT count(*) FROM message`); n != 1 {
		t.Errorf("%d messages before their time", n-1)
	}
	if n := b.count(t, `SELECT count(*) FROM scheduled WHERE due_at BETWEEN now() + interval '59 minutes' AND now() + interval '61 minutes'`); n != 2 {
		t.Errorf("%d rows wait for an hour, want 2: a long message is one", n)
	}
	if n := b.count(t, `SELECT count(*) FROM scheduled WHERE msg_id = 200 AND due_at = valid_until`); n != 1 {
		t.Error("what expires before its time does not wait for its end")
	}
	b.exec(t, `UPDATE scheduled SET due_at = now(), valid_until = CASE WHEN msg_id = 200 THEN now() END`)
	b.until(t, 4, `SELECT count(*) FROM message`)
	b.until(t, 0, `SELECT (SELECT count(*) FROM inbox) + (SELECT count(*) FROM scheduled)`)
	if got := b.told(t); !slices.Equal(got, []string{"200 EXPIRED 1"}) {
		t.Errorf("receipts %q", got)
	}
	if n := b.count(t, `SELECT count(*) FROM submit_outbox o JOIN message m ON m.id = o.message_id WHERE m.msg_id = 400 AND m.segments = 2 AND o.parts = 2`); n != 2 {
		t.Errorf("%d commands of the long message", n)
	}
}

func TestRowsThatEndAreNotSent(t *testing.T) {
	t.Parallel()
	b := setup(t)
	parts := cutText(t, strings.Repeat("中", 100), 7, false)
	b.submit(t, 1, 100, 0, "cancelled", number(1), number(2))
	b.segment(t, 200, parts[0], number(1))
	b.segment(t, 300, parts[1], number(1))
	b.exec(t, `UPDATE inbox SET ends = 8`)
	b.start(t)
	b.settled(t)
	if got, want := fmt.Sprint(b.told(t)), "[100 DELETED 1 101 DELETED 1 200 DELETED 200 300 DELETED 300]"; got != want {
		t.Errorf("receipts %s", got)
	}
	if n := b.count(t, `SELECT count(*) FROM message WHERE state = 8 AND bill = 0 AND final_at IS NOT NULL`); n != 4 {
		t.Errorf("%d cancelled messages, want 4", n)
	}
}
