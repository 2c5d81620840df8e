package runner

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"time"

	"cmppgateway/reports/render"
	"cmppgateway/reports/result"
	"cmppgateway/scenarios/internal/verify"
)

// pending counts everything that still has to happen before the books can be closed.
func (r *run) pending(ctx context.Context) (map[string]int64, error) {
	counts := map[string]int64{}
	for _, c := range r.customers {
		n := c.Counts()
		counts["unanswered SUBMITs"] += int64(n.Waiting + n.InFlight)
	}
	for _, n := range r.suppliers.Counts() {
		counts["SUBMITs at suppliers"] += int64(n.InFlight)
		counts["reports at suppliers"] += int64(n.Reports + n.Uplinks - n.Acked)
	}
	queues, err := verify.Queues(ctx, r.conn)
	if err != nil {
		return nil, err
	}
	// An unknown keeps its freeze until its statement comes.
	queues["open_freezes"] -= queues["unknown"]
	for name, n := range queues {
		if name != "unknown" && name != "dead_letter" && name != "uplink_unmatched" { // those end by people
			counts[name] = n
		}
	}
	if counts["stream entries"], err = streamEntries(ctx, r.rdb); err != nil {
		return nil, err
	}
	return counts, nil
}

func (r *run) drain(ctx context.Context) error {
	var err error
	if r.drained, err = drain(ctx, r.s.Drain, r.pending); err != nil {
		return err
	}
	if c := r.gateway.now(); !c.alive() {
		return &diedError{c.exitCode(), "drain"}
	}
	if len(r.drained.Left) > 0 {
		r.Log.Warn("not drained", slog.String("left", describe(r.drained.Left)))
	}
	return nil
}

// closeUnknowns writes the suppliers' statement and, when submits are unknown,
// closes them with it the way an operator would.
func (r *run) closeUnknowns(ctx context.Context) error {
	f, err := os.Create(r.path(result.StatementFile))
	if err != nil {
		return unfit("statement: %w", err)
	}
	if err := errors.Join(r.suppliers.WriteStatement(f), f.Close()); err != nil {
		return unfit("statement: %w", err)
	}
	queues, err := verify.Queues(ctx, r.conn)
	if err != nil {
		return unfit("%w", err)
	}
	if queues["unknown"] == 0 {
		return nil
	}
	if err := r.unknowns.look(ctx, r.conn); err != nil {
		return unfit("%w", err)
	}
	if err := r.tool(ctx, "unknown", "resolve", "--from", r.path(result.StatementFile), "--absent", "not-sent"); err != nil {
		return err
	}
	// What the statement closes may send receipts to customers.
	r.say("drain after the statement")
	d, err := drain(ctx, r.s.Drain, r.pending)
	r.drained.Left = d.Left
	return err
}

// look polls the places that must be empty while everything still runs.
func (r *run) look(ctx context.Context) error {
	var err error
	if r.last, err = r.sampler.count(ctx, r.conn); err != nil {
		return unfit("%w", err)
	}
	r.unsample()
	r.costly = costly(ctx, r.conn)
	queues, err := verify.Queues(ctx, r.conn)
	if err != nil {
		return unfit("%w", err)
	}
	add := func(p verify.Place) { r.places = append(r.places, p) }
	for _, name := range []string{"inbox", "scheduled", "segment_wait", "review_hold", "uplink_queue", "uplink_unmatched", "submit_outbox", "receipt_parked", "delivery", "unknown", "dead_letter"} {
		p := verify.Place{Name: name, Left: queues[name], Witness: "D"}
		if name == "dead_letter" && r.buried > 0 {
			p.Expected, p.Detail = r.buried, "as many as were injected"
		}
		add(p)
	}
	add(verify.Place{Name: "open_freezes", Left: queues["open_freezes"], Expected: queues["unknown"], Witness: "D", Detail: "as many as unknown"})
	locks, err := verify.Locks(ctx, r.conn)
	if err != nil {
		return unfit("%w", err)
	}
	for _, name := range []string{"waiting_locks", "idle_in_transaction", "prepared_transactions"} {
		add(verify.Place{Name: name, Left: locks[name], Witness: "D"})
	}
	entries, err := streamEntries(ctx, r.rdb)
	if err != nil {
		return unfit("%w", err)
	}
	add(verify.Place{Name: "stream_entries", Left: entries, Witness: "R"})
	m := r.last.metrics
	add(verify.Place{Name: "event_backlog", Left: int64(m.sum("cmppgw_event_backlog")), Witness: "M"})
	add(verify.Place{Name: "supplier_inflight", Left: int64(m.sum("cmppgw_supplier_inflight")), Witness: "M"})
	// Pools of connections and timers come and go; a leak grows with the load.
	add(verify.Place{Name: "goroutines", Left: int64(m.sum("go_goroutines")), Expected: r.goroutines + r.goroutines/5 + 20, AtMost: true, Witness: "M"})
	pending := int64(0)
	for _, n := range r.suppliers.Counts() {
		pending += int64(n.Reports + n.Uplinks - n.Acked)
	}
	add(verify.Place{Name: "supplier_reports", Left: pending, Witness: "S"})
	return nil
}

// stopGateway ends the gateway in order; that it leaves nothing behind is part of
// nothing_left.
func (r *run) stopGateway(ctx context.Context) error {
	out, err := command(ctx, r.Gateway, "--config", r.path(configFile), "ledger", "verify")
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	r.ledger = strings.TrimSpace(out)
	place := verify.Place{Name: "ledger_verify", Witness: "D", Detail: "exit code of `gateway ledger verify`"}
	if failed, ok := errors.AsType[*commandError](err); ok {
		place.Left = int64(failed.Code)
		place.Detail = lastLine(failed.Stderr)
	} else if err != nil {
		return unfit("ledger verify: %w", err)
	}
	r.places = append(r.places, place)
	c := r.gateway.now()
	took, killed := c.stop(stopLimit)
	r.Log.Info("gateway stopped", slog.Duration("took", took), slog.Bool("killed", killed), slog.Int("exit_code", c.exitCode()))
	r.places = append(r.places, verify.Place{
		Name: "gateway_exit_code", Left: int64(c.exitCode()), Witness: "M", Detail: fmt.Sprintf("after %s", took.Round(time.Millisecond)),
	})
	sessions := int64(0)
	err = poll(ctx, 2*time.Second, func(ctx context.Context) (string, error) {
		err := r.conn.QueryRow(ctx, "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() AND application_name LIKE 'cmppgw/%'").Scan(&sessions)
		if err != nil {
			return "", err
		}
		if sessions > 0 {
			return fmt.Sprintf("%d sessions are open", sessions), nil
		}
		return "", nil
	})
	if err != nil && sessions == 0 {
		return unfit("count the gateway's sessions: %w", err)
	}
	r.places = append(r.places, verify.Place{Name: "gateway_sessions", Left: sessions, Witness: "D", Detail: "of PostgreSQL, after its end"})
	return nil
}

// verify takes the witnesses, now that nothing moves any more, and checks them.
func (r *run) verify(ctx context.Context) error {
	if err := r.halt.customers(); err != nil {
		return unfit("%w", err)
	}
	if err := r.halt.suppliers(); err != nil {
		return unfit("%w", err)
	}
	w := &verify.Witness{
		Terms: r.terms, Suppliers: r.suppliers.Record(), Places: r.places, Samples: r.sampler.books, Faults: r.faults, Unknowns: r.unknowns.list(),
	}
	w.Events = int64(r.last.metrics.sum("cmppgw_callback_events_total"))
	w.Replayed = int64(r.last.metrics.sum("cmppgw_event_retries_total"))
	for _, c := range r.customers {
		w.Customers = append(w.Customers, c.Record())
	}
	var err error
	if w.Database, err = verify.Snapshot(ctx, r.conn); err != nil {
		return unfit("%w", err)
	}
	final, err := verify.Books(ctx, r.conn)
	if err != nil {
		return unfit("%w", err)
	}
	w.Samples = append(w.Samples, final...)
	r.witness = w
	if err := verify.Save(r.dir, w); err != nil {
		return unfit("%w", err)
	}
	r.fill()
	judge(r.s, r.report)
	if r.inspect != nil {
		r.inspect(ctx, w, r.conn)
	}
	return nil
}

// write writes the files of the run.
func (r *run) write() error {
	r.report.Finished = time.Now().UTC()
	resolved, err := r.s.Resolved()
	if err != nil {
		return err
	}
	r.report.Harness.ScenarioSHA256 = textSum(resolved)
	r.report.Harness.Repro = "sh " + filepath.Join(r.dir, result.ReproFile)
	env := environmentFile{Environment: r.report.Environment, Harness: r.report.Harness, HotShare: map[string]float64{}, Ledger: r.ledger, Costly: r.costly}
	for name, x := range r.last.tables {
		env.HotShare[name] = float64(x.of) / float64(max(x.all, 1))
	}
	var rows []result.Second
	if r.sampler != nil {
		env.Missed = r.sampler.missed
		for _, s := range r.sampler.seconds {
			env.OldestSnapshot = max(env.OldestSnapshot, s.xminAge)
		}
	}
	if r.witness != nil {
		zero := r.started.Sub(r.clock.Base()).Nanoseconds()
		rows = series(zero, r.plan, r.starts, trace(r.witness, r.plan, r.starts), r.witness, r.hiccups, r.sampler.seconds)
	}
	err = errors.Join(
		result.WriteFile(r.path(result.ScenarioFile), resolved),
		writeJSON(r.path(result.EnvFile), env),
		writeRepro(r.dir, r.report),
		result.Save(r.dir, r.report, rows),
	)
	if err != nil {
		return err
	}
	_, err = render.Dir(r.dir)
	return err
}
