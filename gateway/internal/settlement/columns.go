package settlement

import (
	"cmp"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"

	"cmppgateway/gateway/internal/message"
	"cmppgateway/gateway/internal/store"
)

func sortedKeys[K cmp.Ordered, V any](m map[K]V) []K { return slices.Sorted(maps.Keys(m)) }

// move is what settlement_move.sql does to a message; those that change alike are one statement.
type move struct {
	was, state        message.State
	wasBill, bill     message.Bill
	settle, refund    int64
	channel           int32
	attempt, acc, fin int16
	reason            message.Reason
	stat              string
	overdue           bool
}

func (m *msg) move() move {
	v := move{
		was: m.was.state, state: m.state, wasBill: m.was.bill, bill: m.bill, settle: m.settle, refund: m.refund,
		attempt: m.attempt - m.was.attempt, acc: m.acc - m.was.acc, fin: m.fin - m.was.fin, reason: m.reason, stat: m.stat, overdue: m.overdue,
	}
	if m.channel != m.was.channel {
		v.channel = m.channel
	}
	return v
}

func queueMoves(q *pgx.Batch, msgs map[int64]*msg) {
	groups, order := map[move][]int64{}, []move{}
	for _, id := range sortedKeys(msgs) {
		m := msgs[id]
		if !m.changed {
			continue
		}
		v := m.move()
		if groups[v] == nil {
			order = append(order, v)
		}
		groups[v] = append(groups[v], id)
	}
	for _, v := range order {
		lo, hi := store.Bounds(groups[v])
		q.Queue(store.SettlementMove, groups[v], lo, hi, v.was, v.wasBill, v.state, v.bill, v.settle, v.refund, v.channel, v.attempt, v.acc, v.fin, v.reason, v.stat, v.overdue)
	}
}

// submits are the columns of settlement_submit.sql.
type submits struct {
	id, message, retryOf, supplierMsgID        []int64
	dispatchedAt                               []time.Time
	respAt                                     []*time.Time
	channel, account, enterprise, result, conn []int32
	attempt, part, parts                       []int16
	state                                      []message.Submit
	node                                       []int16
}

func (v *submits) queue(q *pgx.Batch) {
	if len(v.id) > 0 {
		q.Queue(store.SettlementSubmit, v.id, v.message, v.retryOf, v.supplierMsgID, v.dispatchedAt, v.respAt, v.channel, v.account, v.enterprise, v.result, v.conn,
			v.attempt, v.part, v.parts, v.state, v.node)
	}
}

// resends are the columns of settlement_resend.sql.
type resends struct {
	id, message, retryOf []int64
	delay                []int32
	channel, enterprise  []int32
	attempt, part, parts []int16
	lane                 []message.Lane
}

func (r *resends) add(id, retryOf int64, m *msg, channel int32, delay time.Duration, attempt, part int16) {
	r.id, r.message, r.retryOf = append(r.id, id), append(r.message, m.id), append(r.retryOf, retryOf)
	r.delay, r.channel, r.enterprise = append(r.delay, milliseconds(delay)), append(r.channel, channel), append(r.enterprise, m.enterprise)
	r.attempt, r.part, r.parts, r.lane = append(r.attempt, attempt), append(r.part, part), append(r.parts, m.parts), append(r.lane, m.lane)
}

func (r *resends) queue(q *pgx.Batch) {
	if len(r.id) > 0 {
		q.Queue(store.SettlementResend, r.id, r.message, r.retryOf, r.delay, r.channel, r.enterprise, r.attempt, r.part, r.parts, r.lane)
	}
}

func milliseconds(d time.Duration) int32 { return int32(d.Milliseconds()) }

// deliveries are the columns of settlement_delivery.sql.
type deliveries struct {
	id, message, msgID, session []int64
	acceptedAt, doneAt          []time.Time
	app                         []int32
	node                        []int16
	stat                        []string
	dest, src, service          [][]byte
}

func (d *deliveries) add(id int64, m *msg, stat string, doneAt time.Time) {
	d.id, d.message, d.msgID, d.session = append(d.id, id), append(d.message, m.id), append(d.msgID, m.msgID), append(d.session, m.session)
	d.acceptedAt, d.doneAt, d.app, d.node = append(d.acceptedAt, m.acceptedAt), append(d.doneAt, doneAt), append(d.app, m.app), append(d.node, m.node)
	d.stat, d.dest, d.src, d.service = append(d.stat, stat), append(d.dest, m.dest), append(d.src, m.src), append(d.service, m.service)
}

func (d *deliveries) queue(q *pgx.Batch) {
	if len(d.id) > 0 {
		q.Queue(store.SettlementDelivery, d.id, d.message, d.msgID, d.session, d.acceptedAt, d.app, d.node, d.stat, d.doneAt, d.dest, d.src, d.service)
	}
}

// unknowns are the columns of settlement_unknown.sql.
type unknowns struct {
	id, message, phone []int64
	dispatchedAt       []time.Time
	account, channel   []int32
	part               []int16
	src                [][]byte
}

func (u *unknowns) queue(q *pgx.Batch) {
	if len(u.id) > 0 {
		q.Queue(store.SettlementUnknown, u.id, u.message, u.phone, u.dispatchedAt, u.account, u.channel, u.part, u.src)
	}
}

// exceptions are the columns of settlement_exception.sql.
type exceptions struct {
	id, submit, supplierMsgID []int64
	account                   []int32
	kind, detail, candidates  []string
}

func (e *exceptions) add(id, submitID, supplierMsgID int64, account int32, kind, detail string, candidates ...int64) {
	texts := make([]string, len(candidates))
	for i, c := range candidates {
		texts[i] = strconv.FormatInt(c, 10)
	}
	e.id, e.submit, e.supplierMsgID = append(e.id, id), append(e.submit, submitID), append(e.supplierMsgID, supplierMsgID)
	e.account, e.kind, e.detail = append(e.account, account), append(e.kind, kind), append(e.detail, detail)
	e.candidates = append(e.candidates, strings.Join(texts, ","))
}

func (e *exceptions) queue(q *pgx.Batch) {
	if len(e.id) > 0 {
		q.Queue(store.SettlementException, e.id, e.submit, e.supplierMsgID, e.account, e.kind, e.detail, e.candidates)
	}
}

// unbilled are the columns of settlement_unbilled.sql.
type unbilled struct {
	message, amount []int64
	kind            []string
}

func (u *unbilled) add(m *msg) {
	u.message, u.amount, u.kind = append(u.message, m.id), append(u.amount, m.amount()), append(u.kind, kindUnbilled)
}

func (u *unbilled) queue(q *pgx.Batch) {
	if len(u.message) > 0 {
		q.Queue(store.SettlementUnbilled, u.message, u.amount, u.kind)
	}
}

// queueNudge has parked reports tried at once whose submit has just got its Msg_Id.
func queueNudge(q *pgx.Batch, known []submit) bool {
	var ids []int64
	for i := range known {
		if id := known[i].supplierMsgID; id != 0 {
			ids = append(ids, id)
		}
	}
	if len(ids) > 0 {
		q.Queue(store.SettlementParkedNudge, sorted(ids))
	}
	return len(ids) > 0
}
