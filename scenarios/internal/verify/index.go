package verify

import (
	"cmp"
	"slices"

	"cmppgateway/simulator/ismg"
	"cmppgateway/simulator/sp"
)

// index is the witness by its keys.
type index struct {
	*Witness

	enterprise map[int32]int // position in Terms by id
	sent       map[uint64]origin
	accepted   int // SUBMIT_RESP 0
	rows       map[uint64][]*Message
	byPhone    map[uint64]*Message
	byID       map[int64]*Message
	entries    map[int64]*Entry
	tries      map[int64][]*Submit       // by message
	seen       map[uint64][]*ismg.Submit // by number, in order of arrival
	outcomes   map[uint64]outcome        // by number
	receipts   map[uint64][]*sp.Receipt  // by the customer's Msg_Id
	offered    []int                     // messages by enterprise
}

// origin is a customer's message and who sent it.
type origin struct {
	enterprise int
	sent       *sp.Sent
}

// outcome is what the suppliers' record says became of a number.
type outcome struct {
	accepted bool
	stat     string // of the first report on the last accepted SUBMIT
}

// failed says that the outcome table refunds the message.
func (o outcome) failed() bool { return o.accepted && final(o.stat) && o.stat != statDelivered }

const statDelivered = "DELIVRD"

// final says whether a Stat ends a message; ACCEPTD is on the way.
func final(stat string) bool { return stat != "" && stat != "ACCEPTD" }

func newIndex(w *Witness) *index {
	x := &index{
		Witness: w, enterprise: map[int32]int{}, sent: map[uint64]origin{}, rows: map[uint64][]*Message{}, byPhone: map[uint64]*Message{},
		byID: map[int64]*Message{}, entries: map[int64]*Entry{}, tries: map[int64][]*Submit{}, seen: map[uint64][]*ismg.Submit{},
		outcomes: map[uint64]outcome{}, receipts: map[uint64][]*sp.Receipt{}, offered: make([]int, len(w.Terms.Enterprises)),
	}
	for i, e := range w.Terms.Enterprises {
		x.enterprise[e.ID] = i
	}
	for i := range w.Customers {
		r := &w.Customers[i]
		for k := range r.Sent {
			s := &r.Sent[k]
			x.sent[s.Key] = origin{i, s}
			x.offered[i]++
			if s.Accepted() {
				x.accepted++
			}
		}
		for k := range r.Receipts {
			x.receipts[r.Receipts[k].MsgID] = append(x.receipts[r.Receipts[k].MsgID], &r.Receipts[k])
		}
	}
	d := &w.Database
	for i := range d.Messages {
		m := &d.Messages[i]
		x.rows[m.MsgID] = append(x.rows[m.MsgID], m)
		x.byPhone[m.Phone] = m
		x.byID[m.ID] = m
	}
	for i := range d.Entries {
		x.entries[d.Entries[i].ID] = &d.Entries[i]
	}
	for i := range d.Submits {
		s := &d.Submits[i]
		x.tries[s.Message] = append(x.tries[s.Message], s)
	}
	for i := range w.Suppliers.Submits {
		s := &w.Suppliers.Submits[i]
		x.seen[s.Key] = append(x.seen[s.Key], s)
	}
	for key, list := range x.seen {
		slices.SortStableFunc(list, func(a, b *ismg.Submit) int { return cmp.Compare(a.Recv, b.Recv) })
		o := outcome{}
		for _, s := range list {
			if s.Accepted() {
				o = outcome{accepted: true, stat: s.Stat}
			}
		}
		x.outcomes[key] = o
	}
	return x
}
