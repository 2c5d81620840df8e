package main

import (
	"context"
	"encoding/json"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"
)

// order posts an order and returns the status and what came back.
func order(ctx context.Context, t *testing.T, addr, body string) (int, map[string]any) {
	t.Helper()
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, "http://"+addr+"/control", strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	transport := &http.Transport{DisableKeepAlives: true}
	resp, err := transport.RoundTrip(req)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	var out map[string]any
	raw, err := io.ReadAll(resp.Body)
	if err == nil && len(raw) > 0 && raw[0] == '{' {
		err = json.Unmarshal(raw, &out)
	}
	if err != nil {
		t.Fatal(err)
	}
	return resp.StatusCode, out
}

// Everything a supplier and a customer can do is ordered over HTTP, and what cannot
// be done is answered with what would be right.
func TestControl(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithTimeout(context.Background(), 30*time.Second)
	defer cancel()
	out := newLines()
	failed := make(chan error, 1)
	path := write(t, `
listen: 127.0.0.1:0
http: 127.0.0.1:0
accounts: [{id: "900001", secret: s}]
customers: [{id: "900001", secret: s}]
`)
	go func() {
		failed <- run(ctx, []string{"serve", "--profile", path, "--log-level", "error"}, out, io.Discard)
	}()
	_, addr, ok := strings.Cut(<-out.got, "http=")
	if !ok {
		t.Fatal("no HTTP address printed")
	}
	live := func(want float64) {
		t.Helper()
		for {
			if _, state := order(ctx, t, addr, `{"do": "customer_state", "account": "900001"}`); state["Live"] == want {
				return
			}
		}
	}
	live(1)
	for _, c := range []struct {
		body   string
		status int
		want   string
	}{
		{`{"do": "uplink", "account": "900001", "source": "13800138000", "dest": "1069", "text": "TD"}`, 200, ""},
		{`{"do": "uplink", "account": "900001", "source": "13800138000", "dest": "1069", "text": "TD", "ref": 7, "order": [0, 0]}`, 200, ""},
		{`{"do": "limits", "account": "900001", "window": 8}`, 200, ""},
		{`{"do": "rule", "command": "ACTIVE_TEST", "action": "silence", "count": 1}`, 200, ""},
		{`{"do": "rule", "command": "SUBMIT", "action": "delay", "wait": "5ms"}`, 200, ""},
		{`{"do": "ignore_tests", "account": "900001", "on": true}`, 200, ""},
		{`{"do": "split_writes", "account": "900001", "on": true}`, 200, ""},
		{`{"do": "refuse_logins", "account": "900001", "status": 5}`, 200, ""},
		{`{"do": "replay", "account": "900001", "n": 3}`, 200, ""},
		{`{"do": "mute", "account": "900001", "on": true}`, 200, ""},
		{`{"do": "slow", "account": "900001", "rate": 1000}`, 200, ""},
		{`{"do": "slow", "account": "900001", "rate": 0}`, 200, ""},
		{`{"do": "cut_customer", "account": "900001", "how": "rst"}`, 200, ""},
		{`{"do": "dance"}`, 400, "dance"},
		{`{"do": "uplink", "to": 3}`, 400, "unknown field"},
		{`{"do": "cut", "conn": 1, "how": "axe"}`, 400, "axe"},
		{`{"do": "rule", "command": "SUBMIT", "action": "delay"}`, 400, "wait"},
		{`{"do": "cut", "conn": 4096, "how": "rst"}`, 404, "4096"},
		{`{"do": "mute", "account": "900009"}`, 404, "900009"},
		{`{"do": "limits", "account": "900009"}`, 404, "900009"},
	} {
		status, body := order(ctx, t, addr, c.body)
		text, _ := body["error"].(string)
		if status != c.status || !strings.Contains(text, c.want) {
			t.Errorf("%s: %d %s", c.body, status, text)
		}
	}
	live(0) // cut off, and logins are refused
	order(ctx, t, addr, `{"do": "refuse_logins", "account": "900001"}`)
	live(1)
	order(ctx, t, addr, `{"do": "offline", "account": "900001", "on": true}`)
	live(0)
	cancel()
	if err := <-failed; err != nil {
		t.Fatal(err)
	}
}
