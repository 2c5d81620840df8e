package runner_test

import (
	"context"
	"io"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/jackc/pgx/v5"

	"cmppgateway/reports/result"
	"cmppgateway/scenarios/internal/runner"
	"cmppgateway/scenarios/internal/spec"
	"cmppgateway/scenarios/internal/verify"
)

// bothSides is a small scenario with something of everything: long messages, several
// recipients, rules, uplinks, a change of pools, a channel that is disabled, a supplier
// and a customer that misbehave.
const bothSides = `
scenarios:
  both-sides:
    seed: 7
    price: 325
    limit: 100s
    content: {text: "【示例科技】您的验证码是 135790。", units: 1}
    policy: {signatures: [示例科技], blacklist: ["13800001111"]}
    messages:
      long:
        text: "【示例科技】尊敬的客户，您预约的检修服务已经安排完毕，工程师将于明日上午九时至十一时之间上门，请您保持电话畅通并准备好设备的序列号与购买凭证。如需改期，请回复改期二字。编号{n}"
        units: 2
        long: {reference: 8, connections: 2, order: random}
      group: {recipients: 3}
      barred: {number: "13800001111", text: "【示例科技】编号{n}", refused: BLACKLIST}
    carriers: {mobile: {prefixes: ["1380"], share: 60%}, unicom: {prefixes: ["1300"], share: 40%}}
    suppliers: {per_carrier: [primary, backup], connections: 1, window: 16, rate_limit: 0}
    behaviour:
      submit_rtt: {value: 10ms}
      deck: {block: 10, no_receipt: 1, receipt_failed: {UNDELIV: 1}}
      receipt_delay: {value: 100ms}
    enterprises: [{id: ent-a, tps: 10, connections: 2, window: 16, balance: 1000000}]
    uplinks: {count: 10, over: 3s, text: "回复{n}", long_text: "这是一条很长的回复，长到一条短信放不下，所以手机把它分成了几段来发送，网关要把它们合在一起再交给客户，一个字也不能多，一个字也不能少，这样才算对。编号{n}", long_every: 3, replay: 5}
    phases:
      - {name: mixed, hold: 4s, mix: {plain: 40%, long: 20%, group: 20%, barred: 20%}, drain: true}
      - {name: wide, hold: 2s, pool: 2x8}
    drain: {stable: 1s, limit: 40s}

  misbehaviour:
    seed: 7
    price: 325
    limit: 100s
    content: {text: "【示例科技】您的验证码是 135790。", units: 1}
    policy: {signatures: [示例科技]}
    carriers: {mobile: {prefixes: ["1380"], share: 100%}}
    suppliers: {per_carrier: [primary, backup], connections: 1, window: 16, rate_limit: 0}
    behaviour:
      submit_rtt: {value: 10ms}
      deck: {block: 10, no_receipt: 1}
      receipt_delay: {value: 100ms}
    enterprises: [{id: ent-a, tps: 20, connections: 2, window: 16, balance: 1000000}]
    phases: [{name: all, hold: 12s}]
    faults:
      - {fault: supplier-twice, at: 500ms, down: 500ms, every: 2}
      - {fault: channel-disabled, at: 1s, down: 1s, channel: primary}
      - {fault: customer-offline, at: 3s, down: 1s}
      - {fault: scale, at: 5s, down: 1s, to: [2x16, 3x4]}
      - {fault: replay, at: 7s, value: 5}
    drain: {stable: 1s, limit: 40s}
`

// ownScenario is a scenario of a file of this test.
func ownScenario(t *testing.T, text, name string) runner.Options {
	t.Helper()
	path := filepath.Join(t.TempDir(), "s.yaml")
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	c, err := spec.Load(path)
	if err != nil {
		t.Fatal(err)
	}
	s, err := c.Scenario(name, nil)
	if err != nil {
		t.Fatal(err)
	}
	o := runner.Options{Scenario: s, Given: true, Runs: t.TempDir(), Progress: io.Discard, Log: slog.New(slog.DiscardHandler)}
	if o.Gateway, err = built(); err != nil {
		t.Fatal(err)
	}
	return o
}

// Everything customers and suppliers send ends as the arithmetic says, and the checks
// about it notice when it is changed afterwards.
func TestBothSides(t *testing.T) {
	t.Parallel()
	o := ownScenario(t, bothSides, "both-sides")
	x := o.Scenario.Expect()
	o.Inspect(func(ctx context.Context, w *verify.Witness, conn *pgx.Conn) {
		for _, p := range []struct {
			name, sql string
			want      []string
		}{
			{"a rule's reason is another one", "UPDATE message SET reason = 3 WHERE reason = 4", []string{"intercepted"}},
			{"an uplink is lost", "DELETE FROM uplink WHERE event_id = (SELECT min(event_id) FROM uplink)", []string{"uplinks"}},
			{
				"a long message has forgotten a segment",
				// One that the message does not have its own Msg_Id from, and whose receipt went out.
				"DELETE FROM message_segment WHERE (message_id, msg_id) = (SELECT s.message_id, s.msg_id FROM message_segment s JOIN message m ON m.id = s.message_id WHERE m.msg_id <> s.msg_id AND m.state IN (4, 5) LIMIT 1)",
				[]string{"long_messages", "no_lost_accept", "receipts_out"},
			},
		} {
			tx, err := conn.Begin(ctx)
			if err != nil {
				t.Fatal(err)
			}
			if tag, err := tx.Exec(ctx, p.sql); err != nil || tag.RowsAffected() == 0 {
				t.Errorf("%s: %v, %d rows", p.name, err, tag.RowsAffected())
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
	})
	done, err := runner.Run(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	r := done.Report
	if r.Verdict != result.VerdictPass {
		t.Fatalf("verdict %s: %s", r.Verdict, r.Reason)
	}
	if got := r.Totals.RejectedByReason["BLACKLIST"]; got != x.Intercepted["BLACKLIST"] || got == 0 {
		t.Errorf("%d refused as listed, expected %d", got, x.Intercepted["BLACKLIST"])
	}
	if b := r.Billing[0]; b.ChargedAmount != x.Enterprises[0].Charged || b.Closing != x.Enterprises[0].Closing {
		t.Errorf("charged %d, closing %d; expected %+v", b.ChargedAmount, b.Closing, x.Enterprises[0])
	}
	for _, c := range r.Checks {
		if (c.ID == "long_messages" || c.ID == "intercepted" || c.ID == "uplinks" || c.ID == "keys_unique") && c.Status != result.StatusOK {
			t.Errorf("%s is %s", c.ID, c.Status)
		}
	}
	if len(r.Steps) != 2 || r.Steps[1].Pool != "2x8" {
		t.Errorf("steps %+v", r.Steps)
	}
}

// What people, customers and suppliers do while messages flow is made, proved, taken
// back and proved to be over, and nothing is lost.
func TestMisbehaviour(t *testing.T) {
	t.Parallel()
	o := ownScenario(t, bothSides, "misbehaviour")
	done, err := runner.Run(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	r := done.Report
	if r.Verdict != result.VerdictPass {
		t.Fatalf("verdict %s: %s", r.Verdict, r.Reason)
	}
	if len(r.Faults) != 6 { // a scale is one for each pool
		t.Fatalf("%d faults", len(r.Faults))
	}
	for _, f := range r.Faults {
		if !f.Injected || !f.Recovered || f.Proof == "" {
			t.Errorf("%+v", f)
		}
	}
}
