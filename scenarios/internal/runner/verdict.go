package runner

import (
	"fmt"
	"slices"
	"strings"

	"cmppgateway/reports/result"
	"cmppgateway/scenarios/internal/spec"
)

// objectives judges every objective against every measured step. An objective that
// is missed on a machine whose clocks cannot be believed is not a failure of the
// gateway and not a pass: it is not measured.
func objectives(s *spec.Scenario, r *result.Report) (list []result.SLO, missed, unmeasured []string) {
	for _, o := range s.SLO {
		steps := r.Steps
		if spec.Unit(o.Metric) == "count" {
			steps = []result.Step{{Name: "the run", Valid: true}}
		}
		for i := range steps {
			step := &steps[i]
			if step.Warmup || o.Phase != "" && o.Phase != step.Name {
				continue
			}
			for _, bound := range []struct {
				op    string
				limit *float64
			}{{"<=", o.Max}, {">=", o.Min}} {
				if bound.limit == nil {
					continue
				}
				y := result.SLO{Metric: o.Metric, Step: step.Name, Enterprise: o.Enterprise, Op: bound.op, Limit: *bound.limit, Unit: spec.Unit(o.Metric)}
				switch y.Unit {
				case "ratio":
					y.Unit = ""
				case "count":
					y.Unit, y.Step = "", ""
				}
				y.Value, y.N, y.Reason = value(step, o.Metric, o.Enterprise)
				if spec.Unit(o.Metric) == "count" {
					y.Value, y.N, y.Reason = ofRun(r, o.Metric)
				}
				y.OK = y.Value != nil && (bound.op == "<=" && *y.Value <= y.Limit || bound.op == ">=" && *y.Value >= y.Limit)
				name := o.Metric + " of " + step.Name
				if o.Enterprise != "" {
					name = o.Metric + " of " + o.Enterprise + " in " + step.Name
				}
				switch {
				case y.OK:
				case y.Value == nil:
					unmeasured = append(unmeasured, name)
				case !step.Valid:
					y.Reason = "missed while the clocks could not be believed: " + strings.Join(step.Validity.Notes, ", ")
					unmeasured = append(unmeasured, name)
				default:
					missed = append(missed, strings.TrimSpace(fmt.Sprintf("%s is %.4g %s", name, *y.Value, y.Unit))+fmt.Sprintf(", limit %.4g", y.Limit))
				}
				list = append(list, y)
			}
		}
	}
	return list, missed, unmeasured
}

// ofRun is a metric of the whole run.
func ofRun(r *result.Report, metric string) (v *float64, n int64, reason string) {
	switch metric {
	case "run.attempts":
		for _, k := range r.Deliveries.AttemptsAtAck {
			n += k
		}
		if n == 0 {
			return nil, 0, "nothing was acknowledged"
		}
		return new(float64(r.Deliveries.MaxAttempts)), n, ""
	case "run.goroutines":
		for _, p := range r.Processes {
			if p.Name == "gateway" && p.Goroutines > 0 {
				return new(float64(p.Goroutines)), 1, ""
			}
		}
	}
	return nil, 0, "not recorded"
}

// value is a metric of a step, or of one enterprise in it, with the number of samples
// behind it.
func value(step *result.Step, metric, enterprise string) (v *float64, n int64, reason string) {
	family, name, _ := strings.Cut(metric, ".")
	resp, first := &step.SubmitResp, &step.FirstSubmit
	if enterprise != "" {
		i := slices.IndexFunc(step.Enterprises, func(e result.StepEnterprise) bool { return e.Enterprise == enterprise })
		if i >= 0 {
			resp, first = &step.Enterprises[i].SubmitResp, &step.Enterprises[i].FirstSubmit
		} else if len(step.Enterprises) > 0 {
			return nil, 0, "no such enterprise"
		}
	}
	var l result.Latency
	switch family {
	case "submit_resp":
		l = resp.Latency
	case "first_submit":
		l = first.Latency
	case "receipts":
		l = step.Receipts.Latency
	case "added":
		l = step.Added
	case "accepted":
		return step.AcceptedTPS, step.SubmitResp.OK, ""
	case "pool":
		if name == "rate" {
			return step.PoolRate, first.N, first.Reason
		}
		return step.PoolInflight, first.N, ""
	case "channel":
		if tps, ok := step.ChannelTPS[name]; ok {
			return &tps, first.N, ""
		}
		return nil, 0, "it had no two SUBMITs"
	case "result_8":
		return step.Result8, first.N, ""
	}
	switch name {
	case "p50":
		v = l.P50
	case "p95":
		v = l.P95
	case "p99":
		v = l.P99
	case "tps":
		return first.TPS, l.N, ""
	}
	return v, l.N, l.Reason
}

// judge gives the verdict: what is violated is never excused by a noisy machine,
// and what was not measured is not passed.
func judge(s *spec.Scenario, r *result.Report) {
	var missed, unmeasured []string
	r.SLO, missed, unmeasured = objectives(s, r)
	var broken []string
	for _, x := range r.Identities {
		if !x.Status.OK() {
			name := x.ID
			if x.Enterprise != "" {
				name += " of " + x.Enterprise
			}
			broken = append(broken, fmt.Sprintf("%s (%s)", name, x.Status))
		}
	}
	for _, x := range r.Checks {
		if !x.Status.OK() {
			broken = append(broken, fmt.Sprintf("%s (%s)", x.ID, x.Status))
		}
	}
	for _, x := range r.Conservation {
		if x.Difference != 0 && len(broken) == 0 {
			broken = append(broken, fmt.Sprintf("conservation %.0f s into the run", x.AtS))
		}
	}
	switch {
	case len(broken) > 0:
		r.Verdict, r.Reason = result.VerdictViolated, "does not hold: "+some(broken)
	case len(missed) > 0:
		r.Verdict, r.Reason = result.VerdictSLO, some(missed)
	case len(unmeasured) > 0:
		r.Verdict, r.Reason = result.VerdictInvalid, "not measured: "+some(unmeasured)
	case s.Price == 0:
		r.Verdict, r.Reason = result.VerdictInvalid, "price 0: every identity holds and no capacity is claimed"
	default:
		r.Verdict = result.VerdictPass
		r.Reason = fmt.Sprintf("%d messages, every identity and check holds", r.Totals.Messages)
		if len(r.SLO) > 0 {
			r.Reason += ", every objective is met"
		}
	}
}

// some joins at most four items.
func some(list []string) string {
	const most = 4
	if len(list) > most {
		return strings.Join(list[:most], "; ") + fmt.Sprintf("; and %d more", len(list)-most)
	}
	return strings.Join(list, "; ")
}
