package review

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/jackc/pgx/v5"

	"cmppgateway/gateway/internal/ledger"
	"cmppgateway/gateway/internal/message"
	"cmppgateway/gateway/internal/outbox"
	"cmppgateway/gateway/internal/policy"
	"cmppgateway/gateway/internal/routing"
	"cmppgateway/gateway/internal/store"
	"cmppgateway/gateway/internal/wake"
)

// DecideMax is how many messages one decision may name.
const DecideMax = 500

type verb int

const (
	approve verb = iota + 1
	reject
	expire
)

// Outcome is what became of the messages of one decision.
type Outcome struct {
	Approved []int64                  // they have a submit
	Refused  map[int64]message.Reason // KEYWORD when rejected; approved ones that cannot be sent any more: their reason
	Gone     []int64                  // not held (any more): decided before, expired, or never held
	channels map[int32]bool           // with new commands
}

// Approve lets held messages pass, within tx; call Committed after its COMMIT. One that cannot be sent any more (its sender
// was stopped, the number has opted out, its validity has passed, no channel is left) is refused with that reason.
func (r *Review) Approve(ctx context.Context, tx pgx.Tx, ids []int64) (Outcome, error) {
	return r.decide(ctx, tx, ids, approve)
}

// Reject refuses held messages with KEYWORD, within tx; call Committed after its COMMIT.
func (r *Review) Reject(ctx context.Context, tx pgx.Tx, ids []int64) (Outcome, error) {
	return r.decide(ctx, tx, ids, reject)
}

// Committed tells those who wait for what a decision has written.
func (r *Review) Committed(o Outcome) {
	r.decided.WithLabelValues("approved").Add(float64(len(o.Approved)))
	for _, reason := range o.Refused {
		r.decided.WithLabelValues(reason.String()).Inc()
	}
	if len(o.Refused) > 0 {
		r.Wake.Publish(wake.Deliveries)
	}
	for channel := range o.channels {
		r.Wake.Publish(outbox.Topic(channel))
	}
}

// held is a message under decision.
type held struct {
	id, msgID, price, phone, session    int64
	acceptedAt, createdAt               time.Time
	validUntil                          *time.Time
	enterprise, app, channel, units     int32
	parts, carrier                      int16
	lane                                message.Lane
	registered, node                    int16
	pieces                              []store.Segment // the SUBMITs of a long message; nil = it is one
	dest, src, service                  []byte
	signature                           string
	enterpriseActive, applicationActive bool
}

func (r *Review) decide(ctx context.Context, tx pgx.Tx, ids []int64, v verb) (Outcome, error) {
	o := Outcome{Refused: map[int64]message.Reason{}, channels: map[int32]bool{}}
	if len(ids) > DecideMax {
		return o, fmt.Errorf("review: %d messages, at most %d in one decision", len(ids), DecideMax)
	}
	ids = slices.Compact(slices.Sorted(slices.Values(ids)))
	taken, err := take(ctx, tx, ids)
	if err != nil {
		return o, fmt.Errorf("review: %w", err)
	}
	list, err := load(ctx, tx, taken)
	if err != nil {
		return o, fmt.Errorf("review: %w", err)
	}
	found := make(map[int64]bool, len(list))
	for _, h := range list {
		found[h.id] = true
	}
	for _, id := range ids {
		if !found[id] {
			o.Gone = append(o.Gone, id)
		}
	}
	if len(list) == 0 {
		return o, nil
	}
	if err := r.write(ctx, tx, list, v, &o); err != nil {
		return o, fmt.Errorf("review: %w", err)
	}
	return o, nil
}

func take(ctx context.Context, tx pgx.Tx, ids []int64) ([]int64, error) {
	rows, err := tx.Query(ctx, store.ReviewTake, ids)
	if err != nil {
		return nil, err
	}
	taken, err := pgx.CollectRows(rows, pgx.RowTo[int64])
	slices.Sort(taken)
	return taken, err
}

func load(ctx context.Context, tx pgx.Tx, ids []int64) ([]held, error) {
	lo, hi := store.Bounds(ids)
	rows, err := tx.Query(ctx, store.ReviewMessages, ids, lo, hi)
	if err != nil {
		return nil, err
	}
	list, err := pgx.CollectRows(rows, func(row pgx.CollectableRow) (h held, err error) {
		err = row.Scan(&h.id, &h.msgID, &h.price, &h.phone, &h.session, &h.acceptedAt, &h.createdAt, &h.validUntil, &h.enterprise, &h.app, &h.channel, &h.units, &h.parts,
			&h.carrier, &h.lane, &h.registered, &h.node, &h.dest, &h.src, &h.service, &h.signature, &h.enterpriseActive, &h.applicationActive)
		return h, err
	})
	if err != nil {
		return nil, err
	}
	pieces, err := store.Segments(ctx, tx, ids)
	for i := range list {
		list[i].pieces = pieces[list[i].id]
	}
	return list, err
}

// move is what becomes of messages that end or go on alike.
type move struct {
	state   message.State
	reason  message.Reason
	stat    string
	channel int32
	entry   int64
}

// writing is what one decision writes.
type writing struct {
	submits    submits
	moves      map[move][]int64
	deliveries deliveries
	uses       map[use]int64
	entries    map[int32]*ledger.Entry // releases, by enterprise
}

func (r *Review) write(ctx context.Context, tx pgx.Tx, list []held, v verb, o *Outcome) error {
	snap := r.Settings.Current()
	tally, now, err := r.tally(ctx, tx, list)
	if err != nil {
		return err
	}
	w := writing{moves: map[move][]int64{}, uses: map[use]int64{}, entries: map[int32]*ledger.Entry{}}
	for i := range list {
		h := &list[i]
		reason, channel := message.ReasonKeyword, int32(0)
		switch v {
		case expire:
			reason = message.ReasonExpired
		case approve:
			if reason = h.objection(tally, now); reason == message.NoReason {
				var c routing.Candidate
				c, reason = snap.Route(h.app, routing.Carrier(h.carrier), h.signature, uint64(h.phone), nil)
				channel = c.ChannelID
			}
		case reject:
		}
		if reason == message.NoReason {
			if err := r.pass(ctx, &w, h, channel); err != nil {
				return err
			}
			o.Approved, o.channels[channel] = append(o.Approved, h.id), true
			continue
		}
		o.Refused[h.id] = reason
		if err := r.refuse(ctx, &w, h, reason, snap.Stat(h.app, reason), now); err != nil {
			return err
		}
	}
	var q pgx.Batch
	w.queue(&q)
	return tx.SendBatch(ctx, &q).Close()
}

// objection is what has come to stand against a message while it was held.
func (h *held) objection(t *policy.Tally, now time.Time) message.Reason {
	switch {
	case !h.enterpriseActive || !h.applicationActive:
		return message.ReasonStatus
	case h.validUntil != nil && !now.Before(*h.validUntil):
		return message.ReasonExpired
	}
	return t.OptOut(&policy.Message{Enterprise: h.enterprise, App: h.app, Lane: h.lane}, &policy.Verdict{Signature: h.signature}, uint64(h.phone))
}

// tally reads the opt-outs of the numbers, and the time of the transaction.
func (r *Review) tally(ctx context.Context, tx pgx.Tx, list []held) (*policy.Tally, time.Time, error) {
	phones, enterprises := make([]int64, 0, len(list)), []int32{0}
	for _, h := range list {
		phones, enterprises = append(phones, h.phone), append(enterprises, h.enterprise)
	}
	slices.Sort(phones)
	slices.Sort(enterprises)
	var now time.Time
	if err := tx.QueryRow(ctx, store.ReviewNow).Scan(&now); err != nil {
		return nil, now, err
	}
	t := policy.NewTally(r.Settings.Current().Policy, now)
	rows, err := tx.Query(ctx, store.WorkflowOptOut, slices.Compact(phones), slices.Compact(enterprises))
	if err != nil {
		return nil, now, err
	}
	var phone int64
	var x policy.OptOut
	_, err = pgx.ForEachRow(rows, []any{&phone, &x.Enterprise, &x.Signature, &x.MarketingOnly}, func() error {
		x.Phone = uint64(phone)
		t.OptedOut(x)
		return nil
	})
	return t, now, err
}

func (r *Review) pass(ctx context.Context, w *writing, h *held, channel int32) error {
	for part := int16(1); part <= max(h.parts, 1); part++ {
		id, err := r.IDs.Next(ctx)
		if err != nil {
			return err
		}
		w.submits.add(id, h, channel, part)
	}
	m := move{state: message.Checked, channel: channel}
	w.moves[m] = append(w.moves[m], h.id)
	return nil
}

func (r *Review) refuse(ctx context.Context, w *writing, h *held, reason message.Reason, stat string, now time.Time) error {
	e := w.entries[h.enterprise]
	if e == nil {
		id, err := r.IDs.Next(ctx)
		if err != nil {
			return err
		}
		e = &ledger.Entry{ID: id, Account: h.enterprise, Kind: message.Release}
		w.entries[h.enterprise] = e
	}
	e.N++
	e.Amount += int64(h.units) * h.price
	m := move{state: message.Rejected, reason: reason, stat: stat, entry: e.ID}
	if reason == message.ReasonExpired {
		m.state = message.Expired
	}
	w.moves[m] = append(w.moves[m], h.id)
	if m.state == message.Rejected { // an expired one had passed, and keeps its place in the counters
		w.uses[use{h.enterprise, h.app, h.createdAt.In(policy.Shanghai).Format(time.DateOnly)}]++
	}
	pieces := h.pieces
	if pieces == nil {
		pieces = []store.Segment{{MsgID: h.msgID, Session: h.session, AcceptedAt: h.acceptedAt, Registered: h.registered, Node: h.node}}
	}
	for i := range pieces {
		if pieces[i].Registered != 1 {
			continue
		}
		id, err := r.IDs.Next(ctx)
		if err != nil {
			return err
		}
		w.deliveries.add(id, h, &pieces[i], stat, now)
	}
	return nil
}

// queue adds everything in the global lock order, the accounts last.
func (w *writing) queue(q *pgx.Batch) {
	w.submits.queue(q)
	order := slices.SortedFunc(maps.Keys(w.moves), func(x, y move) int { return cmp.Compare(w.moves[x][0], w.moves[y][0]) })
	for _, m := range order {
		ids, bill := w.moves[m], message.Frozen
		if m.entry != 0 {
			bill = message.Released
		}
		lo, hi := store.Bounds(ids)
		q.Queue(store.SettlementMove, ids, lo, hi, message.Checked, message.Frozen, m.state, bill, m.entry, int64(0), m.channel, int16(0), int16(0), int16(0), m.reason, m.stat, false)
	}
	w.deliveries.queue(q)
	queueUses(q, w.uses)
	ledger.Queue(q, slices.Collect(func(yield func(ledger.Entry) bool) {
		for _, e := range w.entries {
			if !yield(*e) {
				return
			}
		}
	}))
}
