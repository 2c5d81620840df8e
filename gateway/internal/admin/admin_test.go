package admin_test

import (
	"encoding/json"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"cmppgateway/gateway/internal/admin"
	"cmppgateway/gateway/internal/config"
	"cmppgateway/gateway/internal/settings"
	"cmppgateway/gateway/internal/store"
	"cmppgateway/testenv"
)

func TestMain(m *testing.M) {
	testenv.Migrated(store.Migrate)
	testenv.Main(m)
}

const secret = "hunter2"

func ask(t *testing.T, rdb *redis.Client) (admin.Effective, string) {
	t.Helper()
	c := config.Default()
	c.Postgres.URL = testenv.DB(t)
	c.Admin.Token, c.Redis.Password = secret, secret
	pools, err := store.Open(t.Context(), c.Postgres, time.Second)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(pools.Close)
	for _, sql := range []string{
		`INSERT INTO enterprise VALUES (1, 1, 'east')`,
		`INSERT INTO application (id, enterprise_id, price, sp_id, secret, name) VALUES (7, 1, 325, '900001', '` + secret + `', 'shop')`,
		`INSERT INTO supplier_account (id, max_connections, max_window, addr, sp_id, secret, name) VALUES (3, 2, 16, 'x:1', '800001', '` + secret + `', 'north')`,
		`INSERT INTO channel (id, account_id, access_number, name) VALUES (10, 3, '10690', 'first')`,
		`INSERT INTO channel_group VALUES (20, 'g')`, `INSERT INTO channel_group_member VALUES (20, 10)`, `INSERT INTO application_route VALUES (7, 1, 20)`,
	} {
		if _, err := pools.Admin.Exec(t.Context(), sql); err != nil {
			t.Fatal(err)
		}
	}
	w := settings.NewWatcher(pools.Admin, time.Hour, slog.New(slog.DiscardHandler))
	if err := w.Refresh(t.Context()); err != nil {
		t.Fatal(err)
	}
	h := admin.New(admin.Options{
		Config: c, Version: "v", Roles: []string{"edge"}, Node: &store.Node{Number: 9, Epoch: 4}, Pools: pools, Redis: rdb, Settings: w,
		Channels: func() any { return []string{"first is open"} },
	})
	rec := httptest.NewRecorder()
	req := httptest.NewRequestWithContext(t.Context(), "GET", "/api/admin/effective", nil)
	h.ServeHTTP(rec, req)
	if rec.Code != http.StatusUnauthorized {
		t.Errorf("without the configured token: %d", rec.Code)
	}
	rec = httptest.NewRecorder()
	req.Header.Set("Authorization", "Bearer "+secret)
	h.ServeHTTP(rec, req)
	var e admin.Effective
	if err := json.Unmarshal(rec.Body.Bytes(), &e); err != nil {
		t.Fatalf("%v: %s", err, rec.Body)
	}
	return e, rec.Body.String()
}

func TestEffective(t *testing.T) {
	t.Parallel()
	addr, db := testenv.Redis(t)
	rdb := redis.NewClient(&redis.Options{Addr: addr, DB: db})
	defer rdb.Close() // the test is over
	e, body := ask(t, rdb)
	if len(e.Errors) > 0 {
		t.Errorf("errors %v", e.Errors)
	}
	if strings.Contains(body, secret) {
		t.Errorf("a secret in %s", body)
	}
	if e.PID != os.Getpid() || len(e.SHA256) != 64 || e.Node != 9 || e.Epoch != 4 || e.Version != "v" {
		t.Errorf("identity %+v", e)
	}
	if len(e.Postgres) != 7 {
		t.Errorf("durability of %d pools: %v", len(e.Postgres), e.Postgres)
	}
	for name, p := range e.Postgres {
		if p.SynchronousCommit != "on" || p.Fsync == "" || p.FullPageWrites == "" || time.Since(p.Clock).Abs() > time.Minute {
			t.Errorf("pool %s: %+v", name, p)
		}
	}
	if e.Redis["maxmemory-policy"] == "" || e.Redis["appendonly"] == "" {
		t.Errorf("redis %v", e.Redis)
	}
	s := e.Settings
	if s.Version != 1 || len(s.Applications) != 1 || s.Applications[0].Price != 325 || s.Routes[7]["mobile"] != 20 ||
		len(s.Accounts) != 1 || len(s.Channels) != 1 || len(s.Groups) != 1 || s.Groups[0].Candidates[0].ChannelID != 10 {
		t.Errorf("settings %+v", s)
	}
	if e.Config["workflow"] == nil || e.Channels == nil {
		t.Errorf("config %v, channels %v", e.Config, e.Channels)
	}
}

func TestEffectiveThroughAnOutage(t *testing.T) {
	t.Parallel()
	rdb := redis.NewClient(&redis.Options{Addr: "127.0.0.1:1", MaxRetries: -1, DialerRetries: 1})
	defer rdb.Close() // the test is over
	e, _ := ask(t, rdb)
	if len(e.Errors) != 1 || !strings.Contains(e.Errors[0], "redis") || e.Settings.Version != 1 {
		t.Errorf("answer %+v", e)
	}
}
