package verify

import (
	"context"
	_ "embed" // the statement
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"

	"cmppgateway/reports/result"
	"cmppgateway/simulator/ismg"
	"cmppgateway/simulator/sp"
)

// Kill and Failpoint are the ids of the faults that end the gateway by SIGKILL.
const (
	Kill      = "gateway-kill"
	Failpoint = "gateway-failpoint"
)

// Fault is a fault that was injected. Times are on the shared clock.
type Fault struct {
	ID string
	// From is before its injection and Struck after it; Until is when it was over.
	From, Struck, Until int64
	// Outstanding are the SUBMITs that the suppliers had not answered at From.
	Outstanding int64
}

// UnknownSubmit is a submit that was unknown at some time of the run.
type UnknownSubmit struct {
	Submit, Message int64
	Phone           uint64
	DispatchedAt    time.Time
}

//go:embed sql/unknowns.sql
var unknownsSQL string

// Unknowns lists the submits that are unknown, or were closed as not sent.
func Unknowns(ctx context.Context, conn *pgx.Conn) ([]UnknownSubmit, error) {
	list, err := read(ctx, conn, unknownsSQL, func(r pgx.Rows, u *UnknownSubmit) error {
		var phone int64
		err := r.Scan(&u.Submit, &u.Message, &phone, &u.DispatchedAt)
		u.Phone = uint64(phone)
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("list unknown submits: %w", err)
	}
	return list, nil
}

// lostAnswers is how long before a kill an answer may have come that died with the
// gateway: it is kept in Redis within some milliseconds, on a machine that has time
// for it.
const lostAnswers = int64(time.Second)

// stored is the message of a customer's: by its Msg_Id, or, when the customer never
// saw the answer, by its number.
func (x *index) stored(o *origin) *Message {
	if o.answered() && !o.accepted() {
		return nil
	}
	return x.byKey[o.key]
}

// 20. Every indeterminate operation ended in one fate: a SUBMIT that its customer
// got no answer to is nowhere, or is one message with a fate; a submit that was
// unknown is accepted or refused.
func resolved(x *index) result.Check {
	t := begin("resolved", "C", "D")
	t.none = true
	phones := map[uint64]int{}
	for i := range x.Database.Messages {
		phones[x.Database.Messages[i].Phone]++
	}
	stored := 0
	for _, o := range x.sent {
		if o.answered() || !o.written() {
			continue
		}
		t.check.NLeft++
		t.check.NRight++
		m := x.stored(o)
		if m == nil {
			continue
		}
		stored++
		switch n := phones[o.number]; {
		case n > len(x.numbers[o.number]):
			t.bad("number %d, never answered, has %d messages", o.number, n)
		case m.State == Checked || m.State == Unknown:
			t.bad("message %d for %d, never answered, has no fate: state %d", m.ID, m.Phone, m.State)
		}
	}
	for _, u := range x.Unknowns {
		t.check.NLeft++
		s, m := x.submit(u), x.byID[u.Message]
		switch {
		case s == nil || m == nil:
			t.bad("submit %d of message %d was unknown and is nowhere", u.Submit, u.Message)
		case s.State != SubmitAccepted && s.State != SubmitRejected:
			t.bad("submit %d of message %d was unknown and is in state %d", u.Submit, u.Message, s.State)
		case m.State == Checked || m.State == Unknown:
			t.bad("message %d was unknown and has no fate: state %d", m.ID, m.State)
		default:
			t.check.NRight++
		}
	}
	c := t.end()
	if c.Status == result.StatusOK {
		c.Detail = fmt.Sprintf("%d SUBMITs never answered, of which %d are stored; %d submits were unknown", c.NLeft-int64(len(x.Unknowns)), stored, len(x.Unknowns))
	}
	return c
}

func (x *index) submit(u UnknownSubmit) *Submit {
	for _, s := range x.tries[u.Message] {
		if s.ID == u.Submit {
			return s
		}
	}
	return nil
}

// 21. After a kill only those submits are unknown that can be: what the suppliers
// had not answered, what had not reached them yet, and what they had answered so
// shortly before that the answer died with the gateway.
func afterKill(x *index) result.Check {
	t := begin("after_kill", "S", "D")
	var kills []Fault
	for _, f := range x.Faults {
		if f.ID == Kill || f.ID == Failpoint {
			kills = append(kills, f)
		}
	}
	t.none = len(kills) == 0
	if t.none {
		return t.end()
	}
	opened := map[uint64]int64{}
	for i := range x.Suppliers.Conns {
		opened[x.Suppliers.Conns[i].ID] = x.Suppliers.Conns[i].Opened
	}
	var waiting, between, answered, before int64
	for _, f := range kills {
		before += f.Outstanding
	}
	for _, u := range x.Unknowns {
		t.check.NLeft++
		seen := x.seen[u.Phone]
		if len(seen) == 0 {
			between++
			t.check.NRight++
			continue
		}
		s := seen[0]
		open, known := opened[s.Conn]
		excused := false
		for _, f := range kills {
			switch {
			case s.Recv > f.Struck && known && open <= f.Struck, s.Recv <= f.Struck && s.Recv >= f.From:
				between++ // on its way, in the kernel
			case s.Recv < f.From && unanswered(s, f.From):
				waiting++
			case s.Recv < f.From && s.Sent > f.From-lostAnswers:
				answered++
			default:
				continue
			}
			excused = true
			break
		}
		if !excused {
			t.bad("submit %d of message %d became unknown though %s answered it %.0f ms after it came", u.Submit, u.Message, s.Account, float64(s.Sent-s.Recv)/1e6)
			continue
		}
		t.check.NRight++
	}
	if waiting > before {
		t.bad("%d submits without an answer became unknown, %d were outstanding at the kill", waiting, before)
	}
	c := t.end()
	if c.Status == result.StatusOK {
		c.Detail = fmt.Sprintf("%d unknown: %d of %d outstanding at the kill, %d between barrier and supplier, %d answered within %s before it",
			len(x.Unknowns), waiting, before, between, answered, time.Duration(lostAnswers))
	}
	return c
}

func unanswered(s *ismg.Submit, at int64) bool { return s.Sent == 0 || s.Sent > at }

// excused says that the acknowledgement of a receipt got at that time may have been
// lost at a recorded fault: then the receipt comes again.
func (x *index) excused(at int64) bool {
	for _, f := range x.Faults {
		if at > f.From-lostAnswers && at < f.Until {
			return true
		}
	}
	return false
}

// repeated says how often a receipt came again, and how often without excuse.
func (x *index) repeated(list []*sp.Receipt) (again, unexcused int) {
	for i, r := range list {
		if i == len(list)-1 {
			break
		}
		again++
		if !x.excused(r.At) {
			unexcused++
		}
	}
	return again, unexcused
}
