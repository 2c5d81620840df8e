package verify

import (
	"fmt"
	"slices"

	"cmppgateway/reports/result"
)

// Identities compares the money of independent witnesses, per enterprise and,
// when there are several, over all (with an empty enterprise).
func Identities(w *Witness) []result.Identity {
	x := newIndex(w)
	var list []result.Identity
	for _, f := range []func(*index, int) result.Identity{
		balanceEqBilling, billingEqSupplier, conservation, chargedAmount, releasedAmount, refundedAmount,
	} {
		var sum *result.Identity
		for i := range w.Terms.Enterprises {
			one := f(x, i)
			one.Enterprise = w.Terms.Enterprises[i].Name
			list = append(list, one)
			if sum == nil {
				first := one
				first.Enterprise, first.Detail, first.Offenders = "", "", nil
				sum = &first
				continue
			}
			sum.Status = sum.Status.Worse(one.Status)
			sum.Left, sum.Right = sum.Left+one.Left, sum.Right+one.Right
			sum.NLeft, sum.NRight = sum.NLeft+one.NLeft, sum.NRight+one.NRight
		}
		if sum != nil && len(w.Terms.Enterprises) > 1 {
			list = append(list, *sum)
		}
	}
	return list
}

// side is one side of an identity.
type side struct{ n, amount int64 }

func (s *side) add(amount int64) {
	s.n++
	s.amount += amount
}

// equal makes an identity of two sides. Where nothing was examined although
// something was to be expected, nothing is proved.
func equal(id string, left, right side, expected bool, witnesses ...string) result.Identity {
	y := result.Identity{ID: id, Left: left.amount, Right: right.amount, NLeft: left.n, NRight: right.n, Witnesses: witnesses}
	switch {
	case left.amount != right.amount:
		y.Status = result.StatusViolated
		y.Detail = fmt.Sprintf("%d items give %d, %d items give %d", left.n, left.amount, right.n, right.amount)
	case left.n > 0 && right.n > 0:
		y.Status = result.StatusOK
	case left.n == 0 && right.n == 0 && !expected:
		y.Status = result.StatusNotApplicable
	default:
		y.Status = result.StatusUnknown
		y.Detail = fmt.Sprintf("examined %d and %d items", left.n, right.n)
	}
	return y
}

// each calls f with the messages of enterprise i.
func (x *index) each(i int, f func(*Message)) {
	id := x.Terms.Enterprises[i].ID
	for k := range x.Database.Messages {
		if m := &x.Database.Messages[k]; m.Enterprise == id {
			f(m)
		}
	}
}

// balanceEqBilling: balance before − after = Σ effective billing (capacity-plan §8.3).
func balanceEqBilling(x *index, i int) result.Identity {
	e := x.Terms.Enterprises[i]
	var left, right side
	for _, a := range x.Database.Accounts {
		if a.ID == e.ID {
			left.add(e.Opening - a.Available)
		}
	}
	for _, entry := range x.Database.Entries {
		if entry.Account == e.ID && entry.Kind == TopUp {
			left.amount += entry.Amount
		}
	}
	left.amount -= e.TopUps
	x.each(i, func(m *Message) {
		switch m.Bill {
		case BillFrozen, BillCharged:
			right.add(m.amount())
		case BillRefunded:
			right.add(0)
		}
	})
	return equal(result.IdentityBalanceEqBilling, left, right, x.expects(x.Terms.Expected.Charged, i), "D", "D")
}

func (x *index) expects(by map[string]int64, i int) bool { return by[x.Terms.Enterprises[i].Name] > 0 }

// billingEqSupplier: Σ effective billing = Σ price × units over what the suppliers
// accepted, by the outcome table.
func billingEqSupplier(x *index, i int) result.Identity {
	var left, right side
	x.each(i, func(m *Message) {
		switch m.Bill {
		case BillCharged:
			left.add(m.amount())
		case BillRefunded:
			left.add(0)
		}
	})
	x.supplied(i, func(from *origin, o outcome) {
		if o.failed() {
			right.add(0)
		} else {
			right.add(x.amount(from))
		}
	})
	y := equal(result.IdentityBillingEqSupplier, left, right, x.expects(x.Terms.Expected.Charged, i), "D", "S")
	return x.trace(y, i, BillCharged, func(o outcome) bool { return o.accepted && !o.failed() })
}

// supplied calls f with each message of enterprise i that a supplier accepted.
func (x *index) supplied(i int, f func(from *origin, o outcome)) {
	for key, o := range x.outcomes {
		if from := x.sent[key]; from.enterprise == i && o.accepted {
			f(from, o)
		}
	}
}

// trace names the messages whose billing state and supplier outcome disagree.
func (x *index) trace(y result.Identity, i int, bill int16, want func(outcome) bool) result.Identity {
	if y.Status != result.StatusViolated {
		return y
	}
	x.each(i, func(m *Message) {
		if o := x.outcome(m); (m.Bill == bill) != want(o) && len(y.Offenders) < maxOffenders {
			y.Offenders = append(y.Offenders, fmt.Sprintf("message %d: number %d, state %d, bill %d; supplier accepted %t, stat %q", m.ID, m.Phone, m.State, m.Bill, o.accepted, o.stat))
		}
	})
	slices.Sort(y.Offenders)
	return y
}

// conservation: opening + top-ups = available + frozen + charged − refunded, at the
// end and in every sample, from the account row and its entries alone.
func conservation(x *index, i int) result.Identity {
	e := x.Terms.Enterprises[i]
	var left, right side
	sums := Sample{Enterprise: e.ID}
	for k := range x.Database.Entries {
		entry := &x.Database.Entries[k]
		if entry.Account != e.ID {
			continue
		}
		switch entry.Kind {
		case TopUp:
			left.n++
			sums.TopUps += entry.Amount
			continue
		case Freeze:
			sums.Frozen += entry.Amount
		case Charge:
			sums.Charged += entry.Amount
		case Release:
			sums.Released += entry.Amount
		case Refund:
			sums.Refunded += entry.Amount
		}
		right.n++
	}
	for _, a := range x.Database.Accounts {
		if a.ID == e.ID {
			sums.Available = a.Available
		}
	}
	left.amount = sums.TopUps
	right.amount = sums.TopUps - sums.Difference()
	y := equal(result.IdentityConservation, left, right, true, "D")
	for _, s := range x.Samples {
		if s.Enterprise == e.ID && s.Difference() != 0 {
			y.Status = result.StatusViolated
			y.Offenders = append(y.Offenders, fmt.Sprintf("%s: difference %d", s.At.UTC().Format("15:04:05.000"), s.Difference()))
			if len(y.Offenders) == maxOffenders {
				break
			}
		}
	}
	if y.Status == result.StatusViolated && y.Detail == "" {
		y.Detail = "it balances at the end and did not during the run"
	}
	return y
}

// Open is what the entries say is still frozen.
func (s *Sample) Open() int64 { return s.Frozen - s.Charged - s.Released }

// Difference is top-ups − (available + frozen + charged − refunded); 0 holds.
func (s *Sample) Difference() int64 {
	return s.TopUps - (s.Available + s.Open() + s.Charged - s.Refunded)
}

// chargedAmount: what messages were charged = price × units over what the
// suppliers accepted.
func chargedAmount(x *index, i int) result.Identity {
	var left, right side
	x.each(i, func(m *Message) {
		if m.Bill == BillCharged || m.Bill == BillRefunded {
			left.add(m.amount())
		}
	})
	x.supplied(i, func(from *origin, _ outcome) { right.add(x.amount(from)) })
	return equal(result.IdentityChargedAmount, left, right, x.expects(x.Terms.Expected.Charged, i), "D", "S")
}

// releasedAmount: released = price × units over accepted messages that every
// supplier tried has refused. A message without a row is no_lost_accept's.
func releasedAmount(x *index, i int) result.Identity {
	var left, right side
	x.each(i, func(m *Message) {
		if m.Bill == BillReleased {
			left.add(m.amount())
		}
	})
	for key, from := range x.sent {
		if from.enterprise != i || x.outcomes[key].accepted {
			continue
		}
		// What waited for other segments, or for its time, was never frozen.
		if m := x.stored(from); m != nil && m.State != Rejected && (m.State != Expired && m.State != Cancelled || m.FreezeEntry != 0) {
			right.add(x.amount(from))
		}
	}
	y := equal(result.IdentityReleasedAmount, left, right, x.expects(x.Terms.Expected.Released, i), "D", "S", "C")
	return x.trace(y, i, BillReleased, func(o outcome) bool { return !o.accepted })
}

// refundedAmount: refunded = price × units over accepted messages whose first final
// report failed.
func refundedAmount(x *index, i int) result.Identity {
	var left, right side
	x.each(i, func(m *Message) {
		if m.Bill == BillRefunded {
			left.add(m.amount())
		}
	})
	x.supplied(i, func(from *origin, o outcome) {
		if o.failed() {
			right.add(x.amount(from))
		}
	})
	y := equal(result.IdentityRefundedAmount, left, right, x.expects(x.Terms.Expected.Refunded, i), "D", "S")
	return x.trace(y, i, BillRefunded, outcome.failed)
}
