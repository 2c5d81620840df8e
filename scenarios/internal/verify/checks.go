package verify

import (
	"fmt"
	"slices"
	"strings"

	"cmppgateway/reports/result"
)

// maxOffenders is how many offending keys a check names.
const maxOffenders = 20

// Checks runs every check, in the order of their numbers.
func Checks(w *Witness) []result.Check {
	x := newIndex(w)
	list := []result.Check{
		oneFate(x), noLostAccept(x), noPhantom(x), submitOnce(x), billedOnce(x), messageBalanced(x), neverNegative(x), idsUnique(x), keysUnique(x),
		receiptsIn(x), receiptsOut(x), refusals(x), earlyReceipt(x), longMessages(x), protocol(x), isolation(x),
		resolved(x), afterKill(x), nothingLeft(x), intercepted(x), uplinks(x),
	}
	return list
}

// tally counts what a check examined and what it found wrong.
type tally struct {
	check result.Check
	none  bool // nothing to examine is expected
}

func begin(id string, witnesses ...string) *tally {
	return &tally{check: result.Check{ID: id, Witnesses: witnesses}}
}

func (t *tally) bad(format string, args ...any) {
	t.check.Count++
	if len(t.check.Offenders) < maxOffenders {
		t.check.Offenders = append(t.check.Offenders, fmt.Sprintf(format, args...))
	}
}

func (t *tally) end() result.Check {
	c := &t.check
	slices.Sort(c.Offenders)
	switch {
	case c.Count > 0:
		c.Status = result.StatusViolated
		if c.Detail == "" {
			c.Detail = c.Offenders[0]
		}
	case c.NLeft > 0 && c.NRight > 0:
		c.Status = result.StatusOK
	case c.NLeft == 0 && c.NRight == 0 && t.none:
		c.Status = result.StatusNotApplicable
	default:
		c.Status = result.StatusUnknown
		c.Detail = "one side has nothing to examine"
	}
	return *c
}

// accepts calls f with every message a customer was told is accepted.
func (x *index) accepts(f func(o *origin)) {
	for _, o := range x.sent {
		if o.accepted() {
			f(o)
		}
	}
}

// 1. Every accepted message has exactly one fate.
func oneFate(x *index) result.Check {
	t := begin("one_fate", "C", "D")
	t.check.NLeft, t.check.NRight = int64(x.accepted), int64(len(x.Database.Messages))
	x.accepts(func(o *origin) {
		var first *Message
		for _, id := range o.msgIDs() {
			rows := x.rows[id]
			if len(rows) > 1 {
				t.bad("Msg_Id %d has %d messages", id, len(rows))
			}
			for _, m := range rows {
				switch {
				case first != nil && m != first && !o.kind.Missing: // segments that found no others end alone
					t.bad("Msg_Id %d: its segment is in message %d, another one in %d", id, m.ID, first.ID)
				case m.Phone != o.number:
					t.bad("Msg_Id %d was submitted for %d and is stored for %d", id, o.number, m.Phone)
				case m.Enterprise != x.Terms.Enterprises[o.enterprise].ID:
					t.bad("Msg_Id %d of %s is stored for enterprise %d", id, x.Terms.Enterprises[o.enterprise].Name, m.Enterprise)
				case m.State == Delivered != (m.Stat == statDelivered):
					t.bad("message %d: state %d with stat %q", m.ID, m.State, m.Stat)
				}
				first = m
			}
		}
	})
	return t.end()
}

// 2. Every SUBMIT_RESP 0 has a message row and a fate.
func noLostAccept(x *index) result.Check {
	t := begin("no_lost_accept", "C", "D")
	t.check.NLeft = int64(x.accepted)
	x.accepts(func(o *origin) {
		fate := false
		for _, id := range o.msgIDs() {
			rows := x.rows[id]
			if len(rows) == 0 {
				t.bad("Msg_Id %d for %d was accepted and is nowhere", id, o.number)
				return
			}
			if rows[0].State == Checked {
				t.bad("message %d for %d has no fate", rows[0].ID, rows[0].Phone)
			}
			fate = true
		}
		if fate {
			t.check.NRight++
		}
	})
	return t.end()
}

// 3. Every SUBMIT upstream belongs to an accepted message. One whose customer
// never got the answer may have been accepted.
func noPhantom(x *index) result.Check {
	t := begin("no_phantom", "S", "C")
	t.check.NLeft, t.check.NRight = int64(len(x.Suppliers.Submits)), int64(x.accepted)
	for i := range x.Suppliers.Submits {
		s := &x.Suppliers.Submits[i]
		from := x.from(s)
		switch {
		case from == nil && len(x.numbers[s.Key]) > 0:
			t.bad("%s got another text for %s", s.Account, s.Number)
		case from == nil:
			t.bad("%s got a SUBMIT for %s that no customer sent", s.Account, s.Number)
		case from.answered() && !from.accepted():
			t.bad("%s got a SUBMIT for %s that was refused with %d", s.Account, s.Number, from.sent.Result)
		case !from.written():
			t.bad("%s got a SUBMIT for %s that was never sent", s.Account, s.Number)
		case !from.kind.Long && s.Hash != from.sent.Hash: // long_messages joins the parts of a long one
			t.bad("%s got another text for %s", s.Account, s.Number)
		}
	}
	return t.end()
}

type part struct {
	number uint64
	part   uint8
}

// 4. No SUBMIT twice: S saw a part no oftener than D dispatched it, and more than
// once only as a linked resend after a refusal.
func submitOnce(x *index) result.Check {
	t := begin("submit_once", "S", "D")
	t.check.NLeft, t.check.NRight = int64(len(x.Suppliers.Submits)), int64(len(x.Database.Submits))
	for p, excess := range x.excess() {
		t.bad("number %d part %d: the suppliers got %d SUBMITs too many", p.number, p.part, excess)
	}
	for id, tries := range x.tries {
		byID := map[int64]*Submit{}
		for _, s := range tries {
			byID[s.ID] = s
		}
		first, open := map[int16]int{}, map[int16]int{}
		for _, s := range tries {
			if s.State != SubmitRejected {
				if open[s.Part]++; open[s.Part] > 1 {
					t.bad("message %d part %d has %d submits that were not refused", id, s.Part, open[s.Part])
				}
			}
			if s.RetryOf == 0 {
				if first[s.Part]++; first[s.Part] > 1 {
					t.bad("message %d part %d has %d submits that are no resend", id, s.Part, first[s.Part])
				}
				continue
			}
			// Without one before it: that was withdrawn before it was dispatched.
			if before := byID[s.RetryOf]; before != nil && before.State != SubmitRejected {
				t.bad("submit %d resends %d, which was not refused", s.ID, s.RetryOf)
			}
		}
	}
	return t.end()
}

// excess is Σ max(0, S − D) by number and part.
func (x *index) excess() map[part]int {
	have := map[part]int{}
	for key, list := range x.seen {
		for _, s := range list {
			have[part{key, s.Part()}]++
		}
	}
	for id, tries := range x.tries {
		m := x.byID[id]
		if m == nil {
			continue
		}
		for _, s := range tries {
			have[part{m.Phone, uint8(s.Part)}]--
		}
	}
	for p, n := range have {
		if n <= 0 {
			delete(have, p)
		}
	}
	return have
}

// Excess is Σ max(0, S − D) by number: SUBMITs a supplier saw that the database did
// not dispatch.
func Excess(w *Witness) map[uint64]int64 {
	by := map[uint64]int64{}
	for p, n := range newIndex(w).excess() {
		by[p.number] += int64(n)
	}
	return by
}

// 5. Every entry has the n and amount of the messages pointing at it, and every
// pointer its entry.
func billedOnce(x *index) result.Check {
	t := begin("billed_once", "D")
	type sum struct{ n, amount int64 }
	pointed := map[int64]sum{}
	point := func(m *Message, id int64, name string, kinds ...int16) {
		if id == 0 {
			return
		}
		t.check.NRight++
		s := pointed[id]
		pointed[id] = sum{s.n + 1, s.amount + m.amount()}
		e := x.entries[id]
		switch {
		case e == nil:
			t.bad("message %d: its %s entry %d is not there", m.ID, name, id)
		case !slices.Contains(kinds, e.Kind):
			t.bad("message %d: its %s entry %d is of kind %d", m.ID, name, id, e.Kind)
		case e.Account != m.Enterprise:
			t.bad("message %d of enterprise %d: its %s entry %d is of account %d", m.ID, m.Enterprise, name, id, e.Account)
		}
	}
	for i := range x.Database.Messages {
		m := &x.Database.Messages[i]
		point(m, m.FreezeEntry, "freeze", Freeze)
		point(m, m.SettleEntry, "settle", Charge, Release)
		point(m, m.RefundEntry, "refund", Refund)
	}
	for i := range x.Database.Entries {
		e := &x.Database.Entries[i]
		if e.Kind == TopUp {
			continue
		}
		t.check.NLeft++
		if s := pointed[e.ID]; s.n != e.N || s.amount != e.Amount {
			t.bad("entry %d of kind %d has n %d and amount %d; %d messages of %d point at it", e.ID, e.Kind, e.N, e.Amount, s.n, s.amount)
		}
	}
	t.none = x.Terms.Expected.Messages == 0
	return t.end()
}

// 6. Per message: frozen = charged + released (an unknown one is still frozen),
// refunded ≤ charged, and the billing state says the same.
func messageBalanced(x *index) result.Check {
	t := begin("message_balanced", "D")
	kind := func(id int64) int16 {
		if e := x.entries[id]; e != nil {
			return e.Kind
		}
		return 0
	}
	for i := range x.Database.Messages {
		m := &x.Database.Messages[i]
		t.check.NLeft++
		t.check.NRight++
		frozen, settle, refunded := m.FreezeEntry != 0, kind(m.SettleEntry), m.RefundEntry != 0
		var want bool
		switch m.Bill {
		case BillNone:
			want = !frozen && m.SettleEntry == 0 && !refunded
		case BillFrozen:
			want = frozen && m.SettleEntry == 0 && !refunded && (m.State == Unknown || m.State == Checked)
		case BillCharged:
			want = frozen && settle == Charge && !refunded
		case BillReleased:
			want = frozen && settle == Release && !refunded
		case BillRefunded:
			want = frozen && settle == Charge && refunded
		}
		if !want {
			t.bad("message %d: state %d, bill %d; frozen %t, settled by kind %d, refunded %t", m.ID, m.State, m.Bill, frozen, settle, refunded)
		}
	}
	return t.end()
}

// 10. No balance was ever below the credit line, in ledger order: the account row
// is locked by every entry that moves it, so the balances after them must chain
// from zero to the sum of all, whatever their ids and times.
func neverNegative(x *index) result.Check {
	t := begin("never_negative", "D")
	t.check.NLeft = int64(len(x.Database.Accounts))
	for _, a := range x.Database.Accounts {
		links := map[int64]int{0: 1}
		sum := int64(0)
		for i := range x.Database.Entries {
			e := &x.Database.Entries[i]
			if e.Account != a.ID || e.Kind == Charge {
				continue
			}
			t.check.NRight++
			if !e.HasBalance {
				t.bad("entry %d of kind %d has no balance", e.ID, e.Kind)
				continue
			}
			if e.Balance+a.Credit < 0 {
				t.bad("account %d stood at %d after entry %d", a.ID, e.Balance, e.ID)
			}
			links[e.Balance]++
			links[e.Balance-e.delta()]--
			sum += e.delta()
		}
		links[sum]--
		broken := 0
		for _, n := range links {
			if n != 0 {
				broken++
			}
		}
		if broken > 0 {
			t.bad("account %d: the balances of its entries do not follow from one another at %d values", a.ID, broken)
		}
	}
	return t.end()
}

// 11. Ids are unique: the Msg_Ids customers were given, submitIds, and the
// suppliers' Msg_Ids per account.
func idsUnique(x *index) result.Check {
	t := begin("ids_unique", "C", "D", "S")
	given := map[uint64]uint64{}
	for _, o := range x.sent {
		for _, id := range o.msgIDs() {
			t.check.NLeft++
			if other, twice := given[id]; twice {
				t.bad("Msg_Id %d was given for %d and %d", id, min(other, o.key), max(other, o.key))
			}
			given[id] = o.key
		}
	}
	submits := map[int64]bool{}
	for _, s := range x.Database.Submits {
		t.check.NRight++
		if submits[s.ID] {
			t.bad("submitId %d is there twice", s.ID)
		}
		submits[s.ID] = true
	}
	type id struct {
		account string
		msgID   uint64
	}
	supplier := map[id]bool{}
	for i := range x.Suppliers.Submits {
		s := &x.Suppliers.Submits[i]
		if !s.Accepted() {
			continue
		}
		if supplier[id{s.Account, s.MsgID}] {
			t.bad("%s gave Msg_Id %d twice", s.Account, s.MsgID)
		}
		supplier[id{s.Account, s.MsgID}] = true
	}
	return t.end()
}

type report struct {
	account int32
	msgID   uint64
	stat    string
}

// 13. What was acknowledged to a supplier is stored, and only that.
func receiptsIn(x *index) result.Check {
	t := begin("receipts_in", "S", "D")
	t.none = x.Terms.Expected.Receipts == 0
	stored, sent := map[report]int{}, map[report]int{}
	for _, r := range x.Database.Receipts {
		t.check.NRight++
		stored[report{r.Account, r.SupplierMsgID, r.Stat}]++
	}
	for i := range x.Suppliers.Reports {
		r := &x.Suppliers.Reports[i]
		if r.First == 0 {
			continue
		}
		key := report{x.Terms.Accounts[r.Account].ID, r.MsgID, r.Stat}
		sent[key] += r.Tries
		if r.Acked == 0 {
			continue
		}
		t.check.NLeft++
		if stored[key] == 0 {
			t.bad("the report of %s on %d (%s) was acknowledged and is not stored", r.Account, r.MsgID, r.Stat)
		}
	}
	for key, n := range stored {
		if n > sent[key] {
			t.bad("account %d, Msg_Id %d, %s is stored %d times and was sent %d times", key.account, key.msgID, key.stat, n, sent[key])
		}
	}
	return t.end()
}

// final states of a message: its customer is told.
func ended(state int16) bool { return state >= Delivered && state <= Cancelled }

// 14. Every final fate that asked for it reached its customer once, with the
// supplier's Stat; again only where its acknowledgement may have been lost at a
// recorded fault.
func receiptsOut(x *index) result.Check {
	t := begin("receipts_out", "C", "D")
	t.none = x.Terms.Expected.Receipts == 0
	again := 0
	for id, list := range x.receipts {
		t.check.NLeft += int64(len(list))
		if len(x.rows[id]) == 0 {
			t.bad("a customer got a receipt for Msg_Id %d, which is nowhere", id)
		}
		n, unexcused := x.repeated(list)
		again += n
		if unexcused > 0 {
			t.bad("Msg_Id %d: its customer got %d receipts", id, len(list))
		}
	}
	for i := range x.Database.Messages {
		m := &x.Database.Messages[i]
		for _, id := range x.msgIDs[m.ID] {
			got := x.receipts[id.msgID]
			stat := x.outcome(m).stat
			switch {
			case !id.asked || !ended(m.State):
				if len(got) > 0 {
					t.bad("message %d in state %d: a receipt went out that was not due", m.ID, m.State)
				}
				continue
			case len(got) == 0:
				t.bad("message %d for %d: its receipt never reached the customer", m.ID, m.Phone)
			case m.Stat != "" && got[0].Stat != m.Stat:
				t.bad("message %d: the customer got %s, stored is %s", m.ID, got[0].Stat, m.Stat)
			case final(stat) && got[0].Stat != stat:
				t.bad("message %d: the customer got %s, the supplier sent %s", m.ID, got[0].Stat, stat)
			}
			t.check.NRight++
		}
	}
	c := t.end()
	if c.Status == result.StatusOK && again > 0 {
		c.Detail = fmt.Sprintf("%d came again: their acknowledgements may have been lost at a recorded fault", again)
	}
	return c
}

// 15. Every refused SUBMIT is stored as refused with its result, and was followed by
// a resend on another channel after a result 8 while attempts were left; a message
// that no supplier accepted is not charged.
func refusals(x *index) result.Check {
	t := begin("refusals", "S", "D")
	t.none = x.Terms.Expected.RefusedSubmits == 0
	type refusal struct {
		number uint64
		result int64
	}
	open := map[refusal]int{}
	for i := range x.Suppliers.Submits {
		if s := &x.Suppliers.Submits[i]; !s.Accepted() {
			t.check.NLeft++
			open[refusal{s.Key, int64(s.Result)}]++
		}
	}
	for id, tries := range x.tries {
		m := x.byID[id]
		if m == nil {
			continue
		}
		for _, s := range tries {
			if s.State != SubmitRejected || s.Result == 0 {
				continue // with result 0 it was unknown, and never sent by the statement
			}
			t.check.NRight++
			open[refusal{m.Phone, s.Result}]--
			if s.Result == resultFlow && x.Terms.Backup && parts(tries, s.Part) < maxSubmits && !resent(tries, s) {
				t.bad("submit %d of message %d got result 8 and was not resent on another channel", s.ID, id)
			}
		}
		if o := x.outcome(m); !o.accepted && x.origin(m) != nil && (m.Bill == BillCharged || m.Bill == BillRefunded) {
			t.bad("message %d was refused by every supplier and is charged", id)
		}
	}
	for r, n := range open {
		if n != 0 {
			t.bad("number %d, result %d: refused %d times more upstream than stored", r.number, r.result, n)
		}
	}
	return t.end()
}

const (
	resultFlow = 8
	maxSubmits = 3
)

// resent says whether a refused submit has a successor: on another channel, but a part
// of a long message stays where its other parts are.
func resent(tries []*Submit, of *Submit) bool {
	long := slices.ContainsFunc(tries, func(s *Submit) bool { return s.Part > 1 })
	return slices.ContainsFunc(tries, func(s *Submit) bool { return s.RetryOf == of.ID && (long || s.Channel != of.Channel) })
}

// parts counts the submits of one part.
func parts(tries []*Submit, part int16) int {
	n := 0
	for _, s := range tries {
		if s.Part == part {
			n++
		}
	}
	return n
}

// 16. A report that came before its SUBMIT_RESP still found its message.
func earlyReceipt(x *index) result.Check {
	t := begin("early_receipt", "S", "D")
	t.none = x.Terms.Expected.Early == 0
	for i := range x.Suppliers.Reports {
		r := &x.Suppliers.Reports[i]
		if !r.Early || r.First == 0 {
			continue
		}
		t.check.NLeft++
		s := x.bySupplier[supplierID{r.Account, r.MsgID}]
		if s == nil {
			continue
		}
		var m *Message
		if o := x.from(s); o != nil {
			m = x.byKey[o.key]
		}
		if m == nil || !ended(m.State) {
			t.bad("%s reported on %d early and the message did not end", r.Account, r.MsgID)
			continue
		}
		t.check.NRight++
	}
	return t.end()
}

// 18. The protocol and the contract were kept: windows, connections, rates,
// carriers, sequence numbers, as the suppliers saw it.
func protocol(x *index) result.Check {
	t := begin("protocol", "S")
	t.check.NLeft = int64(len(x.Suppliers.Submits))
	t.check.NRight = int64(len(x.Suppliers.Conns))
	for _, v := range x.Suppliers.Violations {
		t.bad("%s: %s: %s", v.Account, v.Kind, v.Detail)
	}
	changes := map[string][]change{}
	for _, c := range x.Suppliers.Conns {
		if limit := x.Terms.Accounts[c.Account].Window; c.InFlightPeak > limit {
			t.bad("%s: %d SUBMITs outstanding on a connection, window %d", c.Account, c.InFlightPeak, limit)
		}
		changes[c.Account] = append(changes[c.Account], change{c.Opened, 1})
		if c.Closed != 0 {
			changes[c.Account] = append(changes[c.Account], change{c.Closed, -1})
		}
	}
	for account, list := range changes {
		if n, limit := peak(list), x.Terms.Accounts[account].Connections; n > limit {
			t.bad("%s: %d connections at a time, agreed %d", account, n, limit)
		}
	}
	return t.end()
}

type change struct {
	at int64
	by int
}

func peak(list []change) int {
	slices.SortFunc(list, func(a, b change) int {
		if a.at != b.at {
			if a.at < b.at {
				return -1
			}
			return 1
		}
		return a.by - b.by
	})
	n, most := 0, 0
	for _, c := range list {
		n += c.by
		most = max(most, n)
	}
	return most
}

// 22. Nothing is under way any more, and nothing is left behind.
func nothingLeft(x *index) result.Check {
	t := begin("nothing_left", "M", "D", "R")
	t.check.NLeft, t.check.NRight = int64(len(x.Places)), int64(len(x.Places))
	var names []string
	for _, p := range x.Places {
		if !p.OK() {
			t.bad("%s: %d, expected %d %s", p.Name, p.Left, p.Expected, p.Detail)
			names = append(names, p.Name)
		}
	}
	if len(names) > 0 {
		t.check.Detail = "left over: " + strings.Join(names, ", ")
	}
	return t.end()
}
