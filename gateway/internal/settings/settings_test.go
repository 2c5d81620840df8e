package settings_test

import (
	"context"
	"log/slog"
	"reflect"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"

	"cmppgateway/gateway/cmpp"
	"cmppgateway/gateway/internal/message"
	"cmppgateway/gateway/internal/routing"
	"cmppgateway/gateway/internal/settings"
	"cmppgateway/gateway/internal/store"
	"cmppgateway/gateway/sms"
	"cmppgateway/testenv"
)

func TestMain(m *testing.M) {
	testenv.Migrated(store.Migrate)
	testenv.Main(m)
}

const bump = `UPDATE settings_version SET version = version + 1`

func database(t *testing.T, statements ...string) *pgxpool.Pool {
	t.Helper()
	pool, err := pgxpool.New(t.Context(), testenv.DB(t))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(pool.Close)
	for _, s := range statements {
		if _, err := pool.Exec(t.Context(), s); err != nil {
			t.Fatalf("%s: %v", s, err)
		}
	}
	return pool
}

func TestLoad(t *testing.T) {
	t.Parallel()
	pool := database(t,
		`INSERT INTO enterprise VALUES (1, 1, 'east'), (2, 2, 'west')`,
		`INSERT INTO application VALUES (7, 1, 1, 48, 325, 3, 1, 2, 0, 2, 5, 64, '900001', 'secret', '1068', 'shop')`,
		`INSERT INTO application_route VALUES (7, 1, 20), (7, 2, 21), (99, 1, 20)`,
		`INSERT INTO supplier_account VALUES (3, 32, 4, 16, 500, '127.0.0.1:7891', '800001', 'key', 'north')`,
		`INSERT INTO channel VALUES (10, 3, true, 1, 2, 16, 100, 31, 61, 62, 33, '10690', false, 'SVC', '700001', '02', '5', 'first'),
			(11, 3, false, 2, 200, 999, -1, 0, 0, 0, 0, '10691', true, '', '', '01', '0', 'out of range')`,
		`INSERT INTO channel_group VALUES (20, 'mobile'), (21, 'empty')`,
		`INSERT INTO channel_group_member VALUES (20, 11, 1, 2), (20, 10, 0, 3), (20, 999, 0, 1)`,
		`INSERT INTO prefix_rule VALUES ('1380013', 3)`,
		`INSERT INTO result_class VALUES (0, 9, 2), (10, 8, 3)`,
	)
	s, err := settings.Load(t.Context(), pool)
	if err != nil {
		t.Fatal(err)
	}
	app := &settings.Application{
		ID: 7, EnterpriseID: 1, Status: settings.Active, Version: cmpp.V30, Price: 325, PriceVersion: 3, UnitRule: sms.RuleGSM160153,
		ChargeOn: message.ChargeOnDeliver, RefundOn: message.RefundNever, Lane: message.Marketing, MaxConnections: 5, WindowSize: 64,
		SPID: "900001", Secret: "secret", AccessNumber: "1068", Name: "shop",
		Routes: map[routing.Carrier]int32{routing.Mobile: 20, routing.Unicom: 21},
	}
	for _, c := range []struct {
		name      string
		got, want any
	}{
		{"version", s.Version, int64(1)},
		{"enterprises", s.Enterprises, map[int32]settings.Enterprise{1: {1, settings.Active, "east"}, 2: {2, settings.Disabled, "west"}}},
		{"applications", s.Applications, map[int32]*settings.Application{7: app}},
		{"accounts", s.Accounts[3], &settings.SupplierAccount{
			ID: 3, Version: cmpp.V20, MaxConnections: 4, MaxWindow: 16, MaxTPS: 500, Addr: "127.0.0.1:7891", SPID: "800001", Secret: "key", Name: "north",
		}},
		{"channel", s.Channels[10], &settings.Channel{
			ID: 10, AccountID: 3, Enabled: true, Carrier: routing.Mobile, DesiredConnections: 2, WindowSize: 16, RateLimit: 100, WarmupSeconds: 31,
			DrainSeconds: 61, ResponseSeconds: 62, CooldownSeconds: 33, AccessNumber: "10690", ServiceID: "SVC", MsgSrc: "700001", FeeType: "02", FeeCode: "5", Name: "first",
			Particulars: settings.Particulars{FeeUserType: 2},
		}},
		{"channel out of range is kept as stored", s.Channels[11].WindowSize, 999},
		{"refused", len(s.Refused), 0},
		{"group, missing channel left out", s.Groups[20], &routing.Group{ID: 20, Candidates: []routing.Candidate{
			{ChannelID: 10, Account: 3, Priority: 0, Weight: 3, Enabled: true}, {ChannelID: 11, Account: 3, Priority: 1, Weight: 2},
		}}},
		{"empty group", s.Groups[21], &routing.Group{ID: 21}},
		{"prefix rule before the table", s.Table.Carrier(13800138000), routing.Telecom},
		{"table", s.Table.Carrier(13900138000), routing.Mobile},
		{"class of the channel", s.Class(10, 8), message.RerouteCarrier},
		{"class for all", s.Class(11, 8), message.RetryOther},
		{"second class for all", s.Class(999, 9), message.RetryLater},
		{"a code that 2.0 does not know", s.Class(10, 9), message.Terminal},
		{"no class", s.Class(10, 4_000_000_000), message.Terminal},
	} {
		if !reflect.DeepEqual(c.got, c.want) {
			t.Errorf("%s: %+v, want %+v", c.name, c.got, c.want)
		}
	}
	if s.BySPID["900001"] != s.Applications[7] {
		t.Error("BySPID and Applications are not the same")
	}
}

func TestWatcher(t *testing.T) {
	t.Parallel()
	pool := database(t)
	w := settings.NewWatcher(pool, 5*time.Millisecond, slog.New(slog.DiscardHandler))
	if s := w.Current(); s == nil || s.Version != 0 || s.Table.Carrier(13800138000) != routing.Unknown {
		t.Fatalf("before anything: %+v", s)
	}
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	changed := w.Changed()
	done := make(chan error, 1)
	go func() { done <- w.Run(ctx) }()
	wait := func(c <-chan struct{}) {
		t.Helper()
		select {
		case <-c:
		case <-time.After(20 * time.Second):
			t.Fatal("no change seen")
		}
	}
	wait(changed)
	changed = w.Changed()
	before := w.Current()
	for _, sql := range []string{`INSERT INTO enterprise VALUES (5, 1, 'five')`, bump} {
		if _, err := pool.Exec(t.Context(), sql); err != nil {
			t.Fatal(err)
		}
	}
	wait(changed)
	if s := w.Current(); s.Version != 2 || s.Enterprises[5].Name != "five" {
		t.Errorf("after the change: %+v", s)
	}
	if len(before.Enterprises) != 0 {
		t.Error("the old snapshot was changed")
	}

	// A faulty rule keeps the last snapshot; once it is gone, loading goes on.
	changed = w.Changed()
	for _, sql := range []string{`INSERT INTO prefix_rule VALUES ('02', 1)`, bump} {
		if _, err := pool.Exec(t.Context(), sql); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Refresh(t.Context()); err == nil {
		t.Error("a prefix that is none was loaded")
	}
	if v := w.Current().Version; v != 2 {
		t.Errorf("version %d in use", v)
	}
	if _, err := pool.Exec(t.Context(), `DELETE FROM prefix_rule`); err != nil {
		t.Fatal(err)
	}
	wait(changed)
	if v := w.Current().Version; v != 3 {
		t.Errorf("version %d in use, want 3", v)
	}
	cancel()
	if err := <-done; err != nil {
		t.Error(err)
	}
}

func TestWatcherKeepsTheSettingsWithoutADatabase(t *testing.T) {
	t.Parallel()
	pool := database(t)
	w := settings.NewWatcher(pool, time.Hour, slog.New(slog.DiscardHandler))
	if err := w.Refresh(t.Context()); err != nil {
		t.Fatal(err)
	}
	pool.Close()
	if err := w.Refresh(t.Context()); err == nil {
		t.Error("refreshed from nowhere")
	}
	if v := w.Current().Version; v != 1 {
		t.Errorf("version %d in use", v)
	}
}
