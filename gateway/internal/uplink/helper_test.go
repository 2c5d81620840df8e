package uplink_test

import (
	"context"
	"hash/fnv"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/prometheus/client_golang/prometheus"

	"cmppgateway/gateway/internal/config"
	"cmppgateway/gateway/internal/message"
	"cmppgateway/gateway/internal/settings"
	"cmppgateway/gateway/internal/store"
	"cmppgateway/gateway/internal/uplink"
	"cmppgateway/gateway/internal/wake"
	"cmppgateway/gateway/sms"
	"cmppgateway/testenv"
)

func TestMain(m *testing.M) {
	testenv.Migrated(store.Migrate)
	testenv.Main(m)
}

// bench is a database with two enterprises: application 11 has the number 1069000111, application 12 has 1069000122,
// application 13 of the second none; all go through channel 101 with 10690001 of account 1.
type bench struct {
	*pgxpool.Pool

	cfg      config.Uplink
	node     *store.Node
	settings *settings.Watcher
	bus      *wake.Bus
	registry *prometheus.Registry
}

var quiet = slog.New(slog.DiscardHandler)

func setup(tb testing.TB) *bench {
	tb.Helper()
	pool, err := pgxpool.New(tb.Context(), testenv.DB(tb))
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(pool.Close)
	b := &bench{Pool: pool, cfg: config.Default().Uplink, bus: wake.New(nil, quiet), registry: prometheus.NewRegistry()}
	b.cfg.Poll = 20 * time.Millisecond
	b.exec(tb, `
INSERT INTO enterprise (id, name) VALUES (1, 'a'), (2, 'b');
INSERT INTO application (id, enterprise_id, price, sp_id, secret, name, access_number) VALUES
  (11, 1, 325, '100011', 's', 'a1', '1069000111'), (12, 1, 325, '100012', 's', 'a2', '1069000122'), (13, 2, 325, '100013', 's', 'b', '');
INSERT INTO supplier_account (id, max_connections, max_window, addr, sp_id, secret, name) VALUES (1, 1, 16, '127.0.0.1:1', '900001', 's', 'x');
INSERT INTO channel (id, account_id, access_number, name) VALUES (101, 1, '10690001', 'x');
INSERT INTO channel_group (id, name) VALUES (1, 'g');
INSERT INTO channel_group_member (group_id, channel_id) VALUES (1, 101);
INSERT INTO application_route (app_id, carrier, group_id) VALUES (11, 1, 1), (12, 1, 1), (13, 1, 1);`)
	if b.node, err = store.LeaseNode(tb.Context(), pool, config.Node{Lease: time.Minute}, quiet); err != nil {
		tb.Fatal(err)
	}
	b.settings = settings.NewWatcher(pool, time.Hour, quiet)
	b.refresh(tb)
	return b
}

func (b *bench) refresh(tb testing.TB) {
	tb.Helper()
	b.exec(tb, "UPDATE settings_version SET version = version + 1")
	if err := b.settings.Refresh(tb.Context()); err != nil {
		tb.Fatal(err)
	}
}

func (b *bench) exec(tb testing.TB, sql string, args ...any) {
	tb.Helper()
	if _, err := b.Exec(tb.Context(), sql, args...); err != nil {
		tb.Fatalf("%s: %v", sql, err)
	}
}

func (b *bench) count(tb testing.TB, sql string, args ...any) (n int) {
	tb.Helper()
	if err := b.QueryRow(tb.Context(), sql, args...).Scan(&n); err != nil {
		tb.Fatalf("%s: %v", sql, err)
	}
	return n
}

// run starts the work in this process; stop ends it.
func (b *bench) run(tb testing.TB) (stop func()) {
	tb.Helper()
	return b.runOn(tb, b.Pool, b.registry)
}

func (b *bench) runOn(tb testing.TB, pool *pgxpool.Pool, registry *prometheus.Registry) (stop func()) {
	tb.Helper()
	u := uplink.New(uplink.Options{Config: b.cfg, Pool: pool, IDs: b.node.IDs, Settings: b.settings, Wake: b.bus, Log: quiet, Registry: registry})
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- u.Run(ctx) }()
	stop = sync.OnceFunc(func() {
		cancel()
		if err := <-done; err != nil {
			tb.Error(err)
		}
	})
	tb.Cleanup(stop)
	return stop
}

// sent is an uplink as a supplier sends it.
type sent struct {
	msgID       uint64
	phone, dest string
	fmt, udhi   int16
	content     []byte
}

// said is a single uplink.
func said(msgID uint64, phone, dest, text string) sent {
	f := sms.PickFmt(text)
	content, _ := sms.EncodeText(f, text)
	return sent{msgID: msgID, phone: phone, dest: dest, fmt: int16(f), content: content}
}

// segments is a long uplink, in the order of its segments.
func segments(tb testing.TB, msgID uint64, phone, dest, text string, ref uint16, wide bool) []sent {
	tb.Helper()
	f := sms.PickFmt(text)
	contents, err := sms.Split(text, f, ref, wide)
	if err != nil {
		tb.Fatal(err)
	}
	list := make([]sent, len(contents))
	for i, c := range contents {
		list[i] = sent{msgID: msgID + uint64(i), phone: phone, dest: dest, fmt: int16(f), udhi: 1, content: c}
	}
	return list
}

// arrive stores uplinks as the callback does, all at once, under new event ids, which it returns.
func (b *bench) arrive(tb testing.TB, list ...sent) []int64 {
	tb.Helper()
	ids, err := b.node.IDs.Take(tb.Context(), len(list))
	if err != nil {
		tb.Fatal(err)
	}
	b.offer(tb, ids, list)
	b.bus.Publish(wake.Uplinks)
	return ids
}

func (b *bench) offer(tb testing.TB, ids []int64, list []sent) {
	tb.Helper()
	order := make([]int, len(list))
	for i := range order {
		order[i] = i
	}
	slices.SortFunc(order, func(i, j int) int { return int(int64(list[i].msgID) - int64(list[j].msgID)) })
	var events, msgIDs, hashes []int64
	var phones, dests []string
	var at []time.Time
	var accounts, channels []int32
	var formats, udhis []int16
	var contents [][]byte
	for _, i := range order {
		s := list[i]
		h := fnv.New64a()
		_, _ = h.Write(s.content)
		events, msgIDs, hashes = append(events, ids[i]), append(msgIDs, int64(s.msgID)), append(hashes, int64(h.Sum64()))
		phones, dests, at = append(phones, s.phone), append(dests, s.dest), append(at, time.Now())
		accounts, channels, formats, udhis, contents = append(accounts, 1), append(channels, 101), append(formats, s.fmt), append(udhis, s.udhi), append(contents, s.content)
	}
	b.exec(tb, store.CallbackUplinks, events, msgIDs, phones, dests, at, accounts, channels, formats, udhis, contents, hashes)
}

// wrote puts a message of an application to a phone into the database, accepted by channel 101.
func (b *bench) wrote(tb testing.TB, app int32, phone int64, src, signature string, age time.Duration) {
	tb.Helper()
	id, err := b.node.IDs.Next(tb.Context())
	if err != nil {
		tb.Fatal(err)
	}
	b.exec(tb, `
INSERT INTO message (id, msg_id, price, phone, accept_session, accepted_at, created_at, enterprise_id, app_id, channel_id, units, price_version, state, bill, charge_on, refund_on,
  registered, fmt, udhi, pk_total, pk_number, accept_node, dest, src, service, content, signature)
SELECT $1, $1, 325, $3, 1, now(), now() - $6::interval, enterprise_id, $2, 101, 1, 1, $7, 2, 1, 1, 1, 8, 0, 1, 1, 1, '', $4, 'SVC', '', nullif($5, '') FROM application WHERE id = $2`,
		id, app, phone, []byte(src), signature, age, message.Submitted)
}

// got is a delivery to a customer.
type got struct {
	App        int32
	Phone, Src string
	Fmt, UDHI  int16
	Service    string
	Content    []byte
}

// text of a delivery without its header.
func (g *got) text(tb testing.TB) string {
	tb.Helper()
	payload := g.Content
	if g.UDHI != 0 {
		var err error
		if _, _, _, payload, err = sms.SplitHeader(g.Content); err != nil {
			tb.Fatal(err)
		}
	}
	s, err := sms.DecodeText(sms.Fmt(g.Fmt), payload)
	if err != nil {
		tb.Fatal(err)
	}
	return s
}

// got are the deliveries from a phone, in the order in which the customer gets them.
func (b *bench) got(tb testing.TB, phone string) []got {
	tb.Helper()
	rows, err := b.Query(tb.Context(), `SELECT app_id, convert_from(dest, 'UTF8'), convert_from(src, 'UTF8'), fmt, udhi, convert_from(service, 'UTF8'), body
		FROM delivery WHERE kind = 2 AND dest = $1 ORDER BY pos`, []byte(phone))
	if err != nil {
		tb.Fatal(err)
	}
	list, err := pgx.CollectRows(rows, pgx.RowToStructByPos[got])
	if err != nil {
		tb.Fatal(err)
	}
	return list
}

// said is the whole text that customers got from a phone.
func (b *bench) said(tb testing.TB, phone string) string {
	tb.Helper()
	var s strings.Builder
	for _, g := range b.got(tb, phone) {
		s.WriteString(g.text(tb))
	}
	return s.String()
}

// settled waits until the queue is empty.
func (b *bench) settled(tb testing.TB) {
	tb.Helper()
	eventually(tb, "the queue is empty", func() bool { return b.count(tb, "SELECT count(*) FROM uplink_queue") == 0 })
}

func (b *bench) outcomes(tb testing.TB, outcome uplink.Outcome) int {
	tb.Helper()
	return b.count(tb, "SELECT count(*) FROM uplink WHERE outcome = $1", outcome)
}

const patience = 30 * time.Second

func eventually(tb testing.TB, what string, ok func() bool) {
	tb.Helper()
	limit := time.Now().Add(patience)
	for !ok() {
		if time.Now().After(limit) {
			tb.Fatalf("not within %s: %s", patience, what)
		}
		time.Sleep(2 * time.Millisecond)
	}
}
