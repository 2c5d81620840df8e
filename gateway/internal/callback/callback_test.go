package callback_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/prometheus/client_golang/prometheus"
	"golang.org/x/sync/errgroup"

	"cmppgateway/gateway/internal/callback"
	"cmppgateway/gateway/internal/config"
	"cmppgateway/gateway/internal/event"
	"cmppgateway/gateway/internal/ledger"
	"cmppgateway/gateway/internal/message"
	"cmppgateway/gateway/internal/outbox"
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
INSERT INTO enterprise (id, name) VALUES (1, 'a');
INSERT INTO account (id, available) VALUES (1, 0);
INSERT INTO application (id, enterprise_id, price, sp_id, secret, name) VALUES (11, 1, 325, '100001', 's', 'a');
INSERT INTO supplier_account (id, max_connections, max_window, addr, sp_id, secret, name) VALUES (1, 8, 64, '127.0.0.1:1', '900001', 's', 's');
INSERT INTO channel (id, account_id, access_number, name) VALUES (1, 1, '1069', 'p'), (2, 1, '1069', 'b');
INSERT INTO channel_group (id, name) VALUES (1, 'g');
INSERT INTO channel_group_member (group_id, channel_id, priority) VALUES (1, 1, 0), (1, 2, 1);
INSERT INTO application_route (app_id, carrier, group_id) VALUES (11, 1, 1);`

type noHints struct{}

func (noHints) Hint(context.Context, int32, []outbox.Command) {}

// bench is a running server and its database.
type bench struct {
	*pgxpool.Pool // with which the tests look

	node  *store.Node
	pool  *pgxpool.Pool // the server's
	url   string
	bus   *wake.Bus
	token string
	full  *atomic.Int32 // supplier account without room for receipts
}

// Full implements callback.Parking.
func (b *bench) Full(account int32) bool { return account == b.full.Load() }

func setup(tb testing.TB, change ...func(*config.Config)) *bench {
	tb.Helper()
	cfg := config.Default()
	cfg.Postgres.URL = testenv.DB(tb)
	cfg.Postgres.AcquireTimeout = 500 * time.Millisecond
	cfg.Callback.Listen = "127.0.0.1:0"
	for _, f := range change {
		f(&cfg)
	}
	pools, err := store.Open(tb.Context(), cfg.Postgres, cfg.Callback.StatementTimeout)
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(pools.Close)
	b := &bench{Pool: pools.Admin, pool: pools.Callback, bus: wake.New(nil, slog.New(slog.DiscardHandler)), token: cfg.Callback.Token, full: new(atomic.Int32)}
	b.exec(tb, settingsSQL)
	if b.node, err = store.LeaseNode(tb.Context(), b.Pool, config.Node{Lease: time.Minute}, slog.New(slog.DiscardHandler)); err != nil {
		tb.Fatal(err)
	}
	if _, err := ledger.TopUp(tb.Context(), b.Pool, b.node.IDs, 1, 10_000_000, "opening"); err != nil {
		tb.Fatal(err)
	}
	watch := settings.NewWatcher(b.Pool, time.Hour, slog.New(slog.DiscardHandler))
	if err := watch.Refresh(tb.Context()); err != nil {
		tb.Fatal(err)
	}
	s, err := callback.New(tb.Context(), callback.Options{
		Config: cfg.Callback, Pool: pools.Callback, Node: b.node, Settings: watch, Wake: b.bus, Hints: noHints{},
		Log: slog.New(slog.NewTextHandler(tb.Output(), nil)), Registry: prometheus.NewRegistry(), Parking: b,
	})
	if err != nil {
		tb.Fatal(err)
	}
	b.url = "http://" + s.Addr() + event.Path
	ctx, cancel := context.WithCancel(context.Background())
	var g errgroup.Group
	g.Go(func() error { return s.Run(ctx) })
	tb.Cleanup(func() {
		cancel()
		if err := g.Wait(); err != nil {
			tb.Error(err)
		}
		http.DefaultClient.CloseIdleConnections()
	})
	return b
}

func (b *bench) exec(tb testing.TB, sql string, args ...any) {
	tb.Helper()
	if _, err := b.Exec(tb.Context(), sql, args...); err != nil {
		tb.Fatalf("%s: %v", sql, err)
	}
}

func (b *bench) count(tb testing.TB, sql string, args ...any) (n int64) {
	tb.Helper()
	if err := b.QueryRow(tb.Context(), sql, args...).Scan(&n); err != nil {
		tb.Fatalf("%s: %v", sql, err)
	}
	return n
}

func (b *bench) id(tb testing.TB) int64 {
	tb.Helper()
	id, err := b.node.IDs.Next(tb.Context())
	if err != nil {
		tb.Fatal(err)
	}
	return id
}

// dispatched makes a message whose one submit is on its way, and the result it would have when accepted.
func (b *bench) dispatched(tb testing.TB) event.SubmitResult {
	tb.Helper()
	msg, submit, entry := b.id(tb), b.id(tb), b.id(tb)
	err := store.InTx(tb.Context(), b.Pool, func(tx pgx.Tx) error {
		var q pgx.Batch
		q.Queue(`INSERT INTO message (id, msg_id, freeze_entry, price, phone, accept_session, accepted_at, created_at, enterprise_id, app_id, channel_id, units, price_version,
			state, bill, charge_on, refund_on, carrier, registered, fmt, udhi, pk_total, pk_number, accept_node, dest, src, service, content)
			VALUES ($1, $1, $2, 325, 13800000000, 1, now(), now(), 1, 11, 1, 1, 1, 1, 1, 1, 1, 1, 1, 0, 0, 1, 1, 1, '13800000000', '1069', '', 'text')`, msg, entry)
		q.Queue(`INSERT INTO submit_outbox (id, pos, message_id, channel_id, enterprise_id, attempt, part, parts, lane, state, node, batch, at)
			VALUES ($1, $1, $2, 1, 1, 1, 1, 1, 1, 1, 1, 1, now())`, submit, msg)
		ledger.Queue(&q, []ledger.Entry{{ID: entry, Account: 1, Kind: message.Freeze, N: 1, Amount: 325}})
		return tx.SendBatch(tb.Context(), &q).Close()
	})
	if err != nil {
		tb.Fatal(err)
	}
	return event.SubmitResult{
		SubmitID: submit, MessageID: msg, ChannelID: 1, AccountID: 1, State: event.Accepted, SupplierMsgID: uint64(submit), Node: 1, Attempt: 1, Part: 1, Parts: 1,
		Phone: 13800000000, Src: "1069", DispatchedAt: time.Now(), RespAt: time.Now(),
	}
}

func (b *bench) receipt(tb testing.TB, msgID uint64) event.Event {
	tb.Helper()
	return b.event(tb, event.TypeReceipt, event.Receipt{AccountID: 1, ChannelID: 1, SupplierMsgID: msgID, Phone: 13800000000, Stat: "DELIVRD", SubmitTime: "2611300000", At: time.Now()})
}

func (b *bench) event(tb testing.TB, kind string, payload any) event.Event {
	tb.Helper()
	raw, err := json.Marshal(payload)
	if err != nil {
		tb.Fatal(err)
	}
	id := b.id(tb)
	if r, ok := payload.(event.SubmitResult); ok {
		id = event.ResultID(r.SubmitID, r.State, r.SupplierMsgID)
	}
	return event.Event{ID: id, Type: kind, Payload: raw}
}

func body(tb testing.TB, events ...event.Event) []byte {
	tb.Helper()
	raw, err := json.Marshal(event.BatchRequest{BatchID: "CB-001", GatewayInstanceID: "test", CreatedAt: time.Now(), Events: events})
	if err != nil {
		tb.Fatal(err)
	}
	return raw
}

func (b *bench) post(tb testing.TB, method string, content io.Reader) (int, []byte, error) {
	tb.Helper()
	req, err := http.NewRequestWithContext(tb.Context(), method, b.url, content)
	if err != nil {
		tb.Fatal(err)
	}
	if b.token != "" {
		req.Header.Set("Authorization", "Bearer "+b.token)
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return 0, nil, err
	}
	defer resp.Body.Close()
	answer, err := io.ReadAll(resp.Body)
	return resp.StatusCode, answer, err
}

// offer offers events as one batch and gives the answers in their order.
func (b *bench) offer(tb testing.TB, events ...event.Event) []event.Result {
	tb.Helper()
	status, answer, err := b.post(tb, http.MethodPost, bytes.NewReader(body(tb, events...)))
	if err != nil || status != http.StatusOK {
		tb.Fatalf("%d %s, %v", status, answer, err)
	}
	var r event.BatchResponse
	if err := json.Unmarshal(answer, &r); err != nil || r.BatchID != "CB-001" || len(r.Results) != len(events) {
		tb.Fatalf("%s, %v", answer, err)
	}
	for i := range events {
		if r.Results[i].EventID != events[i].ID {
			tb.Fatalf("answer %d is of event %d, want %d", i, r.Results[i].EventID, events[i].ID)
		}
	}
	return r.Results
}

func (b *bench) accepted(tb testing.TB, events ...event.Event) {
	tb.Helper()
	for i, r := range b.offer(tb, events...) {
		if !r.Accepted || r.Retryable || r.ErrorCode != "" {
			tb.Errorf("event %d: %+v", i, r)
		}
	}
}

func (b *bench) books(tb testing.TB) {
	tb.Helper()
	r, err := ledger.Verify(tb.Context(), b.Pool)
	if err != nil {
		tb.Fatal(err)
	}
	for _, f := range r.Faults {
		tb.Errorf("ledger: %s: %s: %s", f.Rule, f.Key, f.Detail)
	}
}

// Every type of event takes effect once, however often the batch is offered.
func TestWholeBatchAgain(t *testing.T) {
	t.Parallel()
	b := setup(t)
	nudged := b.bus.Subscribe(wake.Receipts)
	lost := b.dispatched(t)
	lost.State, lost.SupplierMsgID, lost.RespAt = event.Unknown, 0, time.Time{}
	found := lost
	found.State, found.SupplierMsgID, found.RespAt = event.Accepted, 5, time.Now()
	refused := b.dispatched(t)
	refused.State, refused.Result, refused.SupplierMsgID = event.Rejected, 8, 0
	uplink := event.Uplink{AccountID: 1, ChannelID: 1, SupplierMsgID: 1 << 63, Phone: "13800000000", Dest: "1069", Fmt: 15, Content: []byte("yes"), At: time.Now()}
	events := []event.Event{
		b.event(t, event.TypeSubmitResult, b.dispatched(t)), b.event(t, event.TypeSubmitResult, lost), b.event(t, event.TypeSubmitResult, found),
		b.event(t, event.TypeSubmitSegmentResult, refused), b.receipt(t, 1<<63+1), b.receipt(t, 2), b.event(t, event.TypeUplink, uplink),
		b.event(t, event.TypeUplink, uplink), // the supplier repeats it: another event
		b.event(t, event.TypeDeadLetter, event.DeadLetter{AccountID: 1, Kind: "deliver", Reason: "unreadable", Raw: []byte{0, 1}, At: time.Now()}),
	}
	for range 3 {
		b.accepted(t, events...)
	}
	select {
	case <-nudged:
	default:
		t.Error("settlement was not nudged")
	}
	for sql, want := range map[string]int64{
		`SELECT count(*) FROM submit WHERE state = 2`:                                2,
		`SELECT count(*) FROM submit WHERE state = 3`:                                1,
		`SELECT count(*) FROM submit_outbox WHERE state = 0 AND retry_of <> 0`:       1,
		`SELECT count(*) FROM submit_outbox WHERE state = 1`:                         0,
		`SELECT count(*) FROM unknown_submit`:                                        0,
		`SELECT count(*) FROM message WHERE state = 2 AND bill = 2`:                  2,
		`SELECT count(*) FROM receipt WHERE shard = 1`:                               2,
		`SELECT count(*) FROM receipt WHERE supplier_msg_id < 0`:                     1,
		`SELECT count(*) FROM uplink WHERE content = 'yes'`:                          1,
		`SELECT count(*) FROM dead_letter WHERE kind = 'deliver' AND raw = '\x0001'`: 1,
		`SELECT count(*) FROM submit_exception`:                                      0,
		`SELECT count(*) FROM (SELECT seq FROM receipt GROUP BY seq) s`:              2,
	} {
		if got := b.count(t, sql); got != want {
			t.Errorf("%s: %d, want %d", sql, got, want)
		}
	}
	b.books(t)
}

// A batch whose answer was lost on the way applies once.
func TestLostAnswer(t *testing.T) {
	t.Parallel()
	b := setup(t)
	events := []event.Event{b.event(t, event.TypeSubmitResult, b.dispatched(t)), b.receipt(t, 1)}
	conn, err := new(net.Dialer).DialContext(t.Context(), "tcp", strings.TrimSuffix(strings.TrimPrefix(b.url, "http://"), event.Path))
	if err != nil {
		t.Fatal(err)
	}
	raw := body(t, events...)
	if _, err := fmt.Fprintf(conn, "POST %s HTTP/1.1\r\nHost: x\r\nContent-Length: %d\r\n\r\n%s", event.Path, len(raw), raw); err != nil {
		t.Fatal(err)
	}
	if err := conn.Close(); err != nil { // gone before the answer
		t.Fatal(err)
	}
	for range 2 {
		b.accepted(t, events...)
	}
	if n := b.count(t, `SELECT count(*) FROM message WHERE state = 2 AND bill = 2`); n != 1 {
		t.Errorf("%d messages charged, want 1", n)
	}
	if n := b.count(t, `SELECT count(*) FROM receipt`); n != 1 {
		t.Errorf("%d receipts, want 1", n)
	}
	b.books(t)
}

// One bad event neither holds its neighbours nor is it lost.
func TestBadEventsStandAlone(t *testing.T) {
	t.Parallel()
	b := setup(t)
	vanished := b.dispatched(t)
	b.exec(t, `UPDATE submit_outbox SET message_id = 1 WHERE id = $1`, vanished.SubmitID) // its message is not there
	impossible := b.dispatched(t)
	impossible.State = "perhaps"
	early := b.receipt(t, 3)
	early.ID = 7 // of a day that has no partition
	events := []event.Event{
		b.event(t, event.TypeSubmitResult, b.dispatched(t)), b.event(t, event.TypeSubmitResult, vanished), b.event(t, event.TypeSubmitResult, impossible),
		{ID: b.id(t), Type: "surprise", Payload: []byte(`{}`)},
		{ID: b.id(t), Type: event.TypeUplink, Payload: []byte(`[1]`)},
		{ID: b.id(t), Type: event.TypeReceipt},
		early, b.receipt(t, 1), b.receipt(t, 2), b.event(t, event.TypeSubmitResult, b.dispatched(t)),
	}
	want := []string{"", "INTERNAL", "BAD_EVENT", "UNKNOWN_TYPE", "BAD_EVENT", "BAD_EVENT", "INTERNAL", "", "", ""}
	for range 2 {
		for i, r := range b.offer(t, events...) {
			if r.ErrorCode != want[i] || r.Accepted != (want[i] == "") || r.Retryable {
				t.Errorf("event %d: %+v, want %q", i, r, want[i])
			}
		}
	}
	if n := b.count(t, `SELECT count(*) FROM dead_letter WHERE reason LIKE 'INTERNAL: %' OR reason LIKE 'BAD_EVENT: %' OR reason LIKE 'UNKNOWN_TYPE: %'`); n != 6 {
		t.Errorf("%d dead letters, want 6", n)
	}
	if n := b.count(t, `SELECT count(*) FROM dead_letter WHERE id = $1 AND raw = $2`, events[4].ID, []byte(`[1]`)); n != 1 {
		t.Error("the octets of a bad event were not kept")
	}
	if n := b.count(t, `SELECT count(*) FROM message WHERE state = 2`); n != 2 {
		t.Errorf("%d messages submitted, want 2", n)
	}
	if n := b.count(t, `SELECT count(*) FROM receipt`); n != 2 {
		t.Errorf("%d receipts, want 2", n)
	}
}

// Zero octets, with which suppliers pad fields, are no reason to lose a receipt.
func TestPaddedText(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.accepted(t,
		b.event(t, event.TypeReceipt, event.Receipt{AccountID: 1, Stat: "DELIVRD\x00", Src: "1069\x00\x00", At: time.Now()}),
		b.event(t, event.TypeUplink, event.Uplink{AccountID: 1, Phone: "13800000000\x00", At: time.Now()}))
	if n := b.count(t, `SELECT count(*) FROM receipt WHERE stat = 'DELIVRD' AND src = '1069'`); n != 1 {
		t.Error("the receipt is not there as it was meant")
	}
}

func TestLimits(t *testing.T) {
	t.Parallel()
	b := setup(t, func(c *config.Config) { c.Callback.Token = "secret" })
	one := b.event(t, event.TypeDeadLetter, event.DeadLetter{Raw: []byte{}})
	many := make([]event.Event, 101)
	for i := range many {
		many[i] = one
	}
	large := one
	large.Payload = []byte(`"` + strings.Repeat("x", event.MaxBytes) + `"`)
	for name, c := range map[string]struct {
		method, token, path string
		body                []byte
		status              int
		code, text          string
	}{
		"no event":        {http.MethodPost, "secret", "", body(t), 400, "BAD_REQUEST", "events: 0: want 1..100"},
		"101 events":      {http.MethodPost, "secret", "", body(t, many...), 400, "BAD_REQUEST", "events: 101: want 1..100"},
		"over a megabyte": {http.MethodPost, "secret", "", body(t, large), 413, "TOO_LARGE", "body: more than 1048576 octets"},
		"no JSON":         {http.MethodPost, "secret", "", []byte("{"), 400, "BAD_REQUEST", "body: "},
		"no number":       {http.MethodPost, "secret", "", []byte(`{"batchId":"a","events":[{"eventId":"EV","type":"uplink","payload":{}}]}`), 400, "BAD_REQUEST", "events[0].eventId: EV: want a number"},
		"no event id":     {http.MethodPost, "secret", "", []byte(`{"batchId":"a","events":[{"type":"uplink","payload":{}}]}`), 400, "BAD_REQUEST", "events[0].eventId: 0: want above 0"},
		"no batch id":     {http.MethodPost, "secret", "", []byte(`{"events":[]}`), 400, "BAD_REQUEST", "batchId: 0 octets: want 1..200"},
		"other type":      {http.MethodPost, "secret", "", []byte(`{"batchId":7}`), 400, "BAD_REQUEST", "batchId: number"},
		"wrong token":     {http.MethodPost, "secrets", "", body(t, one), 401, "UNAUTHORIZED", "callback.token"},
		"no token":        {http.MethodPost, "", "", body(t, one), 401, "UNAUTHORIZED", "callback.token"},
		"wrong method":    {http.MethodPut, "secret", "", body(t, one), 405, "METHOD_NOT_ALLOWED", "method PUT: want POST"},
		"wrong path":      {http.MethodPost, "secret", "x", body(t, one), 404, "NOT_FOUND", event.Path},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			other := *b
			other.token, other.url = c.token, b.url+c.path
			status, answer, err := other.post(t, c.method, bytes.NewReader(c.body))
			if err != nil {
				t.Fatal(err)
			}
			var got struct{ Code, Message string }
			if err := json.Unmarshal(answer, &got); err != nil || status != c.status || got.Code != c.code || !strings.Contains(got.Message, c.text) {
				t.Errorf("%d %s (%v), want %d %s … %s", status, answer, err, c.status, c.code, c.text)
			}
		})
	}
	b.accepted(t, one)
}

// While the database has no connection to give, events are to be offered again; nothing is lost and nothing refused.
func TestBusy(t *testing.T) {
	t.Parallel()
	b := setup(t, func(c *config.Config) { c.Callback.RequestDeadline = 3 * time.Second })
	events := []event.Event{
		b.event(t, event.TypeSubmitResult, b.dispatched(t)), b.receipt(t, 1), b.event(t, event.TypeUplink, event.Uplink{AccountID: 1, At: time.Now()}),
		b.event(t, event.TypeDeadLetter, event.DeadLetter{Raw: []byte{1}}),
		{ID: b.id(t), Type: "surprise", Payload: []byte(`{}`)},
	}
	var held []*pgxpool.Conn
	for range b.pool.Config().MaxConns {
		conn, err := b.pool.Acquire(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		held = append(held, conn)
	}
	for i, r := range b.offer(t, events...) {
		if r.Accepted || !r.Retryable || r.ErrorCode != "DB_BUSY" && r.ErrorCode != "TIMEOUT" {
			t.Errorf("event %d: %+v", i, r)
		}
	}
	for _, conn := range held {
		conn.Release()
	}
	b.accepted(t, events[:4]...)
	if n := b.count(t, `SELECT count(*) FROM receipt`); n != 1 {
		t.Errorf("%d receipts, want 1", n)
	}
	b.books(t)
}

// A statement that waits for a lock ends before the client gives up, and its transaction with it.
func TestDeadline(t *testing.T) {
	t.Parallel()
	b := setup(t, func(c *config.Config) {
		c.Callback.StatementTimeout, c.Callback.RequestDeadline = 300*time.Millisecond, time.Second
	})
	r := b.dispatched(t)
	tx, err := b.Begin(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if _, err := tx.Exec(t.Context(), `SELECT 1 FROM message WHERE id = $1 FOR UPDATE`, r.MessageID); err != nil {
		t.Fatal(err)
	}
	e := b.event(t, event.TypeSubmitResult, r)
	if got := b.offer(t, e)[0]; got.Accepted || !got.Retryable || got.ErrorCode != "TIMEOUT" {
		t.Errorf("%+v", got)
	}
	if err := tx.Rollback(t.Context()); err != nil {
		t.Fatal(err)
	}
	b.accepted(t, e)
	b.books(t)
}

// Receipts of an account that has too many parked ones are to be offered again; the others are taken.
func TestReceiptsWithoutRoom(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.full.Store(2)
	of := func(account int32) event.Event {
		return b.event(t, event.TypeReceipt, event.Receipt{AccountID: account, ChannelID: 1, SupplierMsgID: 7, Phone: 13800000000, Stat: "DELIVRD", SubmitTime: "2611300000", At: time.Now()})
	}
	events := []event.Event{of(2), of(1), of(2), of(1)}
	for i, r := range b.offer(t, events...) {
		if want := (event.Result{EventID: events[i].ID, Accepted: true}); i%2 == 1 && r != want {
			t.Errorf("event %d: %+v, want %+v", i, r, want)
		}
		if want := (event.Result{EventID: events[i].ID, Retryable: true, ErrorCode: "DB_BUSY"}); i%2 == 0 && r != want {
			t.Errorf("event %d: %+v, want %+v", i, r, want)
		}
	}
	if n := b.count(t, `SELECT count(*) FROM receipt`); n != 2 {
		t.Errorf("%d receipts in the log, want 2", n)
	}
	b.full.Store(0)
	for i, r := range b.offer(t, events...) {
		if !r.Accepted {
			t.Errorf("event %d with room: %+v", i, r)
		}
	}
	if n := b.count(t, `SELECT count(*) FROM receipt`); n != 4 {
		t.Errorf("%d receipts in the log, want 4", n)
	}
}
