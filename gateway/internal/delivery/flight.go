package delivery

import (
	"errors"
	"log/slog"
	"slices"
	"time"

	"cmppgateway/gateway/cmpp"
	"cmppgateway/gateway/internal/failpoint"
	"cmppgateway/gateway/internal/session"
)

// row is one claimed receipt or uplink.
type row struct {
	ID                       int64
	App                      int32
	Kind                     int16
	MsgID                    int64
	AcceptNode               int16
	Attempts                 int16
	AcceptedAt, CreatedAt    time.Time
	DoneAt                   *time.Time
	Fmt, UDHI                int16
	Stat                     string
	Dest, Src, Service, Body []byte
}

const kindReceipt = 1

// flight is a row between Send and its outcome; it is the token of its call.
type flight struct {
	*row
	d     *Delivery
	claim int64
	since time.Time // of the claim: the time for the answer ends before the lease
	over  bool      // its outcome is decided; guarded by d.mu
}

// send hands the rows of a share to its connections, one after the other, as far as their slots reach. Slots spent are
// taken off the share.
func (d *Delivery) send(s *share, claim int64, since time.Time) {
	calls := make([][]session.Call, len(s.links))
	for _, r := range s.rows {
		f := &flight{row: r, d: d, claim: claim, since: since}
		switch {
		case int(r.Attempts) > d.Config.AttemptsMax: // the last try ended with a lease
			d.decide(f, func(o *outcomes) { o.dead(f, "no answer after the last try") })
			continue
		case r.Kind == kindReceipt && r.AcceptNode == d.Node.Number && d.park(f):
			d.metrics.outcomes.WithLabelValues("held").Inc()
			continue
		}
		k := s.next(calls)
		p, err := r.deliver(s.links[k].Version())
		if err != nil {
			d.unfit(f, err)
			continue
		}
		if !d.enter(f) {
			continue
		}
		calls[k] = append(calls[k], session.Call{PDU: p, Token: f, Done: landed})
		if r.Attempts > 1 {
			d.metrics.duplicates.Inc()
		}
	}
	for k, list := range calls {
		if len(list) == 0 {
			continue
		}
		s.slots[k] -= len(list)
		if err := s.links[k].Send(list); err != nil {
			d.Log.Debug("DELIVERs not sent", slog.Int("app", int(s.app)), slog.Any("error", err))
		}
	}
}

// park keeps a receipt whose SUBMIT_RESP is not written, with its claim and without a slot, until it is; false when it need
// not wait. There are no more of them than SUBMITs whose answers wait to be written.
func (d *Delivery) park(f *flight) bool {
	id := cmpp.MsgID(f.MsgID)
	if !d.Sessions.Unwritten(id) {
		return false
	}
	d.mu.Lock()
	d.parked[id] = append(d.parked[id], f)
	d.mu.Unlock()
	if !d.Sessions.Unwritten(id) { // written between the two: perhaps before there was somebody to be told
		d.written([]cmpp.MsgID{id})
	}
	return true
}

// written lets the receipts of SUBMITs go whose answers are written, or will never be: they are claimed anew.
func (d *Delivery) written(ids []cmpp.MsgID) {
	d.mu.Lock()
	defer d.mu.Unlock()
	for _, id := range ids {
		for _, f := range d.parked[id] {
			d.outcomes.release(f, 0)
		}
		delete(d.parked, id)
	}
	poke(d.done)
}

// unpark lets go of the parked receipts that which says yes to: their SUBMIT_RESP is not written yet.
func (d *Delivery) unpark(wait time.Duration, which func(*flight) bool) {
	d.mu.Lock()
	defer d.mu.Unlock()
	for id, list := range d.parked {
		if slices.ContainsFunc(list, which) {
			for _, f := range list {
				d.outcomes.release(f, wait)
			}
			delete(d.parked, id)
		}
	}
	poke(d.done)
}

func (d *Delivery) parkedCount() (n int) {
	d.mu.Lock()
	defer d.mu.Unlock()
	for _, list := range d.parked {
		n += len(list)
	}
	return n
}

const parkedWait = time.Second // after AckTimeout without a SUBMIT_RESP

// next is the connection for the next row: in turn, those with a slot left. A share never has more rows than slots.
func (s *share) next(calls [][]session.Call) int {
	for {
		s.queue.turn = (s.queue.turn + 1) % len(s.links)
		if k := s.queue.turn; len(calls[k]) < s.slots[k] {
			return k
		}
	}
}

// enter registers a flight; false when the row is in flight already, whose outcome then counts.
func (d *Delivery) enter(f *flight) bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.flights[f.ID] != nil {
		return false
	}
	d.flights[f.ID] = f
	return true
}

const clock = "0601021504" // YYMMDDHHMM

// deliver is the DELIVER of a row in the layout of v.
func (r *row) deliver(v cmpp.Version) (*cmpp.Deliver, error) {
	p := &cmpp.Deliver{
		MsgID: cmpp.MsgID(r.ID), DestID: string(r.Src), ServiceID: string(r.Service), SrcTerminalID: string(r.Dest),
		MsgFmt: uint8(r.Fmt), TPUDHI: uint8(r.UDHI), MsgContent: r.Body,
	}
	if r.Kind != kindReceipt {
		return p, nil
	}
	done := r.CreatedAt
	if r.DoneAt != nil {
		done = *r.DoneAt
	}
	report := cmpp.Report{
		MsgID: cmpp.MsgID(r.MsgID), Stat: r.Stat, DestTerminalID: p.SrcTerminalID,
		SubmitTime: r.AcceptedAt.In(cmpp.Shanghai).Format(clock), DoneTime: done.In(cmpp.Shanghai).Format(clock),
	}
	var err error
	p.RegisteredDelivery, p.MsgFmt, p.TPUDHI = 1, 0, 0
	p.MsgContent, err = report.Append(nil, v)
	return p, err
}

// landed takes the outcome of a call.
func landed(o session.Outcome) {
	f, ok := o.Token.(*flight)
	if !ok {
		return // there are no other calls
	}
	if _, unfit := errors.AsType[*cmpp.EncodeError](o.Err); unfit {
		f.d.unfit(f, o.Err)
		return
	}
	switch {
	case o.Err == nil:
		f.answered(o.Resp)
	case errors.Is(o.Err, session.ErrClosed), errors.Is(o.Err, session.ErrNotSent): // an offline customer costs no budget
		f.d.metrics.outcomes.WithLabelValues("released").Inc()
		f.d.decide(f, func(out *outcomes) { out.release(f, 0) })
	default:
		f.d.metrics.outcomes.WithLabelValues("timeout").Inc()
		f.d.decide(f, func(out *outcomes) { out.retry(f, "no answer") })
	}
}

// OnLate implements inbound.Late.
func (f *flight) OnLate(p cmpp.PDU) { f.answered(p) }

// answered takes the customer's answer, also one that comes late. It is the answer to the row that its Msg_Id names, if that
// is in flight for the same application: customers mix up their connections, and with them the Sequence_Ids. Else it is
// the answer to f, whatever its Msg_Id: some repeat the one of the report.
func (f *flight) answered(p cmpp.PDU) {
	d := f.d
	failpoint.Hit(failpoint.AfterDeliver)
	resp, ok := p.(*cmpp.DeliverResp)
	if ok && int64(resp.MsgID) != f.ID {
		if named := d.inFlightOf(f.App, resp.MsgID); named != nil {
			f = named
		}
	}
	if ok && resp.Result == 0 {
		f.acknowledged()
		return
	}
	d.metrics.outcomes.WithLabelValues("refused").Inc()
	d.decide(f, func(o *outcomes) { o.retry(f, "refused by the customer") })
}

// stray takes an answer to no DELIVER of its connection: of another connection, or once more.
func (d *Delivery) stray(app int32, resp *cmpp.DeliverResp) {
	if f := d.inFlightOf(app, resp.MsgID); f != nil {
		f.answered(resp)
	}
}

// inFlightOf is the row in flight that an application knows by id; nil = none.
func (d *Delivery) inFlightOf(app int32, id cmpp.MsgID) *flight {
	d.mu.Lock()
	defer d.mu.Unlock()
	if f := d.flights[int64(id)]; f != nil && f.App == app {
		return f
	}
	return nil
}

func (f *flight) acknowledged() {
	d := f.d
	d.mu.Lock()
	f.over = true
	if d.flights[f.ID] == f {
		delete(d.flights, f.ID)
	}
	d.outcomes.acks = append(d.outcomes.acks, f.ID)
	d.mu.Unlock()
	poke(d.done)
	d.metrics.outcomes.WithLabelValues("acknowledged").Inc()
	d.metrics.attempts.Observe(float64(f.Attempts))
	d.metrics.seconds.Observe(time.Since(f.CreatedAt).Seconds())
}

// decide records the outcome of a flight unless it has one.
func (d *Delivery) decide(f *flight, record func(*outcomes)) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if f.over {
		return
	}
	f.over = true
	if d.flights[f.ID] == f {
		delete(d.flights, f.ID)
	}
	record(&d.outcomes)
	poke(d.done)
}

// unfit ends a row that cannot be written as a DELIVER: trying again would not help.
func (d *Delivery) unfit(f *flight, err error) {
	d.Log.Error("delivery does not fit its frame", slog.Int64("delivery", f.ID), slog.Any("error", err))
	d.decide(f, func(o *outcomes) { o.dead(f, "does not fit a DELIVER") })
}

// late ends the flights without an answer in time.
func (d *Delivery) late(now time.Time) {
	var list []*flight
	d.mu.Lock()
	for _, f := range d.flights {
		if now.Sub(f.since) >= d.Config.AckTimeout {
			list = append(list, f)
		}
	}
	d.mu.Unlock()
	d.unpark(parkedWait, func(f *flight) bool { return now.Sub(f.since) >= d.Config.AckTimeout })
	for _, f := range list {
		d.metrics.outcomes.WithLabelValues("timeout").Inc()
		d.decide(f, func(o *outcomes) { o.retry(f, "no answer in time") })
	}
}
