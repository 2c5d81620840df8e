package enquiry_test

import (
	"context"
	"log/slog"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"cmppgateway/gateway/cmpp"
	"cmppgateway/gateway/internal/config"
	"cmppgateway/gateway/internal/enquiry"
	"cmppgateway/gateway/internal/ledger"
	"cmppgateway/gateway/internal/message"
	"cmppgateway/gateway/internal/settings"
	"cmppgateway/gateway/internal/store"
	"cmppgateway/gateway/internal/wake"
	"cmppgateway/testenv"
)

func TestMain(m *testing.M) {
	testenv.Migrated(store.Migrate)
	testenv.Main(m)
}

type bench struct {
	*pgxpool.Pool

	asked  *enquiry.Enquiry
	ids    *message.IDs
	msgIDs cmpp.MsgID
}

func setup(t *testing.T) *bench {
	t.Helper()
	pool, err := pgxpool.New(t.Context(), testenv.DB(t))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(pool.Close)
	b := &bench{Pool: pool, msgIDs: cmpp.NewMsgID(time.Now(), 1000, 1)}
	b.exec(t, `INSERT INTO enterprise (id, name) VALUES (1, 'a'), (2, 'b'); INSERT INTO account (id, available) VALUES (1, 0), (2, 0);
		INSERT INTO application (id, enterprise_id, price, sp_id, secret, name) VALUES (11, 1, 325, '100001', 's', 'a'), (12, 1, 325, '100002', 's', 'b')`)
	node, err := store.LeaseNode(t.Context(), pool, config.Node{Lease: time.Minute}, slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	b.ids = node.IDs
	if _, err := ledger.TopUp(t.Context(), pool, b.ids, 1, 1_000_000, "opening"); err != nil {
		t.Fatal(err)
	}
	watch := settings.NewWatcher(pool, time.Hour, slog.New(slog.DiscardHandler))
	if err := watch.Refresh(t.Context()); err != nil {
		t.Fatal(err)
	}
	b.asked = enquiry.New(enquiry.Options{Pool: pool, IDs: b.ids, Settings: watch, Wake: wake.New(nil, slog.New(slog.DiscardHandler))})
	return b
}

func (b *bench) exec(t *testing.T, sql string, args ...any) {
	t.Helper()
	if _, err := b.Exec(t.Context(), sql, args...); err != nil {
		t.Fatalf("%s: %v", sql, err)
	}
}

func (b *bench) count(t *testing.T, sql string, args ...any) (n int64) {
	t.Helper()
	if err := b.QueryRow(t.Context(), sql, args...).Scan(&n); err != nil {
		t.Fatalf("%s: %v", sql, err)
	}
	return n
}

func (b *bench) id(t *testing.T) int64 {
	t.Helper()
	id, err := b.ids.Next(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return id
}

// cancel expects an answer.
func (b *bench) cancel(t *testing.T, what string, app int32, id cmpp.MsgID, want bool) {
	t.Helper()
	if ok, err := b.asked.Cancel(t.Context(), 1, app, id); err != nil || ok != want {
		t.Errorf("CANCEL of %s: %t, %v, want %t", what, ok, err, want)
	}
}

const columns = "id, msg_id, session, seq, accepted_at, enterprise_id, app_id, weight, node, registered, fmt, udhi, pk_total, pk_number, dest, src, service, content"

// inbox is a SUBMIT of application 11 that was accepted just now; content nil is no segment.
func (b *bench) inbox(t *testing.T, content []byte) cmpp.MsgID {
	t.Helper()
	b.msgIDs += 100
	udhi := 1
	if content == nil {
		udhi, content = 0, []byte("hi")
	}
	b.exec(t, `INSERT INTO inbox (pos, `+columns+`) VALUES ($1, $1, $2, 1, 1, now(), 1, 11, 1, 1, 1, 8, $3, 1, 1, '13800000001', '1069', '', $4)`, b.id(t), int64(b.msgIDs), udhi, content)
	return b.msgIDs
}

func segment(ref, number byte) []byte { return []byte{5, 0, 3, ref, 3, number, 0x4F, 0x60} }

func TestCancelOfWhatWaitsBeforeTheWorkflow(t *testing.T) {
	t.Parallel()
	b := setup(t)
	one, other := b.inbox(t, nil), b.inbox(t, nil)
	b.cancel(t, "another application's SUBMIT", 12, one, false)
	b.cancel(t, "a SUBMIT in the inbox", 11, one, true)
	b.cancel(t, "the same again", 11, one, true)
	b.cancel(t, "what was never accepted", 11, 1, false)
	if n := b.count(t, `SELECT count(*) FROM inbox WHERE ends = 8 AND msg_id = $1`, int64(one)); n != 1 || b.count(t, `SELECT count(*) FROM inbox WHERE ends = 0 AND msg_id = $1`, int64(other)) != 1 {
		t.Error("not that row, or another one too")
	}
	b.exec(t, `UPDATE inbox SET ends = 7 WHERE msg_id = $1`, int64(other))
	b.cancel(t, "a SUBMIT that has expired", 11, other, false)

	// For later.
	b.exec(t, `DELETE FROM inbox`)
	later := b.inbox(t, nil)
	b.exec(t, `WITH gone AS (DELETE FROM inbox RETURNING *) INSERT INTO scheduled (due_at, msg_ids, `+columns+`) SELECT now() + interval '1 day', ARRAY[msg_id, msg_id + 7], `+columns+` FROM gone`)
	b.cancel(t, "another application's SUBMIT for later", 12, later, false)
	b.cancel(t, "a segment of a SUBMIT for later", 11, later+7, true)
	if n := b.count(t, `SELECT count(*) FROM inbox WHERE ends = 8`); n != 1 || b.count(t, `SELECT count(*) FROM scheduled`) != 0 {
		t.Errorf("%d rows to end", n)
	}
}

// A long message whose segments are in two places ends as a whole, and no other with it.
func TestCancelOfALongMessageInSeveralPlaces(t *testing.T) {
	t.Parallel()
	for name, which := range map[string]int{"by a segment that waits": 0, "by one in the inbox": 2} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := setup(t)
			ids := []cmpp.MsgID{b.inbox(t, segment(1, 1)), b.inbox(t, segment(1, 2))}
			b.inbox(t, segment(2, 1))
			b.exec(t, `WITH gone AS (DELETE FROM inbox RETURNING *) INSERT INTO segment_wait (set_id, set_key, waits_since, due_at, `+columns+`)
				SELECT CASE get_byte(content, 3) WHEN 1 THEN (SELECT min(id) FROM gone) ELSE id END, get_byte(content, 3), now(), now() + interval '1 hour', `+columns+` FROM gone`)
			ids = append(ids, b.inbox(t, segment(1, 3)))
			b.inbox(t, segment(2, 2))
			b.inbox(t, nil)
			b.cancel(t, "a long message", 11, ids[which], true)
			if n := b.count(t, `SELECT count(*) FROM inbox WHERE ends = 8 AND get_byte(content, 3) = 1`); n != 3 {
				t.Errorf("%d segments to end, want 3", n)
			}
			if n := b.count(t, `SELECT count(*) FROM inbox WHERE ends = 0`) + b.count(t, `SELECT count(*) FROM segment_wait`); n != 3 {
				t.Errorf("%d other rows stay, want 3", n)
			}
		})
	}
}

// message makes a group of messages with their frozen money and commands, as the workflow does.
func (b *bench) message(t *testing.T, recipients, parts int) (first cmpp.MsgID, messages, submits []int64) {
	t.Helper()
	b.msgIDs += 100
	entry := b.id(t)
	for i := range recipients {
		id := b.id(t)
		n := 1
		if i == 0 {
			n = recipients
		}
		b.exec(t, `INSERT INTO message (id, msg_id, freeze_entry, price, phone, accept_session, accepted_at, created_at, enterprise_id, app_id, channel_id, units, price_version, state, bill,
			charge_on, refund_on, parts, recipients, registered, fmt, udhi, pk_total, pk_number, accept_node, dest, src, service, content)
			VALUES ($1, $2, $3, 325, 13800000001, 1, now(), now(), 1, 11, 1, 1, 1, 1, 1, 1, 1, $4, $5, 1, 0, 0, 1, 1, 1, '13800000001', '1069', 'svc', 'hi')`,
			id, int64(b.msgIDs)+int64(i), entry, parts, n)
		messages = append(messages, id)
		for part := range parts {
			submit := b.id(t)
			b.exec(t, `INSERT INTO submit_outbox (id, pos, message_id, channel_id, enterprise_id, attempt, part, parts, lane) VALUES ($1, $1, $2, 1, 1, 1, $3, $4, 1)`, submit, id, part+1, parts)
			submits = append(submits, submit)
		}
	}
	if err := store.InTx(t.Context(), b.Pool, func(tx pgx.Tx) error {
		var q pgx.Batch
		ledger.Queue(&q, []ledger.Entry{{ID: entry, Account: 1, Kind: message.Freeze, N: recipients, Amount: int64(recipients) * 325}})
		return tx.SendBatch(t.Context(), &q).Close()
	}); err != nil {
		t.Fatal(err)
	}
	return b.msgIDs, messages, submits
}

func (b *bench) ended(t *testing.T, messages []int64) int64 {
	t.Helper()
	return b.count(t, `SELECT count(*) FROM message m WHERE id = ANY($1) AND state = 8 AND bill = 3 AND stat = 'DELETED' AND final_at IS NOT NULL
		AND (SELECT count(*) FROM delivery d WHERE d.message_id = m.id AND stat = 'DELETED') = 1 AND NOT EXISTS (SELECT FROM submit_outbox o WHERE o.message_id = m.id)`, messages)
}

func (b *bench) books(t *testing.T) {
	t.Helper()
	r, err := ledger.Verify(t.Context(), b.Pool)
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range r.Faults {
		t.Errorf("ledger: %s: %s: %s", f.Rule, f.Key, f.Detail)
	}
}

func TestCancelOfWhatIsInAQueue(t *testing.T) {
	t.Parallel()
	b := setup(t)
	one, list, _ := b.message(t, 1, 1)
	b.cancel(t, "another application's message", 12, one, false)
	b.cancel(t, "a pending message", 11, one, true)
	b.cancel(t, "the same again", 11, one, true)
	if b.ended(t, list) != 1 {
		t.Error("it has not ended")
	}
	group, list, _ := b.message(t, 3, 1)
	b.cancel(t, "one recipient", 11, group+1, true)
	if b.ended(t, list) != 1 {
		t.Error("not one of three has ended")
	}
	b.cancel(t, "the rest of a group of which one is cancelled", 11, group, false)
	group, list, submits := b.message(t, 3, 2)
	b.exec(t, `UPDATE submit_outbox SET state = 1, node = 1, at = now() WHERE id = $1`, submits[5])
	b.cancel(t, "a group of which one part is dispatched", 11, group, false)
	if n := b.count(t, `SELECT count(*) FROM submit_outbox WHERE id = ANY($1)`, submits); n != 6 || b.ended(t, list) != 0 {
		t.Errorf("%d commands left, want all 6: all or nothing", n)
	}
	b.exec(t, `UPDATE submit_outbox SET state = 0, node = NULL, at = NULL WHERE id = $1`, submits[5])
	b.cancel(t, "a group of long messages", 11, group, true)
	if b.ended(t, list) != 3 {
		t.Error("the group has not ended")
	}
	// By the Msg_Id of a segment.
	_, list, _ = b.message(t, 1, 2)
	b.msgIDs += 100
	b.exec(t, `INSERT INTO message_segment (message_id, msg_id, set_key, hash, accept_session, accepted_at, app_id, number, registered, accept_node) VALUES ($1, $2, 1, 1, 1, now(), 11, 2, 1, 1)`, list[0], int64(b.msgIDs))
	b.exec(t, `UPDATE message SET segments = 1 WHERE id = $1`, list[0])
	b.cancel(t, "a long message by its second segment", 11, b.msgIDs, true)
	if b.ended(t, list) != 1 {
		t.Error("the long message has not ended")
	}
	// Held for review.
	held, list, _ := b.message(t, 1, 1)
	b.exec(t, `DELETE FROM submit_outbox WHERE message_id = $1`, list[0])
	b.cancel(t, "a message whose command is gone", 11, held, false)
	b.exec(t, `INSERT INTO review_hold (message_id, enterprise_id, app_id, keyword_id, held_at, expires_at) VALUES ($1, 1, 11, 1, now(), now() + interval '1 day')`, list[0])
	b.cancel(t, "a held message", 11, held, true)
	if b.ended(t, list) != 1 || b.count(t, `SELECT count(*) FROM review_hold`) != 0 {
		t.Error("the held message has not ended")
	}
	b.books(t)
}

// CANCEL against the dispatch barrier, and against itself: a message is sent or cancelled, never both.
func TestCancelAgainstTheBarrier(t *testing.T) {
	t.Parallel()
	b := setup(t)
	for range 20 {
		id, list, submits := b.message(t, 1, 1)
		sent, cancelled := make(chan int64, 1), make(chan bool, 2)
		go func() {
			tag, err := b.Exec(context.Background(), store.SupplierBarrier, submits, 77, 1)
			if err != nil {
				t.Error(err)
			}
			sent <- tag.RowsAffected()
		}()
		for range 2 {
			go func() {
				ok, err := b.asked.Cancel(context.Background(), 1, 11, id)
				if err != nil {
					t.Error(err)
				}
				cancelled <- ok
			}()
		}
		n, first, second := <-sent, <-cancelled, <-cancelled
		if first != second || (n == 1) == first || b.ended(t, list) == 1 != first {
			t.Fatalf("%d dispatched, cancelled %t and %t", n, first, second)
		}
	}
	b.books(t)
}

func TestQuery(t *testing.T) {
	t.Parallel()
	b := setup(t)
	now := time.Now().In(cmpp.Shanghai)
	if now.Add(5*time.Minute).Day() != now.Day() {
		t.Skip("the day that is counted may end meanwhile")
	}
	today := now.Format("20060102")
	_, list, _ := b.message(t, 3, 1) // one SUBMIT of three: one goes on, one has failed
	b.exec(t, `UPDATE message SET state = 2, acc = 1 WHERE id = $1`, list[0])
	b.exec(t, `UPDATE message SET state = 6, bill = 3 WHERE id = $1`, list[1])
	_, list, _ = b.message(t, 1, 2) // a long one of two segments, of another service
	b.exec(t, `UPDATE message SET segments = 2, service = 'other' WHERE id = $1`, list[0])
	b.inbox(t, nil)
	got, err := b.asked.Query(t.Context(), 11, &cmpp.Query{Time: today})
	if want := (cmpp.QueryResp{Time: today, MTTLMsg: 4, MTTLUsr: 5, MTScs: 1, MTWT: 3, MTFL: 1}); err != nil || *got != want {
		t.Errorf("%+v, %v, want %+v", got, err, want)
	}
	got, err = b.asked.Query(t.Context(), 11, &cmpp.Query{Time: today, QueryType: 1, QueryCode: "other"})
	if want := (cmpp.QueryResp{Time: today, QueryType: 1, QueryCode: "other", MTTLMsg: 2, MTTLUsr: 1, MTWT: 1}); err != nil || *got != want {
		t.Errorf("%+v, %v, want %+v", got, err, want)
	}
	for _, q := range []cmpp.Query{{Time: today}, {Time: "20240101"}, {Time: "yesterday"}, {Time: today, QueryType: 2}} {
		app := int32(12)
		if got, err := b.asked.Query(t.Context(), app, &q); err != nil || *got != (cmpp.QueryResp{Time: q.Time, QueryType: q.QueryType}) {
			t.Errorf("%+v: %+v, %v", q, got, err)
		}
	}
}
