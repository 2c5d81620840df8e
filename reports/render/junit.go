package render

import (
	"encoding/xml"
	"fmt"
	"io"

	"cmppgateway/reports/result"
)

type junitSuites struct {
	XMLName  xml.Name     `xml:"testsuites"`
	Name     string       `xml:"name,attr"`
	Tests    int          `xml:"tests,attr"`
	Failures int          `xml:"failures,attr"`
	Errors   int          `xml:"errors,attr"`
	Skipped  int          `xml:"skipped,attr"`
	Suites   []junitSuite `xml:"testsuite"`
}

type junitSuite struct {
	Name      string      `xml:"name,attr"`
	Tests     int         `xml:"tests,attr"`
	Failures  int         `xml:"failures,attr"`
	Errors    int         `xml:"errors,attr"`
	Skipped   int         `xml:"skipped,attr"`
	Timestamp string      `xml:"timestamp,attr"`
	Cases     []junitCase `xml:"testcase"`
}

type junitCase struct {
	Class   string        `xml:"classname,attr"`
	Name    string        `xml:"name,attr"`
	Time    string        `xml:"time,attr,omitempty"`
	Failure *junitProblem `xml:"failure"`
	Error   *junitProblem `xml:"error"`
	Skipped *junitProblem `xml:"skipped"`
}

type junitProblem struct {
	Message string `xml:"message,attr"`
	Body    string `xml:",chardata"`
}

// JUnit writes one case for the verdict and one per objective, identity, check,
// fault and gated metric. What is violated is a failure; what was not examined is
// an error, because it does not pass; not applicable is skipped.
func JUnit(w io.Writer, r *result.Report) error {
	all := junitSuites{Name: r.Scenario}
	stamp := r.Started.UTC().Format("2006-01-02T15:04:05")
	add := func(name string, cases []junitCase) {
		if len(cases) == 0 {
			return
		}
		s := junitSuite{Name: r.Scenario + "." + name, Timestamp: stamp, Tests: len(cases), Cases: cases}
		for i := range cases {
			cases[i].Class = r.Scenario + "." + name
			switch {
			case cases[i].Failure != nil:
				s.Failures++
			case cases[i].Error != nil:
				s.Errors++
			case cases[i].Skipped != nil:
				s.Skipped++
			}
		}
		all.Tests += s.Tests
		all.Failures += s.Failures
		all.Errors += s.Errors
		all.Skipped += s.Skipped
		all.Suites = append(all.Suites, s)
	}

	add("verdict", []junitCase{verdictCase(r)})
	var cases []junitCase
	for _, x := range r.SLO {
		st := result.StatusOK
		switch {
		case !x.OK && x.Value == nil:
			st = result.StatusUnknown
		case !x.OK:
			st = result.StatusViolated
		}
		msg := fmt.Sprintf("%s, must be %s %s (n=%d)", with(optional(x.Value), x.Unit), sign(x.Op), with(number(x.Limit), x.Unit), x.N)
		cases = append(cases, statusCase(named(x.Metric, x.Step), st, msg, x.Reason))
	}
	add("slo", cases)

	cases = nil
	for _, x := range r.Identities {
		msg := fmt.Sprintf("left %d, right %d, difference %d (1/10,000 yuan; n %d and %d; witnesses %s)", x.Left, x.Right, x.Difference, x.NLeft, x.NRight, joined(x.Witnesses))
		cases = append(cases, statusCase(named(x.ID, x.Enterprise), x.Status, msg, lines(x.Detail, x.Offenders)))
	}
	add("identities", cases)

	cases = nil
	for _, x := range r.Checks {
		msg := fmt.Sprintf("%d found (n %d and %d)", x.Count, x.NLeft, x.NRight)
		cases = append(cases, statusCase(x.ID, x.Status, msg, lines(x.Detail, x.Offenders)))
	}
	add("checks", cases)

	cases = nil
	for _, x := range r.Faults {
		st := result.StatusOK
		if !x.Injected || !x.Recovered {
			st = result.StatusViolated
		}
		msg := fmt.Sprintf("injected %t, recovered %t, %d outstanding at injection", x.Injected, x.Recovered, x.Outstanding)
		cases = append(cases, statusCase(x.ID, st, msg, x.Proof))
	}
	add("faults", cases)

	cases = nil
	for _, x := range r.Gate {
		msg := fmt.Sprintf("ratio %s, limit %s, p %s", optional(x.Ratio), number(x.WorseBy), optional(x.P))
		cases = append(cases, statusCase(x.Metric, x.Status, msg, x.Detail))
	}
	add("gate", cases)

	if _, err := io.WriteString(w, xml.Header); err != nil {
		return fmt.Errorf("render junit: %w", err)
	}
	enc := xml.NewEncoder(w)
	enc.Indent("", "  ")
	if err := enc.Encode(all); err != nil {
		return fmt.Errorf("render junit: %w", err)
	}
	if _, err := io.WriteString(w, "\n"); err != nil {
		return fmt.Errorf("render junit: %w", err)
	}
	return nil
}

func verdictCase(r *result.Report) junitCase {
	c := junitCase{Name: string(r.Verdict)}
	if !r.Finished.IsZero() {
		c.Time = fmt.Sprintf("%.3f", r.Finished.Sub(r.Started).Seconds())
	}
	p := &junitProblem{Message: r.Reason, Body: rates(r)}
	switch r.Verdict {
	case result.VerdictPass:
	case result.VerdictSLO, result.VerdictViolated, result.VerdictRegression:
		c.Failure = p
	case result.VerdictInvalid, result.VerdictEnvironment, result.VerdictAborted, result.VerdictBadFile:
		c.Error = p
	}
	return c
}

func statusCase(name string, s result.Status, msg, body string) junitCase {
	c := junitCase{Name: name}
	switch s {
	case result.StatusOK:
	case result.StatusViolated:
		c.Failure = &junitProblem{msg, body}
	case result.StatusUnknown:
		c.Error = &junitProblem{"not examined: " + msg, body}
	case result.StatusNotApplicable:
		c.Skipped = &junitProblem{Message: "not applicable"}
	}
	return c
}

func lines(detail string, offenders []string) string {
	s := detail
	for _, o := range offenders {
		if s != "" {
			s += "\n"
		}
		s += o
	}
	return s
}
