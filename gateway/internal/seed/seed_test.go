package seed_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"

	"cmppgateway/gateway/internal/manage"
	"cmppgateway/gateway/internal/message"
	"cmppgateway/gateway/internal/seed"
	"cmppgateway/gateway/internal/store"
	"cmppgateway/testenv"
)

func TestMain(m *testing.M) {
	testenv.Migrated(store.Migrate)
	testenv.Main(m)
}

const good = `
enterprises:
  - {id: 1, name: ent-a, opening: 20000000}
  - {id: 2, name: ent-b, opening: 500, credit: 100, status: disabled}
suppliers:
  - {id: 1, name: m, addr: "127.0.0.1:7891", sp_id: "900001", secret: s1, max_connections: 8, max_window: 64}
channels:
  - {id: 1, name: m-p, supplier: m, carrier: mobile, connections: 2, window: 32, access_number: "10690001"}
  - {id: 2, name: m-b, supplier: m, carrier: mobile, connections: 1, window: 16, access_number: "10690002", enabled: false}
groups:
  - {id: 1, name: mobile, members: [{channel: m-p}, {channel: m-b, priority: 1}]}
applications:
  - {id: 11, enterprise: 1, name: app-a, sp_id: "100001", secret: a, price: 325, routes: {mobile: mobile}}
prefix_rules:
  - {prefix: "1380028", carrier: mobile}
result_classes:
  - {channel: m-p, code: 9, class: reroute-carrier}
`

func write(t *testing.T, text string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "seed.yaml")
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

func manager(t *testing.T) (*manage.Manager, *pgxpool.Pool) {
	t.Helper()
	pool, err := pgxpool.New(t.Context(), testenv.DB(t))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(pool.Close)
	return manage.New(pool, message.NewIDs(1, time.Now().Add(-time.Second), time.Now().Add(time.Hour), time.Now), nil), pool
}

func TestApplyTwiceChangesNothing(t *testing.T) {
	t.Parallel()
	m, pool := manager(t)
	f, err := seed.Load(write(t, good))
	if err != nil {
		t.Fatal(err)
	}
	first, err := seed.Apply(t.Context(), m, f)
	if err != nil {
		t.Fatal(err)
	}
	if first.Rows == 0 || first.TopUps != 2 {
		t.Fatalf("first run: %+v, want rows and 2 top-ups", first)
	}
	second, err := seed.Apply(t.Context(), m, f)
	if err != nil {
		t.Fatal(err)
	}
	if second != (seed.Result{}) {
		t.Fatalf("second run changed something: %+v", second)
	}
	var version, available, price int64
	var enabled bool
	query := `SELECT version, (SELECT available FROM account WHERE id = 1), (SELECT price FROM price_history WHERE app_id = 11 AND price_version = 1), (SELECT enabled FROM channel WHERE id = 2) FROM settings_version`
	if err := pool.QueryRow(t.Context(), query).Scan(&version, &available, &price, &enabled); err != nil {
		t.Fatal(err)
	}
	if version != 2 || available != 20_000_000 || price != 325 || enabled {
		t.Fatalf("version %d, available %d, price %d, channel 2 enabled %t", version, available, price, enabled)
	}
	f, err = seed.Load(write(t, strings.Replace(good, "price: 325", "price: 330", 1)))
	if err != nil {
		t.Fatal(err)
	}
	if third, err := seed.Apply(t.Context(), m, f); err != nil || third.Rows != 1 || third.TopUps != 0 {
		t.Fatalf("price change: %+v, %v", third, err)
	}
	var priceVersion int
	if err := pool.QueryRow(t.Context(), `SELECT price_version, price FROM application WHERE id = 11`).Scan(&priceVersion, &price); err != nil {
		t.Fatal(err)
	}
	if priceVersion != 2 || price != 330 {
		t.Fatalf("price version %d, price %d; want 2, 330", priceVersion, price)
	}
}

func TestLoadReportsEveryFaultWithItsLine(t *testing.T) {
	t.Parallel()
	bad := strings.NewReplacer(
		"connections: 2, window: 32", "connections: 9, window: 65",
		"sp_id: \"100001\"", "sp_id: \"1000017\"",
		"price: 325", "price: -1",
		"routes: {mobile: mobile}", "routes: {mobil: mobiles}",
		"{channel: m-b, priority: 1}", "{channel: m-x, priority: 1}",
		"class: reroute-carrier", "class: again",
		"name: ent-a,", "name: ent-a, openning: 5,",
	).Replace(good) + "keywords:\n  - {action: hold}\nnothing: []\n"
	f, err := seed.Load(write(t, bad))
	if err != nil {
		t.Fatal(err)
	}
	m, pool := manager(t)
	_, err = seed.Apply(t.Context(), m, f)
	if err == nil {
		t.Fatal("a file full of faults was taken")
	}
	static := []string{
		"seed.yaml:8: channels.connections: 9, must be 1..8", "seed.yaml:8: channels.window: 65, must be 1..64",
		"seed.yaml:13: applications.sp_id: \"1000017\", must be 1..6 octets", "seed.yaml:13: applications.price: -1, must be 0..1000000",
		"seed.yaml:13: applications.routes.carrier: \"mobil\", must be one of mobile, unicom, telecom, broadnet",
		"result_classes.class: \"again\", must be one of retry-other, retry-later, reroute-carrier, terminal",
		"seed.yaml:3: enterprises.openning: 5, must be left out, there is no such field",
		"seed.yaml:19: keywords.word: missing", "seed.yaml:20: nothing: no such section",
	}
	for _, want := range append(static, "seed.yaml:11: groups.members.channel: \"m-x\", must be the id or name of one of channels") {
		if !strings.Contains(err.Error(), want) {
			t.Errorf("no %q in:\n%v", want, err)
		}
	}
	for _, want := range static {
		if faults := f.Faults(); faults == nil || !strings.Contains(faults.Error(), want) {
			t.Errorf("without a database no %q in:\n%v", want, faults)
		}
	}
	var n int
	if err := pool.QueryRow(t.Context(), `SELECT (SELECT count(*) FROM enterprise) + (SELECT count(*) FROM admin_audit) + (SELECT version FROM settings_version) - 1`).Scan(&n); err != nil || n != 0 {
		t.Errorf("%d rows written by a faulty file, %v", n, err)
	}
}

// What only the database knows is reported with its line as well: the contract of an account, a name of another file.
func TestApplyReportsWhatTheDatabaseKnows(t *testing.T) {
	t.Parallel()
	m, _ := manager(t)
	f, err := seed.Load(write(t, strings.Replace(good, "max_connections: 8, max_window: 64", "max_connections: 2, max_window: 16", 1)))
	if err != nil {
		t.Fatal(err)
	}
	_, err = seed.Apply(t.Context(), m, f)
	if err == nil || !strings.Contains(err.Error(), "seed.yaml:8: channels.window: 32, must be at most 16, the contract's max_window") {
		t.Errorf("error %v", err)
	}
	if f, err = seed.Load(write(t, strings.Replace(good, "max_connections: 8", "max_connections: 2", 1))); err != nil {
		t.Fatal(err)
	}
	if _, err := seed.Apply(t.Context(), m, f); err != nil {
		t.Errorf("connections of a channel that is off count: %v", err)
	}
	if f, err = seed.Load(write(t, "enterprises: [{id: 9, name: ent-a}]\n")); err != nil {
		t.Fatal(err)
	}
	if _, err := seed.Apply(t.Context(), m, f); err == nil || !strings.Contains(err.Error(), `seed.yaml:1: enterprises.name: "ent-a", must be unique; enterprise 1 has it`) {
		t.Errorf("error %v", err)
	}
}

func TestDuplicateKeysAndRows(t *testing.T) {
	t.Parallel()
	f, err := seed.Load(write(t, "enterprises:\n  - {id: 1, name: a}\n  - {id: 1, name: b}\n"))
	if err != nil || f.Faults() == nil || !strings.Contains(f.Faults().Error(), "seed.yaml:3: enterprises.id: 1, must be unique; line 2 has it") {
		t.Errorf("the same id twice: %v, %v", f.Faults(), err)
	}
}

// A file may bring every kind of row; doing it again changes nothing.
func TestEverySection(t *testing.T) {
	t.Parallel()
	m, pool := manager(t)
	all := good + `
enterprise_policies: [{enterprise: ent-a, freq_day: 5, daily_quota: 1000}]
application_policies: [{application: "100001", signature_mode: required, template_mode: force}]
application_stats: [{application: "100001", reason: RISK, stat: FREQ}]
application_addresses: [{application: "100001", network: 192.0.2.7/24}]
signatures: [{enterprise: 1, text: 商城, status: approved}]
templates: [{enterprise: 1, text: "您的验证码{code:d4-6}", status: approved}]
keywords: [{word: 赌博, action: hold}]
opt_outs: [{phone: "13800000001", enterprise: ent-a, signature: 商城, marketing_only: true}]
number_overrides: [{phone: 13800000002, carrier: unicom}]
`
	for i, want := range []seed.Result{{Rows: 21, TopUps: 2}, {}} {
		f, err := seed.Load(write(t, all))
		if err != nil {
			t.Fatal(err)
		}
		res, err := seed.Apply(t.Context(), m, f)
		if err != nil || res != want {
			t.Fatalf("run %d: %+v, %v; want %+v", i+1, res, err, want)
		}
	}
	var got string
	query := `SELECT network::text || ' ' || (SELECT count(*) FROM signature) || ' ' || (SELECT phone FROM number_override) || ' ' || (SELECT credit FROM account WHERE id = 2) FROM application_address`
	if err := pool.QueryRow(t.Context(), query).Scan(&got); err != nil || got != "192.0.2.0/24 1 13800000002 100" {
		t.Errorf("%q, %v", got, err)
	}
	f, err := seed.Load(write(t, strings.NewReplacer("{channel: m-p}, {channel: m-b, priority: 1}", "{channel: m-b, priority: 0}", "secret: a,", "secret: b,").Replace(good)))
	if err != nil {
		t.Fatal(err)
	}
	if res, err := seed.Apply(t.Context(), m, f); err != nil || res.Rows != 3 { // one member leaves, one changes, one secret
		t.Errorf("%+v, %v", res, err)
	}
	if err := pool.QueryRow(t.Context(), `SELECT string_agg(channel_id::text, ',') || (SELECT secret FROM application) FROM channel_group_member`).Scan(&got); err != nil || got != "2b" {
		t.Errorf("%q, %v", got, err)
	}
}
