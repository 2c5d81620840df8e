package workflow

import (
	"strconv"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"

	"cmppgateway/gateway/internal/store"
)

// inboxed are the columns that the waiting places share with the inbox.
type inboxed struct {
	id, msgID, session, seq                        []int64
	acceptedAt                                     []time.Time
	validUntil                                     []*time.Time
	enterprise, app, weight                        []int32
	node, registered, fmt, udhi, pkTotal, pkNumber []int16
	dest, src, service, content                    [][]byte
}

func (c *inboxed) add(r *row) {
	c.id, c.msgID, c.session, c.seq = append(c.id, r.id), append(c.msgID, r.msgID), append(c.session, r.session), append(c.seq, r.seq)
	c.acceptedAt, c.validUntil = append(c.acceptedAt, r.acceptedAt), append(c.validUntil, r.validUntil)
	c.enterprise, c.app, c.weight = append(c.enterprise, r.enterprise), append(c.app, r.app), append(c.weight, r.weight)
	c.node, c.registered, c.fmt, c.udhi = append(c.node, r.node), append(c.registered, r.registered), append(c.fmt, r.fmt), append(c.udhi, r.udhi)
	c.pkTotal, c.pkNumber = append(c.pkTotal, r.pkTotal), append(c.pkNumber, r.pkNumber)
	c.dest, c.src, c.service, c.content = append(c.dest, r.dest), append(c.src, r.src), append(c.service, r.service), append(c.content, r.content)
}

func (c *inboxed) args() []any {
	return []any{
		c.id, c.msgID, c.session, c.seq, c.acceptedAt, c.validUntil, c.enterprise, c.app, c.weight, c.node, c.registered, c.fmt, c.udhi, c.pkTotal, c.pkNumber,
		c.dest, c.src, c.service, c.content,
	}
}

// queue adds the moves between the waiting places to q, in the order of their locks.
func (v *waits) queue(q *pgx.Batch) error {
	if err := v.queueScheduled(q); err != nil {
		return err
	}
	if len(v.left) > 0 {
		q.Queue(store.SegmentLeave, unique(v.left, compareIDs))
	}
	if len(v.changed) > 0 {
		ids, due := make([]int64, len(v.changed)), make([]time.Time, len(v.changed))
		for i, r := range v.changed {
			ids[i], due[i] = r.id, r.due
		}
		q.Queue(store.SegmentDue, ids, due)
	}
	if len(v.stored) == 0 {
		return nil
	}
	var c inboxed
	var sets, keys, repeats []int64
	var since, due []time.Time
	var at []*time.Time
	for _, r := range v.stored {
		if r.repeats < 0 { // a message of this transaction
			o := v.sets[-r.repeats]
			if r.repeats = 0; o != nil && len(o.messages) > 0 {
				r.repeats = o.messages[0]
			}
		}
		c.add(r)
		sets, keys, repeats = append(sets, r.set), append(keys, r.key), append(repeats, r.repeats)
		since, due, at = append(since, r.since), append(due, r.due), append(at, r.atTime)
	}
	q.Queue(store.SegmentAdd, append(c.args(), sets, keys, repeats, since, due, at)...)
	return nil
}

func (v *waits) queueScheduled(q *pgx.Batch) error {
	if len(v.scheduled) == 0 {
		return nil
	}
	var c inboxed
	var due []time.Time
	var segments []*string
	var msgIDs []string
	for _, r := range v.scheduled {
		raw, err := r.joined.raw()
		if err != nil {
			return err
		}
		at := *r.atTime
		if r.validUntil != nil {
			at = earlier(at, *r.validUntil) // it will have expired by then: say so when it does
		}
		var list []string
		for _, p := range r.pieces() {
			list = append(list, strconv.FormatInt(p.MsgID, 10))
		}
		c.add(r)
		due, segments, msgIDs = append(due, at), append(segments, raw), append(msgIDs, "{"+strings.Join(list, ",")+"}")
	}
	q.Queue(store.ScheduledAdd, append(c.args(), due, segments, msgIDs)...)
	return nil
}

// segments are the columns of INSERT message_segment.
type segments struct {
	message, msgID, key, hash, session []int64
	at                                 []time.Time
	app                                []int32
	number, registered, node           []int16
}

func (s *segments) add(msg, key int64, app int32, p piece) {
	s.message, s.msgID, s.key, s.hash = append(s.message, msg), append(s.msgID, p.MsgID), append(s.key, key), append(s.hash, p.Hash)
	s.session, s.at, s.app = append(s.session, p.Session), append(s.at, p.At), append(s.app, app)
	s.number, s.registered, s.node = append(s.number, p.Number), append(s.registered, p.Registered), append(s.node, p.Node)
}

func (s *segments) queue(q *pgx.Batch) {
	if len(s.message) > 0 {
		q.Queue(store.SegmentMessage, s.message, s.msgID, s.key, s.hash, s.session, s.at, s.app, s.number, s.registered, s.node)
	}
}
