//go:build mutations

package settlement_test

import (
	"context"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// mutation is a guard taken away, and the test that must fail without it.
type mutation struct {
	name     string
	file     string // below gateway/internal
	from, to string
	test     string // of this package; "" = TestExactness. "ledger TestX" is one of package ledger
}

const queries = "store/queries/"

var mutations = []mutation{
	{"the barrier passes what is dispatched", queries + "supplier_barrier.sql", " AND (state = 0 OR batch = $2)", "", ""},
	{"the barrier does not repeat its answer", queries + "supplier_barrier.sql", "(state = 0 OR batch = $2)", "state = 0", ""},
	{"anybody takes dispatches back", queries + "supplier_undispatch.sql", " AND state = 1 AND node = $2 AND batch = $3", " AND $2::int > 0 AND $3::bigint > 0", ""},
	{"results take pending commands", queries + "settlement_results.sql", " AND state = 1", "", ""},
	{"late answers change what is known", queries + "settlement_late.sql", " AND s.state = 4", "", ""},
	{"sweeps withdraw dispatched commands", queries + "settlement_withdraw.sql", " AND state = 0", "", "TestSweepsYieldToTheBarrier"},
	{"sweeps do not look again at what they hold", queries + "settlement_stale.sql", " AND q.state = 1 AND q.node = u.node AND q.at = u.at", "", "TestSweepYieldsToTheOwner"},
	{"messages are not locked", queries + "settlement_messages.sql", " FOR NO KEY UPDATE", "", "TestNoDeadlocks"},
	{"moves do not look at the state", queries + "settlement_move.sql", " AND state = $4::smallint", " AND $4::smallint > 0", "TestGuards"},
	{"moves do not look at the bill", queries + "settlement_move.sql", " AND bill = $5::smallint", " AND $5::smallint >= 0", "TestGuards"},
	{"moves do not count", queries + "settlement_move.sql", "SELECT must_be(cardinality($1::bigint[]), (SELECT count(*) FROM moved))", "SELECT count(*) FROM moved", "TestGuards"},
	{"parts end twice", queries + "settlement_part.sql", " AND stat = ''", "", "TestGuards"},
	{"the cursor goes back", queries + "settlement_cursor_move.sql", " AND pos < $2", "", "TestGuards"},
	{"nudges of parked receipts get lost", queries + "settlement_parked_later.sql", " AND tries = $3::smallint", " AND $3::smallint IS NOT NULL", "TestGuards"},
	{"waiting parts stay when they go on", "settlement/parts.go", "	if len(gone) > 0 {", "	if false {", ""},
	{"closed unknown submits stay listed", "settlement/results.go", "		drop.Queue(store.SettlementUnknownDrop, submitIDs(late, hasMsgID))\n", "", ""},
	{"every acceptance charges", "settlement/decide.go", "if m.bill == message.Frozen && m.chargeOn == message.ChargeOnAccept {", "if m.chargeOn == message.ChargeOnAccept {", ""},
	{"acceptance charges whatever the policy", "settlement/decide.go", "if m.bill == message.Frozen && m.chargeOn == message.ChargeOnAccept {", "if m.bill == message.Frozen {", ""},
	{"deliveries refund", "settlement/decide.go", "m.bill == message.Charged && state == message.Failed &&", "m.bill == message.Charged &&", ""},
	{"refunds ask no policy", "settlement/decide.go", "m.refundOn == message.RefundOnFailedReceipt && ", "", "TestOutcomes"},
	{"refunds know no window", "settlement/decide.go", " && w.now.Sub(m.createdAt) <= refundWindow", "", "TestOutcomes"},
	{"acceptance revives what has ended", "settlement/decide.go", "	if m.state.Final() {\n		// Its other parts", "	if false {\n		// Its other parts", ""},
	{"a refusal ends what was accepted", "settlement/decide.go", "{ return m.parts == 1 && m.acc > 0 && m.stat == \"\" }", "{ return false }", "TestOutcomes"},
	{"receipts of earlier attempts end the message", "settlement/decide.go", "(s.attempt == m.attempt || r.stat == message.StatDelivered)", "true", "TestResendAfterFailedReceipt"},
	{"one part ends a long message", "settlement/decide.go", "		if m.fin < m.parts {", "		if false {", ""},
	{"unknown submits are sent again", "settlement/results.go", "			w.lose(ctx, m, s, r.Src)", "			w.lose(ctx, m, s, r.Src)\n			w.refuse(ctx, m, s, 8)", ""},
	{"submits have no bound", "settlement/decide.go", "	if attempt >= message.MaxSubmits {", "	if false {", ""},
	{"final codes are tried again", "settlement/decide.go", "	if class == message.Terminal {", "	if false {", "TestResends"},
	{"failed receipts resend without being asked to", "settlement/failover.go", " || w.resendsLeft(m) <= 0 {", " {", ""},
	{"long messages move before all parts are known", "settlement/parts.go", " || len(m.refused)+int(m.fin) < int(m.parts) {", " {", "TestLongMessageMovesAsAWhole"},
	{"refused parts do not see unknown siblings", "settlement/parts.go", " || m.state == message.Unknown\n", "\n", "TestThreeParts"},
	{"refused parts stay when a sibling is accepted", "settlement/decide.go", "	w.releaseParts(ctx, m)\n	w.learn(m, s)", "	w.learn(m, s)", ""},
	{"receipts bind one of several messages", "settlement/parked.go", "if first != nil && x.message != first.message {", "if false {", "TestUnknownBinding"},
	{"receipts bind at any time", "settlement/parked.go", "ok && at.Sub(u.dispatchedAt).Abs() <= bindWithin && ", "ok && !at.IsZero() && ", "TestUnknownBinding"},
	{"receipts bind any Src_Id", "settlement/parked.go", "		return strings.HasSuffix(reported, used)", "		return true", "TestUnknownBinding"},
	{"receipts bind while other answers are to come", "settlement/parked.go", "len(rivals) > 1 || len(rivals) == 1 && !rivals[u.message]", "len(rivals) < 0", "TestUnknownBindingKnowsItsRivals"},
	{"repeated receipts bind further parts", "settlement/parked.go", "		if learned[known] {", "		if false {", "TestUnknownBindingKnowsItsRivals"},
	{"statement lines of known submits close others", "settlement/statement.go", "	if len(msgIDs)+len(phones) == 0 {", "	if true {", "TestStatementOfKnownSubmits"},
	{"keys of top-ups are not unique", "store/migrations/00001_schema.sql", "CREATE UNIQUE INDEX account_entry_idem", "CREATE INDEX account_entry_idem", ""},
	{"accounts go below their credit", "store/migrations/00001_schema.sql", "CONSTRAINT account_funds CHECK (available + credit >= 0)", "CONSTRAINT account_funds CHECK (credit >= 0)", "ledger TestAccountNeverGoesBelowItsCredit"},
	{"movements without an account pass", queries + "ledger_move.sql", "SELECT must_be(1, (SELECT count(*) FROM entry))", "SELECT count(*) FROM entry", "ledger TestMissingAccountFailsTheTransaction"},
	{"accounts are locked in any order", "ledger/entry.go", "		return int(x.Account) - int(y.Account)", "		return 0", "ledger TestQueueIsFreeOfDeadlocks"},
}

const oneMutation = 5 * time.Minute

// Every mutation must make its test fail; that the tests pass without one is what `make test` says. `make mutations` runs it.
func TestMutations(t *testing.T) {
	root, err := filepath.Abs("..")
	if err != nil {
		t.Fatal(err)
	}
	list, err := os.ReadFile(filepath.Join(root, "../../docs/mutations.md"))
	if err != nil {
		t.Fatal(err)
	}
	for _, m := range mutations {
		t.Run(m.name, func(t *testing.T) {
			if !strings.Contains(string(list), "| "+m.name+" |") {
				t.Error("docs/mutations.md does not list it")
			}
			m.run(t, root)
		})
	}
}

func (m mutation) run(t *testing.T, root string) {
	t.Helper()
	original := filepath.Join(root, m.file)
	text, err := os.ReadFile(original)
	if err != nil {
		t.Fatal(err)
	}
	if n := strings.Count(string(text), m.from); n != 1 {
		t.Fatalf("%s has %q %d times, want once", m.file, m.from, n)
	}
	mutated, overlay := filepath.Join(t.TempDir(), filepath.Base(m.file)), filepath.Join(t.TempDir(), "overlay.json")
	if err := os.WriteFile(mutated, []byte(strings.Replace(string(text), m.from, m.to, 1)), 0o600); err != nil {
		t.Fatal(err)
	}
	replace, err := json.Marshal(map[string]map[string]string{"Replace": {original: mutated}})
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(overlay, replace, 0o600); err != nil {
		t.Fatal(err)
	}
	pkg, test := "settlement", m.test
	if in, name, ok := strings.Cut(m.test, " "); ok {
		pkg, test = in, name
	}
	args := []string{"test", "-count=1", "-failfast", "-timeout", "4m", "-overlay", overlay}
	if test == "" {
		test = "TestExactness"
	}
	args = append(args, "-run", "^"+test+"$", "./"+pkg)
	if pkg == "settlement" {
		args = append(args, "-rapid.checks=300", "-rapid.nofailfile", "-rapid.shrinktime=0s")
	}
	ctx, cancel := context.WithTimeout(t.Context(), oneMutation)
	defer cancel()
	cmd := exec.CommandContext(ctx, "go", args...)
	cmd.Dir = root
	out, err := cmd.CombinedOutput()
	switch {
	case err == nil:
		t.Errorf("survived: %s passes", test)
	case ctx.Err() != nil:
		t.Errorf("not done within %s", oneMutation)
	case strings.Contains(string(out), "[build failed]") || strings.Contains(string(out), "[setup failed]"):
		t.Errorf("does not compile:\n%s", out)
	case !strings.Contains(string(out), "--- FAIL: "+test):
		t.Errorf("something else failed:\n%s", out)
	default:
		t.Log(why(string(out)))
	}
}

// why is what the failed test said, in a line.
func why(out string) string {
	for line := range strings.Lines(out) {
		if _, said, ok := strings.Cut(line, "_test.go:"); ok && !strings.Contains(line, "draw") {
			return strings.TrimSpace(said)
		}
	}
	return ""
}
