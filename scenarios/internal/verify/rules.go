package verify

import (
	"fmt"
	"slices"
	"time"
	"unicode/utf16"

	"cmppgateway/reports/result"
	"cmppgateway/simulator/sp"
)

// 12. Keys are unique: event ids of receipts and uplinks, entries of accounts, Msg_Ids
// of segments. Events that the gateway was offered again are counted by it, and changed
// nothing, or a key would be there twice.
func keysUnique(x *index) result.Check {
	t := begin("keys_unique", "D", "M")
	t.check.NRight = x.Events
	t.none = x.Terms.Expected.Messages == 0
	events, entries, segments := map[int64]bool{}, map[int64]bool{}, map[uint64]bool{}
	event := func(id int64) {
		t.check.NLeft++
		if events[id] {
			t.bad("event %d is stored twice", id)
		}
		events[id] = true
	}
	for _, r := range x.Database.Receipts {
		event(r.EventID)
	}
	for _, u := range x.Database.Uplinks {
		event(u.EventID)
	}
	for _, e := range x.Database.Entries {
		t.check.NLeft++
		if entries[e.ID] {
			t.bad("account entry %d is there twice", e.ID)
		}
		entries[e.ID] = true
	}
	for _, s := range x.Database.Segments {
		t.check.NLeft++
		if segments[s.MsgID] {
			t.bad("Msg_Id %d is a segment of two messages", s.MsgID)
		}
		segments[s.MsgID] = true
	}
	c := t.end()
	if c.Status == result.StatusOK {
		c.Detail = fmt.Sprintf("%d events taken, %d of them had come before", x.Events, x.Replayed)
	}
	return c
}

// 17. Every long message went upstream whole: all parts on one channel, with one
// reference, their text the customer's, billed by the scenario's units; and each of
// the customer's segments has a Msg_Id of its own.
func longMessages(x *index) result.Check {
	t := begin("long_messages", "S", "C", "D")
	t.none = x.Terms.Expected.Long == 0
	x.accepts(func(o *origin) {
		if !o.kind.Long || o.kind.Reason != 0 {
			return
		}
		t.check.NLeft++
		m := x.byKey[o.key]
		if m == nil {
			return // no_lost_accept says so
		}
		t.check.NRight++
		if m.Units != o.kind.Units {
			t.bad("message %d has %d units, %s has %d", m.ID, m.Units, o.kind.Name, o.kind.Units)
		}
		for _, id := range o.msgIDs() {
			if !slices.ContainsFunc(x.msgIDs[m.ID], func(r registered) bool { return r.msgID == id }) {
				t.bad("message %d does not know segment Msg_Id %d", m.ID, id)
			}
		}
		x.upstream(t, o, m)
	})
	return t.end()
}

// upstream compares what the suppliers accepted of a long message with its text.
func (x *index) upstream(t *tally, o *origin, m *Message) {
	text, ok := o.text()
	if !ok {
		return // the customer's own record is not whole: nothing to compare with
	}
	type attempt struct {
		account string
		ref     uint16
	}
	joined := map[attempt]map[uint8][]byte{}
	for _, s := range x.seenKey[o.key] {
		if s.Concat.Total == 0 {
			t.bad("message %d: %s got it without a header", m.ID, s.Account)
			return
		}
		if int64(s.Concat.Total) != o.kind.Parts {
			t.bad("message %d: %s got it in %d parts, want %d", m.ID, s.Account, s.Concat.Total, o.kind.Parts)
			return
		}
		if !s.Accepted() {
			continue
		}
		a := attempt{s.Account, s.Concat.Ref}
		if joined[a] == nil {
			joined[a] = map[uint8][]byte{}
		}
		joined[a][s.Concat.Number] = s.Content
	}
	if len(joined) > 1 {
		t.bad("message %d: its parts were accepted on %d channels or with %d references", m.ID, len(joined), len(joined))
		return
	}
	for _, parts := range joined {
		var got []byte
		for i := range uint8(o.kind.Parts) {
			b := parts[i+1]
			if len(b) > 0 {
				got = append(got, b[min(len(b), 1+int(b[0])):]...)
			}
		}
		if int64(len(parts)) == o.kind.Parts && string(got) != text {
			t.bad("message %d: the parts upstream do not join to the customer's text", m.ID)
		}
		if len(parts) < int(o.kind.Parts) && m.State == Delivered {
			t.bad("message %d is delivered, its supplier accepted %d of %d parts", m.ID, len(parts), o.kind.Parts)
		}
	}
}

// text is the customer's text by its segments; ok is false when some are missing.
func (o *origin) text() (text string, ok bool) {
	total := o.sent.Concat.Total
	parts := make([][]byte, total)
	for _, s := range o.parts {
		if n := s.Concat.Number; n >= 1 && n <= total {
			parts[n-1] = s.Text
		}
	}
	var b []byte
	for _, p := range parts {
		if p == nil {
			return "", false
		}
		b = append(b, p...)
	}
	return string(b), true
}

// By how much a disturbance may move who must not feel it: half, and no less than
// what a busy machine does to a few milliseconds (scenarios §A4, check 19).
const (
	isolationMove   = 1.5
	isolationMedian = 2 * time.Millisecond
	isolationP95    = 5 * time.Millisecond
	cleanLate       = 5 * time.Millisecond
	leastSamples    = 30
	leastWindows    = 4
	leastClean      = 150 // answers in them: of a hundred, the P95 is the fifth slowest of all
)

// 19. Who is not part of a disturbance does not feel it: the median of the answers,
// and the P95 over the seconds in which the generator was on time, move by less than
// half between the phases with and without it.
func isolation(x *index) result.Check {
	t := begin("isolation", "C")
	var calm, disturbed bool
	for _, p := range x.Terms.Isolation.Phases {
		calm, disturbed = calm || !p.Disturbed, disturbed || p.Disturbed
	}
	t.none = !calm || !disturbed || len(x.Terms.Isolation.Untouched) == 0
	if t.none {
		return t.end()
	}
	for _, e := range x.Terms.Isolation.Untouched {
		name := x.Terms.Enterprises[e].Name
		a, b := x.answers(e, false), x.answers(e, true)
		t.check.NLeft += int64(len(a.all))
		t.check.NRight += int64(len(b.all))
		if len(a.all) < leastSamples || len(b.all) < leastSamples {
			t.check.NLeft = 0 // nothing is proved by so few
			continue
		}
		x.moved(t, name+" median", quantile(a.all, 0.5), quantile(b.all, 0.5), isolationMedian)
		if min(a.windows, b.windows) >= leastWindows && min(len(a.clean), len(b.clean)) >= leastClean {
			x.moved(t, name+" clean P95", quantile(a.clean, 0.95), quantile(b.clean, 0.95), isolationP95)
		}
	}
	if t.check.Count > 0 {
		t.check.Detail = "" // the offenders say it
	}
	return t.end()
}

func (x *index) moved(t *tally, what string, calm, disturbed time.Duration, floor time.Duration) {
	if disturbed-calm > floor && float64(disturbed) > isolationMove*float64(calm) {
		t.bad("%s moved from %s to %s", what, calm.Round(10*time.Microsecond), disturbed.Round(10*time.Microsecond))
		return
	}
	if t.check.Detail != "" {
		t.check.Detail += ", "
	}
	t.check.Detail += fmt.Sprintf("%s %s and %s", what, calm.Round(10*time.Microsecond), disturbed.Round(10*time.Microsecond))
}

// answers are the times to SUBMIT_RESP of an enterprise, all and those of clean seconds.
type answers struct {
	all, clean []time.Duration
	windows    int
}

func (x *index) answers(enterprise int, disturbed bool) answers {
	var a answers
	type window struct {
		list []time.Duration
		late time.Duration
	}
	windows := map[int64]*window{}
	sent := x.Customers[enterprise].Sent
	for i := range sent {
		s := &sent[i]
		if s.Resp == 0 || s.Result != 0 {
			continue
		}
		for _, p := range x.Terms.Isolation.Phases {
			if p.Disturbed != disturbed || s.Due < p.From || s.Due >= p.Until {
				continue
			}
			took := time.Duration(s.Resp - s.Due)
			a.all = append(a.all, took)
			w := windows[s.Due/int64(time.Second)]
			if w == nil {
				w = &window{}
				windows[s.Due/int64(time.Second)] = w
			}
			w.list = append(w.list, took)
			w.late = max(w.late, time.Duration(s.Fire-s.Due))
		}
	}
	for _, w := range windows {
		if w.late <= cleanLate {
			a.windows++
			a.clean = append(a.clean, w.list...)
		}
	}
	slices.Sort(a.all)
	slices.Sort(a.clean)
	return a
}

// quantile is the nearest rank of a sorted list.
func quantile(sorted []time.Duration, q float64) time.Duration {
	return sorted[min(len(sorted)-1, int(q*float64(len(sorted))))]
}

// intercepted: what a rule of the gateway had to stop was stopped by that rule: the
// reason is stored, its customer got the Stat once, no supplier got it and it cost
// nothing; and nothing else was stopped. What had to be refused at the entrance was.
func intercepted(x *index) result.Check {
	t := begin("intercepted", "C", "D", "S")
	t.none = x.Terms.Expected.Intercepted == 0
	for _, o := range x.sent {
		if !o.answered() {
			continue
		}
		if o.kind.Result != 0 {
			t.check.NLeft++
			t.check.NRight++
			if o.sent.Result != o.kind.Result {
				t.bad("%s for %d was answered with %d, want %d", o.kind.Name, o.number, o.sent.Result, o.kind.Result)
			}
			continue
		}
		m := x.byKey[o.key]
		if m == nil {
			continue
		}
		if o.kind.Reason == 0 {
			if m.Reason != 0 && m.State != Failed && m.State != Delivered {
				t.bad("message %d (%s) for %d was stopped with reason %d", m.ID, o.kind.Name, m.Phone, m.Reason)
			}
			continue
		}
		t.check.NLeft++
		t.check.NRight++
		if len(x.seenKey[o.key]) > 0 {
			t.bad("message %d (%s) went to a supplier", m.ID, o.kind.Name)
		}
		for _, id := range o.msgIDs() {
			for _, m := range x.rows[id] { // several when segments found no others
				switch {
				case m.State != Rejected && m.State != Expired || m.Reason != o.kind.Reason:
					t.bad("message %d (%s) for %d is in state %d with reason %d, want reason %d", m.ID, o.kind.Name, m.Phone, m.State, m.Reason, o.kind.Reason)
				case m.Bill == BillCharged || m.Bill == BillRefunded || m.Bill == BillFrozen:
					t.bad("message %d (%s) was billed: %d", m.ID, o.kind.Name, m.Bill)
				}
			}
		}
		for _, id := range o.msgIDs() {
			if got := x.receipts[id]; o.sent.Registered == 1 && (len(got) == 0 || got[0].Stat != o.kind.Stat) {
				t.bad("message %d (%s): its customer got %d receipts, want one with %s", m.ID, o.kind.Name, len(got), o.kind.Stat)
			}
		}
	}
	return t.end()
}

// uplinks: every message from a handset that a supplier was acknowledged is stored once
// and reached the customer whose number it was sent to once, with its text, replays
// and repetitions included.
func uplinks(x *index) result.Check {
	t := begin("uplinks", "S", "D", "C")
	t.none = len(x.Terms.Uplinks) == 0
	stored := map[supplierID]int{}
	accounts := map[int32]string{}
	for login, a := range x.Terms.Accounts {
		accounts[a.ID] = login
	}
	for _, u := range x.Database.Uplinks {
		stored[supplierID{accounts[u.Account], u.SupplierMsgID}]++
	}
	got := map[string][]*sp.Uplink{}
	for i := range x.Customers {
		for k := range x.Customers[i].Uplinks {
			u := &x.Customers[i].Uplinks[k]
			got[u.Source] = append(got[u.Source], u)
		}
	}
	for i := range x.Terms.Uplinks {
		u := &x.Terms.Uplinks[i]
		t.check.NLeft++
		for _, id := range u.DeliverIDs {
			if n := stored[supplierID{u.Account, id}]; n != 1 {
				t.bad("the uplink of %s, Msg_Id %d, is stored %d times", u.Number, id, n)
			}
		}
		list := got[u.Number]
		delete(got, u.Number)
		if len(list) == 0 {
			t.bad("the uplink of %s to %s reached no customer", u.Number, u.Dest)
			continue
		}
		t.check.NRight++
		parts := map[uint8]int{}
		for _, d := range list {
			parts[d.Concat.Number]++
			if parts[d.Concat.Number] > 1 && !x.excused(d.At) {
				t.bad("the uplink of %s reached its customer %d times", u.Number, parts[d.Concat.Number])
			}
		}
		if text := uplinkText(list); text != u.Text {
			t.bad("the uplink of %s reached its customer as %q, sent was %q", u.Number, text, u.Text)
		}
	}
	for number := range got {
		t.bad("a customer got an uplink of %s that nobody sent", number)
	}
	return t.end()
}

// uplinkText joins what a customer got of one uplink, in the order of its segments.
func uplinkText(list []*sp.Uplink) string {
	list = slices.Clone(list)
	slices.SortStableFunc(list, func(a, b *sp.Uplink) int { return int(a.Concat.Number) - int(b.Concat.Number) })
	var b []byte
	last := -1
	for _, u := range list {
		if n := int(u.Concat.Number); n != last {
			b = append(b, u.Content...)
			last = n
		}
	}
	if list[0].Fmt != fmtUCS2 {
		return string(b)
	}
	units := make([]uint16, 0, len(b)/2)
	for i := 0; i+1 < len(b); i += 2 {
		units = append(units, uint16(b[i])<<8|uint16(b[i+1]))
	}
	return string(utf16.Decode(units))
}

const fmtUCS2 = 8
