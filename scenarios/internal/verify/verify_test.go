package verify_test

import (
	"reflect"
	"slices"
	"testing"

	"cmppgateway/reports/result"
	"cmppgateway/scenarios/internal/verify"
	"cmppgateway/simulator/ismg"
	"cmppgateway/simulator/sp"
)

// fired lists the identities and checks that do not hold, each once.
func fired(w *verify.Witness) []string {
	var names []string
	for _, x := range verify.Identities(w) {
		if !x.Status.OK() {
			names = append(names, x.ID)
		}
	}
	for _, c := range verify.Checks(w) {
		if !c.Status.OK() {
			names = append(names, c.ID)
		}
	}
	slices.Sort(names)
	return slices.Compact(names)
}

func TestAWorldThatIsRightPasses(t *testing.T) {
	t.Parallel()
	w := newWorld(3)
	for _, x := range verify.Identities(w) {
		if x.Status != result.StatusOK || x.NLeft == 0 || x.NRight == 0 {
			t.Errorf("identity %s of %q is %s, %d and %d items: %s", x.ID, x.Enterprise, x.Status, x.NLeft, x.NRight, x.Detail)
		}
	}
	for _, c := range verify.Checks(w) {
		if c.Status != result.StatusOK || c.NLeft == 0 || c.NRight == 0 {
			t.Errorf("check %s is %s, %d and %d items: %s %v", c.ID, c.Status, c.NLeft, c.NRight, c.Detail, c.Offenders)
		}
	}
}

// find returns the first message in a billing state.
func find(w *verify.Witness, bill int16) *verify.Message {
	i := slices.IndexFunc(w.Database.Messages, func(m verify.Message) bool { return m.Bill == bill })
	return &w.Database.Messages[i]
}

// Each planted fault makes exactly the named checks fail. Where two are named,
// both claim the same fact: a balance is compared with its entries
// (conservation) and with the messages (balance_eq_billing).
func TestEachCheckFiresAlone(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		plant func(*verify.Witness)
		want  []string
	}{
		"an accepted message is stored twice": {func(w *verify.Witness) {
			m := verify.Message{ID: 1 << 40, MsgID: w.Customers[0].Sent[0].MsgID, Enterprise: 1, Phone: w.Customers[0].Sent[0].Key, Price: price, Units: 1, State: verify.Delivered, Stat: "DELIVRD", Registered: 1}
			w.Database.Messages = append(w.Database.Messages, m)
		}, []string{"one_fate"}},
		"an accepted message is stored under another enterprise's account": {func(w *verify.Witness) {
			// Two messages change places: sums per account stay, owners do not.
			a := &w.Database.Messages[0]
			b := &w.Database.Messages[slices.IndexFunc(w.Database.Messages, func(m verify.Message) bool { return m.Enterprise == 2 })]
			a.MsgID, b.MsgID = b.MsgID, a.MsgID
			a.Phone, b.Phone = b.Phone, a.Phone
			for i := range w.Database.Submits {
				switch s := &w.Database.Submits[i]; s.Message {
				case a.ID:
					s.Message = b.ID
				case b.ID:
					s.Message = a.ID
				}
			}
		}, []string{"one_fate"}},
		"an accepted message is nowhere": {func(w *verify.Witness) {
			w.Customers[0].Sent = append(w.Customers[0].Sent, sp.Sent{Key: 1, Write: 1, Resp: 2, State: sp.Answered, MsgID: 1 << 50, Answers: 1})
		}, []string{"no_lost_accept"}},
		"a supplier got a message nobody sent": {func(w *verify.Witness) {
			w.Suppliers.Submits = append(w.Suppliers.Submits, ismg.Submit{Account: "P", Key: 99, Result: 9, Hash: hash})
			// It is stored, so that only its origin is wrong.
			w.Database.Messages = append(w.Database.Messages, verify.Message{ID: 1 << 40, MsgID: 1 << 41, Enterprise: 1, Phone: 99, State: verify.Rejected})
			w.Database.Submits = append(w.Database.Submits, verify.Submit{ID: 1 << 42, Message: 1 << 40, Part: 1, State: verify.SubmitRejected, Result: 9})
		}, []string{"no_phantom"}},
		"a supplier got another text": {func(w *verify.Witness) { w.Suppliers.Submits[0].Hash++ }, []string{"no_phantom"}},
		"a supplier got a message twice": {func(w *verify.Witness) {
			again := w.Suppliers.Submits[0]
			again.MsgID, again.Recv = 1<<51, again.Recv+1
			w.Suppliers.Submits = append(w.Suppliers.Submits, again)
		}, []string{"submit_once"}},
		"a resend of what was not refused": {func(w *verify.Witness) {
			s := &w.Database.Submits[0]
			w.Database.Submits = append(w.Database.Submits, verify.Submit{ID: 1 << 42, Message: s.Message, RetryOf: s.ID, Part: 1, State: verify.SubmitUnknown})
		}, []string{"submit_once"}},
		"a charge is entered twice": {func(w *verify.Witness) {
			i := slices.IndexFunc(w.Database.Entries, func(e verify.Entry) bool { return e.Kind == verify.Charge })
			again := w.Database.Entries[i]
			again.ID = 1 << 43
			w.Database.Entries = append(w.Database.Entries, again)
		}, []string{"billed_once"}},
		"an entry counts one message too many": {func(w *verify.Witness) {
			i := slices.IndexFunc(w.Database.Entries, func(e verify.Entry) bool { return e.Kind == verify.Charge })
			w.Database.Entries[i].N++
		}, []string{"billed_once"}},
		"two messages settle with each other's entries": {func(w *verify.Witness) {
			a, b := find(w, verify.BillCharged), find(w, verify.BillReleased)
			a.SettleEntry, b.SettleEntry = b.SettleEntry, a.SettleEntry
		}, []string{"message_balanced"}},
		"a balance is off by one":                {func(w *verify.Witness) { w.Database.Accounts[1].Available++ }, []string{"balance_eq_billing", "conservation"}},
		"the books did not balance for a second": {func(w *verify.Witness) { w.Samples[1].Available-- }, []string{"conservation"}},
		"a message is charged that no supplier accepted": {func(w *verify.Witness) {
			m := find(w, verify.BillCharged)
			for i := range w.Suppliers.Submits {
				if s := &w.Suppliers.Submits[i]; s.Key == m.Phone {
					// The suppliers deny it; their statement decides.
					s.Key, w.Customers[0].Sent[0].Write = m.Phone, 1
					s.Result, s.MsgID = 9, 0
				}
			}
			for i := range w.Database.Submits {
				if s := &w.Database.Submits[i]; s.Message == m.ID {
					s.State, s.Result = verify.SubmitRejected, 9
				}
			}
		}, []string{"billing_eq_supplier", "charged_amount", "refusals", "released_amount"}},
		"a failed receipt was not refunded": {func(w *verify.Witness) {
			m := find(w, verify.BillRefunded)
			for i := range w.Suppliers.Submits {
				if s := &w.Suppliers.Submits[i]; s.Key == m.Phone {
					s.Stat = "DELIVRD"
				}
			}
		}, []string{"billing_eq_supplier", "receipts_out", "refunded_amount"}},
		"a balance went below the credit line": {func(w *verify.Witness) {
			// 2,000 yuan leave and come back between two other entries.
			a := w.Database.Accounts[0]
			w.Database.Entries = append(w.Database.Entries,
				verify.Entry{ID: 1 << 44, Account: a.ID, Kind: verify.TopUp, Amount: 2 * opening, Balance: a.Available, HasBalance: true},
				verify.Entry{ID: 1<<44 + 1, Account: a.ID, Kind: verify.TopUp, Amount: -2 * opening, Balance: a.Available - 2*opening, HasBalance: true})
		}, []string{"never_negative"}},
		"the balances do not chain": {func(w *verify.Witness) {
			i := slices.IndexFunc(w.Database.Entries, func(e verify.Entry) bool { return e.Kind == verify.Freeze })
			w.Database.Entries[i].Balance += 7
		}, []string{"never_negative"}},
		"a supplier gave one Msg_Id twice": {func(w *verify.Witness) {
			// To two messages without a receipt, whose reports nobody looks for.
			var quiet []int
			for i := range w.Suppliers.Submits {
				if s := &w.Suppliers.Submits[i]; s.Accepted() && s.Stat == "" {
					quiet = append(quiet, i)
				}
			}
			w.Suppliers.Submits[quiet[0]].MsgID = w.Suppliers.Submits[quiet[1]].MsgID
		}, []string{"ids_unique"}},
		"a submitId is there twice": {func(w *verify.Witness) {
			a := &w.Database.Submits[0]
			a.ID = w.Database.Submits[1].ID
		}, []string{"ids_unique"}},
		"an acknowledged receipt is not stored": {func(w *verify.Witness) {
			w.Database.Receipts = w.Database.Receipts[1:]
		}, []string{"receipts_in"}},
		"a receipt is stored that was never sent": {func(w *verify.Witness) {
			w.Database.Receipts = append(w.Database.Receipts, verify.Receipt{EventID: 1 << 45, SupplierMsgID: 5, Account: 1, Stat: "DELIVRD"})
		}, []string{"receipts_in"}},
		"a receipt never reached its customer": {func(w *verify.Witness) {
			w.Customers[0].Receipts = w.Customers[0].Receipts[1:]
		}, []string{"receipts_out"}},
		"a receipt reached its customer twice": {func(w *verify.Witness) {
			w.Customers[0].Receipts = append(w.Customers[0].Receipts, w.Customers[0].Receipts[0])
		}, []string{"receipts_out"}},
		"a receipt reached its customer with another Stat": {func(w *verify.Witness) {
			w.Customers[0].Receipts[0].Stat = "EXPIRED"
		}, []string{"receipts_out"}},
		"a refused submit is stored as another result": {func(w *verify.Witness) {
			i := slices.IndexFunc(w.Database.Submits, func(s verify.Submit) bool { return s.State == verify.SubmitRejected })
			w.Database.Submits[i].Result = 9
		}, []string{"refusals"}},
		"a result 8 was resent on the same channel": {func(w *verify.Witness) {
			i := slices.IndexFunc(w.Database.Submits, func(s verify.Submit) bool { return s.RetryOf != 0 && s.State == verify.SubmitAccepted })
			w.Database.Submits[i].Channel = 1
		}, []string{"refusals"}},
		"a window was overrun": {func(w *verify.Witness) { w.Suppliers.Conns[0].InFlightPeak = 33 }, []string{"protocol"}},
		"a third connection was open": {func(w *verify.Witness) {
			w.Suppliers.Conns = append(w.Suppliers.Conns, ismg.Conn{Account: "P", ID: 9, Opened: 3})
		}, []string{"protocol"}},
		"a supplier saw a violation": {func(w *verify.Witness) {
			w.Suppliers.Violations = append(w.Suppliers.Violations, ismg.Violation{Account: "P", Kind: ismg.ViolatedCarrier})
		}, []string{"protocol"}},
		"a queue is not empty": {func(w *verify.Witness) { w.Places[0].Left = 1 }, []string{"nothing_left"}},
		"a goroutine leaks":    {func(w *verify.Witness) { w.Places[1].Left = 10 }, []string{"nothing_left"}},
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

func TestEarlyReceiptThatFoundNothing(t *testing.T) {
	t.Parallel()
	w := newWorld(1)
	i := slices.IndexFunc(w.Suppliers.Reports, func(r ismg.Report) bool { return r.Early })
	msgID := w.Suppliers.Reports[i].MsgID
	k := slices.IndexFunc(w.Suppliers.Submits, func(s ismg.Submit) bool { return s.MsgID == msgID })
	for m := range w.Database.Messages {
		if x := &w.Database.Messages[m]; x.Phone == w.Suppliers.Submits[k].Key {
			x.State, x.Stat = verify.Submitted, ""
		}
	}
	if got := fired(w); !slices.Contains(got, "early_receipt") {
		t.Errorf("fired %v, want early_receipt among them", got)
	}
}

// A check with nothing to examine proves nothing, unless nothing is expected.
func TestNothingExamined(t *testing.T) {
	t.Parallel()
	w := newWorld(1)
	w.Suppliers = ismg.Record{}
	w.Database.Submits, w.Database.Receipts = nil, nil
	status := map[string]result.Status{}
	for _, c := range verify.Checks(w) {
		status[c.ID] = c.Status
	}
	for _, id := range []string{"submit_once", "early_receipt", "refusals", "protocol"} {
		if status[id] != result.StatusUnknown {
			t.Errorf("%s is %s with nothing examined, want unknown", id, status[id])
		}
	}
	w.Terms.Expected.Early, w.Terms.Expected.RefusedSubmits = 0, 0
	for _, c := range verify.Checks(w) {
		if (c.ID == "early_receipt" || c.ID == "refusals") && c.Status != result.StatusNotApplicable {
			t.Errorf("%s is %s where nothing is expected, want not_applicable", c.ID, c.Status)
		}
	}
}

// unknown keeps its freeze: that balances, and no other open freeze does.
func TestOpenFreeze(t *testing.T) {
	t.Parallel()
	w := newWorld(1)
	m := find(w, verify.BillCharged)
	m.SettleEntry, m.Bill, m.State, m.Stat = 0, verify.BillFrozen, verify.Unknown, ""
	for _, c := range verify.Checks(w) {
		if c.ID == "message_balanced" && c.Status != result.StatusOK {
			t.Errorf("an unknown message that is still frozen: %s", c.Detail)
		}
	}
	m.State = verify.Submitted
	for _, c := range verify.Checks(w) {
		if c.ID == "message_balanced" && c.Status != result.StatusViolated {
			t.Errorf("a submitted message that is still frozen passes")
		}
	}
}

func TestExcess(t *testing.T) {
	t.Parallel()
	w := newWorld(2)
	if by := verify.Excess(w); len(by) != 0 {
		t.Errorf("%v in a world without", by)
	}
	a := w.Suppliers.Submits[0]
	w.Suppliers.Submits = append(w.Suppliers.Submits, a, a)
	if by := verify.Excess(w); len(by) != 1 || by[a.Key] != 2 {
		t.Errorf("%v, want 2 for %d", by, a.Key)
	}
}

func TestHistoryRoundTrip(t *testing.T) {
	t.Parallel()
	w := newWorld(2)
	dir := t.TempDir()
	if err := verify.Save(dir, w); err != nil {
		t.Fatal(err)
	}
	got, err := verify.Load(dir)
	if err != nil {
		t.Fatal(err)
	}
	if !reflect.DeepEqual(verify.Checks(got), verify.Checks(w)) || !reflect.DeepEqual(verify.Identities(got), verify.Identities(w)) {
		t.Error("a stored run is judged otherwise than the run itself")
	}
	if len(got.Database.Messages) != len(w.Database.Messages) || len(got.Suppliers.Submits) != len(w.Suppliers.Submits) {
		t.Error("the history lost something")
	}
	if _, err := verify.Load(t.TempDir()); err == nil {
		t.Error("a directory without a history loads")
	}
}
