package render

import (
	"fmt"
	"strconv"
	"strings"

	"cmppgateway/reports/result"
)

// page is the report as every renderer sees it.
type page struct {
	Title    string
	Banner   banner
	Failures []failure // what keeps the run from passing, worst first
	Sections []section
}

// tone is one of the four colours of a verdict.
type tone string

const (
	tonePass    tone = "pass"
	toneFail    tone = "fail"
	toneInvalid tone = "invalid"
	toneEnv     tone = "env" // environment, aborted, bad file: nothing was judged
)

type banner struct {
	Tone     tone
	Word     string
	Symbol   string
	Verdict  result.Verdict
	ExitCode int
	Scenario string
	Reason   string
	Rates    string
	Facts    []fact
	Tiles    []tile
}

type fact struct{ Name, Value string }

type tile struct{ Value, Unit, Name, Note string }

type failure struct{ Anchor, Kind, Name, Detail string }

type section struct {
	ID, Title string
	Notes     []string
	Charts    []chart
	Tables    []table
	Texts     []text
}

// table is a grid of cells; Anchor rows can be linked to.
type table struct {
	Caption string
	Columns []column
	Rows    []row
}

type column struct {
	Name    string
	Numeric bool
}

type row struct {
	Anchor string
	Cells  []cell
}

// cell is one value. Sub is a second reading of the same value, such as yuan.
type cell struct {
	Text   string
	Sub    string
	Status result.Status // set = shown as a status mark
	Code   bool
	Tone   tone
}

// text is preformatted text under a heading.
type text struct{ Caption, Body string }

func left(names ...string) []column {
	c := make([]column, len(names))
	for i, n := range names {
		c[i] = column{Name: n}
	}
	return c
}

func right(names ...string) []column {
	c := left(names...)
	for i := range c {
		c[i].Numeric = true
	}
	return c
}

func columns(groups ...[]column) []column {
	var all []column
	for _, g := range groups {
		all = append(all, g...)
	}
	return all
}

func plain(s string) cell { return cell{Text: s} }
func code(s string) cell  { return cell{Text: s, Code: true} }

func money(n int64) cell { return cell{Text: count(n), Sub: yuan(n)} }

func mark(s result.Status) cell { return cell{Text: statusText(s), Status: s} }

// flag is a status mark for a plain truth, in the words that fit it.
func flag(ok bool, yes, no string) cell {
	if ok {
		return cell{Text: yes, Status: result.StatusOK}
	}
	return cell{Text: no, Status: result.StatusViolated}
}

// clocks says whether the clocks of a step can be believed: not to be believed is
// not a violation.
func clocks(valid bool) cell {
	if valid {
		return cell{Text: "valid", Status: result.StatusOK}
	}
	return cell{Text: "invalid", Status: result.StatusUnknown}
}

func cells(texts ...string) []cell {
	c := make([]cell, len(texts))
	for i, t := range texts {
		c[i] = plain(t)
	}
	return c
}

// build lays the report out. The order of sections is the reader's order of doubt:
// may I believe it, does the money hold, was it fast enough, and only then why.
func build(run *result.Run) page {
	r := &run.Report
	p := page{
		Title:    fmt.Sprintf("%s: %s", r.Scenario, r.Verdict),
		Banner:   buildBanner(r),
		Failures: failures(r),
	}
	for _, s := range []section{
		trust(r), identities(r), checks(r), objectives(r), steps(r), latency(run), faults(r),
		waterfall(r), channels(r), workflow(r), fates(r), billing(r), delivery(r), queues(r),
		gate(r), little(r), resources(r), environment(r), reproduction(run),
	} {
		if len(s.Notes)+len(s.Charts)+len(s.Tables)+len(s.Texts) > 0 {
			p.Sections = append(p.Sections, s)
		}
	}
	return p
}

func buildBanner(r *result.Report) banner {
	b := banner{
		Verdict: r.Verdict, ExitCode: r.Verdict.ExitCode(), Scenario: r.Scenario,
		Reason: r.Reason, Rates: rates(r),
	}
	switch r.Verdict {
	case result.VerdictPass:
		b.Tone, b.Symbol, b.Word = tonePass, "✓", "Passed"
	case result.VerdictSLO:
		b.Tone, b.Symbol, b.Word = toneFail, "✗", "Objective missed"
	case result.VerdictViolated:
		b.Tone, b.Symbol, b.Word = toneFail, "✗", "Violated"
	case result.VerdictRegression:
		b.Tone, b.Symbol, b.Word = toneFail, "✗", "Regression"
	case result.VerdictInvalid:
		b.Tone, b.Symbol, b.Word = toneInvalid, "?", "Invalid measurement"
	case result.VerdictEnvironment:
		b.Tone, b.Symbol, b.Word = toneEnv, "–", "Environment"
	case result.VerdictAborted:
		b.Tone, b.Symbol, b.Word = toneEnv, "–", "Aborted"
	case result.VerdictBadFile:
		b.Tone, b.Symbol, b.Word = toneEnv, "–", "Bad scenario file"
	}
	b.Facts = []fact{
		{"started", instant(r.Started)},
		{"seed", strconv.FormatUint(r.Seed, 10)},
	}
	if !r.Finished.IsZero() {
		b.Facts = append(b.Facts, fact{"took", fixed(r.Finished.Sub(r.Started).Seconds(), 0) + " s"})
	}
	b.Facts = append(b.Facts, fact{"exit code", strconv.Itoa(b.ExitCode)})
	b.Tiles = tiles(r)
	return b
}

// rates is the sentence with both rates; they are never shown apart.
func rates(r *result.Report) string {
	h := r.Headline()
	s := fmt.Sprintf("accepted at the entrance %s TPS; full chain %s TPS", rate(h.Accepted), rate(h.FullChain))
	if h.Step != "" && len(r.Steps) > 1 {
		s += " (step " + h.Step + ")"
	}
	return s
}

func tiles(r *result.Report) []tile {
	h := r.Headline()
	t := []tile{
		{Value: rate(h.Accepted), Unit: "TPS", Name: "accepted at the entrance"},
		{Value: rate(h.FullChain), Unit: "TPS", Name: "full chain"},
	}
	for _, s := range r.Steps {
		if s.Name == h.Step {
			t = append(t, tile{Value: millis(s.SubmitResp.P95, s.SubmitResp.N), Unit: "ms", Name: "SUBMIT_RESP P95"})
			if s.SubmitResp.P95 == nil {
				t[2].Value, t[2].Unit, t[2].Note = na, "", "n="+count(s.SubmitResp.N)
			}
		}
	}
	t = append(t, tile{Value: count(r.Totals.Messages), Name: "messages"})
	if n := len(r.Identities); n > 0 {
		t = append(t, tile{Value: fmt.Sprintf("%d/%d", holding(r.Identities, func(x result.Identity) bool { return x.OK }), n), Name: "identities hold"})
	}
	if n := len(r.Checks); n > 0 {
		t = append(t, tile{Value: fmt.Sprintf("%d/%d", holding(r.Checks, func(x result.Check) bool { return x.OK }), n), Name: "checks hold"})
	}
	if n := len(r.SLO); n > 0 {
		t = append(t, tile{Value: fmt.Sprintf("%d/%d", holding(r.SLO, func(x result.SLO) bool { return x.OK }), n), Name: "objectives met"})
	}
	return t
}

func holding[T any](xs []T, ok func(T) bool) int {
	n := 0
	for _, x := range xs {
		if ok(x) {
			n++
		}
	}
	return n
}

// unexamined is why an unknown does not pass.
const unexamined = "unknown, nothing was examined"

// failures collects everything that does not hold, for the list under the banner.
func failures(r *result.Report) []failure {
	var f []failure
	for i, x := range r.Identities {
		if !x.OK {
			d := unexamined
			if x.Status != result.StatusUnknown {
				d = fmt.Sprintf("%s: difference %s (%s yuan)", statusText(x.Status), count(x.Difference), yuan(x.Difference))
			}
			f = append(f, failure{anchor("identity", i), "identity", named(x.ID, x.Enterprise), d})
		}
	}
	for i, x := range r.Checks {
		if !x.OK {
			d := unexamined
			if x.Status != result.StatusUnknown {
				d = statusText(x.Status) + ", " + count(x.Count) + " found"
			}
			d += sep(x.Detail)
			f = append(f, failure{anchor("check", i), "check", x.ID, d})
		}
	}
	for i, x := range r.SLO {
		if !x.OK {
			value := millis(nil, x.N)
			if x.Value != nil {
				value = with(number(*x.Value), x.Unit)
			}
			d := fmt.Sprintf("%s, must be %s %s", value, sign(x.Op), with(number(x.Limit), x.Unit))
			f = append(f, failure{anchor("slo", i), "objective", named(x.Metric, x.Step), d})
		}
	}
	for i, x := range r.Faults {
		switch {
		case !x.Injected:
			f = append(f, failure{anchor("fault", i), "fault", x.ID, "was not proved to have bitten"})
		case !x.Recovered:
			f = append(f, failure{anchor("fault", i), "fault", x.ID, "was not proved to have ended"})
		}
	}
	for i, x := range r.Gate {
		if !x.Status.OK() {
			f = append(f, failure{anchor("gate", i), "gate", x.Metric, statusText(x.Status) + sep(x.Detail)})
		}
	}
	if n := holding(r.Conservation, func(x result.ConservationSample) bool { return x.Difference != 0 }); n > 0 {
		f = append(f, failure{"identities", "conservation", "every second", fmt.Sprintf("broken in %d of %d samples", n, len(r.Conservation))})
	}
	for i, q := range r.Queues {
		if !q.OK {
			f = append(f, failure{anchor("queue", i), "left over", q.Name, fmt.Sprintf("%s left, %s expected", count(q.Left), count(q.Expected)) + sep(q.Detail)})
		}
	}
	for i, s := range r.Steps {
		if s.Stopped != "" {
			f = append(f, failure{anchor("step", i), "step", s.Name, "stopped: " + s.Stopped})
		}
	}
	return f
}

func anchor(kind string, i int) string { return fmt.Sprintf("%s-%d", kind, i) }

func named(name, of string) string {
	if of == "" {
		return name
	}
	return name + " (" + of + ")"
}

func with(value, unit string) string {
	if unit == "" || value == na {
		return value
	}
	return value + " " + unit
}

func sep(detail string) string {
	if detail == "" {
		return ""
	}
	return ": " + detail
}

func sign(op string) string {
	switch op {
	case "<=":
		return "≤"
	case ">=":
		return "≥"
	}
	return op
}

func joined(list []string) string { return strings.Join(list, ", ") }
