package render

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"cmppgateway/reports/result"
)

func trust(r *result.Report) section {
	s := section{ID: "trust", Title: "Is it trustworthy?"}
	if r.Validity == nil && !slices.ContainsFunc(r.Steps, func(st result.Step) bool { return st.Validity != nil }) {
		s.Notes = []string{"The machine was not watched during this run: its clocks prove nothing. Counts and identities stand."}
		return s
	}
	t := table{Columns: columns(left("scope", "clocks"), right("generator late P99, ms", "simulator late P99, ms", "not sent", "offered ÷ planned", "hiccups", "steal", "foreign CPU", "harness CPU, cores", "canary drift"))}
	add := func(scope string, ok bool, v *result.Validity) {
		c := []cell{plain(scope), clocks(ok)}
		planned := na
		if v.OfferedVsPlanned != nil {
			planned = fixed(*v.OfferedVsPlanned, 4)
		}
		t.Rows = append(t.Rows, row{Cells: append(c, cells(
			optional(v.GeneratorP99), optional(v.SimulatorP99), count(v.NotSent), planned, count(v.Hiccups),
			percent(v.Steal), percent(v.ForeignCPU), optional(v.OwnCPU), percent(v.CanaryDrift))...)})
	}
	if r.Validity != nil {
		add("whole run", r.Validity.OK, r.Validity)
		s.Notes = append(s.Notes, r.Validity.Notes...)
	}
	for _, st := range r.Steps {
		if st.Validity != nil {
			add("step "+st.Name, st.Valid && st.Validity.OK, st.Validity)
			for _, n := range st.Validity.Notes {
				s.Notes = append(s.Notes, "Step "+st.Name+": "+n)
			}
		}
	}
	s.Tables = []table{t}
	return s
}

func identities(r *result.Report) section {
	s := section{ID: "identities", Title: "Identities"}
	if len(r.Identities) == 0 {
		s.Notes = []string{"No identity was examined."}
		return s
	}
	s.Notes = []string{
		"Each side comes from another witness: " + witnessLegend(r) + ". Amounts are in 1/10,000 yuan, yuan beside them; n counts the items examined.",
	}
	t := table{Columns: columns(left("identity", "enterprise", "status"), right("left", "right", "difference", "n left", "n right"), left("witnesses"))}
	for i, x := range r.Identities {
		diff := money(x.Difference)
		if x.Difference != 0 {
			diff.Tone = toneFail
		}
		t.Rows = append(t.Rows, row{Anchor: anchor("identity", i), Cells: []cell{
			code(x.ID), plain(orAll(x.Enterprise)), mark(x.Status), money(x.Left), money(x.Right), diff,
			plain(count(x.NLeft)), plain(count(x.NRight)), plain(joined(x.Witnesses)),
		}})
		if x.Detail != "" {
			s.Notes = append(s.Notes, named(x.ID, x.Enterprise)+": "+x.Detail)
		}
		if len(x.Offenders) > 0 {
			s.Texts = append(s.Texts, text{"Offending keys of " + named(x.ID, x.Enterprise), strings.Join(x.Offenders, "\n")})
		}
	}
	s.Tables = []table{t}
	if c, ok := conservation(r.Conservation); ok {
		s.Tables = append(s.Tables, c)
	}
	return s
}

// conservation sums the samples up per enterprise and shows where it first broke.
func conservation(samples []result.ConservationSample) (table, bool) {
	if len(samples) == 0 {
		return table{}, false
	}
	type sum struct {
		n, broken int64
		first     float64
		worst     int64
		last      result.ConservationSample
	}
	sums := map[string]*sum{}
	for _, x := range samples {
		a := sums[x.Enterprise]
		if a == nil {
			a = &sum{}
			sums[x.Enterprise] = a
		}
		a.n++
		if x.Difference != 0 {
			if a.broken == 0 {
				a.first = x.AtS
			}
			a.broken++
			if magnitude(x.Difference) > magnitude(a.worst) {
				a.worst = x.Difference
			}
		}
		a.last = x
	}
	t := table{
		Caption: "Conservation, every second: opening + top-ups = available + frozen + charged − refunded; the sides are those of the last sample",
		Columns: columns(left("enterprise", "status"), right("samples", "broken", "worst difference", "first broken at", "opening + top-ups", "available", "frozen", "charged", "refunded")),
	}
	for _, k := range slices.Sorted(maps.Keys(sums)) {
		a := sums[k]
		first := "–"
		if a.broken > 0 {
			first = fixed(a.first, 1) + " s"
		}
		t.Rows = append(t.Rows, row{Cells: []cell{
			plain(orAll(k)), flag(a.broken == 0, "holds", "broken"), plain(count(a.n)), plain(count(a.broken)), money(a.worst), plain(first),
			money(a.last.Opening + a.last.TopUps), money(a.last.Available), money(a.last.Frozen), money(a.last.Charged), money(a.last.Refunded),
		}})
	}
	return t, true
}

func magnitude(n int64) uint64 {
	if n < 0 {
		return -uint64(n)
	}
	return uint64(n)
}

func orAll(enterprise string) string {
	if enterprise == "" {
		return "all"
	}
	return enterprise
}

// witnessLegend spells out the letters that this report uses.
func witnessLegend(r *result.Report) string {
	var out []string
	for _, w := range []fact{
		{"C", "customers' record"},
		{"S", "supplier's record"},
		{"D", "database"},
		{"R", "Redis"},
		{"M", "gateway"},
		{"L", "log rows"},
	} {
		used := slices.ContainsFunc(r.Identities, func(x result.Identity) bool { return slices.Contains(x.Witnesses, w.Name) }) ||
			slices.ContainsFunc(r.Checks, func(x result.Check) bool { return slices.Contains(x.Witnesses, w.Name) })
		if used {
			out = append(out, w.Name+" "+w.Value)
		}
	}
	if len(out) == 0 {
		return "none named"
	}
	return joined(out)
}

func checks(r *result.Report) section {
	s := section{ID: "checks", Title: "Checks"}
	if len(r.Checks) == 0 {
		s.Notes = []string{"No check was run."}
		return s
	}
	t := table{Columns: columns(left("check", "status"), right("found", "n left", "n right"), left("witnesses", "detail"))}
	for i, x := range r.Checks {
		found := plain(count(x.Count))
		if x.Count > 0 && !x.OK {
			found.Tone = toneFail
		}
		t.Rows = append(t.Rows, row{Anchor: anchor("check", i), Cells: []cell{
			code(x.ID), mark(x.Status), found, plain(count(x.NLeft)), plain(count(x.NRight)), plain(joined(x.Witnesses)), plain(x.Detail),
		}})
		if len(x.Offenders) > 0 {
			s.Texts = append(s.Texts, text{"Offending keys of " + x.ID, strings.Join(x.Offenders, "\n")})
		}
	}
	s.Tables = []table{t}
	return s
}

func objectives(r *result.Report) section {
	s := section{ID: "slo", Title: "Objectives"}
	if len(r.SLO) == 0 {
		s.Notes = []string{"The scenario sets no objective."}
		return s
	}
	s.Tables = []table{sloTable(r)}
	return s
}

func sloTable(r *result.Report) table {
	t := table{Columns: columns(left("metric", "step", "status"), right("value", "interval within this run", "limit", "n"), left("note"))}
	for i, x := range r.SLO {
		st := flag(x.OK, "met", "missed")
		if x.Value == nil && !x.OK {
			st = mark(result.StatusUnknown)
		}
		interval := "–"
		if x.Low != nil && x.High != nil {
			interval = number(*x.Low) + " – " + number(*x.High)
		}
		value := with(optional(x.Value), x.Unit)
		if x.Value == nil {
			value = millis(nil, x.N)
		}
		step := x.Step
		if step == "" {
			step = "all"
		}
		t.Rows = append(t.Rows, row{Anchor: anchor("slo", i), Cells: []cell{
			code(x.Metric), plain(step), st, plain(value), plain(interval),
			plain(sign(x.Op) + " " + with(number(x.Limit), x.Unit)), plain(count(x.N)), plain(x.Reason),
		}})
	}
	return t
}

func steps(r *result.Report) section {
	s := section{ID: "steps", Title: "Rates"}
	if len(r.Steps) == 0 {
		s.Notes = []string{"No load was offered."}
		return s
	}
	t := stepTable(r)
	s.Tables = []table{t}
	if e, ok := enterpriseTable(r); ok {
		s.Tables = append(s.Tables, e)
	}
	if k := r.Knee; k != nil {
		n := fmt.Sprintf("Knee, full chain: highest sustained %s TPS, lowest saturated %s", rate(k.SustainedTPS), kneeTop(k))
		if d := k.Limit.Describe(); d != "" {
			n += "; the limit is: " + d
		}
		s.Notes = append(s.Notes, n+".")
	}
	if x := r.Recommend; x != nil {
		parts := []string{count(x.TotalTPS) + " TPS in total"}
		for _, e := range x.Enterprises {
			parts = append(parts, count(e.TPS)+" for "+e.Enterprise)
		}
		s.Notes = append(s.Notes, fmt.Sprintf("Recommended production limit: %s (0.75 × the highest sustained full-chain rate, rounded down; evidence: %s s of load).",
			joined(parts), fixed(x.EvidenceS, 0)))
		if x.Detail != "" {
			s.Notes = append(s.Notes, x.Detail)
		}
	}
	s.Charts = ladderCharts(r)
	return s
}

func kneeTop(k *result.Knee) string {
	if k.SaturatedTPS == nil {
		return "not reached"
	}
	return rate(k.SaturatedTPS) + " TPS"
}

func stepTable(r *result.Report) table {
	t := table{
		Caption: "Full chain = first, non-resend SUBMITs in the supplier's record: the smaller of (n−1) ÷ interval and n ÷ phase",
		Columns: columns(left("step", "clocks"), right("target TPS", "offered", "offered TPS", "accepted TPS", "full chain TPS", "by interval", "by phase", "final TPS", "rejected", "unanswered", "drained in"), left("note")),
	}
	for i, x := range r.Steps {
		var note []string
		if x.Warmup {
			note = append(note, "warm-up, not judged")
		}
		if x.Stopped != "" {
			note = append(note, "stopped: "+x.Stopped)
		}
		if d := x.Limit.Describe(); d != "" {
			note = append(note, "limit: "+d)
		}
		t.Rows = append(t.Rows, row{Anchor: anchor("step", i), Cells: append([]cell{plain(x.Name), clocks(x.Valid)}, cells(
			fixed(x.TargetTPS, 0), count(x.Offered), rate(x.OfferedTPS), rate(x.AcceptedTPS), rate(x.FirstSubmit.TPS),
			rate(x.FirstSubmit.TPSInterval), rate(x.FirstSubmit.TPSPhase), rate(x.FinalTPS),
			count(x.SubmitResp.Rejected), count(x.SubmitResp.Missing), seconds(x.DrainedS), strings.Join(note, "; "))...)})
	}
	return t
}

func enterpriseTable(r *result.Report) (table, bool) {
	t := table{
		Caption: "By enterprise",
		Columns: columns(left("step", "enterprise"), right("offered", "accepted", "rejected", "full chain TPS", "SUBMIT_RESP P50, ms", "P95, ms", "P99, ms", "first submit P50, ms", "P95, ms", "P99, ms")),
	}
	for _, s := range r.Steps {
		for _, e := range s.Enterprises {
			a, b := e.SubmitResp, e.FirstSubmit
			t.Rows = append(t.Rows, row{Cells: cells(s.Name, e.Enterprise, count(e.Offered), count(a.OK), count(a.Rejected), rate(b.TPS),
				millis(a.P50, a.N), millis(a.P95, a.N), millis(a.P99, a.N), millis(b.P50, b.N), millis(b.P95, b.N), millis(b.P99, b.N))})
		}
	}
	return t, len(t.Rows) > 0
}

func latency(run *result.Run) section {
	s := section{ID: "latency", Title: "Latency"}
	if len(run.Report.Steps) > 0 {
		s.Tables = []table{latencyTable(&run.Report)}
		s.Notes = []string{fmt.Sprintf("From the intended start of each message, so waiting for a window slot counts. Milliseconds; a P95 needs n ≥ %d and a P99 n ≥ %d, below that it would be the maximum in disguise.", result.MinP95, result.MinP99)}
	}
	s.Charts = seriesCharts(run)
	return s
}

func latencyTable(r *result.Report) table {
	t := table{Columns: columns(left("step", "what"), right("n", "P50", "P95", "P99"), left("note"))}
	for _, x := range r.Steps {
		add := func(what string, l result.Latency) {
			t.Rows = append(t.Rows, row{Cells: cells(x.Name, what, count(l.N), millis(l.P50, l.N), millis(l.P95, l.N), millis(l.P99, l.N), l.Reason)})
		}
		add("SUBMIT_RESP", x.SubmitResp.Latency)
		if x.SubmitRespFire != nil {
			add("SUBMIT_RESP from fire", *x.SubmitRespFire)
		}
		add("first supplier SUBMIT", x.FirstSubmit.Latency)
		add("receipt relay", x.Receipts.Latency)
		add("added by the gateway", x.Added)
	}
	return t
}

func faults(r *result.Report) section {
	s := section{ID: "faults", Title: "Faults"}
	if len(r.Faults) == 0 {
		return s
	}
	t := table{Columns: columns(left("fault", "bitten", "ended"), right("outstanding at injection", "at", "until"), left("proof from the other side"))}
	for i, x := range r.Faults {
		t.Rows = append(t.Rows, row{Anchor: anchor("fault", i), Cells: []cell{
			code(x.ID), flag(x.Injected, "proved", "not proved"), flag(x.Recovered, "proved", "not proved"), plain(count(x.Outstanding)),
			plain(elapsed(x.At, r.Started)), plain(elapsed(x.Until, r.Started)), plain(x.Proof),
		}})
	}
	s.Tables = []table{t}
	return s
}

func waterfall(r *result.Report) section {
	s := section{ID: "stages", Title: "Stages"}
	if len(r.Stages) == 0 {
		return s
	}
	if d := r.Limit.Describe(); d != "" {
		s.Notes = []string{"The limiting stage is: " + d + "."}
	}
	t := table{Columns: columns(left("stage"), right("n", "P50, ms", "P95, ms", "P99, ms"))}
	for _, x := range r.Stages {
		t.Rows = append(t.Rows, row{Cells: append([]cell{code(x.Name)}, cells(count(x.N), millis(x.P50, x.N), millis(x.P95, x.N), millis(x.P99, x.N))...)})
	}
	s.Tables = []table{t}
	s.Charts = stageChart(r)
	return s
}

func channels(r *result.Report) section {
	s := section{ID: "channels", Title: "Channels and connections"}
	if len(r.Channels) == 0 {
		return s
	}
	t := table{Columns: columns(left("channel", "connection"), right("submits", "in-flight peak", "window", "peak use", "P50, ms", "P95, ms", "P99, ms"))}
	for _, ch := range r.Channels {
		for _, c := range ch.Connections {
			window, use := na, na
			if ch.Window > 0 {
				window = count(int64(ch.Window))
				use = percent(new(float64(c.InflightPeak) / float64(ch.Window)))
			}
			p := func(v *float64) string { return millis(v, c.Submits) }
			t.Rows = append(t.Rows, row{Cells: append([]cell{code(ch.ID), code(c.ID)}, cells(
				count(c.Submits), count(c.InflightPeak), window, use, p(c.P50), p(c.P95), p(c.P99))...)})
		}
	}
	s.Tables = []table{t}
	return s
}

func workflow(r *result.Report) section {
	s := section{ID: "workflow", Title: "Workflow batches"}
	if len(r.Workflow) == 0 {
		return s
	}
	t := table{Columns: columns(left("enterprise"), right("batches", "messages a batch, mean", "max", "wait P50, ms", "wait P95, ms", "drained in"))}
	for _, w := range r.Workflow {
		t.Rows = append(t.Rows, row{Cells: cells(w.Enterprise, count(w.Batches), fixed(w.Mean, 1), count(w.Max), millis(w.WaitP50, w.Batches), millis(w.WaitP95, w.Batches), seconds(w.DrainedS))})
	}
	s.Tables = []table{t}
	return s
}

func fates(r *result.Report) section {
	t := r.Totals
	a := table{
		Caption: "Messages by fate",
		Columns: right("messages", "delivered", "failed", "submitted, no receipt", "unknown", "expired", "cancelled"),
		Rows:    []row{{Cells: cells(count(t.Messages), count(t.Delivered), count(t.Failed), count(t.Submitted), count(t.Unknown), count(t.Expired), count(t.Cancelled))}},
	}
	u := r.Submits
	b := table{
		Caption: "SUBMITs at suppliers",
		Columns: right("first", "resend", "accepted", "rejected", "timeout", "unknown"),
		Rows:    []row{{Cells: cells(count(u.First), count(u.Resend), count(u.Accepted), count(u.Rejected), count(u.Timeout), count(u.Unknown))}},
	}
	s := section{ID: "fates", Title: "Messages", Tables: []table{a, b}}
	if len(t.RejectedByReason) > 0 {
		c := table{Caption: "Refused, by reason", Columns: columns(left("reason"), right("messages"))}
		for _, k := range sortedKeys(t.RejectedByReason) {
			c.Rows = append(c.Rows, row{Cells: []cell{code(k), plain(count(t.RejectedByReason[k]))}})
		}
		s.Tables = append(s.Tables, c)
	}
	return s
}

func billing(r *result.Report) section {
	s := section{ID: "billing", Title: "Billing by enterprise"}
	if len(r.Billing) == 0 {
		return s
	}
	s.Notes = []string{"Amounts in 1/10,000 yuan; the smaller figure is yuan."}
	t := table{Columns: columns(left("enterprise"), right("price", "units", "opening", "top-ups", "charged n", "charged", "refunded n", "refunded", "released n", "released", "frozen n", "frozen", "closing", "balance change"))}
	for _, b := range r.Billing {
		t.Rows = append(t.Rows, row{Cells: []cell{
			plain(b.Enterprise), money(b.Price), plain(count(b.Units)), money(b.Opening), money(b.TopUps),
			plain(count(b.ChargedN)), money(b.ChargedAmount), plain(count(b.RefundedN)), money(b.RefundedAmount),
			plain(count(b.ReleasedN)), money(b.ReleasedAmount), plain(count(b.FrozenN)), money(b.FrozenAmount),
			money(b.Closing), money(b.Closing - b.Opening),
		}})
	}
	s.Tables = []table{t}
	return s
}

func delivery(r *result.Report) section {
	c, d := r.Callback, r.Deliveries
	s := section{ID: "delivery", Title: "Outbox, callback, deliveries", Tables: []table{
		{
			Caption: "Outbox: commit → publish",
			Columns: right("P95, ms", "max, ms"),
			Rows:    []row{{Cells: cells(optional(r.Outbox.PublishP95), optional(r.Outbox.PublishMax))}},
		},
		{
			Caption: "Callback: edge → core",
			Columns: right("requests", "events", "events a batch, mean", "retries", "backlog peak"),
			Rows:    []row{{Cells: cells(count(c.Requests), count(c.Events), fixed(c.BatchMean, 1), count(c.Retries), count(c.BacklogPeak))}},
		},
		{
			Caption: "Deliveries: receipts to customers",
			Columns: right("most attempts", "duplicates"),
			Rows:    []row{{Cells: cells(count(d.MaxAttempts), count(d.Duplicates))}},
		},
	}}
	if len(d.AttemptsAtAck) > 0 {
		t := table{Caption: "Deliveries acknowledged at attempt", Columns: right("attempt", "deliveries")}
		for i, n := range d.AttemptsAtAck {
			t.Rows = append(t.Rows, row{Cells: cells(count(int64(i+1)), count(n))})
		}
		s.Tables = append(s.Tables, t)
	}
	return s
}

func queues(r *result.Report) section {
	s := section{ID: "queues", Title: "What was left at the end"}
	if len(r.Queues) == 0 {
		return s
	}
	t := table{Columns: columns(left("place", "status"), right("left", "expected"), left("detail"))}
	for i, q := range r.Queues {
		t.Rows = append(t.Rows, row{Anchor: anchor("queue", i), Cells: []cell{code(q.Name), flag(q.OK, "as expected", "left over"), plain(count(q.Left)), plain(count(q.Expected)), plain(q.Detail)}})
	}
	s.Tables = []table{t}
	return s
}

func gate(r *result.Report) section {
	s := section{ID: "gate", Title: "Against the baseline"}
	if len(r.Gate) == 0 {
		return s
	}
	t := table{Columns: columns(left("metric", "status"), right("runs", "ratio of medians", "worse by", "shift", "floor", "p, after Holm"), left("detail"))}
	for i, g := range r.Gate {
		t.Rows = append(t.Rows, row{Anchor: anchor("gate", i), Cells: []cell{
			code(g.Metric), mark(g.Status), plain(fmt.Sprintf("%d + %d", len(g.Baseline), len(g.Candidate))), plain(optional(g.Ratio)),
			plain(number(g.WorseBy)), plain(optional(g.Shift)), plain(number(g.Floor)), plain(optional(g.P)), plain(g.Detail),
		}})
	}
	s.Tables = []table{t}
	s.Charts = gateChart(r)
	return s
}

func little(r *result.Report) section {
	s := section{ID: "little", Title: "Little's law"}
	if len(r.Little) == 0 {
		return s
	}
	s.Notes = []string{"L is counted by the witness; λ × W comes from the generator's records. They agree within 5 % or the step is marked."}
	t := table{Columns: columns(left("step", "witness", "status"), right("L", "λ × W", "L ÷ λW"))}
	for _, x := range r.Little {
		var ratio *float64
		if x.LambdaW != 0 {
			ratio = new(x.L / x.LambdaW)
		}
		t.Rows = append(t.Rows, row{Cells: []cell{plain(x.Step), plain(x.Witness), flag(x.OK, "agrees", "differs"), plain(number(x.L)), plain(number(x.LambdaW)), plain(optional(ratio))}})
	}
	s.Tables = []table{t}
	return s
}

func resources(r *result.Report) section {
	p, c, l := r.PG, r.CPU, r.Protolog
	s := section{ID: "resources", Title: "Resources", Tables: []table{
		{
			Caption: "CPU per message, µs, by process",
			Columns: right("gateway", "PostgreSQL", "Redis", "harness (simulators and recorder)"),
			Rows:    []row{{Cells: cells(optional(c.Gateway), optional(c.Postgres), optional(c.Redis), optional(c.Harness))}},
		},
		{
			Caption: "PostgreSQL",
			Columns: right("pool wait P95, ms", "lock wait max, ms", "idle in transaction max, ms", "slow statements", "statements a message", "commits a message", "WAL octets a message"),
			Rows: []row{{Cells: cells(optional(p.PoolWaitP95), optional(p.LockWaitMax), optional(p.IdleInTransactionMax), count(p.SlowStatements),
				optional(p.StatementsPerMessage), optional(p.CommitsPerMessage), optional(p.WALBytesPerMessage))}},
		},
		{
			Caption: "Redis",
			Columns: right("commands a message", "stream lag max", "stream pending max"),
			Rows:    []row{{Cells: cells(optional(r.Redis.CommandsPerMessage), count(r.Redis.StreamLagMax), count(r.Redis.StreamPendingMax))}},
		},
		{
			Caption: "Protocol log",
			Columns: right("events", "published", "sampled out", "spilled"),
			Rows:    []row{{Cells: cells(count(l.Events), count(l.Published), count(l.SampledOut), count(l.Spilled))}},
		},
	}}
	if r.Redis.MemoryPeakBytes > 0 {
		t := &s.Tables[2]
		t.Columns = append(t.Columns, right("memory peak")...)
		t.Rows[0].Cells = append(t.Rows[0].Cells, plain(octets(r.Redis.MemoryPeakBytes)))
	}
	if p.SlowestStatement != "" {
		s.Texts = []text{{"Slowest statement, mean " + optional(p.SlowestStatementMean) + " ms", p.SlowestStatement}}
	}
	if len(r.Processes) > 0 {
		t := table{Caption: "Footprint, peak", Columns: columns(left("process"), right("RSS", "open files", "goroutines"))}
		for _, x := range r.Processes {
			g := "–"
			if x.Goroutines > 0 {
				g = count(x.Goroutines)
			}
			t.Rows = append(t.Rows, row{Cells: cells(x.Name, octets(x.RSSPeakBytes), count(x.OpenFiles), g)})
		}
		s.Tables = append(s.Tables, t)
	}
	return s
}

func environment(r *result.Report) section {
	e := r.Environment
	t := table{Columns: left("", "")}
	add := func(name, value string) {
		if value != "" {
			t.Rows = append(t.Rows, row{Cells: []cell{plain(name), plain(value)}})
		}
	}
	add("processor", fmt.Sprintf("%s, %d cores", e.CPU, e.Cores))
	if e.MemoryBytes > 0 {
		add("memory", octets(e.MemoryBytes))
	}
	add("kernel", e.Kernel)
	add("file system", e.Filesystem)
	add("Go", e.Go)
	add("PostgreSQL", e.Postgres)
	add("Redis", e.Redis)
	add("provisioned by", e.Provisioner)
	if e.Gateway.PID != 0 {
		add("gateway process", strconv.Itoa(e.Gateway.PID))
	}
	add("gateway version", e.Gateway.Version)
	add("gateway SHA-256", e.Gateway.SHA256)
	s := section{ID: "environment", Title: "Environment and durability", Tables: []table{t}}
	if len(e.Durability) > 0 {
		s.Tables = append(s.Tables, mapTable("Durability settings, read from the gateway's own sessions; runs that differ here are never compared", e.Durability))
	} else {
		s.Notes = []string{"No durability setting was recorded: this run can be compared with no other."}
	}
	if len(e.Settings) > 0 {
		s.Tables = append(s.Tables, mapTable("Effective settings of the gateway", e.Settings))
	}
	return s
}

func mapTable(caption string, m map[string]string) table {
	t := table{Caption: caption, Columns: left("setting", "value")}
	for _, k := range sortedKeys(m) {
		t.Rows = append(t.Rows, row{Cells: []cell{code(k), code(m[k])}})
	}
	return t
}

func reproduction(run *result.Run) section {
	r := &run.Report
	t := table{Columns: left("", "")}
	add := func(name, value string) {
		if value != "" {
			t.Rows = append(t.Rows, row{Cells: []cell{plain(name), code(value)}})
		}
	}
	add("command", r.Harness.Repro)
	add("seed", strconv.FormatUint(r.Seed, 10))
	add("scenario SHA-256", r.Harness.ScenarioSHA256)
	add("harness version", r.Harness.Version)
	add("harness SHA-256", r.Harness.SHA256)
	s := section{ID: "reproduction", Title: "Reproduction", Tables: []table{t}}
	for _, x := range []text{
		{result.ReproFile, run.Repro},
		{result.ScenarioFile, run.Scenario},
		{result.GatewayLogFile + ", last lines", run.GatewayLog},
	} {
		if x.Body != "" {
			s.Texts = append(s.Texts, x)
		}
	}
	return s
}
