package runner

import (
	"fmt"
	"math"
	"slices"
	"strconv"
	"time"

	"cmppgateway/reports/result"
	"cmppgateway/scenarios/internal/spec"
	"cmppgateway/scenarios/internal/verify"
	"cmppgateway/simulator/ismg"
)

// totals counts messages by fate.
func totals(w *verify.Witness, planned int) result.Totals {
	t := result.Totals{RejectedByReason: map[string]int64{}, Messages: int64(planned)}
	for i := range w.Database.Messages {
		switch m := &w.Database.Messages[i]; m.State {
		case verify.Delivered:
			t.Delivered++
		case verify.Failed:
			t.Failed++
		case verify.Submitted:
			t.Submitted++
		case verify.Unknown:
			t.Unknown++
		case verify.Expired:
			t.Expired++
		case verify.Cancelled:
			t.Cancelled++
		case verify.Rejected:
			t.RejectedByReason[reason(m.Reason)]++
		}
	}
	return t
}

// reasons are the words for column message.reason.
var reasons = []string{"", "SIGNATURE", "TEMPLATE", "KEYWORD", "BLACKLIST", "RISK", "QUOTA", "BALANCE", "ROUTE", "STATUS", "FORMAT", "EXPIRED", "SYSTEM"}

func reason(code int16) string {
	if code > 0 && int(code) < len(reasons) {
		return reasons[code]
	}
	return "reason " + strconv.Itoa(int(code))
}

// submits counts SUBMITs as the suppliers saw them. A time-out is the gateway's
// word: it gave up waiting.
func submits(w *verify.Witness, before, after metrics) result.Submits {
	var s result.Submits
	seen := map[uint64]bool{}
	for i := range w.Suppliers.Submits {
		x := &w.Suppliers.Submits[i]
		if seen[x.Key] {
			s.Resend++
		} else {
			s.First++
		}
		seen[x.Key] = true
		if x.Accepted() {
			s.Accepted++
		} else {
			s.Rejected++
		}
	}
	s.Timeout = int64(after.sum("cmppgw_supplier_results_total", "state", "unknown") - before.sum("cmppgw_supplier_results_total", "state", "unknown"))
	for i := range w.Database.Submits {
		if w.Database.Submits[i].State == verify.SubmitUnknown {
			s.Unknown++
		}
	}
	return s
}

// channelFigures are the suppliers' accounts, connection by connection.
func channelFigures(s *spec.Scenario, r *ismg.Record) []result.Channel {
	type key struct {
		account string
		conn    uint64
	}
	held := map[key]*sample{}
	for i := range r.Submits {
		x := &r.Submits[i]
		if x.Sent == 0 {
			continue
		}
		k := key{x.Account, x.Conn}
		if held[k] == nil {
			held[k] = &sample{}
		}
		held[k].add(millis(x.Sent - x.Recv))
	}
	var list []result.Channel
	for _, c := range initial(s) {
		y := result.Channel{ID: c.Name, Window: s.Contract().Window, RateLimit: float64(c.RateLimit)}
		for i := range r.Conns {
			x := &r.Conns[i]
			if x.Account != c.Login {
				continue
			}
			conn := result.Connection{ID: strconv.FormatUint(x.ID, 10), Submits: int64(x.Submits), InflightPeak: int64(x.InFlightPeak)}
			if h := held[key{x.Account, x.ID}]; h != nil {
				l := h.latency()
				conn.P50, conn.P95, conn.P99 = l.P50, l.P95, l.P99
			}
			y.Connections = append(y.Connections, conn)
		}
		list = append(list, y)
	}
	return list
}

// workflowFigures are the enterprises' batches over the whole run.
func workflowFigures(w *verify.Witness, before, after metrics, loadEnd time.Time) []result.Workflow {
	var list []result.Workflow
	for _, e := range w.Terms.Enterprises {
		id := strconv.Itoa(int(e.ID))
		rows := between(before, after, "cmppgw_workflow_batch_rows", "enterprise", id)
		wait := between(before, after, "cmppgw_workflow_wait_seconds", "enterprise", id)
		y := result.Workflow{Enterprise: e.Name, Batches: int64(rows.n), Mean: rows.mean(), Max: int64(rows.largest())}
		if p50, ok := wait.quantile(0.5); ok {
			p95, _ := wait.quantile(0.95)
			y.WaitP50, y.WaitP95 = new(1000*p50), new(1000*p95)
		}
		var last time.Time
		for i := range w.Database.Messages {
			if m := &w.Database.Messages[i]; m.Enterprise == e.ID && m.CreatedAt.After(last) {
				last = m.CreatedAt
			}
		}
		if !last.IsZero() {
			y.DrainedS = new(max(0, last.Sub(loadEnd).Seconds()))
		}
		list = append(list, y)
	}
	return list
}

func outboxFigures(before, after metrics) result.Outbox {
	h := between(before, after, "cmppgw_outbox_publish_seconds")
	p95, ok := h.quantile(0.95)
	if !ok {
		return result.Outbox{}
	}
	return result.Outbox{PublishP95: new(1000 * p95), PublishMax: new(1000 * h.largest())}
}

func callbackFigures(before, after metrics, seconds []second) result.Callback {
	events := between(before, after, "cmppgw_event_batch_events")
	c := result.Callback{
		Requests:  int64(after.sum("cmppgw_event_requests_total") - before.sum("cmppgw_event_requests_total")),
		Events:    int64(events.sum),
		BatchMean: events.mean(),
		Retries:   int64(after.sum("cmppgw_event_retries_total") - before.sum("cmppgw_event_retries_total")),
	}
	for _, s := range seconds {
		c.BacklogPeak = max(c.BacklogPeak, s.backlog)
	}
	return c
}

func deliveryFigures(w *verify.Witness, before, after metrics) result.Deliveries {
	var d result.Deliveries
	for i := range w.Customers {
		for k := range w.Customers[i].Receipts {
			if w.Customers[i].Receipts[k].Copy > 0 {
				d.Duplicates++
			}
		}
	}
	h := between(before, after, "cmppgw_delivery_attempts")
	d.MaxAttempts = int64(h.largest())
	for i, bound := range h.bounds {
		if h.counts[i] == 0 || math.IsInf(bound, 1) {
			continue
		}
		for len(d.AttemptsAtAck) < int(bound) {
			d.AttemptsAtAck = append(d.AttemptsAtAck, 0)
		}
		if bound >= 1 {
			d.AttemptsAtAck[int(bound)-1] += int64(h.counts[i])
		}
	}
	return d
}

// perMessage divides the cost between two readings by the messages of that time.
func perMessage(total, messages float64) *float64 {
	if messages <= 0 || total < 0 {
		return nil
	}
	return new(total / messages)
}

func pgFigures(a, b counters, messages float64, seconds []second) result.PG {
	p := result.PG{
		CommitsPerMessage:  perMessage(float64(b.commits-a.commits), messages),
		WALBytesPerMessage: perMessage(float64(b.wal-a.wal), messages),
	}
	if a.hasStatements && b.hasStatements {
		p.StatementsPerMessage = perMessage(float64(b.statements-a.statements), messages)
		p.SlowStatements = b.slow
		p.SlowestStatement, p.SlowestStatementMean = b.slowest, new(b.slowestMean)
	}
	var waits sample
	lock, idle := 0.0, 0.0
	for i, s := range seconds {
		lock, idle = max(lock, s.lockMS), max(idle, s.idleMS)
		if i == 0 {
			continue
		}
		wait := 0.0 // of the mean acquisition that waited in this second
		if n := s.waits - seconds[i-1].waits; n > 0 {
			wait = 1000 * (s.waited - seconds[i-1].waited) / n
		}
		waits.add(wait)
	}
	if len(seconds) > 0 {
		p.LockWaitMax, p.IdleInTransactionMax = &lock, &idle
	}
	if len(waits.v) > 0 {
		p.PoolWaitP95 = new(waits.at(0.95))
	}
	return p
}

func redisFigures(a, b counters, messages float64, seconds []second) result.Redis {
	r := result.Redis{CommandsPerMessage: perMessage(float64(b.commands-a.commands), messages)}
	for _, s := range seconds {
		r.StreamLagMax = max(r.StreamLagMax, s.streams)
		r.MemoryPeakBytes = max(r.MemoryPeakBytes, s.redisMemory)
	}
	return r
}

func cpuFigures(a, b counters, p pids, messages float64) result.CPU {
	us := func(pid int, d time.Duration) *float64 {
		if pid == 0 {
			return nil
		}
		return perMessage(float64(d.Microseconds()), messages)
	}
	return result.CPU{
		Gateway: perMessage(float64((b.gateway - a.gateway).Microseconds()), messages), Postgres: us(p.postgres, b.postgres-a.postgres),
		Redis: us(p.redis, b.redis-a.redis), Harness: us(p.harness, b.harness-a.harness),
	}
}

func processes(seconds []second) []result.Process {
	g, h := result.Process{Name: "gateway"}, result.Process{Name: "harness"}
	for _, s := range seconds {
		g.RSSPeakBytes, g.OpenFiles, g.Goroutines = max(g.RSSPeakBytes, s.gatewayRSS), max(g.OpenFiles, s.gatewayFiles), max(g.Goroutines, s.goroutines)
		h.RSSPeakBytes, h.OpenFiles = max(h.RSSPeakBytes, s.harnessRSS), max(h.OpenFiles, s.harnessFiles)
	}
	return []result.Process{g, h}
}

// billing is every enterprise's account over the run.
func billing(w *verify.Witness) []result.Billing {
	var list []result.Billing
	for _, e := range w.Terms.Enterprises {
		b := result.Billing{Enterprise: e.Name, Price: w.Terms.Price, Opening: e.Opening, TopUps: -e.TopUps}
		for _, a := range w.Database.Accounts {
			if a.ID == e.ID {
				b.Closing = a.Available
			}
		}
		for i := range w.Database.Entries {
			if x := &w.Database.Entries[i]; x.Account == e.ID && x.Kind == verify.TopUp {
				b.TopUps += x.Amount
			}
		}
		for i := range w.Database.Messages {
			m := &w.Database.Messages[i]
			if m.Enterprise != e.ID {
				continue
			}
			amount := m.Price * m.Units
			switch m.Bill {
			case verify.BillFrozen:
				b.FrozenN++
				b.FrozenAmount += amount
			case verify.BillReleased:
				b.ReleasedN++
				b.ReleasedAmount += amount
			case verify.BillRefunded:
				b.RefundedN++
				b.RefundedAmount += amount
				fallthrough
			case verify.BillCharged:
				b.ChargedN++
				b.ChargedAmount += amount
				b.Units += m.Units
			}
		}
		list = append(list, b)
	}
	return list
}

// conservationSamples are the books of every second.
func conservationSamples(w *verify.Witness, started time.Time) []result.ConservationSample {
	var list []result.ConservationSample
	for i := range w.Samples {
		s := &w.Samples[i]
		k := slices.IndexFunc(w.Terms.Enterprises, func(e verify.Enterprise) bool { return e.ID == s.Enterprise })
		if k < 0 {
			continue
		}
		e := w.Terms.Enterprises[k]
		list = append(list, result.ConservationSample{
			AtS: s.At.Sub(started).Seconds(), Enterprise: e.Name, Opening: e.TopUps, TopUps: s.TopUps - e.TopUps,
			Available: s.Available, Frozen: s.Open(), Charged: s.Charged, Refunded: s.Refunded, Difference: s.Difference(),
		})
	}
	return list
}

// stages is the waterfall. The suppliers' stage is from their own record, the
// others from the gateway's histograms.
func stages(before, after metrics, r *ismg.Record) []result.Stage {
	const missing = "the gateway publishes no such histogram, or it counted nothing"
	list := []result.Stage{}
	for _, x := range []struct{ stage, metric string }{
		{result.StageInboxCommit, "cmppgw_inbox_commit_seconds"},
		{result.StageInboxWait, "cmppgw_workflow_wait_seconds"},
		{result.StageWorkflow, "cmppgw_workflow_seconds"},
		{result.StageOutboxPublish, "cmppgw_outbox_publish_seconds"},
		{result.StageStreamWait, "cmppgw_supplier_barrier_seconds"},
		{result.StageWindowWait, "cmppgw_supplier_window_wait_seconds"},
		{result.StageSupplier, ""},
		{result.StageCallback, "cmppgw_callback_apply_seconds"},
		{result.StageSettlement, "cmppgw_settlement_seconds"},
		{result.StageDelivery, "cmppgw_delivery_seconds"},
	} {
		if x.metric != "" {
			list = append(list, result.Stage{Name: x.stage, Latency: between(before, after, x.metric).latency(missing)})
			continue
		}
		var held sample
		for i := range r.Submits {
			if s := &r.Submits[i]; s.Sent != 0 {
				held.add(millis(s.Sent - s.Recv))
			}
		}
		list = append(list, result.Stage{Name: x.stage, Latency: held.latency()})
	}
	return list
}

// limits says which of the six stages of capacity-plan §10 a stage belongs to.
var limits = map[string]result.Limit{
	result.StageInboxCommit: result.LimitEntrance, result.StageInboxWait: result.LimitWorkerOutbox, result.StageWorkflow: result.LimitWorkerOutbox,
	result.StageOutboxPublish: result.LimitWorkerOutbox, result.StageStreamWait: result.LimitStores, result.StageWindowWait: result.LimitGatewayWindows,
	result.StageCallback: result.LimitCallbackBilling, result.StageSettlement: result.LimitCallbackBilling, result.StageDelivery: result.LimitCallbackBilling,
}

// limitOf names the stage that bounds the run: the slowest by P95 (or P50 with few
// samples), but only when a measured step fell short of what was offered.
func limitOf(steps []result.Step, list []result.Stage) result.Limit {
	short := false
	for _, s := range steps {
		if !s.Warmup && s.FirstSubmit.TPS != nil && *s.FirstSubmit.TPS < 0.98*s.TargetTPS && s.Offered >= 100 {
			short = true
		}
	}
	if !short {
		return ""
	}
	worst, most := result.Limit(""), 0.0
	for _, x := range list {
		v := x.P95
		if v == nil {
			v = x.P50
		}
		if v != nil && limits[x.Name] != "" && *v > most {
			worst, most = limits[x.Name], *v
		}
	}
	return worst
}

// recommend is floor(0.75 × highest sustained full-chain rate). It is a bound on
// what was shown, not on what is possible: the evidence is as long as the step.
func recommend(s *spec.Scenario, list []result.Step) *result.Recommended {
	var best *result.Step
	for i := range list {
		x := &list[i]
		if x.Warmup || x.FirstSubmit.TPS == nil || x.SubmitResp.Missing+x.SubmitResp.Rejected > 0 {
			continue
		}
		if best == nil || *x.FirstSubmit.TPS > *best.FirstSubmit.TPS {
			best = x
		}
	}
	if best == nil {
		return nil
	}
	floor := func(tps float64) int64 { return int64(math.Floor(0.75 * tps)) }
	r := &result.Recommended{
		TotalTPS: floor(*best.FirstSubmit.TPS), EvidenceS: best.DurationS,
		Detail: fmt.Sprintf("from step %s, which offered %.0f TPS for %.0f s; no knee was looked for", best.Name, best.TargetTPS, best.DurationS),
	}
	if len(best.Enterprises) == 0 {
		r.Enterprises = []result.RecommendedEnterprise{{Enterprise: s.Enterprises[0].ID, TPS: r.TotalTPS}}
	}
	for _, e := range best.Enterprises {
		if e.FirstSubmit.TPS != nil {
			r.Enterprises = append(r.Enterprises, result.RecommendedEnterprise{Enterprise: e.Enterprise, TPS: floor(*e.FirstSubmit.TPS)})
		}
	}
	return r
}
