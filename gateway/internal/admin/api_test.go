package admin_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/prometheus/client_golang/prometheus"

	"cmppgateway/gateway/internal/admin"
	"cmppgateway/gateway/internal/config"
	"cmppgateway/gateway/internal/manage"
	"cmppgateway/gateway/internal/message"
	"cmppgateway/gateway/internal/review"
	"cmppgateway/gateway/internal/settings"
	"cmppgateway/gateway/internal/store"
	"cmppgateway/gateway/internal/wake"
	"cmppgateway/testenv"
)

const v1 = "/api/admin/v1/"

// api is an admin API on a database of its own, with a token of each role.
type api struct {
	http.Handler

	pool   *pgxpool.Pool
	bus    *wake.Bus
	tokens map[string]string
}

func newAPI(t *testing.T) *api {
	t.Helper()
	c := config.Default()
	c.Postgres.URL, c.Postgres.Pools.Admin = testenv.DB(t), 10
	pools, err := store.Open(t.Context(), c.Postgres, time.Minute)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(pools.Close)
	log := slog.New(slog.DiscardHandler)
	ids := message.NewIDs(1, time.Now().Add(-time.Second), time.Now().Add(time.Hour), time.Now)
	a := &api{pool: pools.Admin, bus: wake.New(nil, log), tokens: map[string]string{}}
	w := settings.NewWatcher(pools.Admin, time.Hour, log)
	a.Handler = admin.New(admin.Options{
		Config: c, Node: &store.Node{Number: 1, IDs: ids}, Pools: pools, Settings: w, Wake: a.bus, Log: log,
		Review: review.New(review.Options{Pool: pools.Admin, IDs: ids, Settings: w, Wake: a.bus, Log: log, Registry: prometheus.NewRegistry()}),
	})
	m := manage.New(pools.Admin, ids, nil)
	for _, role := range []string{"viewer", "operator", "finance", "admin"} {
		err := m.Do(t.Context(), manage.Actor{Name: "test"}, func(ch *manage.Change) error {
			_, token, err := ch.CreateToken(t.Context(), manage.Doc{"name": role + " of the test", "role": role})
			a.tokens[role] = token
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	return a
}

// reply is an answer.
type reply struct {
	status int
	header http.Header
	raw    string
	body   map[string]any
}

// faults are the fields at fault.
func (r reply) faults() (fields []string) {
	list, _ := r.body["faults"].([]any)
	for _, f := range list {
		fields = append(fields, f.(map[string]any)["field"].(string))
	}
	return fields
}

// call sends a request; headers come in pairs.
func (a *api) call(ctx context.Context, role, method, path, body string, headers ...string) reply {
	r := httptest.NewRequestWithContext(ctx, method, path, strings.NewReader(body))
	if token := a.tokens[role]; token != "" {
		r.Header.Set("Authorization", "Bearer "+token)
	}
	for i := 0; i+1 < len(headers); i += 2 {
		r.Header.Set(headers[i], headers[i+1])
	}
	rec := httptest.NewRecorder()
	a.ServeHTTP(rec, r)
	got := reply{status: rec.Code, header: rec.Header(), raw: rec.Body.String()}
	d := json.NewDecoder(bytes.NewReader(rec.Body.Bytes()))
	d.UseNumber()
	_ = d.Decode(&got.body) // a list or nothing
	return got
}

// must is call with the status it has to have.
func (a *api) must(t *testing.T, status int, role, method, path, body string, headers ...string) reply {
	t.Helper()
	r := a.call(t.Context(), role, method, path, body, headers...)
	if r.status != status {
		t.Fatalf("%s %s %s: %d %s, want %d", method, path, body, r.status, r.raw, status)
	}
	return r
}

func (a *api) value(t *testing.T, sql string, args ...any) string {
	t.Helper()
	var v any
	if err := a.pool.QueryRow(t.Context(), sql, args...).Scan(&v); err != nil {
		t.Fatalf("%s: %v", sql, err)
	}
	return fmt.Sprint(v)
}

// first makes an enterprise with one application, and a supplier with one channel in a group.
func (a *api) first(t *testing.T) (secret string) {
	t.Helper()
	a.must(t, 201, "admin", "POST", v1+"enterprises", `{"name": "east"}`)
	r := a.must(t, 201, "admin", "POST", v1+"applications", `{"enterprise": "east", "name": "shop", "sp_id": "900001", "price": 325}`)
	a.must(t, 201, "admin", "POST", v1+"supplier-accounts", `{"name": "north", "addr": "127.0.0.1:7891", "sp_id": "800001", "secret": "supplier-secret", "max_connections": 4, "max_window": 32, "max_tps": 100}`)
	a.must(t, 201, "admin", "POST", v1+"channels", `{"name": "n1", "supplier": "north", "carrier": "mobile", "connections": 2, "window": 16, "access_number": "10690001"}`)
	a.must(t, 201, "operator", "POST", v1+"groups", `{"name": "g"}`)
	a.must(t, 201, "operator", "POST", v1+"group-members", `{"group": "g", "channel": "n1"}`)
	a.must(t, 201, "operator", "POST", v1+"application-routes", `{"application": "900001", "carrier": "mobile", "group": "g"}`)
	return fmt.Sprint(r.body["secret"])
}

func TestAWorkingSetIsMadeAndLoads(t *testing.T) {
	t.Parallel()
	a := newAPI(t)
	nudged := a.bus.Subscribe(wake.Settings)
	before := a.value(t, `SELECT version FROM settings_version`)
	secret := a.first(t)
	if len(secret) < 16 || a.value(t, `SELECT secret FROM application`) != secret {
		t.Errorf("secret %q", secret)
	}
	select {
	case <-nudged:
	default:
		t.Error("nobody was told of new settings")
	}
	s, err := settings.Load(t.Context(), a.pool)
	if err != nil {
		t.Fatal(err)
	}
	if fmt.Sprint(s.Version) == before || s.BySPID["900001"] == nil || s.BySPID["900001"].Routes[1] != 1 || s.Channels[1].DesiredConnections != 2 || len(s.Groups[1].Candidates) != 1 {
		t.Errorf("snapshot %+v", s)
	}
	if got := a.value(t, `SELECT signature_mode FROM application_policy WHERE app_id = 1`); got != "1" {
		t.Errorf("signature mode %s of a new application, want required", got)
	}
	if got := a.value(t, `SELECT available + credit FROM account WHERE id = 1`); got != "0" {
		t.Errorf("account %s", got)
	}
	// Each change raises the version in its own transaction, one that changes nothing does not.
	version := a.value(t, `SELECT version FROM settings_version`)
	a.must(t, 200, "operator", "PATCH", v1+"applications/1", `{"status": "active"}`, "If-Match", "*")
	if got := a.value(t, `SELECT version FROM settings_version`); got != version {
		t.Errorf("version %s after no change, want %s", got, version)
	}
	a.must(t, 200, "operator", "PATCH", v1+"applications/1", `{"status": "disabled"}`, "If-Match", "*")
	if got := a.value(t, `SELECT version - $1::bigint FROM settings_version`, version); got != "1" {
		t.Errorf("version raised by %s", got)
	}
}

func TestEveryFaultAtOnce(t *testing.T) {
	t.Parallel()
	a := newAPI(t)
	a.first(t)
	r := a.must(t, 422, "admin", "POST", v1+"channels",
		`{"name": "", "supplier": "south", "carrier": "mobil", "connections": 9, "window": 65, "colour": "red", "rate_limit": 1.5, "access_number": "1069x"}`)
	want := []string{"access_number", "carrier", "colour", "connections", "name", "rate_limit", "supplier", "window"}
	if got := r.faults(); len(got) != len(want) || !slices.Equal(slices.Sorted(slices.Values(got)), want) {
		t.Errorf("faults %v, want %v", got, want)
	}
	if r.header.Get("Content-Type") != "application/problem+json" || r.body["code"] != "invalid" || r.body["status"] != json.Number("422") {
		t.Errorf("problem %s", r.raw)
	}
	if n := a.value(t, `SELECT count(*) FROM channel`); n != "1" {
		t.Errorf("%s channels", n)
	}
	for _, c := range []struct{ role, method, path, body, code string }{
		{"admin", "POST", v1 + "enterprises", `{"name": "x"`, "body"},
		{"admin", "POST", v1 + "enterprises", `[]`, "body"},
		{"admin", "POST", v1 + "enterprises", `null`, "body"},
		{"admin", "POST", v1 + "enterprises", `{"name": "x"} {}`, "body"},
		{"admin", "POST", v1 + "enterprises", `{"name": "x", "name": "y"}`, "body"},
		{"admin", "POST", v1 + "enterprises", `{"name": "` + strings.Repeat("x", 2<<20) + `"}`, "too-large"},
		{"admin", "POST", v1 + "enterprises", `{"name": "east"}`, "conflict"},
		{"admin", "POST", v1 + "enterprises", `{"id": 1, "name": "west"}`, "conflict"},
		{"admin", "GET", v1 + "enterprises/7", ``, "not-found"},
		{"admin", "GET", v1 + "enterprises/x", ``, "not-found"},
		{"admin", "GET", v1 + "nothing", ``, "not-found"},
		{"admin", "PUT", v1 + "enterprises/1", ``, "method"},
		{"admin", "GET", v1 + "enterprises?colour=red", ``, "invalid"},
		{"admin", "GET", v1 + "enterprises?limit=0", ``, "invalid"},
		{"admin", "PATCH", v1 + "enterprises/1", `{}`, "version-required"},
		{"finance", "POST", v1 + "accounts/1/top-ups", `{"amount": 5}`, "key-required"},
		{"viewer", "POST", v1 + "enterprises", `{"name": "x"}`, "role"},
		{"nobody", "GET", v1 + "enterprises", ``, "no-token"},
	} {
		if r := a.call(t.Context(), c.role, c.method, c.path, c.body); r.body["code"] != c.code {
			t.Errorf("%s %s: %d %.200s, want code %s", c.method, c.path, r.status, r.raw, c.code)
		}
	}
	if r := a.call(t.Context(), "admin", "POST", v1+"enterprises", `{"name": "x"}`, "Content-Type", "text/xml"); r.body["code"] != "media-type" {
		t.Errorf("XML: %s", r.raw)
	}
}

// Never more than the contract: per channel, and over all enabled channels of the account.
func TestContract(t *testing.T) {
	t.Parallel()
	a := newAPI(t)
	a.first(t) // contract 4 × 32, 100 TPS; channel n1 has 2 × 16
	second := `{"name": "n2", "supplier": "north", "carrier": "mobile", "access_number": "10690002", "connections": %d, "window": %d, "rate_limit": %d, "enabled": %t}`
	for _, c := range []struct {
		connections, window, rate int
		enabled                   bool
		want                      []string
	}{
		{5, 33, 101, true, []string{"connections", "window", "rate_limit"}},
		{3, 32, 100, true, []string{"connections"}}, // 2 + 3 > 4
		{5, 32, 100, false, []string{"connections"}},
	} {
		r := a.must(t, 422, "admin", "POST", v1+"channels", fmt.Sprintf(second, c.connections, c.window, c.rate, c.enabled))
		if got := r.faults(); !slices.Equal(got, c.want) {
			t.Errorf("%+v: faults %v", c, r.raw)
		}
	}
	a.must(t, 201, "admin", "POST", v1+"channels", fmt.Sprintf(second, 3, 32, 100, false)) // off: it needs nothing
	if r := a.must(t, 422, "operator", "PATCH", v1+"channels/2", `{"enabled": true}`, "If-Match", "*"); !slices.Equal(r.faults(), []string{"connections"}) {
		t.Errorf("%s", r.raw)
	}
	a.must(t, 200, "operator", "PATCH", v1+"channels/2", `{"enabled": true, "connections": 2}`, "If-Match", "*")
	if r := a.must(t, 422, "operator", "PATCH", v1+"channels/1", `{"connections": 3}`, "If-Match", "*"); !slices.Equal(r.faults(), []string{"connections"}) {
		t.Errorf("%s", r.raw)
	}
	a.must(t, 200, "operator", "PATCH", v1+"channels/1", `{"enabled": false}`, "If-Match", "*")
	a.must(t, 200, "operator", "PATCH", v1+"channels/2", `{"connections": 4}`, "If-Match", "*")
	if r := a.must(t, 422, "admin", "PATCH", v1+"supplier-accounts/1", `{"max_connections": 3, "max_tps": 99}`, "If-Match", "*"); !slices.Contains(r.faults(), "max_connections") || !slices.Contains(r.faults(), "max_tps") {
		t.Errorf("%s", r.raw)
	}
	if n := a.value(t, `SELECT string_agg(desired_connections || 'x' || window_size || enabled, ' ' ORDER BY id) FROM channel`); n != "2x16false 4x32true" {
		t.Errorf("channels %s", n)
	}
}

func TestEditsNeedTheVersionSeen(t *testing.T) {
	t.Parallel()
	a := newAPI(t)
	a.first(t)
	seen := a.must(t, 200, "viewer", "GET", v1+"channels/1", "").header.Get("ETag")
	const editors = 6
	won := make(chan int, editors)
	for i := range editors {
		go func() {
			won <- a.call(context.WithoutCancel(t.Context()), "operator", "PATCH", v1+"channels/1", fmt.Sprintf(`{"drain_seconds": %d}`, 100+i), "If-Match", seen).status
		}()
	}
	count := map[int]int{}
	for range editors {
		count[<-won]++
	}
	if count[200] != 1 || count[412] != editors-1 {
		t.Errorf("statuses %v, want one 200 and %d times 412", count, editors-1)
	}
	now := a.must(t, 200, "viewer", "GET", v1+"channels/1", "").header.Get("ETag")
	if now == seen || now == "" {
		t.Errorf("ETag %s, before the change %s", now, seen)
	}
	a.must(t, 412, "admin", "DELETE", v1+"channels/1", "", "If-Match", seen)
	if r := a.must(t, 409, "admin", "DELETE", v1+"channels/1", "", "If-Match", now); !strings.Contains(r.raw, "member of a group 1/1") {
		t.Errorf("%s", r.raw)
	}
	a.must(t, 204, "operator", "DELETE", v1+"group-members/1/1", "", "If-Match", "*")
	a.must(t, 204, "admin", "DELETE", v1+"channels/1", "", "If-Match", now)
	// Customers are never removed: what was sent still speaks of them.
	a.must(t, 204, "admin", "DELETE", v1+"applications/1", "", "If-Match", "*")
	if r := a.must(t, 200, "viewer", "GET", v1+"applications/1", ""); r.body["status"] != "deleted" {
		t.Errorf("%s", r.raw)
	}
	if s, err := settings.Load(t.Context(), a.pool); err != nil || s.Applications[1].Status == settings.Active {
		t.Errorf("the deleted application is active, %v", err)
	}
}

// Every change leaves one row with before and after, written in its transaction; secrets are in none, nor in any answer.
func TestAudit(t *testing.T) {
	t.Parallel()
	a := newAPI(t)
	secret := a.first(t)
	a.must(t, 200, "operator", "PATCH", v1+"channels/1", `{"window": 8}`, "If-Match", "*")
	rotated := fmt.Sprint(a.must(t, 201, "admin", "POST", v1+"applications/1/secret", `{}`).body["secret"])
	a.must(t, 200, "admin", "PATCH", v1+"supplier-accounts/1", `{"secret": "other-secret"}`, "If-Match", "*")
	r := a.must(t, 200, "viewer", "GET", v1+"audit?resource=channels&key=1", "")
	items := r.body["items"].([]any)
	if len(items) != 2 {
		t.Fatalf("audit %s", r.raw)
	}
	last := items[0].(map[string]any)
	if last["action"] != "update" || last["actor"] != "operator of the test" || last["role"] != "operator" ||
		last["before"].(map[string]any)["window"] != json.Number("16") || last["after"].(map[string]any)["window"] != json.Number("8") || last["remote"] == "" {
		t.Errorf("audit %v", last)
	}
	if got := a.value(t, `SELECT string_agg(action, ' ' ORDER BY id) FROM admin_audit WHERE resource = 'applications'`); got != "create rotate-secret" {
		t.Errorf("actions %s", got)
	}
	if got := a.value(t, `SELECT after ->> 'secret' FROM admin_audit WHERE resource = 'supplier-accounts' ORDER BY id DESC LIMIT 1`); got != "(set)" {
		t.Errorf("the change of a secret is noted as %q", got)
	}
	// A refused change leaves nothing, neither row nor audit nor version.
	before := a.value(t, `SELECT count(*) || ' ' || (SELECT version FROM settings_version) FROM admin_audit`)
	a.must(t, 422, "operator", "PATCH", v1+"channels/1", `{"window": 33}`, "If-Match", "*")
	if got := a.value(t, `SELECT count(*) || ' ' || (SELECT version FROM settings_version) FROM admin_audit`); got != before {
		t.Errorf("%s, before the refusal %s", got, before)
	}
	// The change and its audit are one: without the audit there is no change.
	if _, err := a.pool.Exec(t.Context(), `ALTER TABLE admin_audit ADD CHECK (action <> 'update') NOT VALID`); err != nil {
		t.Fatal(err)
	}
	if r := a.call(t.Context(), "operator", "PATCH", v1+"channels/1", `{"window": 4}`, "If-Match", "*"); r.status < 400 {
		t.Errorf("a change without its audit: %d", r.status)
	}
	if got := a.value(t, `SELECT window_size FROM channel WHERE id = 1`); got != "8" {
		t.Errorf("window %s", got)
	}
	for _, res := range manage.Resources() {
		body := a.must(t, 200, "admin", "GET", v1+res.Name, "").raw
		for _, s := range []string{secret, rotated, "supplier-secret", "other-secret"} {
			if strings.Contains(body, s) {
				t.Errorf("%s shows a secret: %s", res.Name, body)
			}
		}
	}
	if n := a.value(t, `SELECT count(*) FROM admin_audit WHERE concat(before, after) ~ ANY($1)`, []string{secret, rotated, "supplier-secret", "other-secret"}); n != "0" {
		t.Errorf("%s rows of the audit have secrets", n)
	}
}

func TestPagesAndFilters(t *testing.T) {
	t.Parallel()
	a := newAPI(t)
	for i := range 7 {
		a.must(t, 201, "admin", "POST", v1+"enterprises", fmt.Sprintf(`{"name": "e%d", "status": "%s"}`, i, []string{"active", "disabled"}[i%2]))
	}
	var names []string
	after := ""
	for range 10 {
		r := a.must(t, 200, "viewer", "GET", v1+"enterprises?limit=3&after="+after, "")
		for _, d := range r.body["items"].([]any) {
			names = append(names, d.(map[string]any)["name"].(string))
		}
		if after, _ = r.body["next"].(string); after == "" {
			break
		}
	}
	if want := []string{"e0", "e1", "e2", "e3", "e4", "e5", "e6"}; !slices.Equal(names, want) {
		t.Errorf("pages gave %v", names)
	}
	if r := a.must(t, 200, "viewer", "GET", v1+"enterprises?status=disabled", ""); len(r.body["items"].([]any)) != 3 {
		t.Errorf("%s", r.raw)
	}
	// Keys with slashes and empty parts page and address as any other.
	a.must(t, 201, "admin", "POST", v1+"applications", `{"enterprise": 1, "name": "x", "sp_id": "1", "price": 0}`)
	for _, n := range []string{"10.0.0.0/8", "192.0.2.1"} {
		a.must(t, 201, "operator", "POST", v1+"application-addresses", `{"application": "1", "network": "`+n+`"}`)
	}
	r := a.must(t, 200, "viewer", "GET", v1+"application-addresses?limit=1", "")
	if r.body["next"] != "1/10.0.0.0%2F8" {
		t.Errorf("next %v", r.body["next"])
	}
	r = a.must(t, 200, "viewer", "GET", v1+"application-addresses?limit=1&after=1/10.0.0.0%252F8", "")
	if items := r.body["items"].([]any); len(items) != 1 || items[0].(map[string]any)["network"] != "192.0.2.1/32" {
		t.Errorf("%s", r.raw)
	}
	a.must(t, 204, "operator", "DELETE", v1+"application-addresses/1/10.0.0.0%2F8", "", "If-Match", "*")
	a.must(t, 201, "operator", "POST", v1+"opt-outs", `{"phone": "13800000000"}`)
	a.must(t, 200, "viewer", "GET", v1+"opt-outs/13800000000/0/-", "")
}

func TestTokens(t *testing.T) {
	t.Parallel()
	a := newAPI(t)
	r := a.must(t, 201, "admin", "POST", v1+"tokens", `{"name": "n", "role": "viewer"}`, "Idempotency-Key", "k")
	token := fmt.Sprint(r.body["token"])
	path := r.header.Get("Location")
	a.tokens["new"] = token
	a.must(t, 200, "new", "GET", v1+"enterprises", "")
	if r := a.must(t, 201, "admin", "POST", v1+"tokens", `{"name": "n", "role": "viewer"}`, "Idempotency-Key", "k"); r.body["token"] != nil || r.header.Get("Location") != path && r.body["id"] == nil {
		t.Errorf("a repetition shows the token again: %s", r.raw)
	}
	if n := a.value(t, `SELECT count(*) FROM admin_token WHERE name = 'n'`); n != "1" {
		t.Errorf("%s tokens", n)
	}
	id, secret, _ := strings.Cut(strings.TrimPrefix(token, "cgw_"), "_")
	for _, bad := range []string{"", "x", "cgw_", "cgw_" + id, "cgw_" + id + "_", "cgw_999_" + secret, "cgw_-1_" + secret, "cgw_" + id + "_" + secret[1:], token + "x", strings.ToLower(token)} {
		a.tokens["bad"] = bad
		a.must(t, 401, "bad", "GET", v1+"enterprises", "")
	}
	if n := a.value(t, `SELECT count(*) FROM admin_token t WHERE to_jsonb(t)::text LIKE '%' || $1 || '%'`, secret); n != "0" {
		t.Error("the token is stored as it is")
	}
	a.must(t, 204, "admin", "DELETE", path, "")
	a.must(t, 401, "new", "GET", v1+"enterprises", "")
	a.must(t, 403, "finance", "GET", v1+"tokens", "")
	if _, err := a.pool.Exec(t.Context(), `UPDATE admin_token SET expires_at = now() - interval '1 second' WHERE role = 1`); err != nil {
		t.Fatal(err)
	}
	a.must(t, 401, "viewer", "GET", v1+"enterprises", "")
}

func TestLists(t *testing.T) {
	t.Parallel()
	a := newAPI(t)
	a.first(t)
	r := a.must(t, 200, "operator", "POST", v1+"number-overrides/import", "\ufeff# ported\n13800000001,unicom\n\n+8613800000002, telecom\n13800000001,telecom\n")
	if r.body["lines"] != json.Number("3") || a.value(t, `SELECT string_agg(phone || ' ' || carrier || ' ' || source, ',' ORDER BY phone) FROM number_override WHERE phone = 13800000002`) != "13800000002 3 1" {
		t.Errorf("%s", r.raw)
	}
	r = a.must(t, 422, "operator", "POST", v1+"number-overrides/import", "13800000003,unicom\n1380,unicom\n13800000004,lunar\n")
	if !slices.Equal(r.faults(), []string{"line 2", "line 3"}) || a.value(t, `SELECT count(*) FROM number_override`) != "2" {
		t.Errorf("%s", r.raw)
	}
	r = a.must(t, 200, "operator", "POST", v1+"opt-outs/import?enterprise=east&signature=%E5%95%86%E5%9F%8E&marketing_only=true", "13800000001\n13800000002\n")
	if r.body["changed"] != json.Number("2") {
		t.Errorf("%s", r.raw)
	}
	path := v1 + "opt-outs/13800000001/1/%E5%95%86%E5%9F%8E"
	a.must(t, 204, "operator", "DELETE", path, "", "If-Match", "*")
	if r := a.must(t, 200, "viewer", "GET", path, ""); r.body["reversed_by"] != "operator of the test" || r.body["reversed_at"] == nil {
		t.Errorf("%s", r.raw)
	}
	// Reversed rows stay for the record and block again when the number opts out again.
	a.must(t, 201, "operator", "POST", v1+"opt-outs", `{"phone": "13800000001", "enterprise": 1, "signature": "商城", "marketing_only": true}`)
	a.must(t, 409, "operator", "POST", v1+"opt-outs", `{"phone": "13800000001", "enterprise": 1, "signature": "商城", "marketing_only": true}`)
	if r := a.must(t, 200, "viewer", "GET", path, ""); r.body["reversed_at"] != nil {
		t.Errorf("%s", r.raw)
	}
	a.must(t, 422, "operator", "POST", v1+"opt-outs/import?enterprise=west", "13800000001\n")
	// A signature is decided once it is, and no more when it is pending again.
	a.must(t, 201, "operator", "POST", v1+"signatures", `{"enterprise": 1, "text": "商城"}`)
	if r := a.must(t, 200, "operator", "PATCH", v1+"signatures/1", `{"status": "approved"}`, "If-Match", "*"); r.body["decided_at"] == nil {
		t.Errorf("%s", r.raw)
	}
	if r := a.must(t, 200, "operator", "PATCH", v1+"signatures/1", `{"status": "pending"}`, "If-Match", "*"); r.body["decided_at"] != nil {
		t.Errorf("%s", r.raw)
	}
	for _, c := range []struct {
		body string
		want []string
	}{
		{`{"scope": "enterprise", "id": 9, "mode": "hold"}`, []string{"id"}},
		{`{"scope": "platform", "id": 1, "mode": "hold"}`, []string{"id"}},
		{`{"scope": "application", "id": 1, "mode": "hold"}`, []string{"mode"}},
	} {
		if r := a.must(t, 422, "operator", "POST", v1+"dispatch-stops", c.body); !slices.Equal(r.faults(), c.want) {
			t.Errorf("%s: %s", c.body, r.raw)
		}
	}
	a.must(t, 201, "operator", "POST", v1+"dispatch-stops", `{"scope": "platform", "mode": "hold", "reason": "supplier complains"}`)
	a.must(t, 204, "operator", "DELETE", v1+"dispatch-stops/platform/0", "", "If-Match", "*")
	if r := a.must(t, 200, "operator", "PATCH", v1+"platform-limits/platform", `{"max_tps": 200}`, "If-Match", "*"); r.body["max_tps"] != json.Number("200") || r.body["backlog_max"] != json.Number("0") {
		t.Errorf("%s", r.raw)
	}
}

// Uplinks that are nobody's are looked at again, or put aside, once; the words that opt out are kept in their normal form.
func TestUnmatchedUplinks(t *testing.T) {
	t.Parallel()
	a := newAPI(t)
	if _, err := a.pool.Exec(t.Context(), `
INSERT INTO uplink (event_id, supplier_msg_id, phone, dest, at, supplier_account, channel_id, fmt, udhi, content, outcome)
  SELECT i, i, '13800000000', '1069', now(), 1, 1, 0, 0, 'T', 5 FROM generate_series(4, 5) i;
INSERT INTO uplink_unmatched (event_id, at, supplier_account, reason, opt_out, phone, dest) SELECT i, now(), 1, 2, true, '13800000000', '1069' FROM generate_series(4, 5) i`); err != nil {
		t.Fatal(err)
	}
	if r := a.must(t, 200, "viewer", "GET", v1+"unmatched-uplinks/4", ""); r.body["reason"] != "ambiguous" || r.body["opt_out"] != true || r.body["number"] != "1069" {
		t.Errorf("%s", r.raw)
	}
	nudged := a.bus.Subscribe(wake.Uplinks)
	a.must(t, 404, "operator", "POST", v1+"unmatched-uplinks/6/rematch", "")
	a.must(t, 404, "operator", "POST", v1+"unmatched-uplinks/x/discard", "")
	a.must(t, 403, "viewer", "POST", v1+"unmatched-uplinks/4/rematch", "")
	a.must(t, 204, "operator", "POST", v1+"unmatched-uplinks/4/rematch", "")
	a.must(t, 404, "operator", "POST", v1+"unmatched-uplinks/4/rematch", "")
	a.must(t, 204, "operator", "POST", v1+"unmatched-uplinks/5/discard", "")
	<-nudged
	if r := a.must(t, 200, "viewer", "GET", v1+"uplinks/5", ""); r.body["outcome"] != "discarded" {
		t.Errorf("%s", r.raw)
	}
	if got := a.value(t, `SELECT string_agg(event_id::text, ' ') || ' ' || (SELECT count(*) FROM uplink_unmatched) FROM uplink_queue`); got != "4 0" {
		t.Errorf("queue and list: %s", got)
	}
	a.must(t, 201, "operator", "POST", v1+"opt-out-words", `{"word": "不 要 了！"}`)
	a.must(t, 409, "operator", "POST", v1+"opt-out-words", `{"word": "不要了"}`)
	a.must(t, 422, "operator", "POST", v1+"opt-out-words", `{"word": "！！"}`)
	if got := a.value(t, `SELECT count(*) || '' FROM opt_out_word WHERE word = '不要了'`); got != "1" {
		t.Errorf("words: %s", got)
	}
}

// A dead receipt is offered anew once, with all its tries.
func TestReplay(t *testing.T) {
	t.Parallel()
	a := newAPI(t)
	if _, err := a.pool.Exec(t.Context(), `
INSERT INTO delivery (id, pos, message_id, msg_id, accept_session, accepted_at, app_id, kind, accept_node, attempts, claim, owner, stat, dest, src)
  VALUES (4, 4, 9, 9, 7, now(), 11, 1, 1, 8, 77, 1, 'DELIVRD', '13800000000', '1069');
WITH gone AS (DELETE FROM delivery d WHERE id = 4 RETURNING id, to_jsonb(d) AS raw)
INSERT INTO dead_letter (id, kind, reason, raw) SELECT id, 'delivery', 'spent', convert_to(raw::text, 'UTF8') FROM gone;
INSERT INTO dead_letter (id, kind, reason, raw) VALUES (5, 'report', '59 octets', 'x')`); err != nil {
		t.Fatal(err)
	}
	a.must(t, 409, "operator", "POST", v1+"dead-letters/5/replay", "")
	a.must(t, 404, "operator", "POST", v1+"dead-letters/6/replay", "")
	nudged := a.bus.Subscribe(wake.Deliveries)
	a.must(t, 204, "operator", "POST", v1+"dead-letters/4/replay", "")
	a.must(t, 409, "operator", "POST", v1+"dead-letters/4/replay", "")
	if got := a.value(t, `SELECT attempts || ' ' || coalesce(claim, 0) || ' ' || stat || ' ' || convert_from(dest, 'UTF8') FROM delivery`); got != "0 0 DELIVRD 13800000000" {
		t.Errorf("delivery %s", got)
	}
	select {
	case <-nudged:
	default:
		t.Error("nobody was told of the delivery")
	}
}

// Ids that are not held any more are named, not an error.
func TestDecideNamesWhatIsGone(t *testing.T) {
	t.Parallel()
	a := newAPI(t)
	r := a.must(t, 200, "operator", "POST", v1+"review-holds/approve", `{"messages": ["7", "9"]}`, "Idempotency-Key", "k")
	if fmt.Sprint(r.body["gone"]) != "[7 9]" || a.value(t, `SELECT action FROM admin_audit WHERE resource = 'review-holds'`) != "approve" {
		t.Errorf("%s", r.raw)
	}
	if again := a.must(t, 200, "operator", "POST", v1+"review-holds/approve", `{"messages": ["7", "9"]}`, "Idempotency-Key", "k"); again.header.Get("Idempotent-Replayed") != "true" {
		t.Errorf("%s", again.raw)
	}
	a.must(t, 422, "operator", "POST", v1+"review-holds/reject", `{"messages": [7]}`)
}
