package admin_test

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"cmppgateway/gateway/internal/ledger"
	"cmppgateway/gateway/internal/store"
)

// Many top-ups at once with one key are one entry, and all get the same answer.
func TestTopUpsWithOneKey(t *testing.T) {
	t.Parallel()
	a := newAPI(t)
	a.must(t, 201, "admin", "POST", v1+"enterprises", `{"name": "east"}`)
	const callers = 8
	replies := make(chan reply, callers)
	for range callers {
		go func() {
			replies <- a.call(context.WithoutCancel(t.Context()), "finance", "POST", v1+"accounts/1/top-ups", `{"amount": 5000, "note": "invoice 7"}`, "Idempotency-Key", "invoice-7")
		}()
	}
	answers := map[string]int{}
	for range callers {
		r := <-replies
		if r.status != 201 {
			t.Fatalf("%d %s", r.status, r.raw)
		}
		answers[fmt.Sprint(r.body["entry"], r.body["amount"], r.body["balance"])]++
	}
	if len(answers) != 1 || a.value(t, `SELECT count(*) || ' ' || sum(amount) || ' ' || (SELECT available FROM account) FROM account_entry`) != "1 5000 5000" {
		t.Errorf("answers %v", answers)
	}
	if n := a.value(t, `SELECT count(*) FROM admin_audit WHERE action = 'top-up'`); n != "1" {
		t.Errorf("%s rows of the audit", n)
	}
	// The same key for anything else is refused: another amount, another account, another token.
	a.must(t, 201, "admin", "POST", v1+"enterprises", `{"name": "west"}`)
	for _, c := range []struct{ role, path, body string }{
		{"finance", "accounts/1/top-ups", `{"amount": 5001, "note": "invoice 7"}`},
		{"finance", "accounts/2/top-ups", `{"amount": 5000, "note": "invoice 7"}`},
		{"admin", "accounts/1/top-ups", `{"amount": 5000, "note": "invoice 7"}`},
	} {
		if r := a.must(t, 409, c.role, "POST", v1+c.path, c.body, "Idempotency-Key", "invoice-7"); r.body["code"] != "key-reused" {
			t.Errorf("%s", r.raw)
		}
	}
	// The order of the fields makes no other request.
	a.must(t, 201, "finance", "POST", v1+"accounts/1/top-ups", ` {"note": "invoice 7", "amount": 5000}`, "Idempotency-Key", "invoice-7")
	// A refused request does not use its key up.
	a.must(t, 422, "finance", "POST", v1+"accounts/1/top-ups", `{"amount": 0}`, "Idempotency-Key", "invoice-8")
	a.must(t, 404, "finance", "POST", v1+"accounts/9/top-ups", `{"amount": 1}`, "Idempotency-Key", "invoice-8")
	if r := a.must(t, 201, "finance", "POST", v1+"accounts/1/top-ups", `{"amount": 1}`, "Idempotency-Key", "invoice-8"); r.body["balance"] != json.Number("5001") {
		t.Errorf("%s", r.raw)
	}
	// Answers are kept for a week, entries for ever: an old key does not book again.
	if _, err := a.pool.Exec(t.Context(), `DELETE FROM admin_answer`); err != nil {
		t.Fatal(err)
	}
	a.must(t, 409, "finance", "POST", v1+"accounts/1/top-ups", `{"amount": 5000, "note": "invoice 7"}`, "Idempotency-Key", "invoice-7")
	if r, err := ledger.Verify(t.Context(), a.pool); err != nil || len(r.Faults) > 0 {
		t.Errorf("ledger %+v, %v", r.Faults, err)
	}
	if got := a.value(t, `SELECT count(*) || ' ' || (SELECT available FROM account WHERE id = 1) FROM account_entry`); got != "2 5001" {
		t.Errorf("entries and balance %s", got)
	}
}

// Different keys at once are all booked.
func TestTopUpsWithDifferentKeys(t *testing.T) {
	t.Parallel()
	a := newAPI(t)
	a.must(t, 201, "admin", "POST", v1+"enterprises", `{"name": "east"}`)
	const callers = 12
	done := make(chan int, callers)
	for i := range callers {
		go func() {
			done <- a.call(context.WithoutCancel(t.Context()), "finance", "POST", v1+"accounts/1/top-ups", `{"amount": 10}`, "Idempotency-Key", fmt.Sprint("k", i)).status
		}()
	}
	for range callers {
		if s := <-done; s != 201 {
			t.Errorf("status %d", s)
		}
	}
	if got := a.value(t, `SELECT count(*) || ' ' || max(balance) || ' ' || (SELECT available FROM account) FROM account_entry`); got != "12 120 120" {
		t.Errorf("%s", got)
	}
}

func TestCredit(t *testing.T) {
	t.Parallel()
	a := newAPI(t)
	a.must(t, 201, "admin", "POST", v1+"enterprises", `{"name": "east"}`)
	seen := a.must(t, 200, "viewer", "GET", v1+"accounts/1", "").header.Get("ETag")
	a.must(t, 201, "finance", "POST", v1+"accounts/1/top-ups", `{"amount": 10}`, "Idempotency-Key", "k")
	// The balance moves by itself: it is no part of the version.
	r := a.must(t, 200, "finance", "PATCH", v1+"accounts/1", `{"credit": 500}`, "If-Match", seen)
	if r.body["credit"] != json.Number("500") || r.body["available"] != json.Number("10") {
		t.Errorf("%s", r.raw)
	}
	a.must(t, 412, "finance", "PATCH", v1+"accounts/1", `{"credit": 600}`, "If-Match", seen)
	a.must(t, 200, "finance", "PATCH", v1+"accounts/1", `{"credit": 700}`, "If-Match", r.header.Get("ETag"))
	a.must(t, 422, "finance", "PATCH", v1+"accounts/1", `{"credit": -1}`, "If-Match", "*")
	if _, err := a.pool.Exec(t.Context(), `UPDATE account SET available = -300`); err != nil {
		t.Fatal(err)
	}
	if r := a.must(t, 409, "finance", "PATCH", v1+"accounts/1", `{"credit": 299}`, "If-Match", "*"); r.body["code"] != "conflict" {
		t.Errorf("%s", r.raw)
	}
	if got := a.value(t, `SELECT credit || ' ' || (SELECT string_agg((before ->> 'credit') || '-' || (after ->> 'credit'), ' ' ORDER BY id) FROM admin_audit WHERE action = 'credit') FROM account`); got != "700 0-500 500-700" {
		t.Errorf("%s", got)
	}
}

// terms is what the workflow would freeze a message of application 1 with, now.
func (a *api) terms(t *testing.T) string {
	t.Helper()
	rows, err := a.pool.Query(t.Context(), store.WorkflowTerms, []int32{1})
	if err != nil {
		t.Fatal(err)
	}
	defer rows.Close()
	if !rows.Next() {
		t.Fatalf("no terms: %v", rows.Err())
	}
	v, err := rows.Values()
	if err != nil {
		t.Fatal(err)
	}
	return fmt.Sprintf("%v v%v charge %v refund %v", v[4], v[5], v[7], v[8])
}

// A price holds from its time on, to the moment; what was frozen before keeps its own.
func TestPricesHaveATime(t *testing.T) {
	t.Parallel()
	a := newAPI(t)
	a.first(t)
	want := func(terms string) {
		t.Helper()
		if got := a.terms(t); got != terms {
			t.Errorf("terms %s, want %s", got, terms)
		}
	}
	want("325 v1 charge 1 refund 1")
	// Now.
	r := a.must(t, 201, "finance", "POST", v1+"applications/1/prices", `{"price": 300, "charge_on": "deliver"}`)
	if r.body["version"] != json.Number("2") {
		t.Errorf("%s", r.raw)
	}
	want("300 v2 charge 2 refund 1")
	// Later: planned in any order, what is left out stays as it will be then.
	day := func(n int) string { return time.Now().AddDate(0, 0, n).UTC().Format(time.RFC3339) }
	a.must(t, 201, "finance", "POST", v1+"applications/1/prices", `{"price": 280, "effective_from": "`+day(20)+`", "refund_on": "never"}`)
	a.must(t, 201, "finance", "POST", v1+"applications/1/prices", `{"price": 290, "effective_from": "`+day(10)+`"}`)
	want("300 v2 charge 2 refund 1")
	if got := a.value(t, `SELECT price || ' ' || price_version FROM application`); got != "300 2" {
		t.Errorf("the application's own row %s", got)
	}
	// Ten days pass, then ten more.
	pass := func() {
		if _, err := a.pool.Exec(t.Context(), `UPDATE price_history SET since = since - interval '10 days 1 minute'`); err != nil {
			t.Fatal(err)
		}
	}
	pass()
	want("290 v4 charge 2 refund 1")
	// A change from now on goes before the plan and does not end it.
	a.must(t, 201, "finance", "POST", v1+"applications/1/prices", `{"price": 295}`)
	want("295 v5 charge 2 refund 1")
	pass()
	want("280 v3 charge 2 refund 0")
	// What was in force stays in the history, what was planned can be taken back.
	if r := a.must(t, 409, "finance", "DELETE", v1+"prices/1/3", ""); r.body["code"] != "conflict" {
		t.Errorf("%s", r.raw)
	}
	r = a.must(t, 201, "finance", "POST", v1+"applications/1/prices", `{"price": 1, "effective_from": "`+day(1)+`"}`)
	a.must(t, 204, "finance", "DELETE", r.header.Get("Location"), "")
	if n := a.value(t, `SELECT count(*) FROM price_history WHERE price = 1`); n != "0" {
		t.Error("the planned price is still there")
	}
	for _, body := range []string{`{"price": 5, "effective_from": "2020-01-01T00:00:00Z"}`, `{"price": 5, "effective_from": "` + day(400) + `"}`, `{"price": 5, "effective_from": "tomorrow"}`} {
		if r := a.must(t, 422, "finance", "POST", v1+"applications/1/prices", body); strings.Join(r.faults(), "") != "effective_from" {
			t.Errorf("%s: %s", body, r.raw)
		}
	}
	// The price is no field to edit by the way.
	for _, body := range []string{`{"price": 5}`, `{"charge_on": "accept"}`, `{"secret": "guess"}`} {
		if r := a.must(t, 422, "admin", "PATCH", v1+"applications/1", body, "If-Match", "*"); strings.Contains(r.raw, "guess") || strings.Contains(r.raw, "280") {
			t.Errorf("%s", r.raw)
		}
	}
}
