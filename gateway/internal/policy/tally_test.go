package policy_test

import (
	"testing"
	"time"

	"cmppgateway/gateway/internal/message"
	"cmppgateway/gateway/internal/policy"
)

const phone = 13800138000

func tally(t *testing.T, limits policy.Limits, modes policy.Modes) (*policy.Tally, *policy.Message) {
	t.Helper()
	limits.Enterprise, modes.App = enterprise, free
	s := newSet(t, policy.Lists{Limits: []policy.Limits{limits}, Modes: []policy.Modes{modes}})
	return policy.NewTally(s, noon), &policy.Message{Enterprise: enterprise, App: free, Lane: message.Notification}
}

func ago(all ...time.Duration) (at []time.Time) {
	for _, d := range all {
		at = append(at, noon.Add(-d))
	}
	return at
}

func TestFrequencyIsRolling(t *testing.T) {
	t.Parallel()
	number := policy.Number{Enterprise: enterprise, Phone: phone}
	day := 24 * time.Hour
	for _, c := range []struct {
		name   string
		limits policy.Limits
		recent []time.Time
		passes int // within the batch
	}{
		{"none before", policy.Limits{Day: 3}, nil, 3},
		{"two in the window", policy.Limits{Day: 3}, ago(0, day-time.Microsecond), 1},
		{"one has left the window", policy.Limits{Day: 3}, ago(0, day), 2},
		{"full", policy.Limits{Day: 3}, ago(0, time.Hour, 2*time.Hour), 0},
		{"fuller than it may be", policy.Limits{Day: 1}, ago(0, 0, 0), 0},
		{"per minute", policy.Limits{Minute: 1, Day: 9}, ago(time.Minute), 1},
		{"per minute, full", policy.Limits{Minute: 1, Day: 9}, ago(time.Minute - 1), 0},
		{"per hour", policy.Limits{Hour: 2}, ago(time.Minute, time.Hour), 1},
		{"the tightest counts", policy.Limits{Minute: 5, Hour: 4, Day: 3}, ago(2*time.Hour, 3*time.Hour), 1},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			tally, m := tally(t, c.limits, policy.Modes{})
			tally.Recent(number, c.recent)
			for i := range 10 {
				r := policy.Recipient{Phone: phone}
				got := tally.Judge(m, &policy.Verdict{}, r)
				if want := i < c.passes; (got == message.NoReason) != want || !want && got != message.ReasonRisk {
					t.Fatalf("message %d: %q, want %d to pass", i+1, got, c.passes)
				}
				if got == message.NoReason {
					tally.Count(m, r)
				}
			}
			if got := tally.Judge(m, &policy.Verdict{}, policy.Recipient{Phone: phone + 1}); got != message.NoReason {
				t.Errorf("another number: %q", got)
			}
			if got := tally.Judge(&policy.Message{Enterprise: 2, App: 2}, &policy.Verdict{}, policy.Recipient{Phone: phone}); got != message.NoReason {
				t.Errorf("another enterprise: %q", got)
			}
		})
	}
}

func TestFrequencyIsOnByDefault(t *testing.T) {
	t.Parallel()
	tally := policy.NewTally(nil, noon)
	m := &policy.Message{Enterprise: 9, App: 9}
	for i := range 12 {
		got := tally.Judge(m, &policy.Verdict{}, policy.Recipient{Phone: phone})
		if want := i < 10; (got == message.NoReason) != want {
			t.Fatalf("message %d: %q", i+1, got)
		}
		tally.Count(m, policy.Recipient{Phone: phone})
	}
	if most, window := (policy.Limits{}).Needed(); most != 0 || window != 0 {
		t.Errorf("no limits need %d of %s", most, window)
	}
	if most, window := (policy.Limits{Minute: 20, Hour: 5}).Needed(); most != 20 || window != time.Hour {
		t.Errorf("needed %d of %s", most, window)
	}
}

func TestWhatDidNotPassDoesNotCount(t *testing.T) {
	t.Parallel()
	tally, m := tally(t, policy.Limits{Day: 1, Quota: 2}, policy.Modes{DuplicateSeconds: 60})
	r := policy.Recipient{Phone: phone, Content: "x"}
	mark := tally.Mark()
	tally.Count(m, r)
	tally.Count(m, policy.Recipient{Phone: phone + 1})
	if got := tally.Judge(m, &policy.Verdict{}, policy.Recipient{Phone: phone + 2}); got != message.ReasonQuota {
		t.Errorf("beyond the quota: %q", got)
	}
	tally.Undo(mark)
	if got := tally.Judge(m, &policy.Verdict{}, r); got != message.NoReason {
		t.Errorf("after it was taken back: %q", got)
	}
	if n := len(tally.Uses()); n != 0 {
		t.Errorf("%d counters", n)
	}
	tally.Count(m, r)
	if got := tally.Uses()[free]; got != 1 {
		t.Errorf("used %d, want 1", got)
	}
}

func TestQuotas(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name            string
		owner, own      int64 // quotas of enterprise and application
		before, sibling int64 // used by the application and by another one of the enterprise
		want            message.Reason
	}{
		{"none", 0, 0, 1000, 1000, message.NoReason},
		{"last one of the application", 0, 10, 9, 1000, message.NoReason},
		{"application's used up", 0, 10, 10, 0, message.ReasonQuota},
		{"last one of the enterprise", 10, 0, 4, 5, message.NoReason},
		{"enterprise's used up", 10, 0, 4, 6, message.ReasonQuota},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			tally, m := tally(t, policy.Limits{Quota: c.owner}, policy.Modes{Quota: c.own})
			tally.Used(enterprise, free, c.before)
			tally.Used(enterprise, strict, c.sibling)
			if got := tally.Judge(m, &policy.Verdict{}, policy.Recipient{Phone: phone}); got != c.want {
				t.Errorf("%q, want %q", got, c.want)
			}
		})
	}
}

func TestOptOuts(t *testing.T) {
	t.Parallel()
	all := policy.Number{Phone: phone}
	own := policy.Number{Enterprise: enterprise, Phone: phone}
	for _, c := range []struct {
		name    string
		optOut  policy.OptOut
		lane    message.Lane
		blocked bool
	}{
		{"global", policy.OptOut{Number: all}, message.Verification, true},
		{"of the enterprise", policy.OptOut{Number: own}, message.Verification, true},
		{"of another enterprise", policy.OptOut{Number: policy.Number{Enterprise: 2, Phone: phone}}, message.Marketing, false},
		{"another number", policy.OptOut{Number: policy.Number{Phone: phone + 1}}, message.Marketing, false},
		{"for the signature", policy.OptOut{Number: own, Signature: "北方"}, message.Notification, true},
		{"for another signature", policy.OptOut{Number: own, Signature: "南方"}, message.Marketing, false},
		{"marketing only", policy.OptOut{Number: own, Signature: "北方", MarketingOnly: true}, message.Marketing, true},
		{"marketing only, a notification", policy.OptOut{Number: own, Signature: "北方", MarketingOnly: true}, message.Notification, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			tally, m := tally(t, policy.Limits{Day: 1}, policy.Modes{})
			m.Lane = c.lane
			tally.OptedOut(c.optOut)
			tally.Recent(own, ago(0)) // BLACKLIST comes before RISK
			got, want := tally.Judge(m, &policy.Verdict{Signature: "北方"}, policy.Recipient{Phone: phone}), message.ReasonRisk
			if c.blocked {
				want = message.ReasonBlacklist
			}
			if got != want {
				t.Errorf("%q, want %q", got, want)
			}
		})
	}
}

func TestDuplicates(t *testing.T) {
	t.Parallel()
	tally, m := tally(t, policy.Limits{}, policy.Modes{DuplicateSeconds: 60})
	before, now := policy.Recipient{Phone: phone, Content: "a"}, policy.Recipient{Phone: phone, Content: "b"}
	tally.Sent(free, before)
	for _, c := range []struct {
		r    policy.Recipient
		want message.Reason
	}{
		{before, message.ReasonRisk},
		{now, message.NoReason},
		{now, message.ReasonRisk},
		{policy.Recipient{Phone: phone + 1, Content: "a"}, message.NoReason},
	} {
		got := tally.Judge(m, &policy.Verdict{}, c.r)
		if got != c.want {
			t.Errorf("%+v: %q, want %q", c.r, got, c.want)
		}
		if got == message.NoReason {
			tally.Count(m, c.r)
		}
	}
}
