package verify

import (
	"cmp"
	"maps"
	"slices"
	"strconv"

	"cmppgateway/simulator/ismg"
	"cmppgateway/simulator/sp"
)

// index is the witness by its keys. A message has one key: its number, or, when
// several go to one number, what the plan made of it.
type index struct {
	*Witness

	enterprise map[int32]int // position in Terms by id
	sent       map[uint64]*origin
	numbers    map[uint64][]*origin // by number
	owners     map[uint64]*origin   // by the customer's Msg_Id
	accepted   int                  // messages with SUBMIT_RESP 0
	rows       map[uint64][]*Message
	byKey      map[uint64]*Message
	byID       map[int64]*Message
	msgIDs     map[int64][]registered // by message: each is due a receipt of its own
	entries    map[int64]*Entry
	tries      map[int64][]*Submit       // by message
	seen       map[uint64][]*ismg.Submit // by number, in order of arrival
	seenKey    map[uint64][]*ismg.Submit // by message key
	bySupplier map[supplierID]*ismg.Submit
	outcomes   map[uint64]outcome       // by message key
	receipts   map[uint64][]*sp.Receipt // by the customer's Msg_Id
}

// registered is a Msg_Id of a message and whether a receipt was asked for.
type registered struct {
	msgID uint64
	asked bool
}

type supplierID struct {
	account string
	msgID   uint64
}

// origin is a customer's message and who sent it.
type origin struct {
	enterprise int
	kind       *Kind
	key        uint64
	number     uint64
	at         uint64 // position among the recipients
	sent       *sp.Sent
	parts      []*sp.Sent // of a long message, sent included; repetitions, too
}

// accepted says that the customer was told that the gateway has the message: all
// segments of a long one.
func (o *origin) accepted() bool {
	if !o.kind.Long {
		return o.sent.Accepted()
	}
	got := map[uint8]bool{}
	for _, s := range o.parts {
		got[s.Concat.Number] = got[s.Concat.Number] || s.Accepted()
	}
	for _, ok := range got {
		if !ok {
			return false
		}
	}
	return true
}

// msgIDs are the Msg_Ids the customer was given for the message.
func (o *origin) msgIDs() []uint64 {
	var ids []uint64
	for _, s := range o.parts {
		if id := s.MsgID + o.at; s.Accepted() && !slices.Contains(ids, id) {
			ids = append(ids, id)
		}
	}
	return ids
}

// answered says that every SUBMIT of the message got an answer, written that one left.
func (o *origin) answered() bool {
	return !slices.ContainsFunc(o.parts, func(s *sp.Sent) bool { return s.Resp == 0 })
}

func (o *origin) written() bool {
	return slices.ContainsFunc(o.parts, func(s *sp.Sent) bool { return s.Write != 0 })
}

// outcome is what the suppliers' record says became of a message.
type outcome struct {
	accepted bool // any of its parts
	stat     string
}

// failed says that the outcome table refunds the message.
func (o outcome) failed() bool { return o.accepted && final(o.stat) && o.stat != statDelivered }

const statDelivered = "DELIVRD"

// final says whether a Stat ends a message; ACCEPTD is on the way.
func final(stat string) bool { return stat != "" && stat != "ACCEPTD" }

func newIndex(w *Witness) *index {
	x := &index{
		Witness: w, enterprise: map[int32]int{}, sent: map[uint64]*origin{}, numbers: map[uint64][]*origin{}, owners: map[uint64]*origin{},
		rows: map[uint64][]*Message{}, byKey: map[uint64]*Message{}, byID: map[int64]*Message{}, msgIDs: map[int64][]registered{},
		entries: map[int64]*Entry{}, tries: map[int64][]*Submit{}, seen: map[uint64][]*ismg.Submit{}, seenKey: map[uint64][]*ismg.Submit{},
		bySupplier: map[supplierID]*ismg.Submit{}, outcomes: map[uint64]outcome{}, receipts: map[uint64][]*sp.Receipt{},
	}
	for i, e := range w.Terms.Enterprises {
		x.enterprise[e.ID] = i
	}
	for i := range w.Customers {
		r := &w.Customers[i]
		for k := range r.Sent {
			x.customer(i, &r.Sent[k])
		}
		for k := range r.Receipts {
			x.receipts[r.Receipts[k].MsgID] = append(x.receipts[r.Receipts[k].MsgID], &r.Receipts[k])
		}
	}
	for _, o := range x.sent {
		if o.accepted() {
			x.accepted++
		}
		for _, id := range o.msgIDs() {
			x.owners[id] = o
		}
	}
	x.database()
	x.suppliers()
	return x
}

// customer enters a SUBMIT: one message for each recipient, or a part of one.
func (x *index) customer(enterprise int, s *sp.Sent) {
	kind := &Kind{Units: 1, Parts: 1}
	if int(s.Tag) < len(x.Terms.Kinds) {
		kind = &x.Terms.Kinds[s.Tag]
	}
	if o := x.sent[s.Key]; o != nil && kind.Long {
		o.parts = append(o.parts, s)
		return
	}
	for i := range 1 + len(s.Also) {
		o := &origin{enterprise: enterprise, kind: kind, key: s.Key, number: s.Key & (1<<numberBits - 1), at: uint64(i), sent: s, parts: []*sp.Sent{s}}
		if i > 0 {
			o.number, _ = strconv.ParseUint(s.Also[i-1], 10, 64)
			o.key = o.number
		}
		x.sent[o.key] = o
		x.numbers[o.number] = append(x.numbers[o.number], o)
	}
}

// numberBits hold a number; keys of messages to a number that the scenario gives
// have their count above.
const numberBits = 40

func (x *index) database() {
	d := &x.Database
	for i := range d.Messages {
		m := &d.Messages[i]
		x.byID[m.ID] = m
		x.row(m, m.MsgID)
	}
	segments := map[int64]bool{}
	for _, s := range d.Segments {
		if m := x.byID[s.Message]; m != nil {
			segments[m.ID] = true
			x.row(m, s.MsgID)
			x.msgIDs[m.ID] = append(x.msgIDs[m.ID], registered{s.MsgID, s.Registered == 1})
		}
	}
	for i := range d.Messages {
		m := &d.Messages[i]
		if !segments[m.ID] {
			x.msgIDs[m.ID] = []registered{{m.MsgID, m.Registered == 1}}
		}
		if o := x.origin(m); o != nil {
			x.byKey[o.key] = m
		}
	}
	for i := range d.Entries {
		x.entries[d.Entries[i].ID] = &d.Entries[i]
	}
	for i := range d.Submits {
		s := &d.Submits[i]
		x.tries[s.Message] = append(x.tries[s.Message], s)
	}
}

func (x *index) row(m *Message, msgID uint64) {
	if !slices.Contains(x.rows[msgID], m) {
		x.rows[msgID] = append(x.rows[msgID], m)
	}
}

// origin is the customer's side of a stored message: by its Msg_Id, or by its number
// where only one message went there.
func (x *index) origin(m *Message) *origin {
	if o := x.owners[m.MsgID]; o != nil {
		return o
	}
	for _, id := range x.msgIDs[m.ID] {
		if o := x.owners[id.msgID]; o != nil {
			return o
		}
	}
	if list := x.numbers[m.Phone]; len(list) == 1 {
		return list[0]
	}
	return nil
}

// outcome of a stored message.
func (x *index) outcome(m *Message) outcome {
	if o := x.origin(m); o != nil {
		return x.outcomes[o.key]
	}
	return outcome{}
}

// from is the customer's side of a SUBMIT at a supplier: by its number, and by its
// text where several messages went there; nil when nobody sent it.
func (x *index) from(s *ismg.Submit) *origin {
	list := x.numbers[s.Key]
	for _, o := range list {
		if len(list) == 1 || o.sent.Hash == s.Hash {
			return o
		}
	}
	return nil
}

func (x *index) suppliers() {
	for i := range x.Suppliers.Submits {
		s := &x.Suppliers.Submits[i]
		x.seen[s.Key] = append(x.seen[s.Key], s)
		if s.Accepted() {
			x.bySupplier[supplierID{s.Account, s.MsgID}] = s
		}
	}
	for _, list := range x.seen {
		slices.SortStableFunc(list, func(a, b *ismg.Submit) int { return cmp.Compare(a.Recv, b.Recv) })
		for _, s := range list {
			if o := x.from(s); o != nil {
				x.seenKey[o.key] = append(x.seenKey[o.key], s)
			}
		}
	}
	for key, list := range x.seenKey {
		x.outcomes[key] = x.sent[key].outcome(list)
	}
}

// outcome of a message by what the suppliers got of it: the last accepted SUBMIT of
// each part decides, the worst part decides over all.
func (o *origin) outcome(list []*ismg.Submit) outcome {
	stats := map[uint8]string{}
	for _, s := range list {
		if s.Accepted() {
			stats[s.Part()] = s.Stat
		}
	}
	out := outcome{accepted: len(stats) > 0}
	delivered := 0
	for _, part := range slices.Sorted(maps.Keys(stats)) {
		switch stat := stats[part]; {
		case stat == statDelivered:
			delivered++
		case final(stat):
			out.stat = stat
			return out
		}
	}
	if delivered > 0 && int64(delivered) >= o.kind.Parts {
		out.stat = statDelivered
	}
	return out
}

// amount is what a message is to cost.
func (x *index) amount(o *origin) int64 { return x.Terms.Price * o.kind.Units }
