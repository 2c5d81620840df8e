package store_test

import (
	"encoding/json"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5/pgxpool"
)

// hot is a statement of the message path: its plan must not depend on what the statistics happen to say (data §1.6).
type hot struct {
	name string
	sql  string
	args string   // SQL expressions to EXECUTE it with, such as `'{1,2}', 7, now()`; they only decide which leaves are shown
	uses []string // the one access path of each table read: its index's leading column, as "submit_outbox.channel_id"
}

var hots []hot

// isHot registers a statement; the hot_<role>_test.go files say `var _ = isHot(…)`.
func isHot(name, sql, args string, uses ...string) struct{} {
	hots = append(hots, hot{name, sql, args, uses})
	return struct{}{}
}

// Queue tables are empty when they are analysed, facts too on the first day.
var statistics = []struct {
	name  string
	setup []string
}{
	{"never analysed", nil},
	{"analysed empty", []string{"ANALYZE"}},
	{"analysed empty then filled", append([]string{"ANALYZE"}, fill...)},
	{"analysed full", append(slices.Clone(fill), "ANALYZE")},
}

var fill = []string{
	`INSERT INTO inbox SELECT i, i, i, 1, i, now(), NULL, i % 5 + 1, i % 5 + 1, 1, 1, 1, 0, 0, 1, 1, '13800000000', '106', '', 'x' FROM generate_series(1, 100000) i`,
	`INSERT INTO submit_outbox (id, pos, message_id, channel_id, enterprise_id, attempt, part, parts, lane, state)
		SELECT i, i, i, 1, 1, 1, 1, 1, 1, 0 FROM generate_series(1, 100000) i`,
	`INSERT INTO unknown_submit SELECT i, i, 13800000000 + i, now(), 1, 1, 1, '106' FROM generate_series(1, 100000) i`,
	`INSERT INTO receipt_parked (event_id, supplier_msg_id, phone, at, next_try_at, supplier_account, stat, submit_time, done_time)
		SELECT i, i, 13800000000 + i, now(), now(), 1, 'DELIVRD', '', '' FROM generate_series(1, 100000) i`,
	`INSERT INTO delivery (id, pos, message_id, msg_id, accept_session, accepted_at, app_id, kind, accept_node, dest, src)
		SELECT i, i, i, i, 1, now(), 1, 1, 1, '', '' FROM generate_series(1, 100000) i`,
	`INSERT INTO message (id, msg_id, price, phone, accept_session, accepted_at, created_at, enterprise_id, app_id, units, price_version, state, bill,
			charge_on, refund_on, registered, fmt, udhi, pk_total, pk_number, accept_node, dest, src, service, content)
		SELECT lo + i, i, 325, 13800000000 + i, 1, now(), now(), 1, 1, 1, 1, 1, 1, 1, 1, 1, 0, 0, 1, 1, 1, '', '', '', 'x'
		FROM generate_series(1, 100000) i, (SELECT first_id(0) lo) f`,
	`INSERT INTO opt_out (phone) SELECT 13800000000 + i FROM generate_series(1, 100000) i`,
	`INSERT INTO number_override (phone, carrier, source) SELECT 13800000000 + i, 1, 1 FROM generate_series(1, 100000) i`,
	`INSERT INTO review_hold (message_id, enterprise_id, app_id, keyword_id, held_at, expires_at) SELECT i, i % 5, 1, 1, now(), now() FROM generate_series(1, 100000) i`,
	`INSERT INTO daily_use (enterprise_id, day, app_id, messages) SELECT i % 100, current_date - i / 1000, i % 1000, 1 FROM generate_series(1, 100000) i ON CONFLICT DO NOTHING`,
	`INSERT INTO uplink (event_id, supplier_msg_id, phone, dest, at, supplier_account, channel_id, fmt, udhi, content) SELECT i, i, '13800000000', '106', now(), 1, 1, 8, 0, 'x' FROM generate_series(1, 100000) i`,
	`INSERT INTO uplink_queue (event_id, pos) SELECT i, i FROM generate_series(1, 100000) i`,
	`INSERT INTO uplink_segment (event_id, set_id, set_key, hash, since, due_at, number) SELECT i, i, i, i, now(), now() + i * interval '1 second', 1 FROM generate_series(1, 100000) i`,
	`INSERT INTO submit (id, message_id, supplier_msg_id, dispatched_at, channel_id, account_id, enterprise_id, attempt, part, parts, state, node)
		SELECT lo + i, lo + i, i, now(), 1, 1, 1, 1, 1, 1, 2, 1 FROM generate_series(1, 100000) i, (SELECT first_id(0) lo) f`,
	`INSERT INTO receipt (event_id, seq, supplier_msg_id, phone, at, supplier_account, channel_id, shard, stat, submit_time, done_time)
		SELECT lo + i, i, i, 13800000000 + i, now(), 1, 1, 1, 'DELIVRD', '', '' FROM generate_series(1, 100000) i, (SELECT first_id(0) lo) f`,
}

// firstID gives the fill and the arguments of statements the lowest id of a day from today on.
const firstID = `CREATE FUNCTION first_id(days int) RETURNS bigint LANGUAGE sql IMMUTABLE AS
	$$ SELECT (extract(epoch FROM date_trunc('day', now() AT TIME ZONE 'UTC') + make_interval(days => days) - timestamp '2024-01-01') * 1000)::bigint << 22 $$`

func TestHotStatementsHaveOneAccessPath(t *testing.T) {
	t.Parallel()
	for _, s := range statistics {
		t.Run(s.name, func(t *testing.T) {
			t.Parallel()
			p := open(t)
			exec(t, p.Admin, firstID)
			for _, sql := range s.setup {
				exec(t, p.Admin, sql)
			}
			for _, h := range hots {
				for _, fault := range h.faults(t, p.Outbox) {
					t.Errorf("%s: %s", h.name, fault)
				}
			}
		})
	}
}

// The test itself can fail: statements of the kinds that collapsed (data §1.6).
func TestBadPlansAreSeen(t *testing.T) {
	t.Parallel()
	p := open(t)
	exec(t, p.Admin, "ANALYZE")
	for _, h := range []hot{
		{"queue without its key", `SELECT id FROM submit_outbox WHERE state = $1`, "0", nil},
		{"second column of the index alone", `SELECT id FROM submit_outbox WHERE lane = $1`, "1", nil},
		{"other index than the meant one", `SELECT id FROM delivery WHERE id = ANY($1::bigint[])`, "'{1}'", []string{"delivery.app_id"}},
		{"range joined with a queue", `SELECT q.id FROM submit_outbox q JOIN message m ON m.id = q.message_id AND m.id BETWEEN $2 AND $3 WHERE q.channel_id = $1`, "1, 0, 9223372036854775807", nil},
		{"claim joined from a sub-select", `UPDATE delivery d SET claim = $2 FROM (SELECT id FROM delivery WHERE app_id = $1 ORDER BY pos LIMIT 1 FOR UPDATE) s WHERE d.stat = s.id::text`, "1, 2", nil},
	} {
		if len(h.faults(t, p.Outbox)) == 0 {
			t.Errorf("%s: nothing found", h.name)
		}
	}
}

type plan struct {
	Type     string `json:"Node Type"`
	Relation string `json:"Relation Name"`
	Index    string `json:"Index Name"`
	Cond     string `json:"Index Cond"`
	Plans    []plan `json:"Plans"`
}

var leafDay = regexp.MustCompile(`_\d{8}$`)

// faults are the ways in which the generic plan of h reads a table other than by the leading column of an index.
func (h hot) faults(t *testing.T, pool *pgxpool.Pool) (faults []string) {
	t.Helper()
	conn, err := pool.Acquire(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Release()
	exec(t, conn, "PREPARE hot AS "+h.sql)
	defer exec(t, conn, "DEALLOCATE hot")
	call := "EXECUTE hot"
	if h.args != "" {
		call += "(" + h.args + ")"
	}
	var out []byte
	if err := conn.QueryRow(t.Context(), "EXPLAIN (FORMAT JSON) "+call).Scan(&out); err != nil {
		t.Fatalf("%s: %v", h.name, err)
	}
	var plans []struct{ Plan plan }
	if err := json.Unmarshal(out, &plans); err != nil {
		t.Fatal(err)
	}
	used := make(map[string]bool)
	var ranges []string
	var walk func(plan)
	walk = func(n plan) {
		switch n.Type {
		case "Seq Scan", "Parallel Seq Scan", "Bitmap Heap Scan", "Tid Scan", "Merge Join":
			faults = append(faults, fmt.Sprintf("%s on %s", n.Type, n.Relation))
		case "Index Scan", "Index Only Scan":
			var column string
			err := conn.QueryRow(t.Context(), `SELECT attname FROM pg_index JOIN pg_attribute ON attrelid = indrelid AND attnum = indkey[0] WHERE indexrelid = $1::text::regclass`, n.Index).Scan(&column)
			if err != nil {
				t.Fatal(err)
			}
			path := leafDay.ReplaceAllString(n.Relation, "") + "." + column
			used[path] = true
			if !regexp.MustCompile(`\b` + column + `\b`).MatchString(n.Cond) {
				faults = append(faults, fmt.Sprintf("%s on %s by %s without a condition on %s: %q", n.Type, n.Relation, n.Index, column, n.Cond))
			}
			// On a fact table a range is there to prune leaves. As the only condition of a join it walks the days it spans
			// and compares each row with the whole queue.
			if leafDay.MatchString(n.Relation) && !regexp.MustCompile(`\b`+column+` = `).MatchString(n.Cond) {
				ranges = append(ranges, fmt.Sprintf("%s on %s by %s with a range alone: %q", n.Type, n.Relation, n.Index, n.Cond))
			}
			if len(h.uses) > 0 && !slices.Contains(h.uses, path) {
				faults = append(faults, fmt.Sprintf("reads by %s, meant is %s", path, strings.Join(h.uses, ", ")))
			}
		}
		for _, c := range n.Plans {
			walk(c)
		}
	}
	walk(plans[0].Plan)
	if len(used) > 1 {
		faults = append(faults, ranges...)
	}
	for _, path := range h.uses {
		if !used[path] {
			faults = append(faults, "does not read by "+path+"\n"+string(out))
		}
	}
	return faults
}

var _ = isHot("must_be", `WITH d AS (DELETE FROM inbox WHERE id = ANY($2::bigint[]) RETURNING 1) SELECT must_be($1, (SELECT count(*) FROM d))`, "2, '{1,2}'", "inbox.id")
