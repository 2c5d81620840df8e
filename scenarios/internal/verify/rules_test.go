package verify_test

import (
	"slices"
	"testing"
	"time"

	"cmppgateway/reports/result"
	"cmppgateway/scenarios/internal/verify"
	"cmppgateway/simulator/ismg"
	"cmppgateway/simulator/sp"
)

// Tags of the synthetic world's further kinds.
const (
	tagLong = 1 + iota
	tagBarred
	tagTurned
)

const second = int64(time.Second)

// further adds to the world: a long message in two segments, one of them repeated; a
// message that a rule stopped and one that was refused at the entrance; two messages
// to one number; an uplink; and an enterprise that is disturbed by nobody.
func (b *world) further() {
	w := &b.w
	w.Terms.Kinds = append(w.Terms.Kinds,
		verify.Kind{Name: "long", Units: 1, Parts: 2, Long: true},
		verify.Kind{Name: "barred", Units: 1, Parts: 1, Reason: 4, Stat: "BLACK"},
		verify.Kind{Name: "turned", Units: 1, Parts: 1, Result: 8})
	w.Terms.Expected.Long, w.Terms.Expected.Intercepted = 1, 1
	w.Events, w.Replayed = 50, 2
	account := &w.Database.Accounts[0]
	freeze := b.entry(account, verify.Freeze, 3, 0)
	charge := b.entry(account, verify.Charge, 3, 0)
	record := &w.Customers[0]
	e := w.Terms.Enterprises[0]

	// The long message.
	b.number++
	long := verify.Message{
		ID: b.next(), Enterprise: e.ID, Phone: b.number, Price: price, Units: 1, Registered: 1, State: verify.Delivered, Bill: verify.BillCharged,
		Stat: "DELIVRD", FreezeEntry: freeze, SettleEntry: charge, AcceptedAt: b.at(), CreatedAt: b.at(),
	}
	for _, part := range []uint8{2, 1, 2} {
		id := uint64(b.next())
		if long.MsgID == 0 {
			long.MsgID = id
		}
		record.Sent = append(record.Sent, sp.Sent{
			Key: b.number, Tag: tagLong, Number: "n", Count: 1, Due: b.tick(), Fire: b.clock, Write: b.clock, Resp: b.tick(), State: sp.Answered, MsgID: id, Answers: 1,
			Registered: 1, Concat: sp.Concat{Ref: 1, Total: 2, Number: part}, Text: []byte{'t', part},
		})
		w.Database.Segments = append(w.Database.Segments, verify.Segment{Message: long.ID, MsgID: id, Number: int16(part), Registered: 1})
		record.Receipts = append(record.Receipts, sp.Receipt{At: b.tick(), Acked: b.clock, MsgID: id, Stat: "DELIVRD"})
	}
	w.Database.Messages = append(w.Database.Messages, long)
	for part := range uint8(2) {
		b.submit(&long, 0, "P", 0, "DELIVRD", false)
		w.Database.Submits[len(w.Database.Submits)-1].Part = int16(part + 1)
		s := &w.Suppliers.Submits[len(w.Suppliers.Submits)-1]
		s.Concat = ismg.Concat{Ref: 9, Total: 2, Number: part + 1}
		s.Content = []byte{5, 0, 3, 9, 2, part + 1, 't', part + 1}
	}

	// Stopped, and turned away.
	b.number++
	id := uint64(b.next())
	record.Sent = append(record.Sent, sp.Sent{Key: b.number, Tag: tagBarred, Number: "n", Count: 1, Write: b.tick(), Resp: b.tick(), MsgID: id, Answers: 1, Registered: 1})
	w.Database.Messages = append(w.Database.Messages, verify.Message{
		ID: b.next(), MsgID: id, Enterprise: e.ID, Phone: b.number, Price: price, Units: 1, Registered: 1, State: verify.Rejected, Reason: 4, Stat: "BLACK",
	})
	record.Receipts = append(record.Receipts, sp.Receipt{At: b.tick(), Acked: b.clock, MsgID: id, Stat: "BLACK"})
	b.number++
	record.Sent = append(record.Sent, sp.Sent{Key: b.number, Tag: tagTurned, Number: "n", Count: 1, Write: b.tick(), Resp: b.tick(), Result: 8, Answers: 1})

	// Two texts to one number.
	b.number++
	for i := range uint64(2) {
		m := verify.Message{
			ID: b.next(), MsgID: uint64(b.next()), Enterprise: e.ID, Phone: b.number, Price: price, Units: 1, Registered: 1, State: verify.Delivered,
			Bill: verify.BillCharged, Stat: "DELIVRD", FreezeEntry: freeze, SettleEntry: charge, AcceptedAt: b.at(), CreatedAt: b.at(),
		}
		w.Database.Messages = append(w.Database.Messages, m)
		record.Sent = append(record.Sent, sp.Sent{
			Key: b.number | (i+1)<<40, Number: "n", Count: 1, Write: b.tick(), Resp: b.tick(), MsgID: m.MsgID, Answers: 1, Registered: 1, Hash: 100 + i,
		})
		record.Receipts = append(record.Receipts, sp.Receipt{At: b.tick(), Acked: b.clock, MsgID: m.MsgID, Stat: "DELIVRD"})
		b.submit(&m, 0, "P", 0, "DELIVRD", false)
		w.Suppliers.Submits[len(w.Suppliers.Submits)-1].Hash = 100 + i
	}

	// An uplink.
	up := uint64(b.next())
	w.Terms.Uplinks = append(w.Terms.Uplinks, verify.Uplink{Number: "13900000000", Dest: "106901", Text: "TD", Account: "P", DeliverIDs: []uint64{up}})
	w.Database.Uplinks = append(w.Database.Uplinks, verify.StoredUplink{EventID: b.next(), SupplierMsgID: up, Account: 1, Phone: "13900000000", Dest: "106901"})
	record.Uplinks = append(record.Uplinks, sp.Uplink{At: b.tick(), Acked: b.clock, Source: "13900000000", Dest: "106901", Content: []byte("TD")})

	b.isolated()
}

// isolated gives enterprise ent-b a quiet and a disturbed phase, in both of which its
// answers take as long.
func (b *world) isolated() {
	w := &b.w
	base := 100 * second
	w.Terms.Isolation = verify.Isolation{Untouched: []int{1}, Phases: []verify.IsolationPhase{
		{From: base, Until: base + 20*second}, {From: base + 20*second, Until: base + 40*second, Disturbed: true},
	}}
	record := &w.Customers[1]
	for i := range int64(400) {
		b.number++
		due := base + i*second/10
		id := uint64(b.next())
		record.Sent = append(record.Sent, sp.Sent{
			Key: b.number, Tag: tagBarred, Number: "n", Count: 1, Due: due, Fire: due, Write: due, Resp: due + 20*int64(time.Millisecond), MsgID: id, Answers: 1,
		})
		w.Database.Messages = append(w.Database.Messages, verify.Message{
			ID: b.next(), MsgID: id, Enterprise: 2, Phone: b.number, Price: price, Units: 1, State: verify.Rejected, Reason: 4, Stat: "BLACK",
		})
	}
}

func TestRulesFireAlone(t *testing.T) {
	t.Parallel()
	sent := func(w *verify.Witness, tag uint16) *sp.Sent {
		r := w.Customers[0].Sent
		return &r[slices.IndexFunc(r, func(s sp.Sent) bool { return s.Tag == tag })]
	}
	stored := func(w *verify.Witness, tag uint16) *verify.Message {
		id := sent(w, tag).MsgID
		return &w.Database.Messages[slices.IndexFunc(w.Database.Messages, func(m verify.Message) bool { return m.MsgID == id })]
	}
	part := func(w *verify.Witness, n uint8) *ismg.Submit {
		return &w.Suppliers.Submits[slices.IndexFunc(w.Suppliers.Submits, func(s ismg.Submit) bool { return s.Concat.Number == n })]
	}
	for name, c := range map[string]struct {
		plant func(*verify.Witness)
		want  []string
	}{
		"an event is stored twice": {func(w *verify.Witness) {
			w.Database.Receipts[0].EventID = w.Database.Receipts[1].EventID
		}, []string{"keys_unique"}},
		"an uplink has the event of a receipt": {func(w *verify.Witness) {
			w.Database.Uplinks[0].EventID = w.Database.Receipts[0].EventID
		}, []string{"keys_unique"}},
		"the gateway counted no event":  {func(w *verify.Witness) { w.Events = 0 }, []string{"keys_unique"}},
		"a segment's text was changed":  {func(w *verify.Witness) { part(w, 2).Content[6] = 'x' }, []string{"long_messages"}},
		"the parts have two references": {func(w *verify.Witness) { part(w, 2).Concat.Ref++ }, []string{"long_messages"}},
		"the parts went over two channels": {func(w *verify.Witness) {
			s := part(w, 2)
			// The other supplier has it in its books.
			for i := range w.Suppliers.Reports {
				if r := &w.Suppliers.Reports[i]; r.MsgID == s.MsgID {
					r.Account = "B"
				}
			}
			for i := range w.Database.Receipts {
				if r := &w.Database.Receipts[i]; r.SupplierMsgID == s.MsgID {
					r.Account = 2
				}
			}
			s.Account = "B"
		}, []string{"long_messages"}},
		"a long message is billed as one unit too many": {func(w *verify.Witness) {
			w.Terms.Kinds[tagLong].Units++
		}, []string{"billing_eq_supplier", "charged_amount", "long_messages"}},
		"a segment has no Msg_Id in the message": {func(w *verify.Witness) {
			s := &w.Database.Segments[2]
			s.MsgID = 1 << 52
		}, []string{"long_messages", "no_lost_accept", "receipts_out"}},
		"a rule gave another reason":        {func(w *verify.Witness) { stored(w, tagBarred).Reason = 3 }, []string{"intercepted"}},
		"a rule's receipt has another Stat": {func(w *verify.Witness) { w.Terms.Kinds[tagBarred].Stat = "RISK" }, []string{"intercepted"}},
		"a rule stopped what it had not to": {func(w *verify.Witness) { w.Terms.Kinds[tagBarred].Reason = 0 }, []string{"intercepted"}},
		"what had to be turned away got in": {func(w *verify.Witness) { w.Terms.Kinds[tagTurned].Result = 9 }, []string{"intercepted"}},
		"a stopped message went upstream": {func(w *verify.Witness) {
			m := stored(w, tagBarred)
			w.Suppliers.Submits = append(w.Suppliers.Submits, ismg.Submit{Account: "P", Key: m.Phone, Result: 9})
			w.Database.Submits = append(w.Database.Submits, verify.Submit{ID: 1 << 42, Message: m.ID, Part: 1, State: verify.SubmitRejected, Result: 9})
		}, []string{"intercepted"}},
		"the texts to one number were mixed up": {func(w *verify.Witness) {
			w.Suppliers.Submits[len(w.Suppliers.Submits)-1].Hash = 7
		}, []string{"billing_eq_supplier", "charged_amount", "no_phantom", "refusals", "released_amount"}},
		"an uplink never reached its customer": {func(w *verify.Witness) { w.Customers[0].Uplinks = nil }, []string{"uplinks"}},
		"an uplink reached its customer twice": {func(w *verify.Witness) {
			w.Customers[0].Uplinks = append(w.Customers[0].Uplinks, w.Customers[0].Uplinks[0])
		}, []string{"uplinks"}},
		"an uplink was stored twice": {func(w *verify.Witness) {
			u := w.Database.Uplinks[0]
			u.EventID = 1 << 53
			w.Database.Uplinks = append(w.Database.Uplinks, u)
		}, []string{"uplinks"}},
		"an uplink came with another text": {func(w *verify.Witness) { w.Customers[0].Uplinks[0].Content[0] = 'x' }, []string{"uplinks"}},
		"a customer felt the disturbance": {func(w *verify.Witness) {
			r := w.Customers[1].Sent
			for i := range r {
				if r[i].Due >= w.Terms.Isolation.Phases[1].From {
					r[i].Resp += 15 * int64(time.Millisecond)
				}
			}
		}, []string{"isolation"}},
		"one answer in ten felt it": {func(w *verify.Witness) {
			r := w.Customers[1].Sent
			for i := range r {
				if r[i].Due >= w.Terms.Isolation.Phases[1].From && i%10 == 0 {
					r[i].Resp += 90 * int64(time.Millisecond)
				}
			}
		}, []string{"isolation"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(3)
			c.plant(w)
			if got := fired(w); !slices.Equal(got, c.want) {
				t.Errorf("fired %v, want %v", got, c.want)
				for _, x := range verify.Checks(w) {
					if !x.Status.OK() {
						t.Logf("%s: %s %v", x.ID, x.Detail, x.Offenders)
					}
				}
			}
		})
	}
}

// What a busy machine does is not the disturbance's: a few milliseconds, and answers in
// seconds in which the generator itself was late.
func TestIsolationAllowsForTheMachine(t *testing.T) {
	t.Parallel()
	w := newWorld(3)
	r := w.Customers[1].Sent
	for i := range r {
		if r[i].Due < w.Terms.Isolation.Phases[1].From {
			continue
		}
		r[i].Resp += int64(time.Millisecond)
		if r[i].Due/second == w.Terms.Isolation.Phases[1].From/second {
			r[i].Fire += 50 * int64(time.Millisecond)
			r[i].Resp += 200 * int64(time.Millisecond)
		}
	}
	if got := fired(w); len(got) > 0 {
		t.Errorf("fired %v", got)
	}
	// Too few answers prove nothing.
	w.Terms.Isolation.Phases[0].Until = w.Terms.Isolation.Phases[0].From + second
	for _, c := range verify.Checks(w) {
		if c.ID == "isolation" && c.Status != result.StatusUnknown {
			t.Errorf("isolation is %s with ten answers", c.Status)
		}
	}
}
