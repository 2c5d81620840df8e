package policy

import (
	"slices"
	"time"

	"cmppgateway/gateway/internal/message"
)

// Recipient is one number of a message.
type Recipient struct {
	Phone   uint64
	Content string // what a repetition is compared by; looked at where duplicates are refused
}

// Number is a number as an enterprise's limits see it.
type Number struct {
	Enterprise int32
	Phone      uint64
}

// OptOut is a number that wants no messages of an enterprise (0 = of anybody), with a signature ("" = whatever it is).
type OptOut struct {
	Number

	Signature     string
	MarketingOnly bool // messages of the other lanes are welcome
}

// blocks says whether the opt-out is about a message of enterprise.
func (o *OptOut) blocks(m *Message, v *Verdict) bool {
	return (o.Enterprise == 0 || o.Enterprise == m.Enterprise) && (o.Signature == "" || o.Signature == v.Signature) && (!o.MarketingOnly || m.Lane == message.Marketing)
}

type repetition struct {
	app     int32
	phone   uint64
	content string
}

// Tally is what was sent before and within a batch. The caller fills in what the database knows, then judges the messages of
// the batch in order and counts those that pass. It is used by one goroutine.
type Tally struct {
	set     *Set
	now     time.Time
	recent  map[Number][]time.Time // messages that passed, newest first
	optOuts map[uint64][]OptOut
	sent    map[repetition]bool
	byApp   map[int32]int64 // passed today
	byOwner map[int32]int64

	counted []counted // in order, for Undo
	added   map[Number]int
}

type counted struct {
	number Number
	app    int32
	again  repetition
}

// NewTally begins a batch at now.
func NewTally(s *Set, now time.Time) *Tally {
	return &Tally{
		set: s, now: now, recent: make(map[Number][]time.Time), optOuts: make(map[uint64][]OptOut), sent: make(map[repetition]bool),
		byApp: make(map[int32]int64), byOwner: make(map[int32]int64), added: make(map[Number]int),
	}
}

// Recent says when messages of an enterprise to a number passed, newest first, as many as its limits can need.
func (t *Tally) Recent(n Number, at []time.Time) { t.recent[n] = at }

// OptedOut adds an opt-out.
func (t *Tally) OptedOut(o OptOut) { t.optOuts[o.Phone] = append(t.optOuts[o.Phone], o) }

// Sent says that an application has sent this content to a number within the time it may not be repeated.
func (t *Tally) Sent(app int32, r Recipient) { t.sent[repetition{app, r.Phone, r.Content}] = true }

// Used says how many messages of an application passed today.
func (t *Tally) Used(enterprise, app int32, messages int64) {
	t.byApp[app] += messages
	t.byOwner[enterprise] += messages
}

// Judge is the first objection to a recipient of a message that passed Check. It counts nothing.
func (t *Tally) Judge(m *Message, v *Verdict, r Recipient) message.Reason {
	n := Number{m.Enterprise, r.Phone}
	modes, limits := t.set.Modes(m.App), t.set.Limits(m.Enterprise)
	switch {
	case t.OptOut(m, v, r.Phone) != message.NoReason:
		return message.ReasonBlacklist
	case modes.DuplicateSeconds > 0 && t.sent[repetition{m.App, r.Phone, r.Content}]:
		return message.ReasonRisk
	case t.tooOften(n, limits.Minute, time.Minute), t.tooOften(n, limits.Hour, time.Hour), t.tooOften(n, limits.Day, 24*time.Hour):
		return message.ReasonRisk
	case modes.Quota > 0 && t.byApp[m.App] >= modes.Quota, limits.Quota > 0 && t.byOwner[m.Enterprise] >= limits.Quota:
		return message.ReasonQuota
	}
	return message.NoReason
}

// OptOut is BLACKLIST when a number has opted out of a message.
func (t *Tally) OptOut(m *Message, v *Verdict, phone uint64) message.Reason {
	if slices.ContainsFunc(t.optOuts[phone], func(o OptOut) bool { return o.blocks(m, v) }) {
		return message.ReasonBlacklist
	}
	return message.NoReason
}

// tooOften says that limit messages to a number passed within the window that ends now: those of this batch, and of the
// others the newest.
func (t *Tally) tooOften(n Number, limit int, window time.Duration) bool {
	if limit == 0 {
		return false
	}
	before := limit - t.added[n]
	return before <= 0 || reached(t.recent[n], before, window, t.now)
}

// reached says that the n newest of at (newest first) are within the window before now.
func reached(at []time.Time, n int, window time.Duration, now time.Time) bool {
	return len(at) >= n && at[n-1].After(now.Add(-window))
}

// Count notes a recipient that passed everything.
func (t *Tally) Count(m *Message, r Recipient) {
	c := counted{number: Number{m.Enterprise, r.Phone}, app: m.App}
	if t.set.Modes(m.App).DuplicateSeconds > 0 {
		c.again = repetition{m.App, r.Phone, r.Content}
		t.sent[c.again] = true
	}
	t.added[c.number]++
	t.byApp[m.App]++
	t.byOwner[m.Enterprise]++
	t.counted = append(t.counted, c)
}

// Mark is where Undo goes back to.
func (t *Tally) Mark() int { return len(t.counted) }

// Undo takes back what was counted since mark: the messages did not pass after all.
func (t *Tally) Undo(mark int) {
	for _, c := range t.counted[mark:] {
		t.added[c.number]--
		t.byApp[c.app]--
		t.byOwner[c.number.Enterprise]--
		if c.again.app != 0 {
			delete(t.sent, c.again)
		}
	}
	t.counted = t.counted[:mark]
}

// Needed is how many recent messages to a number its enterprise's limits can ask for, and how far back.
func (l Limits) Needed() (most int, window time.Duration) {
	for _, x := range l.windows() {
		if x.limit > 0 {
			most, window = max(most, x.limit), x.window
		}
	}
	return most, window
}

// Full says that no message may pass to a number to which others passed at these times, newest first.
func (l Limits) Full(at []time.Time, now time.Time) bool {
	for _, x := range l.windows() {
		if x.limit > 0 && reached(at, x.limit, x.window, now) {
			return true
		}
	}
	return false
}

type windowLimit struct {
	limit  int
	window time.Duration
}

func (l Limits) windows() [3]windowLimit {
	return [3]windowLimit{{l.Minute, time.Minute}, {l.Hour, time.Hour}, {l.Day, 24 * time.Hour}}
}

// Uses are the messages counted, by application.
func (t *Tally) Uses() map[int32]int64 {
	uses := make(map[int32]int64)
	for _, c := range t.counted {
		uses[c.app]++
	}
	return uses
}
