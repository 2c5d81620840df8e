package settings_test

import (
	"log/slog"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"

	"cmppgateway/gateway/internal/routing"
	"cmppgateway/gateway/internal/settings"
	"cmppgateway/gateway/sms"
)

const supplierSQL = `
INSERT INTO enterprise VALUES (1, 1, 'east'), (2, 2, 'west'), (3, 1, 'north'), (4, 1, 'south');
INSERT INTO application (id, enterprise_id, status, price, sp_id, secret, name) VALUES (11, 1, 1, 1, '1', 's', 'a'), (12, 1, 2, 1, '2', 's', 'b'), (21, 2, 1, 1, '3', 's', 'c'), (31, 3, 1, 1, '4', 's', 'd'), (41, 4, 1, 1, '5', 's', 'e');
INSERT INTO supplier_account (id, max_connections, max_window, max_tps, addr, sp_id, secret, name) VALUES (1, 4, 32, 100, '127.0.0.1:1', '9', 's', 'one');
INSERT INTO channel (id, account_id, desired_connections, window_size, access_number, name) VALUES (1, 1, 2, 16, '1069', 'first'), (2, 1, 2, 16, '1069', 'second'), (3, 1, 1, 16, '1069', 'third');
INSERT INTO channel_group VALUES (5, 'group');
INSERT INTO channel_group_member VALUES (5, 1, 0, 1), (5, 2, 1, 1), (5, 3, 2, 1);`

func load(t *testing.T, pool *pgxpool.Pool) *settings.Snapshot {
	t.Helper()
	w := settings.NewWatcher(pool, time.Hour, slog.New(slog.DiscardHandler))
	if err := w.Refresh(t.Context()); err != nil {
		t.Fatal(err)
	}
	return w.Current()
}

func TestParticularsAndStops(t *testing.T) {
	t.Parallel()
	pool := database(t, supplierSQL,
		`UPDATE channel SET fee_user_type = 3, fee_terminal = '13800138000', signature_by = 1, report_format = 2, report_msg_id = 1, segment_reports = 2, unit_rule = 1 WHERE id = 1`,
		`INSERT INTO dispatch_stop (scope, id, mode) VALUES (2, 3, 1), (2, 4, 2), (3, 11, 2), (4, 2, 1)`)
	s := load(t, pool)
	want := settings.Particulars{
		FeeUserType: 3, FeeTerminal: "13800138000", SignatureBy: settings.SignedBySupplier, ReportFormat: settings.ReportWide, ReversedMsgID: true,
		SegmentReports: settings.ReportsLast, UnitRule: sms.RuleGSM160153,
	}
	if got := s.Channels[1].Particulars; got != want {
		t.Errorf("particulars %+v", got)
	}
	for _, c := range []struct {
		enterprise, app int32
		want            settings.Stop
	}{{1, 11, settings.Release}, {1, 12, settings.Release}, {2, 21, settings.Release}, {3, 31, settings.Hold}, {4, 41, settings.Release}, {99, 99, settings.NoStop}} {
		if got := s.Of(c.enterprise, c.app); got != c.want {
			t.Errorf("enterprise %d, application %d: %d, want %d", c.enterprise, c.app, got, c.want)
		}
	}
	enterprises, applications := s.Released()
	if !slices.Equal(enterprises, []int32{2, 4}) || !slices.Equal(applications, []int32{11, 12}) || !slices.Equal(s.Held(), []int32{3}) {
		t.Errorf("released %v %v, held %v", enterprises, applications, s.Held())
	}
	// The lock of the backup wins: with the primary out of order the last layer is next.
	if c, ok := s.Groups[5].Pick(1, []int32{1}); !ok || c.ChannelID != 3 {
		t.Errorf("picked %d past a locked channel", c.ChannelID)
	}
}

func words(faults []settings.Fault) (list []string) {
	for _, f := range faults {
		list = append(list, f.String())
	}
	return list
}

func TestRefusalsNameEveryFaultAndTheContractCountsOverTheAccount(t *testing.T) {
	t.Parallel()
	pool := database(t, supplierSQL, `UPDATE channel SET window_size = 65, desired_connections = 0 WHERE id = 1`)
	s := load(t, pool)
	if got := words(s.Refused[1]); len(got) != 2 || !strings.Contains(got[0], "desired_connections 0: must be 1..8") || !strings.Contains(got[1], "window_size 65: must be 1..64") {
		t.Errorf("refused for %q", got)
	}
	if len(s.Refused) != 1 {
		t.Errorf("refused %v", s.Refused)
	}
	if c, ok := s.Groups[5].Pick(1, nil); !ok || c.ChannelID != 2 {
		t.Errorf("picked %d, the first one cannot be opened", c.ChannelID)
	}
	for _, c := range []struct {
		name   string
		change func(*settings.Channel)
		want   []string
	}{
		{"as it is", func(*settings.Channel) {}, nil},
		{"no connection", func(c *settings.Channel) { c.DesiredConnections = 0 }, []string{"desired_connections 0: must be 1..8"}},
		{"nine connections", func(c *settings.Channel) { c.DesiredConnections = 9 }, []string{"desired_connections 9: must be 1..8"}},
		{"no window", func(c *settings.Channel) { c.WindowSize = 0 }, []string{"window_size 0: must be 1..64"}},
		{"window of 65", func(c *settings.Channel) { c.WindowSize = 65 }, []string{"window_size 65: must be 1..64"}},
		{"beyond the contract", func(c *settings.Channel) { c.DesiredConnections, c.WindowSize, c.RateLimit = 5, 33, 101 }, []string{
			"desired_connections 5: account 1's contract allows 4", "window_size 33: account 1's contract allows 32", "rate_limit 101: account 1's contract allows 100",
		}},
		{"beyond the contract together with the third", func(c *settings.Channel) { c.DesiredConnections = 4 }, []string{
			"desired_connections 4: account 1 would have 5 connections over all its channels, its contract allows 4",
		}},
		{"disabled", func(c *settings.Channel) { c.DesiredConnections, c.Enabled = 4, false }, nil},
		{"seconds", func(c *settings.Channel) {
			c.WarmupSeconds, c.DrainSeconds, c.ResponseSeconds, c.CooldownSeconds = -1, 3601, 0, -1
		}, []string{"warmup_seconds -1: must be 0..3600", "drain_seconds 3601: must be 0..3600", "response_seconds 0: must be 1..3600", "cooldown_seconds -1: must be 0..3600"}},
	} {
		s := load(t, pool)
		s.Channels[1].Enabled = false
		ch := *s.Channels[2]
		c.change(&ch)
		if got := words(s.Admit(&ch)); !reflect.DeepEqual(got, c.want) {
			t.Errorf("%s: %q, want %q", c.name, got, c.want)
		}
	}
}

func TestHealthIsFollowedWithoutANewVersion(t *testing.T) {
	t.Parallel()
	pool := database(t, supplierSQL)
	w := settings.NewWatcher(pool, time.Hour, slog.New(slog.DiscardHandler))
	refresh := func() *settings.Snapshot {
		t.Helper()
		if err := w.Refresh(t.Context()); err != nil {
			t.Fatal(err)
		}
		return w.Current()
	}
	picks := func(s *settings.Snapshot) map[int32]bool {
		got := map[int32]bool{}
		for key := range uint64(500) {
			c, _ := s.Groups[5].Pick(key, nil)
			got[c.ChannelID] = true
		}
		return got
	}
	exec := func(sql string) {
		t.Helper()
		if _, err := pool.Exec(t.Context(), sql); err != nil {
			t.Fatal(err)
		}
	}
	before := refresh()
	if got := picks(before); !got[1] || len(got) != 1 {
		t.Fatalf("well: %v", got)
	}
	if refresh() != before {
		t.Error("a new snapshot without a change")
	}
	for _, c := range []struct {
		sql  string
		want []int32
	}{
		{`INSERT INTO channel_lease (channel_id, node, epoch, fence, lease_until, down_since) VALUES (1, 1, 1, 1, clock_timestamp() + interval '1 h', clock_timestamp() - interval '4 s')`, []int32{2}},
		{`UPDATE channel_lease SET down_since = clock_timestamp() + interval '1 min'`, []int32{1}}, // has just gone: it may be back in a moment
		{`UPDATE channel_lease SET down_since = NULL, lease_until = clock_timestamp() - interval '4 s'`, []int32{2}},
		{`UPDATE channel_lease SET lease_until = clock_timestamp() + interval '1 h'`, []int32{1}},
		{`INSERT INTO channel_breaker (channel_id, state, node, until) VALUES (1, 1, 1, now())`, []int32{2}},
		{`UPDATE channel_breaker SET state = 2`, []int32{1, 2}},
		{`INSERT INTO channel_breaker (channel_id, state, node, until) VALUES (2, 1, 1, now()), (3, 1, 1, now()) ON CONFLICT DO NOTHING`, []int32{1}}, // on trial, and nothing else is left for the others
		{`DELETE FROM channel_breaker`, []int32{1}},
	} {
		exec(c.sql)
		s := refresh()
		if got := picks(s); len(got) != len(c.want) || slices.ContainsFunc(c.want, func(id int32) bool { return !got[id] }) {
			t.Errorf("%s: %v, want %v", c.sql, got, c.want)
		}
		if s.Version != before.Version {
			t.Errorf("version %d", s.Version)
		}
	}
	if got := before.Groups[5].Candidates[0].Health; got != routing.Well {
		t.Errorf("the first snapshot was changed: %d", got)
	}
}
