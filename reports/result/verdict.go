package result

import "fmt"

// Verdict is the one-word outcome of a run.
type Verdict string

// The verdicts; [Verdict.ExitCode] gives the exit code of each.
const (
	VerdictPass        Verdict = "pass"
	VerdictBadFile     Verdict = "bad_file"    // the scenario file is wrong
	VerdictSLO         Verdict = "slo"         // an objective was missed
	VerdictViolated    Verdict = "violated"    // an identity or a check does not hold
	VerdictRegression  Verdict = "regression"  // worse than the baseline
	VerdictInvalid     Verdict = "invalid"     // not measured: machine or harness in the way
	VerdictEnvironment Verdict = "environment" // pre-flight failed, or a fault did not bite
	VerdictAborted     Verdict = "aborted"     // stopped before the end
)

// Verdicts lists every verdict in the order of its exit code.
func Verdicts() []Verdict {
	return []Verdict{
		VerdictPass, VerdictBadFile, VerdictSLO, VerdictViolated,
		VerdictRegression, VerdictInvalid, VerdictEnvironment, VerdictAborted,
	}
}

// ExitCode is what the scenarios program exits with; -1 for an unknown verdict.
func (v Verdict) ExitCode() int {
	switch v {
	case VerdictPass:
		return 0
	case VerdictBadFile:
		return 2
	case VerdictSLO:
		return 3
	case VerdictViolated:
		return 4
	case VerdictRegression:
		return 5
	case VerdictInvalid:
		return 6
	case VerdictEnvironment:
		return 7
	case VerdictAborted:
		return 8
	}
	return -1
}

// Known reports whether v is one of the eight verdicts.
func (v Verdict) Known() bool { return v.ExitCode() >= 0 }

// MarshalText refuses a verdict that is not one of the eight.
func (v Verdict) MarshalText() ([]byte, error) {
	if !v.Known() {
		return nil, &UnknownValueError{Kind: "verdict", Value: string(v)}
	}
	return []byte(v), nil
}

// UnmarshalText refuses a verdict that is not one of the eight.
func (v *Verdict) UnmarshalText(b []byte) error {
	got := Verdict(b)
	if !got.Known() {
		return &UnknownValueError{Kind: "verdict", Value: string(b)}
	}
	*v = got
	return nil
}

// Status is what one identity, check or objective came to.
type Status string

// The statuses. Violated beats unknown beats ok; not_applicable counts as ok
// and is allowed only where the scenario's arithmetic expects nothing to examine.
const (
	StatusOK            Status = "ok"
	StatusViolated      Status = "violated"
	StatusUnknown       Status = "unknown" // nothing was examined: does not pass
	StatusNotApplicable Status = "not_applicable"
)

// OK is true for ok and not_applicable.
func (s Status) OK() bool { return s == StatusOK || s == StatusNotApplicable }

// Known reports whether s is one of the four statuses.
func (s Status) Known() bool {
	switch s {
	case StatusOK, StatusViolated, StatusUnknown, StatusNotApplicable:
		return true
	}
	return false
}

// Worse returns the worse of two statuses: violated > unknown > ok > not_applicable.
func (s Status) Worse(t Status) Status {
	if t.rank() > s.rank() {
		return t
	}
	return s
}

func (s Status) rank() int {
	switch s {
	case StatusNotApplicable:
		return 0
	case StatusOK:
		return 1
	case StatusUnknown:
		return 2
	case StatusViolated:
		return 3
	}
	return 4
}

// MarshalText refuses a status that is not one of the four.
func (s Status) MarshalText() ([]byte, error) {
	if !s.Known() {
		return nil, &UnknownValueError{Kind: "status", Value: string(s)}
	}
	return []byte(s), nil
}

// UnmarshalText refuses a status that is not one of the four.
func (s *Status) UnmarshalText(b []byte) error {
	got := Status(b)
	if !got.Known() {
		return &UnknownValueError{Kind: "status", Value: string(b)}
	}
	*s = got
	return nil
}

// UnknownValueError is a verdict, status or limit outside its closed set.
type UnknownValueError struct {
	Kind  string // "verdict", "status" or "limit"
	Value string
}

func (e *UnknownValueError) Error() string {
	return fmt.Sprintf("unknown %s %q", e.Kind, e.Value)
}

// Limit names the stage that bounds throughput: one of the six of capacity-plan §10.
// Empty means that no stage was found to be the limit.
type Limit string

// The six limits.
const (
	LimitEntrance        Limit = "entrance"
	LimitWorkerOutbox    Limit = "worker_outbox"
	LimitGatewayWindows  Limit = "gateway_windows"
	LimitSupplierTPS     Limit = "supplier_tps"
	LimitCallbackBilling Limit = "callback_billing"
	LimitStores          Limit = "stores"
)

// Describe is the limit in words; empty for the empty limit.
func (l Limit) Describe() string {
	switch l {
	case LimitEntrance:
		return "entrance (customer connections and inbox)"
	case LimitWorkerOutbox:
		return "workflow worker and outbox"
	case LimitGatewayWindows:
		return "gateway connections and windows"
	case LimitSupplierTPS:
		return "supplier account rate"
	case LimitCallbackBilling:
		return "callback and billing"
	case LimitStores:
		return "PostgreSQL and Redis"
	}
	return string(l)
}

// UnmarshalText refuses a limit that is neither empty nor one of the six.
func (l *Limit) UnmarshalText(b []byte) error {
	switch got := Limit(b); got {
	case "", LimitEntrance, LimitWorkerOutbox, LimitGatewayWindows, LimitSupplierTPS, LimitCallbackBilling, LimitStores:
		*l = got
		return nil
	}
	return &UnknownValueError{Kind: "limit", Value: string(b)}
}
