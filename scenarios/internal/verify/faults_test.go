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

// after is how long after everything else the kill of the synthetic world is.
const after = int64(10 * time.Second)

// kill adds a SIGKILL to the world: one SUBMIT was unanswered, became unknown, and
// was closed by the supplier's statement; one customer's SUBMIT was never answered
// and stored nowhere.
func kill(w *verify.Witness) {
	m := &w.Database.Messages[slices.IndexFunc(w.Database.Messages, func(m verify.Message) bool { return m.State == verify.Submitted })]
	i := slices.IndexFunc(w.Database.Submits, func(s verify.Submit) bool { return s.Message == m.ID })
	w.Unknowns = append(w.Unknowns, verify.UnknownSubmit{Submit: w.Database.Submits[i].ID, Message: m.ID, Phone: m.Phone})
	s := upstream(w)
	s.Recv, s.Sent, s.Conn = s.Recv+after, 0, 1
	w.Faults = append(w.Faults, verify.Fault{ID: verify.Kill, From: s.Recv + 1, Struck: s.Recv + 2, Until: s.Recv + 3, Outstanding: 1})
	w.Customers[0].Sent = append(w.Customers[0].Sent, sp.Sent{Key: 777, Number: "n", Count: 1, Write: s.Recv, State: sp.Unanswered})
}

// upstream is the supplier's record of the submit that became unknown.
func upstream(w *verify.Witness) *ismg.Submit {
	return &w.Suppliers.Submits[slices.IndexFunc(w.Suppliers.Submits, func(s ismg.Submit) bool { return s.Key == w.Unknowns[0].Phone })]
}

func TestFaultChecksFireAlone(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		plant func(*verify.Witness)
		want  []string
	}{
		"an unknown submit stays unknown": {func(w *verify.Witness) {
			for i := range w.Database.Submits {
				if s := &w.Database.Submits[i]; s.ID == w.Unknowns[0].Submit {
					s.State = verify.SubmitUnknown
				}
			}
		}, []string{"resolved"}},
		"an unknown submit is nowhere": {func(w *verify.Witness) { w.Unknowns[0].Submit = 1 << 50 }, []string{"resolved"}},
		"a SUBMIT without an answer is stored twice": {func(w *verify.Witness) {
			m := verify.Message{ID: 1 << 40, MsgID: 1 << 41, Enterprise: 1, Phone: 777, State: verify.Rejected}
			again := m
			again.ID, again.MsgID = m.ID+1, m.MsgID+1
			w.Database.Messages = append(w.Database.Messages, m, again)
		}, []string{"resolved"}},
		"a SUBMIT without an answer is stored without a fate": {func(w *verify.Witness) {
			w.Database.Messages = append(w.Database.Messages, verify.Message{ID: 1 << 40, MsgID: 1 << 41, Enterprise: 1, Phone: 777, State: verify.Checked})
		}, []string{"released_amount", "resolved"}}, // no supplier has it, and it is not released
		"a SUBMIT without an answer is stored and refused: legal": {func(w *verify.Witness) {
			w.Database.Messages = append(w.Database.Messages, verify.Message{ID: 1 << 40, MsgID: 1 << 41, Enterprise: 1, Phone: 777, State: verify.Rejected})
		}, nil},
		"a submit answered long before became unknown": {func(w *verify.Witness) {
			s := upstream(w)
			s.Recv -= after
			s.Sent = s.Recv + 1
		}, []string{"after_kill"}},
		"a submit answered just before became unknown: legal": {func(w *verify.Witness) {
			upstream(w).Sent = w.Faults[0].From - int64(time.Millisecond)
			upstream(w).Recv = w.Faults[0].From - int64(time.Second)
		}, nil},
		"a submit sent after the kill became unknown": {func(w *verify.Witness) {
			upstream(w).Recv, upstream(w).Conn = w.Faults[0].Until, 9
		}, []string{"after_kill"}},
		"a submit that never arrived became unknown and is released: legal": {func(w *verify.Witness) {
			m := find(w, verify.BillReleased)
			w.Suppliers.Submits = slices.DeleteFunc(w.Suppliers.Submits, func(s ismg.Submit) bool { return s.Key == m.Phone })
			w.Database.Submits = slices.DeleteFunc(w.Database.Submits, func(s verify.Submit) bool { return s.Message == m.ID && s.RetryOf != 0 })
			i := slices.IndexFunc(w.Database.Submits, func(s verify.Submit) bool { return s.Message == m.ID })
			w.Database.Submits[i].Result = 0
			w.Unknowns = append(w.Unknowns, verify.UnknownSubmit{Submit: w.Database.Submits[i].ID, Message: m.ID, Phone: m.Phone})
		}, nil},
		"more became unknown than were outstanding": {func(w *verify.Witness) { w.Faults[0].Outstanding = 0 }, []string{"after_kill"}},
		"a receipt came again, its acknowledgement lost at the kill: legal": {func(w *verify.Witness) {
			r := &w.Customers[0].Receipts[0]
			r.At = w.Faults[0].From - int64(time.Millisecond)
			again := *r
			again.At = w.Faults[0].Until + int64(time.Second)
			w.Customers[0].Receipts = append(w.Customers[0].Receipts, again)
		}, nil},
		"a receipt came again long before the kill": {func(w *verify.Witness) {
			w.Customers[0].Receipts = append(w.Customers[0].Receipts, w.Customers[0].Receipts[0])
		}, []string{"receipts_out"}},
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

// Where no fault was injected, there is nothing to examine and nothing wrong.
func TestNoFaultNoFaultChecks(t *testing.T) {
	t.Parallel()
	w := newWorld(1)
	w.Faults, w.Unknowns = nil, nil
	w.Customers[0].Sent = slices.DeleteFunc(w.Customers[0].Sent, func(s sp.Sent) bool { return s.Key == 777 })
	for _, c := range verify.Checks(w) {
		if (c.ID == "resolved" || c.ID == "after_kill") && c.Status != result.StatusNotApplicable {
			t.Errorf("%s is %s", c.ID, c.Status)
		}
	}
}
