package verify_test

import (
	"time"

	"cmppgateway/scenarios/internal/verify"
	"cmppgateway/simulator/ismg"
	"cmppgateway/simulator/sp"
)

const (
	price   = 325
	hash    = 42
	opening = 1_000_000
)

// fate is what happened to a message of the synthetic world.
type fate int

const (
	delivered fate = iota
	silent         // accepted, no receipt
	undelivered
	early
	resent  // result 8, then delivered on the backup
	refused // by every supplier
	fates
)

// world builds a witness in which everything is right: per enterprise some
// messages of every fate, frozen and settled in batches.
type world struct {
	w      verify.Witness
	id     int64
	clock  int64
	base   time.Time
	number uint64
}

func newWorld(perFate int) *verify.Witness {
	b := &world{base: time.Date(2026, 11, 30, 12, 0, 0, 0, time.UTC), number: 13800000000}
	b.w.Terms = verify.Terms{
		Price: price, Kinds: []verify.Kind{{Name: "plain", Units: 1, Parts: 1}}, Backup: true,
		Enterprises: []verify.Enterprise{{Name: "ent-a", ID: 1, Opening: opening, TopUps: opening}, {Name: "ent-b", ID: 2, Opening: opening, TopUps: opening}},
		Accounts:    map[string]verify.SupplierAccount{"P": {ID: 1, Connections: 2, Window: 32}, "B": {ID: 2, Connections: 2, Window: 32}},
		Expected: verify.Expected{
			Messages: int64(2 * perFate * int(fates)), RefusedSubmits: 1, Receipts: 1, Early: 1,
			Charged: map[string]int64{"ent-a": 1, "ent-b": 1}, Refunded: map[string]int64{"ent-a": 1, "ent-b": 1}, Released: map[string]int64{"ent-a": 1, "ent-b": 1},
		},
	}
	b.w.Suppliers.Conns = []ismg.Conn{{Account: "P", ID: 1, Opened: 1, InFlightPeak: 5}, {Account: "P", ID: 2, Opened: 2, InFlightPeak: 5}, {Account: "B", ID: 3, Opened: 1, InFlightPeak: 1}}
	for _, e := range b.w.Terms.Enterprises {
		b.enterprise(e, perFate)
	}
	b.w.Places = []verify.Place{{Name: "inbox", Witness: "D"}, {Name: "goroutines", Left: 5, Expected: 9, AtMost: true, Witness: "M"}}
	b.w.Samples = []verify.Sample{{Enterprise: 1, Available: opening, TopUps: opening}, {Enterprise: 2, Available: opening, TopUps: opening}}
	kill(&b.w)
	b.further()
	return &b.w
}

func (b *world) next() int64 {
	b.id++
	return b.id
}

func (b *world) tick() int64 {
	b.clock += 1000
	return b.clock
}

func (b *world) at() time.Time { return b.base.Add(time.Duration(b.tick())) }

// entry books n messages and moves the account.
func (b *world) entry(account *verify.Account, kind int16, n int64, topUp int64) int64 {
	e := verify.Entry{ID: b.next(), Account: account.ID, Kind: kind, N: n, Amount: n * price, At: b.at()}
	switch kind {
	case verify.TopUp:
		e.Amount = topUp
		account.Available += topUp
	case verify.Freeze:
		account.Available -= e.Amount
	case verify.Release, verify.Refund:
		account.Available += e.Amount
	}
	if kind != verify.Charge {
		e.Balance, e.HasBalance = account.Available, true
	}
	b.w.Database.Entries = append(b.w.Database.Entries, e)
	return e.ID
}

func (b *world) enterprise(e verify.Enterprise, perFate int) {
	account := verify.Account{ID: e.ID}
	b.entry(&account, verify.TopUp, 1, opening)
	record := sp.Record{Account: e.Name}
	n := int64(perFate * int(fates))
	freeze := b.entry(&account, verify.Freeze, n, 0)
	charge := b.entry(&account, verify.Charge, n-int64(perFate), 0)
	release := b.entry(&account, verify.Release, int64(perFate), 0)
	refund := b.entry(&account, verify.Refund, int64(perFate), 0)
	for f := range fates {
		for range perFate {
			b.message(&record, e, f, freeze, charge, release, refund)
		}
	}
	b.w.Customers = append(b.w.Customers, record)
	b.w.Database.Accounts = append(b.w.Database.Accounts, account)
}

func (b *world) message(record *sp.Record, e verify.Enterprise, f fate, freeze, charge, release, refund int64) {
	b.number++
	msgID := uint64(b.next())
	record.Sent = append(record.Sent, sp.Sent{
		Key: b.number, Number: "n", Count: 1, Hash: hash, Registered: 1, Due: b.tick(), Fire: b.clock, Write: b.clock, Resp: b.tick(), State: sp.Answered, MsgID: msgID, Answers: 1,
	})
	m := verify.Message{
		ID: b.next(), MsgID: msgID, Enterprise: e.ID, Phone: b.number, Price: price, Units: 1, Registered: 1,
		FreezeEntry: freeze, SettleEntry: charge, State: verify.Delivered, Bill: verify.BillCharged, Stat: "DELIVRD",
		AcceptedAt: b.at(), CreatedAt: b.at(),
	}
	switch f { //nolint:exhaustive // the others are as they are
	case silent:
		m.State, m.Stat = verify.Submitted, ""
	case undelivered:
		m.State, m.Stat, m.Bill, m.RefundEntry = verify.Failed, "UNDELIV", verify.BillRefunded, refund
	case refused:
		m.State, m.Stat, m.Bill, m.SettleEntry = verify.Failed, "MA:0003", verify.BillReleased, release
	}
	b.w.Database.Messages = append(b.w.Database.Messages, m)
	retryOf := int64(0)
	if f == resent || f == refused {
		retryOf = b.submit(&m, 0, "P", 8, "", false)
	}
	switch f { //nolint:exhaustive // the others end with their first submit
	case refused:
		retryOf = b.submit(&m, retryOf, "B", 8, "", false)
		b.submit(&m, retryOf, "B", 8, "", false)
	case resent:
		b.submit(&m, retryOf, "B", 0, m.Stat, false)
	default:
		b.submit(&m, 0, "P", 0, m.Stat, f == early)
	}
	if f != silent {
		record.Receipts = append(record.Receipts, sp.Receipt{At: b.tick(), Acked: b.clock, MsgID: msgID, Stat: m.Stat})
	}
}

func (b *world) submit(m *verify.Message, retryOf int64, account string, result uint32, stat string, isEarly bool) int64 {
	row := verify.Submit{
		ID: b.next(), Message: m.ID, RetryOf: retryOf, Channel: b.w.Terms.Accounts[account].ID, Account: b.w.Terms.Accounts[account].ID,
		Attempt: 1, Part: 1, State: verify.SubmitAccepted, Result: int64(result), DispatchedAt: b.at(),
	}
	s := ismg.Submit{
		Account: account, Key: m.Phone, Number: "n", Recv: b.tick(), Sent: b.tick(), Hash: hash, Result: result, Stat: stat,
	}
	if result != 0 {
		row.State, s.Refusal = verify.SubmitRejected, ismg.RefusedByDeck
	} else {
		s.MsgID = uint64(b.next())
		row.SupplierMsgID = s.MsgID
	}
	b.w.Database.Submits = append(b.w.Database.Submits, row)
	b.w.Suppliers.Submits = append(b.w.Suppliers.Submits, s)
	if stat != "" {
		b.w.Suppliers.Reports = append(b.w.Suppliers.Reports, ismg.Report{
			Account: account, MsgID: s.MsgID, Stat: stat, Early: isEarly, First: b.tick(), Acked: b.tick(), Tries: 1, Acks: 1,
		})
		b.w.Database.Receipts = append(b.w.Database.Receipts, verify.Receipt{
			EventID: b.next(), SupplierMsgID: s.MsgID, Account: row.Account, Phone: m.Phone, Stat: stat,
		})
	}
	return row.ID
}
