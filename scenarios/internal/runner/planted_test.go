package runner_test

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"go.uber.org/goleak"

	"cmppgateway/reports/result"
	"cmppgateway/scenarios/internal/runner"
	"cmppgateway/scenarios/internal/spec"
	"cmppgateway/scenarios/internal/verify"
)

// built is the program under test, built once from this tree; TestMain removes it.
var built = sync.OnceValues(func() (string, error) {
	dir, err := os.MkdirTemp("", "gateway-")
	if err != nil {
		return "", err
	}
	builtDir.Store(&dir)
	path := filepath.Join(dir, "gateway")
	if out, err := exec.Command("go", "build", "-buildvcs=false", "-o", path, "cmppgateway/gateway").CombinedOutput(); err != nil {
		return "", fmt.Errorf("build the gateway: %w\n%s", err, out)
	}
	return path, nil
})

var builtDir atomic.Pointer[string]

func TestMain(m *testing.M) {
	code := m.Run()
	if dir := builtDir.Load(); dir != nil {
		_ = os.RemoveAll(*dir)
	}
	if err := goleak.Find(); err != nil && code == 0 {
		fmt.Fprintln(os.Stderr, err)
		code = 1
	}
	os.Exit(code)
}

// options of a run of a scenario of the catalogue.
func options(t *testing.T, name string, sets ...string) runner.Options {
	t.Helper()
	c, err := spec.Load("../../../scenarios.yaml")
	if err != nil {
		t.Fatal(err)
	}
	s, err := c.Scenario(name, sets)
	if err != nil {
		t.Fatal(err)
	}
	return runner.Options{
		Scenario: s, Given: true, Runs: t.TempDir(), Progress: io.Discard, Log: slog.New(slog.DiscardHandler),
	}
}

// withGateway is options with the program under test.
func withGateway(t *testing.T, name string, sets ...string) runner.Options {
	t.Helper()
	o := options(t, name, sets...)
	var err error
	if o.Gateway, err = built(); err != nil {
		t.Fatal(err)
	}
	return o
}

// planted are faults in the database of a finished run, and what must notice each:
// a difference of balances is seen by both identities that claim the balance.
var planted = []struct {
	name string
	sql  []string
	want []string
}{
	{"nothing", nil, nil},
	{
		"one charge is entered twice",
		[]string{"INSERT INTO account_entry (id, account_id, kind, n, amount) SELECT (SELECT max(id) + 1 FROM account_entry), account_id, kind, n, amount FROM account_entry WHERE kind = 3 LIMIT 1"},
		[]string{"billed_once"},
	},
	{"one receipt is lost", []string{"DELETE FROM receipt WHERE event_id = (SELECT min(event_id) FROM receipt)"}, []string{"receipts_in"}},
	{"one balance is off by one", []string{"UPDATE account SET available = available + 1"}, []string{"balance_eq_billing", "conservation"}},
	{
		"one entry has another amount",
		[]string{"UPDATE account_entry SET amount = amount + 1 WHERE id = (SELECT min(id) FROM account_entry WHERE kind = 3)"},
		[]string{"billed_once"},
	},
	{
		"one message belongs to another enterprise",
		[]string{"UPDATE message SET enterprise_id = 99 WHERE id = (SELECT min(id) FROM message)"},
		// Its money is missing from its own enterprise's sums as well.
		[]string{"balance_eq_billing", "billed_once", "billing_eq_supplier", "charged_amount", "one_fate"},
	},
	{
		"one message is forgotten with its submits",
		[]string{
			"DELETE FROM submit WHERE message_id = (SELECT id FROM message WHERE state = 2 LIMIT 1)",
			"DELETE FROM message WHERE id = (SELECT id FROM message WHERE state = 2 LIMIT 1)",
		},
		[]string{"balance_eq_billing", "billed_once", "billing_eq_supplier", "charged_amount", "no_lost_accept", "submit_once"},
	},
	{
		"one balance was negative",
		[]string{"UPDATE account_entry SET balance = -1 WHERE id = (SELECT min(id) FROM account_entry WHERE kind = 2)"},
		[]string{"never_negative"},
	},
	{
		"one message is settled by another entry",
		[]string{"UPDATE message SET settle_entry = refund_entry WHERE refund_entry <> 0"},
		[]string{"billed_once", "message_balanced"},
	},
	{
		"one refused submit has another result",
		[]string{"UPDATE submit SET result = 9 WHERE state = 3"},
		[]string{"refusals"},
	},
	{
		"one report is stored with another Stat",
		[]string{"UPDATE message SET stat = 'EXPIRED' WHERE stat = 'UNDELIV'"},
		[]string{"receipts_out"},
	},
}

func fired(w *verify.Witness) []string {
	var names []string
	for _, x := range verify.Identities(w) {
		if !x.Status.OK() {
			names = append(names, x.ID)
		}
	}
	for _, c := range verify.Checks(w) {
		if !c.Status.OK() {
			names = append(names, c.ID)
		}
	}
	slices.Sort(names)
	return slices.Compact(names)
}

// A whole run of smoke passes; then faults are planted in its database, one at a
// time and taken back, and in the records of suppliers and customers.
func TestPlantedFaults(t *testing.T) {
	t.Parallel()
	o := withGateway(t, "smoke")
	inspected := false
	o.Inspect(func(ctx context.Context, w *verify.Witness, conn *pgx.Conn) {
		inspected = true
		for _, p := range planted {
			tx, err := conn.Begin(ctx)
			if err != nil {
				t.Fatal(err)
			}
			for _, sql := range p.sql {
				if tag, err := tx.Exec(ctx, sql); err != nil || tag.RowsAffected() == 0 {
					t.Errorf("%s: %v, %d rows", p.name, err, tag.RowsAffected())
				}
			}
			broken := *w
			if broken.Database, err = verify.Read(ctx, tx); err != nil {
				t.Error(err)
			}
			if got := fired(&broken); !slices.Equal(got, p.want) {
				t.Errorf("%s: fired %v, want %v", p.name, got, p.want)
			}
			if err := tx.Rollback(ctx); err != nil {
				t.Fatal(err)
			}
		}
		lie := *w
		again := w.Suppliers.Submits[0]
		again.MsgID++
		lie.Suppliers.Submits = append(slices.Clone(w.Suppliers.Submits), again)
		if got := fired(&lie); !slices.Equal(got, []string{"submit_once"}) {
			t.Errorf("a supplier that got a message twice: fired %v", got)
		}
	})
	done, err := runner.Run(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	if done.Report.Verdict != result.VerdictPass {
		t.Fatalf("verdict %s: %s", done.Report.Verdict, done.Report.Reason)
	}
	if !inspected {
		t.Fatal("the run was not inspected")
	}
	stored, err := verify.Load(done.Dir)
	if err != nil {
		t.Fatal(err)
	}
	if got := fired(stored); len(got) > 0 {
		t.Errorf("the stored run: %v", got)
	}
}

// The figure judged is the full chain's: with a slow barrier customers are still
// answered at their rate, and capacity is what passes the barrier.
func TestCapacityIsMeasuredBehindTheBarrier(t *testing.T) {
	t.Parallel()
	o := withGateway(t, "smoke", "gateway.supplier.barrier_rate=10", "enterprises.0.tps=20", "phases.0.hold=5s", "drain.limit=30s", "limit=60s",
		"behaviour.deck={block: 100, no_receipt: 5}")
	done, err := runner.Run(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	r := done.Report
	if r.Verdict != result.VerdictPass {
		t.Fatalf("verdict %s: %s", r.Verdict, r.Reason)
	}
	step := r.Steps[0]
	// A slow machine makes both less; the barrier makes only one of them less.
	full, accepted := *step.FirstSubmit.TPS, *step.AcceptedTPS
	if full > 12 {
		t.Errorf("full chain %.1f TPS behind a barrier of 10", full)
	}
	if accepted < 1.3*full {
		t.Errorf("accepted %.1f TPS of 20 offered, %.1f behind the barrier", accepted, full)
	}
}

// Pre-flight refuses a run without what it needs, in one line.
func TestPreflight(t *testing.T) {
	t.Parallel()
	o := options(t, "smoke")
	o.Gateway = filepath.Join(t.TempDir(), "none")
	done, err := runner.Run(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	if done.Report.Verdict != result.VerdictEnvironment {
		t.Errorf("without a gateway: %s, %s", done.Report.Verdict, done.Report.Reason)
	}
	o = options(t, "smoke")
	o.Gateway = "/bin/true" // it does not get that far
	o.Stack.Mode, o.Stack.PostgresURL, o.Stack.RedisAddr = "urls", "postgres://nobody@127.0.0.1:1/none", "127.0.0.1:1"
	begin := time.Now()
	if done, err = runner.Run(t.Context(), o); err != nil {
		t.Fatal(err)
	}
	if done.Report.Verdict != result.VerdictEnvironment || time.Since(begin) > 20*time.Second {
		t.Errorf("without a database after %s: %s, %s", time.Since(begin), done.Report.Verdict, done.Report.Reason)
	}
}
