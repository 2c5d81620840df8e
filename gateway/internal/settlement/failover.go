package settlement

import (
	"context"
	"maps"
	"slices"

	"github.com/jackc/pgx/v5"

	"cmppgateway/gateway/internal/message"
	"cmppgateway/gateway/internal/routing"
	"cmppgateway/gateway/internal/store"
)

// failedChains are the refused submits behind those that a failed receipt may have sent again.
func (w *work) failedChains(candidates map[int64][]submit) (chains []int64) {
	for _, list := range candidates {
		for i := range list {
			if m := w.msgs[list[i].message]; m != nil && w.resendsLeft(m) > 0 {
				chains = append(chains, list[i].retryOf)
			}
		}
	}
	return chains
}

// resendsLeft is how many more submits the message's application allows after failed receipts. Each of them was accepted
// before it failed, so the acceptances count them.
func (w *work) resendsLeft(m *msg) int {
	app := w.snap.Applications[m.app]
	if app == nil || m.parts > 1 {
		return 0
	}
	return int(app.ResendFailed) + 1 - int(m.acc)
}

// sendFailedAgain sends a message whose receipt says that it failed through a channel that was not tried yet, where its
// application wants that. The money stays as it is: charged once, and given back when the last attempt has failed too. The
// Stat is kept on the message meanwhile.
func (w *work) sendFailedAgain(ctx context.Context, m *msg, s *submit, r *receipt) bool {
	if r.stat == message.StatDelivered || m.state != message.Submitted || m.overdue || s.attempt != m.attempt || s.attempt >= message.MaxSubmits || w.resendsLeft(m) <= 0 {
		return false
	}
	channel, ok := w.other(m, message.RetryOther, w.chain(s))
	if !ok || !w.inTime(m, 0) {
		return false
	}
	m.stat = r.stat
	w.resend(ctx, m, s, channel, 0)
	return true
}

// ported is a number that another carrier serves than its prefix says.
type ported struct {
	carrier routing.Carrier
	channel int32 // that refused it
}

// learn notes a number that was refused as another carrier's, and taken by that carrier's supplier.
func (w *work) learn(m *msg, s *submit) {
	before, ok := w.tried[s.retryOf]
	app := w.snap.Applications[m.app]
	if !ok || app == nil || w.snap.Class(before.channel, uint32(before.result)) != message.RerouteCarrier {
		return
	}
	if w.serves(app.Routes[routing.Carrier(m.carrier)], s.channel) {
		return // it is among the suppliers of the carrier we took it for
	}
	for _, carrier := range slices.Sorted(maps.Keys(app.Routes)) {
		if w.serves(app.Routes[carrier], s.channel) {
			w.learned[m.phone] = ported{carrier, before.channel}
			return
		}
	}
}

// serves says that a channel is in a group.
func (w *work) serves(group, channel int32) bool {
	g := w.snap.Groups[group]
	return g != nil && slices.ContainsFunc(g.Candidates, func(c routing.Candidate) bool { return c.ChannelID == channel })
}

func (w *work) queueLearned(q *pgx.Batch) {
	if len(w.learned) == 0 {
		return
	}
	var phones []int64
	var carriers []int16
	var channels []int32
	for _, phone := range sortedKeys(w.learned) {
		p := w.learned[phone]
		phones, carriers, channels = append(phones, phone), append(carriers, int16(p.carrier)), append(channels, p.channel)
	}
	q.Queue(store.SettlementLearn, phones, carriers, channels)
}
