package supplier_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
)

// The second of three layers: what a pool would refuse is refused here with every reason, and nothing is changed.
func TestControlEntryChangesRunningChannelsOrNothing(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	r.exec(t, `UPDATE supplier_account SET max_connections = 5, max_window = 32`)
	r.channel(t, 1, 1, 4)
	r.channel(t, 2, 2, 4)
	e := r.edge(t)
	control := e.Control()
	call := func(method, path, body string) (int, map[string]any) {
		t.Helper()
		w := httptest.NewRecorder()
		control.ServeHTTP(w, httptest.NewRequestWithContext(t.Context(), method, "/api/control/channels"+path, strings.NewReader(body)))
		var doc map[string]any
		_ = json.Unmarshal(w.Body.Bytes(), &doc) // a list has no fields
		return w.Code, doc
	}
	stored := func() (s string) {
		t.Helper()
		if err := r.pool.QueryRow(t.Context(), `SELECT string_agg(c::text, '|' ORDER BY id) || (SELECT version FROM settings_version) || (SELECT count(*) FROM admin_audit) FROM channel c`).Scan(&s); err != nil {
			t.Fatal(err)
		}
		return s
	}
	eventually(t, "connections", func() bool { return e.active(1) == 1 && e.active(2) == 2 })
	before := stored()
	for _, c := range []struct {
		path, body, want string
		status           int
	}{
		{"/1", `{"desiredConnections": 0}`, "desiredConnections 0 must be 1..8", 422},
		{"/1", `{"desiredConnections": 9}`, "desiredConnections 9 must be 1..8", 422},
		{"/1", `{"windowSize": 0}`, "windowSize 0 must be 1..64", 422},
		{"/1", `{"windowSize": 65}`, "windowSize 65 must be 1..64", 422},
		{"/1", `{"windowSize": 33}`, "windowSize 33 account 1's contract allows 32", 422},
		{"/1", `{"desiredConnections": 4}`, "desiredConnections 4 account 1 would have 6 connections over all its channels, its contract allows 5", 422},
		{"/1", `{"windowSize": 65, "desiredConnections": 0, "submitResponseTimeoutSeconds": 0, "connectionWarmupSeconds": -1, "connectionDrainTimeoutSeconds": 3601, "connectionFailureCooldownSeconds": -1}`, "connectionFailureCooldownSeconds -1 must be 0..3600", 422},
		{"/1", `{"windowSize": 8, "window": 9}`, "no setting that changes here", 422},
		{"/1", `{"windowSize": "8"}`, `must be a whole number, not "8"`, 422},
		{"/1", `{"windowSize": null}`, "must be a whole number, not null", 422},
		{"/1", `{"windowSize": 8.5}`, "must be a whole number, not 8.5", 422},
		{"/1", `{}`, "no setting named", 422},
		{"/1", `[1]`, "an object of settings", 400},
		{"/1", `{"windowSize": 8} {}`, "more than one object", 400},
		{"/3", `{"windowSize": 8}`, "there is no channel 3", 404},
		{"/x", `{"windowSize": 8}`, "is no number", 404},
	} {
		status, doc := call(http.MethodPatch, c.path, c.body)
		said := fmt.Sprint(doc["detail"])
		faults, _ := doc["faults"].([]any)
		for _, f := range faults {
			if m, ok := f.(map[string]any); ok {
				said += fmt.Sprint("\n", m["field"], " ", m["value"], " ", m["allowed"])
			}
		}
		if status != c.status || !strings.Contains(said, c.want) {
			t.Errorf("%s: %d, %s; want %d and %q", c.body, status, said, c.status, c.want)
		}
	}
	if after := stored(); after != before {
		t.Errorf("refused, and yet changed:\n%s\n%s", before, after)
	}
	status, doc := call(http.MethodPatch, "/1", `{"desiredConnections": 3, "windowSize": 32, "submitResponseTimeoutSeconds": 45, "connectionWarmupSeconds": 0, "connectionDrainTimeoutSeconds": 7, "connectionFailureCooldownSeconds": 2}`)
	if status != http.StatusOK || doc["version"] == nil {
		t.Fatalf("%d, %v", status, doc)
	}
	eventually(t, "three connections with the new window", func() bool { return e.active(1) == 3 && e.state(1).Connections[0].Window == 32 })
	if n := r.number(t, `SELECT response_seconds * 10000 + drain_seconds * 100 + cooldown_seconds FROM channel WHERE id = 1`); n != 450702 {
		t.Errorf("stored %d", n)
	}
	if n := r.number(t, `SELECT count(*) FROM admin_audit WHERE resource = 'channels' AND key = '1' AND before->>'window_size' = '4' AND after->>'window_size' = '32'`); n != 1 {
		t.Errorf("%d rows of the audit", n)
	}
	if status, doc := call(http.MethodGet, "/2", ""); status != http.StatusOK || doc["state"] != "open" || doc["breaker"] != "closed" {
		t.Errorf("channel 2: %d, %v", status, doc)
	}
	if status, _ := call(http.MethodGet, "", ""); status != http.StatusOK {
		t.Errorf("channels: %d", status)
	}
	if status, _ := call(http.MethodGet, "/77", ""); status != http.StatusNotFound {
		t.Errorf("channel 77: %d", status)
	}
}
