package settings_test

import (
	"context"
	"log/slog"
	"net/netip"
	"reflect"
	"testing"
	"time"

	"cmppgateway/gateway/internal/settings"
)

func TestLoadLimits(t *testing.T) {
	t.Parallel()
	pool := database(t,
		`INSERT INTO enterprise (id, name, max_tps) VALUES (1, 'east', 300), (2, 'west', 0)`,
		`INSERT INTO application (id, enterprise_id, price, sp_id, secret, name, max_tps, link_tps, vendor_status) VALUES
			(7, 1, 1, '900001', 's', 'limited', 200, 50, true), (8, 1, 1, '900002', 's', 'free', 0, 0, false), (9, 1, 1, '900003', 's', 'at home', 0, 0, false)`,
		`INSERT INTO application_address VALUES (7, '10.1.0.0/16'), (7, '2001:db8::/32'), (9, '192.0.2.7')`,
		`INSERT INTO channel (id, account_id, access_number, name, backlog_max) VALUES (10, 1, '1069', 'a', 5000), (11, 1, '1069', 'b', 0)`,
		`UPDATE platform_limit SET max_tps = 4000, backlog_max = 1000000`,
	)
	s, err := settings.Load(t.Context(), pool)
	if err != nil {
		t.Fatal(err)
	}
	want := settings.Limits{
		TPS: 4000, Backlog: 1000000, Enterprises: map[int32]int{1: 300}, Channels: map[int32]int{10: 5000},
		Applications: map[int32]settings.ApplicationLimits{
			7: {TPS: 200, LinkTPS: 50, VendorStatus: true, Networks: []netip.Prefix{netip.MustParsePrefix("10.1.0.0/16"), netip.MustParsePrefix("2001:db8::/32")}},
			9: {Networks: []netip.Prefix{netip.MustParsePrefix("192.0.2.7/32")}},
		},
	}
	if !reflect.DeepEqual(s.Limits, want) {
		t.Errorf("%+v\nwant\n%+v", s.Limits, want)
	}
	for addr, ok := range map[string]bool{"10.1.2.3": true, "::ffff:10.1.2.3": true, "10.2.0.1": false, "2001:db8::1%eth0": true, "2001:db9::1": false} {
		if got := s.Limits.Applications[7].Allows(netip.MustParseAddr(addr)); got != ok {
			t.Errorf("%s allowed: %t", addr, got)
		}
	}
	if !s.Limits.Applications[8].Allows(netip.MustParseAddr("203.0.113.9")) {
		t.Error("an application without networks is closed")
	}
}

// A nudge makes the watcher look although its own time is far away.
func TestWatcherLooksWhenNudged(t *testing.T) {
	t.Parallel()
	pool := database(t)
	w := settings.NewWatcher(pool, time.Hour, slog.New(slog.DiscardHandler))
	nudges := make(chan struct{})
	w.Nudges(nudges)
	ctx, cancel := context.WithCancel(t.Context())
	changed := w.Changed()
	done := make(chan error, 1)
	go func() { done <- w.Run(ctx) }()
	<-changed // the first load
	changed = w.Changed()
	for _, sql := range []string{`UPDATE platform_limit SET max_tps = 9`, bump} {
		if _, err := pool.Exec(t.Context(), sql); err != nil {
			t.Fatal(err)
		}
	}
	nudges <- struct{}{}
	select {
	case <-changed:
	case <-time.After(30 * time.Second):
		t.Fatal("the nudge was not heard")
	}
	if got := w.Current().Limits.TPS; got != 9 {
		t.Errorf("TPS %d in use, want 9", got)
	}
	cancel()
	if err := <-done; err != nil {
		t.Error(err)
	}
}
