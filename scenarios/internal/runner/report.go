package runner

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"cmppgateway/reports/result"
	"cmppgateway/scenarios/internal/spec"
	"cmppgateway/scenarios/internal/verify"
)

// fill writes everything measured into the report.
func (r *run) fill() {
	rep, w := r.report, r.witness
	list := trace(w, r.plan, r.starts)
	rep.Steps = steps(r.s, r.plan, r.starts, list, w)
	slow := slowBuild(r.Gateway)
	byPhase := make([][]*measured, len(r.plan.Phases))
	for i := range list {
		byPhase[list[i].phase] = append(byPhase[list[i].phase], &list[i])
	}
	measuredMessages := 0.0
	for i := range rep.Steps {
		p := &r.plan.Phases[i]
		v := judgeClocks(r.s, r.starts[i], r.starts[i]+int64(p.Hold), p.Offered(), byPhase[i], w, r.hiccups, r.sampler.seconds)
		if slow != "" {
			v.OK = false
			v.Notes = append(v.Notes, "the gateway was built with -"+slow)
		}
		rep.Steps[i].Validity, rep.Steps[i].Valid = v, v.OK
		if i == len(rep.Steps)-1 {
			rep.Steps[i].DrainedS = new(r.drained.Took.Seconds())
		}
		if p.Measure {
			measuredMessages += float64(p.Offered())
			rep.Validity = worse(rep.Validity, v)
		}
	}
	seconds := r.sampler.seconds
	rep.Totals = totals(w, r.plan.Total)
	rep.Submits = submits(w, r.base.metrics, r.last.metrics)
	rep.Channels = channelFigures(r.s, &w.Suppliers)
	rep.Workflow = workflowFigures(w, r.base.metrics, r.last.metrics, r.clock.Time(r.loadEnd))
	rep.Outbox = outboxFigures(r.base.metrics, r.last.metrics)
	rep.Callback = callbackFigures(r.base.metrics, r.last.metrics, seconds)
	rep.Deliveries = deliveryFigures(w, r.base.metrics, r.last.metrics)
	rep.PG = pgFigures(r.from, r.to, measuredMessages, seconds)
	rep.Redis = redisFigures(r.from, r.to, measuredMessages, seconds)
	rep.CPU = cpuFigures(r.from, r.to, r.sampler.pids, measuredMessages)
	// Counters of a process that ended are not the cost of the phases.
	if r.s.Needs(spec.PostgresCrash, spec.PostgresRestart) {
		rep.PG.CommitsPerMessage, rep.PG.WALBytesPerMessage, rep.PG.StatementsPerMessage, rep.CPU.Postgres = nil, nil, nil, nil
	}
	if r.s.Needs(spec.RedisRestart, spec.RedisStale) {
		rep.Redis.CommandsPerMessage, rep.CPU.Redis = nil, nil
	}
	rep.Processes = processes(seconds)
	rep.Billing = billing(w)
	rep.Conservation = conservationSamples(w, r.started)
	rep.Stages = stages(r.from.metrics, r.last.metrics, &w.Suppliers)
	rep.Limit = limitOf(rep.Steps, rep.Stages)
	rep.Identities = verify.Identities(w)
	rep.Checks = verify.Checks(w)
	for _, p := range w.Places {
		rep.Queues = append(rep.Queues, result.Queue{Name: p.Name, Left: p.Left, Expected: p.Expected, OK: p.OK(), Detail: p.Detail})
	}
	if left := describe(r.drained.Left); left != "" {
		rep.Queues = append(rep.Queues, result.Queue{Name: "drain", Left: 1, Detail: fmt.Sprintf("not drained after %s: %s", r.s.Drain.Limit, left)})
	}
	if r.s.Price > 0 {
		rep.Recommend = recommend(r.s, rep.Steps)
	}
}

// worse is the validity of a run: that of its worst measured step.
func worse(a, b *result.Validity) *result.Validity {
	if a == nil || a.OK && !b.OK {
		return b
	}
	return a
}

// conclude gives a run that was cut short its verdict; asked is the caller's
// context, which ends only when somebody asked for it.
func (r *run) conclude(asked context.Context, err error) {
	if err == nil {
		return
	}
	rep := r.report
	rep.Reason = oneLine(err)
	var faults spec.FaultsError
	var died *diedError
	var lost *lostError
	switch {
	case asked.Err() != nil:
		rep.Verdict, rep.Reason = result.VerdictAborted, fmt.Sprintf("stopped on request after %s, while %s", time.Since(r.started).Round(time.Second), r.doing)
	case errors.Is(err, errLimit):
		rep.Verdict, rep.Reason = result.VerdictAborted, fmt.Sprintf("the limit of %s was reached while %s", r.s.Limit, r.doing)
	case errors.As(err, &faults):
		rep.Verdict = result.VerdictBadFile
	case errors.As(err, &died), errors.As(err, &lost), rep.Verdict == result.VerdictViolated:
		// Nothing that came later excuses it.
		rep.Verdict = result.VerdictViolated
	default:
		rep.Verdict = result.VerdictEnvironment
	}
}

// oneLine is an error on one line, without the lines that only repeat an earlier one.
func oneLine(err error) string {
	text := ""
	for line := range strings.SplitSeq(err.Error(), "\n") {
		line = strings.Join(strings.Fields(line), " ")
		if line == "" || strings.Contains(text, line) {
			continue
		}
		if text != "" {
			text += "; "
		}
		text += line
	}
	return text
}
