package seed_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"

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

func TestApplyTwiceChangesNothing(t *testing.T) {
	t.Parallel()
	pool, err := pgxpool.New(t.Context(), testenv.DB(t))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(pool.Close)
	ids := message.NewIDs(1, time.Now().Add(-time.Second), time.Now().Add(time.Hour), time.Now)
	f, err := seed.Load(write(t, good))
	if err != nil {
		t.Fatal(err)
	}
	first, err := seed.Apply(t.Context(), pool, ids, f)
	if err != nil {
		t.Fatal(err)
	}
	if first.Rows == 0 || first.TopUps != 2 {
		t.Fatalf("first run: %+v, want rows and 2 top-ups", first)
	}
	second, err := seed.Apply(t.Context(), pool, ids, f)
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
	if third, err := seed.Apply(t.Context(), pool, ids, f); err != nil || third.Rows != 2 || third.TopUps != 0 { // application and price history
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
	).Replace(good)
	_, err := seed.Load(write(t, bad))
	if err == nil {
		t.Fatal("a file full of faults was taken")
	}
	for _, want := range []string{
		"seed.yaml:8: channels.connections: 9, must be 1..8", "seed.yaml:8: channels.window: 65, must be 1..64",
		"seed.yaml:13: applications.sp_id: \"1000017\", must be 1..6 octets", "seed.yaml:13: applications.price: -1, must be 0..1000000",
		"seed.yaml:13: applications.routes: \"mobil\", must be one of", "applications.routes.mobil: mobiles, must be the name of a group",
		"seed.yaml:11: groups.members.channel: m-x", "result_classes.class: \"again\", must be one of reroute-carrier, retry-later, retry-other, terminal",
	} {
		if !strings.Contains(err.Error(), want) {
			t.Errorf("no %q in:\n%v", want, err)
		}
	}
	if _, err := seed.Load(write(t, "enterprises:\n  - {id: 1, name: a, openning: 5}\n")); err == nil || !strings.Contains(err.Error(), "openning") || !strings.Contains(err.Error(), "2") {
		t.Errorf("a mistyped key: %v", err)
	}
}
