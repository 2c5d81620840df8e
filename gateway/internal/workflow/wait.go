package workflow

import (
	"cmp"
	"context"
	"slices"

	"github.com/jackc/pgx/v5"

	"cmppgateway/gateway/internal/message"
	"cmppgateway/gateway/internal/segment"
	"cmppgateway/gateway/internal/store"
)

// waits are the rows that leave the inbox for another waiting place, and those that come from there.
type waits struct {
	scheduled []*row
	stored    []*row  // into segment_wait
	changed   []*row  // in segment_wait, with another end
	left      []int64 // segment_wait
	repeated  []repetition
	sets      map[int64]*row // joined rows of this transaction by their set
}

// repetition is a segment of a message that exists already: it gets that message's receipts.
type repetition struct {
	row     *row
	number  uint8
	key     int64
	targets []target // one per recipient, in order; those that are gone have id 0
}

// target is a message that a repeated segment belongs to.
type target struct {
	id    int64
	final bool
	stat  string
	dest  []byte
}

// dueSet is a set whose time has come without a segment that came.
type dueSet struct {
	enterprise, app int32
	key             int64
}

// keyed are the segments of one key in a batch.
type keyed struct {
	key  segment.Key
	hash int64
	came []*segment.Segment
	wait []*segment.Segment
}

// divide takes the rows out of a batch that are no message yet: those before their time, and segments. Complete sets are
// rows of the batch in their place. In a batch that refuses its row, a segment is refused by itself.
func (w *Workflow) divide(ctx context.Context, tx pgx.Tx, m mode, b *batch) error {
	b.waits.sets = map[int64]*row{}
	now := make([]row, 0, len(b.claimed))
	var keys []*keyed
	by, rows := map[segment.Key]*keyed{}, map[int64]*row{}
	for i := range b.claimed {
		r := &b.claimed[i]
		key, number, _, ok := segment.KeyOf(r.app, string(r.dest), string(r.src), uint8(r.udhi), r.content)
		switch {
		case m.refuse != nil, r.ends != 0, r.joined != nil:
			now = append(now, *r)
		case ok:
			k := by[key]
			if k == nil {
				k = &keyed{key: key, hash: key.Hash()}
				by[key] = k
				keys = append(keys, k)
			}
			k.came = append(k.came, &segment.Segment{ID: r.id, Session: r.session, Seq: r.seq, Number: number, Hash: pieceOf(r, number).Hash})
			rows[r.id] = r
		case r.atTime != nil && r.atTime.After(b.now):
			b.waits.scheduled = append(b.waits.scheduled, r)
		default:
			now = append(now, *r)
		}
	}
	b.rows = now
	if len(keys) == 0 && m.due == nil {
		return nil
	}
	waiting, err := w.readWaiting(ctx, tx, keys, m.due)
	if err != nil {
		return err
	}
	for _, r := range waiting {
		key, number, _, ok := segment.KeyOf(r.app, string(r.dest), string(r.src), uint8(r.udhi), r.content)
		if !ok || m.refuse != nil && m.due != nil {
			b.waits.left = append(b.waits.left, r.id)
			b.rows = append(b.rows, *r)
			continue
		}
		k := by[key]
		if k == nil {
			if m.due == nil {
				continue // another key with the same hash
			}
			k = &keyed{key: key, hash: key.Hash()}
			by[key] = k
			keys = append(keys, k)
		}
		k.wait = append(k.wait, &segment.Segment{
			ID: r.id, Set: r.set, Session: r.session, Seq: r.seq, Number: number, Hash: pieceOf(r, number).Hash, Repeats: r.repeats, Since: r.since, Due: r.due,
		})
		rows[r.id] = r
	}
	return w.joinAll(ctx, tx, b, keys, rows)
}

// joinAll decides about the segments of all keys.
func (w *Workflow) joinAll(ctx context.Context, tx pgx.Tx, b *batch, keys []*keyed, rows map[int64]*row) error {
	oldest := message.FirstID(b.now.Add(-w.Config.SegmentWindow))
	hashes := make([]int64, 0, len(keys))
	for _, k := range keys {
		hashes = append(hashes, k.hash)
		for _, g := range k.wait {
			if g.Repeats != 0 {
				oldest = min(oldest, g.Repeats)
			}
		}
	}
	sent, err := readSent(ctx, tx, hashes, oldest)
	if err != nil {
		return err
	}
	limits := segment.Limits{Expiry: w.Config.SegmentExpiry, Doubt: w.Config.SegmentDoubt, Window: w.Config.SegmentWindow}
	recent := message.FirstID(b.now.Add(-w.Config.SegmentWindow))
	var targets []int64
	for _, k := range keys {
		recipients := 1 + bytesCount(k.key.Dest)
		earlier := chunk(sent[k.hash], recipients)
		var known []segment.Sent
		for _, e := range earlier {
			for _, s := range e.segments {
				if e.ids[0] >= recent {
					known = append(known, segment.Sent{Message: e.ids[0], Number: uint8(s.number), Hash: s.hash})
				}
			}
		}
		out := segment.Join(k.key.Concat.Total, limits, b.now, k.wait, k.came, known)
		targets = append(targets, b.apply(k, &out, earlier, rows)...)
	}
	slices.SortStableFunc(b.rows, func(x, y row) int { return cmp.Compare(x.id, y.id) })
	return b.readTargets(ctx, tx, targets)
}

// apply notes what Join decided, and returns the messages that repeated segments belong to.
func (b *batch) apply(k *keyed, out *segment.Outcome, earlier []earlierSet, rows map[int64]*row) (targets []int64) {
	leave := func(g *segment.Segment) *row {
		r := rows[g.ID]
		if r.set != 0 {
			b.waits.left = append(b.waits.left, r.id)
		}
		return r
	}
	for _, s := range out.Complete {
		for _, g := range s.Segments {
			leave(g)
		}
		r := join(&k.key, s, rows)
		if r.set = 0; r.atTime != nil && r.atTime.After(b.now) {
			b.waits.scheduled = append(b.waits.scheduled, r)
			continue
		}
		b.rows = append(b.rows, *r)
	}
	for _, s := range out.Waiting {
		for _, g := range s.Segments {
			r := rows[g.ID]
			fresh, moved := r.set == 0, !r.due.Equal(g.Due)
			r.set, r.repeats, r.since, r.due, r.key = g.Set, g.Repeats, g.Since, g.Due, k.hash
			switch {
			case fresh:
				b.waits.stored = append(b.waits.stored, r)
			case moved:
				b.waits.changed = append(b.waits.changed, r)
			}
		}
	}
	for _, g := range out.Expired {
		r := leave(g)
		r.ends = message.Expired
		b.rows = append(b.rows, *r)
	}
	for _, g := range out.Repeated {
		r := leave(g)
		rep := repetition{row: r, number: g.Number, key: k.hash}
		for _, e := range earlier {
			if e.ids[0] == g.Repeats {
				for _, id := range e.ids {
					rep.targets = append(rep.targets, target{id: id})
				}
				targets = append(targets, e.ids...)
			}
		}
		if rep.targets == nil { // its message is gone: nothing can be said of it but that this SUBMIT was not sent
			r.ends = message.Expired
			b.rows = append(b.rows, *r)
			continue
		}
		b.waits.repeated = append(b.waits.repeated, rep)
	}
	return targets
}

// earlierSet is a long message that was made before: one message for each recipient, in order.
type earlierSet struct {
	ids      []int64
	segments []sentSegment // of the first recipient
}

type sentSegment struct {
	message, hash int64
	number        int16
}

// chunk groups the messages of one key into sets of n recipients. The messages of a set have ascending ids and are written
// together, sets one after the other; the oldest may be seen in part.
func chunk(list []sentSegment, n int) (sets []earlierSet) {
	var ids []int64
	for _, s := range list {
		ids = append(ids, s.message)
	}
	slices.Sort(ids)
	ids = slices.Compact(ids)
	for len(ids) >= n {
		e := earlierSet{ids: ids[len(ids)-n:]}
		ids = ids[:len(ids)-n]
		for _, s := range list {
			if s.message == e.ids[0] {
				e.segments = append(e.segments, s)
			}
		}
		sets = append(sets, e)
	}
	slices.Reverse(sets)
	return sets
}

func compareIDs(a, b int64) int { return cmp.Compare(a, b) }

func bytesCount(dest string) (commas int) {
	for i := range len(dest) {
		if dest[i] == ',' {
			commas++
		}
	}
	return commas
}

// readWaiting reads the segments that wait under the keys, oldest first.
func (w *Workflow) readWaiting(ctx context.Context, tx pgx.Tx, keys []*keyed, due *dueSet) (list []*row, err error) {
	var apps []int32
	var hashes []int64
	for _, k := range keys {
		apps, hashes = append(apps, k.key.App), append(hashes, k.hash)
	}
	if due != nil {
		apps, hashes = append(apps, due.app), append(hashes, due.key)
	}
	rows, err := tx.Query(ctx, store.SegmentWaiting, unique(apps, cmp.Compare[int32]), unique(hashes, compareIDs))
	if err != nil {
		return nil, err
	}
	list, err = pgx.CollectRows(rows, func(c pgx.CollectableRow) (*row, error) {
		r := new(row)
		err := c.Scan(&r.id, &r.set, &r.repeats, &r.since, &r.due, &r.msgID, &r.session, &r.seq, &r.acceptedAt, &r.validUntil, &r.atTime, &r.enterprise, &r.app, &r.weight,
			&r.node, &r.registered, &r.fmt, &r.udhi, &r.pkTotal, &r.pkNumber, &r.dest, &r.src, &r.service, &r.content)
		return r, err
	})
	slices.SortFunc(list, func(a, b *row) int { return compareIDs(a.id, b.id) })
	return list, err
}

// readSent reads the segments of messages made under the keys, by key.
func readSent(ctx context.Context, tx pgx.Tx, hashes []int64, oldest int64) (map[int64][]sentSegment, error) {
	rows, err := tx.Query(ctx, store.SegmentSent, unique(hashes, compareIDs), oldest)
	if err != nil {
		return nil, err
	}
	sent := map[int64][]sentSegment{}
	var key int64
	var s sentSegment
	_, err = pgx.ForEachRow(rows, []any{&key, &s.message, &s.number, &s.hash}, func() error {
		sent[key] = append(sent[key], s)
		return nil
	})
	return sent, err
}

// readTargets locks the messages that repeated segments belong to: settlement ends them under the same lock, so that one of
// the two sees the other.
func (b *batch) readTargets(ctx context.Context, tx pgx.Tx, ids []int64) error {
	if len(ids) == 0 {
		return nil
	}
	ids = unique(ids, compareIDs)
	lo, hi := store.Bounds(ids)
	rows, err := tx.Query(ctx, store.SegmentTargets, ids, lo, hi)
	if err != nil {
		return err
	}
	found := map[int64]target{}
	var t target
	var state message.State
	if _, err := pgx.ForEachRow(rows, []any{&t.id, &state, &t.stat, &t.dest}, func() error {
		t.final, t.dest = state.Final(), slices.Clone(t.dest)
		found[t.id] = t
		return nil
	}); err != nil {
		return err
	}
	for _, r := range b.waits.repeated {
		for i := range r.targets {
			r.targets[i] = found[r.targets[i].id]
		}
	}
	return nil
}

// repeat gives repeated segments what their message has: a row, and a receipt when it has ended already.
func (b *batch) repeat(ids *idPool) {
	for _, rep := range b.waits.repeated {
		p := pieceOf(rep.row, rep.number)
		for i, t := range rep.targets {
			if t.id == 0 {
				continue
			}
			one := p
			one.MsgID += int64(i)
			b.segments.add(t.id, rep.key, rep.row.app, one)
			if t.final && p.Registered == 1 {
				b.refusals.add(ids.next(), t.id, one.MsgID, rep.row, &one, t.stat, t.dest)
			}
		}
	}
}

// idsOfRepeats is how many ids repeat takes at most.
func (b *batch) idsOfRepeats() (n int) {
	for _, rep := range b.waits.repeated {
		n += len(rep.targets)
	}
	return n
}

func (b *batch) claimedIDs() []int64 {
	list := ids(b.claimed)
	slices.Sort(list)
	return list
}
