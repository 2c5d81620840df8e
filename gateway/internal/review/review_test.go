package review_test

import (
	"context"
	"log/slog"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"

	"cmppgateway/gateway/internal/message"
	"cmppgateway/gateway/internal/outbox"
	"cmppgateway/gateway/internal/review"
	"cmppgateway/gateway/internal/settings"
	"cmppgateway/gateway/internal/store"
	"cmppgateway/gateway/internal/wake"
	"cmppgateway/testenv"
)

func TestMain(m *testing.M) {
	testenv.Migrated(store.Migrate)
	testenv.Main(m)
}

const settingsSQL = `
INSERT INTO enterprise (id, name) VALUES (1, 'a'), (2, 'b');
INSERT INTO account (id, available) VALUES (1, 0), (2, 0);
INSERT INTO application (id, enterprise_id, price, sp_id, secret, name) VALUES (11, 1, 325, '100001', 's', 'a'), (12, 2, 325, '100002', 's', 'b');
INSERT INTO application_stat VALUES (11, 3, 'REVIEW');
INSERT INTO supplier_account (id, max_connections, max_window, addr, sp_id, secret, name) VALUES (1, 8, 64, '127.0.0.1:1', '9', 's', 's');
INSERT INTO channel (id, account_id, access_number, name) VALUES (1, 1, '1069', 'p'), (2, 1, '1069', 'b');
INSERT INTO channel_group (id, name) VALUES (1, 'g');
INSERT INTO channel_group_member (group_id, channel_id, priority) VALUES (1, 1, 0), (1, 2, 1);
INSERT INTO application_route (app_id, carrier, group_id) SELECT id, 1, 1 FROM application;
INSERT INTO keyword (id, word, action) VALUES (2, '代开', 2);`

type bench struct {
	*pgxpool.Pool

	*review.Review

	ids   *message.IDs
	watch *settings.Watcher
	bus   *wake.Bus
	reg   *prometheus.Registry
}

func setup(t *testing.T) *bench {
	t.Helper()
	pool, err := pgxpool.New(t.Context(), testenv.DB(t))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(pool.Close)
	log := slog.New(slog.DiscardHandler)
	b := &bench{
		Pool: pool, ids: message.NewIDs(1, time.Now().Add(-time.Second), time.Now().Add(time.Hour), time.Now),
		watch: settings.NewWatcher(pool, time.Hour, log), bus: wake.New(nil, log), reg: prometheus.NewRegistry(),
	}
	b.exec(t, settingsSQL)
	b.refresh(t)
	b.Review = review.New(review.Options{Pool: pool, IDs: b.ids, Settings: b.watch, Wake: b.bus, Log: log, Registry: b.reg})
	return b
}

func (b *bench) refresh(t *testing.T) {
	t.Helper()
	b.exec(t, `UPDATE settings_version SET version = version + 1`)
	if err := b.watch.Refresh(t.Context()); err != nil {
		t.Fatal(err)
	}
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

// hold puts a message of two units into review, as the workflow does: frozen, counted, without a submit.
func (b *bench) hold(t *testing.T, enterprise int32, phone int64, more string) int64 {
	t.Helper()
	id, err := b.ids.Next(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	var q pgx.Batch
	q.Queue(`INSERT INTO message (id, msg_id, freeze_entry, price, phone, accept_session, accepted_at, created_at, valid_until, enterprise_id, app_id, channel_id, units, price_version, state, bill,
			charge_on, refund_on, carrier, lane, registered, fmt, udhi, pk_total, pk_number, accept_node, dest, src, service, content, signature, keyword_id)
		VALUES ($1, $1, 0, 325, $2::bigint, 1, now(), now(), now() + interval '1 day', $3::int, 10 + $3::int, 1, 2, 1, 1, 1, 1, 1, 1, 2, 1, 8, 0, 1, 1, 1, $2::bigint::text::bytea, '1069', '', 'x', '北方', 2)`, id, phone, enterprise)
	q.Queue(`INSERT INTO review_hold VALUES ($1, $2, $3, 2, now(), now() + interval '1 day')`, id, enterprise, 10+enterprise)
	q.Queue(`INSERT INTO daily_use VALUES ($1, (now() AT TIME ZONE 'Asia/Shanghai')::date, $2, 1) ON CONFLICT (enterprise_id, day, app_id) DO UPDATE SET messages = daily_use.messages + 1`, enterprise, 10+enterprise)
	if more != "" {
		q.Queue(more, id)
	}
	if err := b.SendBatch(t.Context(), &q).Close(); err != nil {
		t.Fatal(err)
	}
	return id
}

type decision func(context.Context, pgx.Tx, []int64) (review.Outcome, error)

func (b *bench) decide(t *testing.T, d decision, ids ...int64) review.Outcome {
	t.Helper()
	var o review.Outcome
	if err := store.Retry(t.Context(), b.Pool, func(tx pgx.Tx) (err error) {
		o, err = d(t.Context(), tx, ids)
		return err
	}); err != nil {
		t.Fatal(err)
	}
	b.Committed(o)
	return o
}

// outcome is what the database says of a message: state/bill/reason, its command's channel, the Stat its customer is told.
func (b *bench) outcome(t *testing.T, id int64) (s string) {
	t.Helper()
	if err := b.QueryRow(t.Context(), `SELECT m.state || '/' || m.bill || '/' || m.reason || ' channel ' || coalesce((SELECT string_agg(channel_id::text, ',') FROM submit_outbox WHERE message_id = m.id), '-')
		|| ' told ' || coalesce((SELECT string_agg(stat, ',') FROM delivery WHERE message_id = m.id), '-') || ' held ' || (SELECT count(*) FROM review_hold WHERE message_id = m.id)
		|| CASE WHEN m.state > 3 AND (m.final_at IS NULL OR m.settle_entry = 0) THEN ' open' ELSE '' END
		FROM message m WHERE id = $1`, id).Scan(&s); err != nil {
		t.Fatal(err)
	}
	return s
}

func TestDecisions(t *testing.T) {
	t.Parallel()
	b := setup(t)
	approved, rejected := b.hold(t, 1, 13800000001, ""), b.hold(t, 1, 13800000002, "")
	silent := b.hold(t, 2, 13800000003, `UPDATE message SET registered = 0 WHERE id = $1`)
	waits := b.hold(t, 1, 13800000004, "")
	deliveries, commands := b.bus.Subscribe(wake.Deliveries), b.bus.Subscribe(outbox.Topic(1))

	list, err := b.List(t.Context(), 1, 0, 2)
	if err != nil || len(list) != 2 || list[0].MessageID != approved || list[1].MessageID != rejected || list[0].Word != "代开" || list[0].Phone != 13800000001 {
		t.Fatalf("list %+v, %v", list, err)
	}
	if list, err = b.List(t.Context(), 0, rejected, 9); err != nil || len(list) != 2 || list[0].MessageID != silent {
		t.Fatalf("list behind %+v, %v", list, err)
	}

	if o := b.decide(t, b.Approve, approved, approved); !slices.Equal(o.Approved, []int64{approved}) || len(o.Refused)+len(o.Gone) != 0 {
		t.Errorf("approved: %+v", o)
	}
	if o := b.decide(t, b.Reject, silent, rejected, approved, 7); len(o.Refused) != 2 || o.Refused[rejected] != message.ReasonKeyword || !slices.Equal(o.Gone, []int64{7, approved}) {
		t.Errorf("rejected: %+v", o)
	}
	if o := b.decide(t, b.Approve, rejected); !slices.Equal(o.Gone, []int64{rejected}) {
		t.Errorf("decided again: %+v", o)
	}
	for id, want := range map[int64]string{
		approved: "1/1/0 channel 1 told - held 0", rejected: "6/3/3 channel - told REVIEW held 0", silent: "6/3/3 channel - told - held 0", waits: "1/1/0 channel - told - held 1",
	} {
		if got := b.outcome(t, id); got != want {
			t.Errorf("message %d: %s, want %s", id, got, want)
		}
	}
	for what, n := range map[string]int64{
		"released to 1": b.count(t, `SELECT available FROM account WHERE id = 1`) - 650,
		"released to 2": b.count(t, `SELECT available FROM account WHERE id = 2`) - 650,
		"entries":       b.count(t, `SELECT count(*) FROM account_entry WHERE kind = 4 AND n = 1 AND amount = 650`) - 2,
		"counter of 1":  b.count(t, `SELECT sum(messages) FROM daily_use WHERE app_id = 11`) - 2,
		"counter of 2":  b.count(t, `SELECT sum(messages) FROM daily_use WHERE app_id = 12`),
		"commands":      b.count(t, `SELECT count(*) FROM submit_outbox WHERE attempt = 1 AND part = 1 AND parts = 1 AND lane = 2 AND state = 0`) - 1,
	} {
		if n != 0 {
			t.Errorf("%s: off by %d", what, n)
		}
	}
	for _, c := range []<-chan struct{}{deliveries, commands} {
		select {
		case <-c:
		default:
			t.Error("nobody was nudged")
		}
	}
	if _, err := b.Approve(t.Context(), nil, make([]int64, review.DecideMax+1)); err == nil {
		t.Error("too many were taken")
	}
}

// An approved message meets what has changed while it was held.
func TestApprovedButNoLongerSendable(t *testing.T) {
	t.Parallel()
	b := setup(t)
	backup := b.hold(t, 1, 13800000001, "")
	optedOut := b.hold(t, 1, 13800000002, "")
	other := b.hold(t, 1, 13800000005, `UPDATE message SET signature = '南方' WHERE id = $1`)
	late := b.hold(t, 1, 13800000003, `UPDATE message SET valid_until = now() - interval '1 second' WHERE id = $1`)
	stopped := b.hold(t, 2, 13800000004, "")
	b.exec(t, `INSERT INTO opt_out (phone, enterprise_id, signature, marketing_only, source, uplink_event_id) VALUES (13800000002, 1, '北方', true, 2, 77), (13800000005, 1, '北方', true, 2, 78);
		UPDATE enterprise SET status = 2 WHERE id = 2; UPDATE channel SET enabled = false WHERE id = 1`)
	b.refresh(t)
	o := b.decide(t, b.Approve, backup, optedOut, other, late, stopped)
	if !slices.Equal(o.Approved, []int64{backup, other}) || len(o.Refused) != 3 {
		t.Errorf("outcome %+v", o)
	}
	b.exec(t, `UPDATE channel SET enabled = false`)
	b.refresh(t)
	noRoute := b.hold(t, 1, 13800000006, "")
	b.decide(t, b.Approve, noRoute)
	for id, want := range map[int64]string{
		backup:   "1/1/0 channel 2 told - held 0",
		optedOut: "6/3/4 channel - told BLACK held 0",
		other:    "1/1/0 channel 2 told - held 0",
		late:     "7/3/11 channel - told EXPIRED held 0",
		stopped:  "6/3/9 channel - told STATUS held 0",
		noRoute:  "6/3/8 channel - told NOROUTE held 0",
	} {
		if got := b.outcome(t, id); got != want {
			t.Errorf("message of %s: %s", want, got)
		}
	}
	if n := b.count(t, `SELECT count(*) FROM message WHERE id = $1 AND channel_id = 2`, backup); n != 1 {
		t.Error("the message does not name its channel")
	}
}

func TestAllSegmentsOfALongMessageGo(t *testing.T) {
	t.Parallel()
	b := setup(t)
	id := b.hold(t, 1, 13800000001, `UPDATE message SET parts = 3 WHERE id = $1`)
	b.decide(t, b.Approve, id)
	if n := b.count(t, `SELECT count(*) FROM submit_outbox WHERE message_id = $1 AND parts = 3 AND part BETWEEN 1 AND 3 AND channel_id = 1`, id); n != 3 {
		t.Errorf("%d commands, want 3", n)
	}
	if n := b.count(t, `SELECT count(DISTINCT part) FROM submit_outbox WHERE message_id = $1`, id); n != 3 {
		t.Errorf("%d parts, want 3", n)
	}
}

// Whoever decides at the same time, each message is decided once.
func TestDecidedAtOnce(t *testing.T) {
	t.Parallel()
	b := setup(t)
	var ids []int64
	for i := range 40 {
		ids = append(ids, b.hold(t, int32(i%2+1), 13800000000+int64(i), ""))
	}
	reversed := slices.Clone(ids)
	slices.Reverse(reversed)
	var wg sync.WaitGroup
	outcomes, errs := make([]review.Outcome, 4), make([]error, 4)
	for i, d := range []decision{b.Approve, b.Reject, b.Approve, b.Reject} {
		list := ids
		if i%2 == 1 {
			list = reversed
		}
		wg.Go(func() {
			errs[i] = store.Retry(t.Context(), b.Pool, func(tx pgx.Tx) (err error) {
				outcomes[i], err = d(t.Context(), tx, list)
				return err
			})
		})
	}
	wg.Wait()
	total := 0
	for i, o := range outcomes {
		if errs[i] != nil {
			t.Fatal(errs[i])
		}
		total += len(o.Approved) + len(o.Refused)
	}
	if total != len(ids) {
		t.Errorf("%d decisions about %d messages", total, len(ids))
	}
	if n := b.count(t, `SELECT count(*) FROM message m WHERE (SELECT count(*) FROM submit_outbox WHERE message_id = m.id) + (SELECT count(*) FROM delivery WHERE message_id = m.id) <> 1`); n != 0 {
		t.Errorf("%d messages with not one outcome", n)
	}
}

// A decision whose transaction is rolled back has decided nothing.
func TestRolledBack(t *testing.T) {
	t.Parallel()
	b := setup(t)
	id := b.hold(t, 1, 13800000001, "")
	tx, err := b.Begin(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if _, err := b.Reject(t.Context(), tx, []int64{id}); err != nil {
		t.Fatal(err)
	}
	if err := tx.Rollback(t.Context()); err != nil {
		t.Fatal(err)
	}
	if got := b.outcome(t, id); got != "1/1/0 channel - told - held 1" {
		t.Error(got)
	}
	// What ended otherwise meanwhile is not touched.
	b.exec(t, `UPDATE message SET state = 8, bill = 3 WHERE id = $1`, id)
	if o := b.decide(t, b.Approve, id); !slices.Equal(o.Gone, []int64{id}) {
		t.Errorf("a cancelled message: %+v", o)
	}
	if n := b.count(t, `SELECT count(*) FROM submit_outbox`); n != 0 {
		t.Error("a cancelled message was sent")
	}
}

func TestSweep(t *testing.T) {
	t.Parallel()
	b := setup(t)
	var due []int64
	for i := range 210 { // more than one transaction takes
		due = append(due, b.hold(t, int32(i%2+1), 13800000000+int64(i), `UPDATE review_hold SET expires_at = now() - interval '1 second' WHERE message_id = $1`))
	}
	waits := b.hold(t, 1, 13800009999, "")
	b.exec(t, `INSERT INTO prefix_rule (prefix, carrier, until) VALUES ('138', 2, now() - interval '1 second'), ('139', 2, NULL)`)
	reload := b.bus.Subscribe(wake.Settings)
	version := b.count(t, `SELECT version FROM settings_version`)
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- b.Run(ctx) }()
	for deadline := time.Now().Add(30 * time.Second); b.count(t, `SELECT count(*) FROM review_hold`) > 1; {
		if time.Now().After(deadline) {
			t.Fatal("holds do not end")
		}
	}
	select {
	case <-reload:
	case <-time.After(30 * time.Second):
		t.Fatal("nobody loads the settings again")
	}
	cancel()
	if err := <-done; err != nil {
		t.Error(err)
	}
	if n := b.count(t, `SELECT count(*) FROM message m JOIN delivery d ON d.message_id = m.id WHERE m.state = 7 AND m.reason = 11 AND m.bill = 3 AND d.stat = 'EXPIRED'`); n != int64(len(due)) {
		t.Errorf("%d expired, want %d", n, len(due))
	}
	if got := b.outcome(t, waits); got != "1/1/0 channel - told - held 1" {
		t.Error(got)
	}
	if n := b.count(t, `SELECT sum(available) FROM account`); n != 650*int64(len(due)) {
		t.Errorf("released %d", n)
	}
	if n := b.count(t, `SELECT version FROM settings_version`); n != version+1 || b.count(t, `SELECT count(*) FROM prefix_rule`) != 1 {
		t.Errorf("settings version %d after %d, rules left %d", n, version, b.count(t, `SELECT count(*) FROM prefix_rule`))
	}
	if n, err := testutil.GatherAndCount(b.reg, "cmppgw_review_holds", "cmppgw_review_oldest_seconds", "cmppgw_review_decided_total"); err != nil || n != 4 { // two outcomes
		t.Errorf("%d metrics, %v", n, err)
	}
}
