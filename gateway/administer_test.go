package main_test

import (
	"encoding/json"
	"io"
	"net/http"
	"strings"
	"syscall"
	"testing"

	"github.com/jackc/pgx/v5"

	"cmppgateway/gateway/internal/observe"
	"cmppgateway/testenv"
)

// administers makes a working set, a token, and reads the sheet and the doctor's findings, with nothing running.
func administers(t *testing.T, gw binary) {
	t.Helper()
	addr, db := testenv.Redis(t)
	url := testenv.DB(t)
	env := environment(t, url, addr, db)
	ok := func(args ...string) string {
		t.Helper()
		code, stdout, stderr := gw.run(t, env, args...)
		if code != 0 {
			t.Fatalf("%v: exit %d, %q %q", args, code, stdout, stderr)
		}
		return stdout
	}
	file := write(t, "seed.yaml", strings.Replace(seedFile, "secret: a,", "secret: very-secret,", 1)+`
application_policies: [{application: "100001"}]
application_addresses: [{application: "100001", network: 192.0.2.0/24}]
signatures: [{enterprise: 1, text: 商城, status: approved}]
`)
	ok("seed", file)

	faulty := write(t, "faulty.yaml", "enterprises:\n  - {id: 0, name: x}\n  - {id: 2, name: ent-a}\n")
	code, _, stderr := gw.run(t, env, "seed", faulty)
	if code != 2 || strings.Count(stderr, "\n") != 2 || !strings.Contains(stderr, "faulty.yaml:2: enterprises.id: 0, must be 1..2147483647") || !strings.Contains(stderr, "enterprise 1 has it") {
		t.Errorf("faulty seed: exit %d, %q; want both faults on lines of their own", code, stderr)
	}

	token := strings.TrimSpace(ok("token", "create", "--role", "operator", "--name", "night shift"))
	if !strings.HasPrefix(token, "cgw_") || strings.Contains(token, "\n") {
		t.Errorf("token %q", token)
	}
	if list := ok("token", "list"); !strings.Contains(list, "night shift") || strings.Contains(list, token[10:]) {
		t.Errorf("tokens %q", list)
	}

	conn, err := pgx.Connect(t.Context(), url)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close(t.Context())
	if _, err := conn.Exec(t.Context(), `INSERT INTO login_event (sp_id, address, status, cause, first_at, last_at, n, app_id, node, version, stamp, detail) VALUES
		('100001', '192.0.2.7', 0, '', now() - interval '2 days', now() - interval '2 hours', 3, 11, 1, 48, '1201000000', ''),
		('100001', '192.0.2.7', 3, 'AuthenticatorSource does not fit the secret', now(), now() - interval '1 hour', 9, 11, 1, 48, '1201000000', ''),
		('100001', '198.51.100.1', 5, 'too many refused logins', now(), now() - interval '3 hours', 1, 11, 1, 48, '1201000000', ''),
		('999999', '198.51.100.1', 2, 'unknown Source_Addr', now(), now(), 1, 0, 1, 48, '1201000000', '')`); err != nil {
		t.Fatal(err)
	}
	for _, account := range []string{"100001", "11"} {
		sheet := ok("app", "sheet", account, "--address", "sms.example.net:7890")
		for _, want := range []string{"sms.example.net:7890", "100001", "2.0 and 3.0", "at most 4", "at most 32 SUBMITs", "192.0.2.0/24", "商城", "mobile", "0.0325 yuan a unit"} {
			if !strings.Contains(sheet, want) {
				t.Errorf("no %q in the sheet:\n%s", want, sheet)
			}
		}
		found := ok("doctor", account)
		for _, want := range []string{"2000.0000 yuan", "refused with 3: AuthenticatorSource", "9 times", "DO from 192.0.2.7: the customer's secret is another one"} {
			if !strings.Contains(found, want) {
				t.Errorf("no %q in what the doctor says:\n%s", want, found)
			}
		}
		if strings.Contains(found, "DO from 198.51.100.1") {
			t.Errorf("a refusal before the last login is still blamed:\n%s", found)
		}
		if strings.Contains(sheet+found, "very-secret") {
			t.Error("a secret is printed")
		}
	}
	code, stdout, _ := gw.run(t, env, "doctor", "999999")
	if code != 1 || !strings.Contains(stdout, "no application has") || !strings.Contains(stdout, "digit by digit") {
		t.Errorf("doctor of an unknown account: exit %d, %q", code, stdout)
	}
	if code, _, stderr := gw.run(t, env, "app", "sheet", "77"); code != 1 || !strings.Contains(stderr, `"77"`) {
		t.Errorf("sheet of nothing: exit %d, %q", code, stderr)
	}
	if code, _, stderr := gw.run(t, env, "token", "create", "--role", "king", "--name", "x"); code != 2 || !strings.Contains(stderr, "viewer") {
		t.Errorf("a role that is none: exit %d, %q", code, stderr)
	}
	ok("token", "revoke", "1")
}

// administersLive changes settings of the running gateway through its admin API.
func administersLive(t *testing.T, gw binary) {
	t.Helper()
	addr, db := testenv.Redis(t)
	env := environment(t, testenv.DB(t), addr, db)
	if code, _, stderr := gw.run(t, env, "seed", write(t, "seed.yaml", seedFile)); code != 0 {
		t.Fatalf("seed: %s", stderr)
	}
	_, token, _ := gw.run(t, env, "token", "create", "--role", "operator", "--name", "x")
	token = strings.TrimSpace(token)
	r := start(t, gw, env)
	r.until(t, "ready", ready)
	if status, _ := r.ask(t, "GET", "/api/admin/v1/channels/1", "", ""); status != http.StatusUnauthorized {
		t.Errorf("without a token: %d", status)
	}
	if status, body := r.ask(t, "PATCH", "/api/admin/v1/channels/1", token, `{"window": 8}`); status != http.StatusOK {
		t.Fatalf("%d %s", status, body)
	}
	r.until(t, "the new window in use", func(observe.State) bool {
		_, body := r.ask(t, "GET", "/api/admin/effective", "", "")
		var e struct {
			Settings struct {
				Channels []struct{ WindowSize int } `json:"channels"`
			} `json:"settings"`
		}
		return json.Unmarshal([]byte(body), &e) == nil && len(e.Settings.Channels) == 1 && e.Settings.Channels[0].WindowSize == 8
	})
	if status, body := r.ask(t, "GET", "/openapi.json", "", ""); status != http.StatusOK || !strings.Contains(body, `"3.1.0"`) {
		t.Errorf("the document: %d", status)
	}
	if err := r.cmd.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	if code := r.exit(t); code != 0 {
		t.Errorf("exit %d\n%s", code, r.stderr)
	}
}

// ask sends a request to the admin API.
func (r *running) ask(t *testing.T, method, path, token, body string) (int, string) {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), method, r.url+path, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	if token != "" {
		req.Header.Set("Authorization", "Bearer "+token)
		req.Header.Set("If-Match", "*")
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close() // read below
	raw, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	return resp.StatusCode, string(raw)
}
