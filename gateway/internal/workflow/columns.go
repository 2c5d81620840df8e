package workflow

import (
	"cmp"
	"maps"
	"slices"
	"time"

	"github.com/jackc/pgx/v5"

	"cmppgateway/gateway/internal/message"
	"cmppgateway/gateway/internal/store"
)

// messages are the columns of INSERT message, in the order of workflow_message.sql.
type messages struct {
	id, msgID, freeze, price, phone, session       []int64
	acceptedAt, validUntil                         []time.Time
	enterprise, app, channel, units, priceVersion  []int32
	state                                          []message.State
	bill                                           []message.Bill
	chargeOn                                       []message.ChargeOn
	refundOn                                       []message.RefundOn
	reason                                         []message.Reason
	carrier                                        []int16
	lane                                           []message.Lane
	registered, fmt, udhi, pkTotal, pkNumber, node []int16
	stat, signature                                []string
	template, keyword                              []int32
	dest, src, service, content                    [][]byte
	parts, segments, outFmt, recipients            []int16
	ref                                            []int32
}

func (m *messages) add(id, msgID, freeze int64, r *row, t terms, v *verdict, bill message.Bill, validUntil time.Time, stat string, recipients int16) {
	m.id, m.msgID, m.freeze = append(m.id, id), append(m.msgID, msgID), append(m.freeze, freeze)
	m.price, m.phone, m.session = append(m.price, t.price), append(m.phone, int64(v.Phone)), append(m.session, r.session)
	m.acceptedAt, m.validUntil = append(m.acceptedAt, r.acceptedAt), append(m.validUntil, validUntil)
	m.enterprise, m.app, m.channel = append(m.enterprise, r.enterprise), append(m.app, r.app), append(m.channel, v.channel)
	m.units, m.priceVersion = append(m.units, int32(v.Units)), append(m.priceVersion, t.priceVersion)
	m.state, m.bill = append(m.state, v.state), append(m.bill, bill)
	m.chargeOn, m.refundOn = append(m.chargeOn, t.chargeOn), append(m.refundOn, t.refundOn)
	m.reason, m.carrier, m.lane = append(m.reason, v.Reason), append(m.carrier, int16(v.carrier)), append(m.lane, t.lane)
	m.registered, m.fmt, m.udhi = append(m.registered, r.registered), append(m.fmt, r.fmt), append(m.udhi, r.udhi)
	m.pkTotal, m.pkNumber, m.node = append(m.pkTotal, r.pkTotal), append(m.pkNumber, r.pkNumber), append(m.node, r.node)
	m.stat, m.dest, m.src = append(m.stat, stat), append(m.dest, v.dest), append(m.src, r.src)
	m.service, m.content = append(m.service, r.service), append(m.content, r.content)
	m.signature, m.template, m.keyword = append(m.signature, v.Signature), append(m.template, v.Template), append(m.keyword, v.Keyword)
	segments := int16(0)
	if r.joined != nil {
		segments = r.joined.Total
	}
	m.parts, m.segments = append(m.parts, int16(max(len(v.parts), 1))), append(m.segments, segments)
	m.outFmt, m.recipients, m.ref = append(m.outFmt, v.outFmt), append(m.recipients, recipients), append(m.ref, v.ref)
}

func (m *messages) queue(q *pgx.Batch) {
	if len(m.id) == 0 {
		return
	}
	q.Queue(store.WorkflowMessage, m.id, m.msgID, m.freeze, m.price, m.phone, m.session, m.acceptedAt, m.validUntil, m.enterprise, m.app, m.channel, m.units, m.priceVersion,
		m.state, m.bill, m.chargeOn, m.refundOn, m.reason, m.carrier, m.lane, m.registered, m.fmt, m.udhi, m.pkTotal, m.pkNumber, m.node, m.stat, m.dest, m.src, m.service, m.content,
		m.signature, m.template, m.keyword, m.parts, m.segments, m.outFmt, m.recipients, m.ref)
}

// submits are the columns of INSERT submit_outbox.
type submits struct {
	id, message         []int64
	channel, enterprise []int32
	lane                []message.Lane
	part, parts         []int16
}

func (s *submits) add(id, msg int64, channel, enterprise int32, lane message.Lane, part, parts int16) {
	s.id, s.message, s.channel = append(s.id, id), append(s.message, msg), append(s.channel, channel)
	s.enterprise, s.lane = append(s.enterprise, enterprise), append(s.lane, lane)
	s.part, s.parts = append(s.part, part), append(s.parts, parts)
}

func (s *submits) queue(q *pgx.Batch) {
	if len(s.id) > 0 {
		q.Queue(store.WorkflowSubmit, s.id, s.message, s.channel, s.enterprise, s.lane, s.part, s.parts)
	}
}

// holds are the columns of INSERT review_hold.
type holds struct {
	message                  []int64
	enterprise, app, keyword []int32
	expiresAt                []time.Time
}

func (h *holds) add(msg int64, r *row, keyword int32, expiresAt time.Time) {
	h.message, h.enterprise, h.app = append(h.message, msg), append(h.enterprise, r.enterprise), append(h.app, r.app)
	h.keyword, h.expiresAt = append(h.keyword, keyword), append(h.expiresAt, expiresAt)
}

func (h *holds) queue(q *pgx.Batch) {
	if len(h.message) > 0 {
		q.Queue(store.WorkflowHold, h.message, h.enterprise, h.app, h.keyword, h.expiresAt)
	}
}

// uses are the columns of the daily counters.
type uses struct {
	enterprise, app []int32
	messages        []int64
}

// count adds what passed to the counters of its applications, in their order.
func (b *batch) count(passed map[int32]int64) {
	apps := slices.SortedFunc(maps.Keys(passed), func(x, y int32) int {
		return cmp.Or(cmp.Compare(b.terms[x].enterprise, b.terms[y].enterprise), cmp.Compare(x, y))
	})
	for _, app := range apps {
		b.uses.enterprise, b.uses.app = append(b.uses.enterprise, b.terms[app].enterprise), append(b.uses.app, app)
		b.uses.messages = append(b.uses.messages, passed[app])
	}
}

func (u *uses) queue(q *pgx.Batch) {
	if len(u.app) > 0 {
		q.Queue(store.WorkflowUseAdd, u.enterprise, u.app, u.messages)
	}
}

// refusals are the columns of INSERT delivery: failed receipts of refused messages.
type refusals struct {
	id, message, msgID, session []int64
	acceptedAt                  []time.Time
	app                         []int32
	node                        []int16
	stat                        []string
	dest, src, service          [][]byte
}

// add is the receipt of one SUBMIT of a message.
func (d *refusals) add(id, msg, msgID int64, r *row, p *piece, stat string, dest []byte) {
	d.id, d.message, d.msgID, d.session = append(d.id, id), append(d.message, msg), append(d.msgID, msgID), append(d.session, p.Session)
	d.acceptedAt, d.app, d.node = append(d.acceptedAt, p.At), append(d.app, r.app), append(d.node, p.Node)
	d.stat, d.dest, d.src, d.service = append(d.stat, stat), append(d.dest, dest), append(d.src, r.src), append(d.service, r.service)
}

func (d *refusals) queue(q *pgx.Batch) {
	if len(d.id) > 0 {
		q.Queue(store.WorkflowDelivery, d.id, d.message, d.msgID, d.session, d.acceptedAt, d.app, d.node, d.stat, d.dest, d.src, d.service)
	}
}
