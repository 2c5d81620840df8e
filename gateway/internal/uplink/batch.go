package uplink

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strconv"
	"time"

	"github.com/jackc/pgx/v5"

	"cmppgateway/gateway/internal/message"
	"cmppgateway/gateway/internal/policy"
	"cmppgateway/gateway/internal/segment"
	"cmppgateway/gateway/internal/store"
	"cmppgateway/gateway/internal/wake"
	"cmppgateway/gateway/sms"
)

// lockClass and lockUplinks are the advisory lock under which one transaction at a time works.
const lockClass, lockUplinks = 10, 8

// row is an uplink as stored.
type row struct {
	ID, MsgID        int64
	Phone, Dest      string
	At               time.Time
	Account, Channel int32
	Fmt, UDHI        int16
	Content          []byte
}

// number of the phone in its normal form; 0 = it is none.
func (r *row) number() int64 {
	n, err := sms.NormalizeNumber(r.Phone)
	if err != nil {
		return 0
	}
	return int64(n)
}

// source is the phone as customers see it.
func (r *row) source() string {
	if n := r.number(); n != 0 {
		return strconv.FormatInt(n, 10)
	}
	return r.Phone
}

func (r *row) key() (k segment.Key, number uint8, ok bool) {
	k, number, _, ok = segment.KeyOf(r.Account, r.source(), r.Dest, uint8(r.UDHI), r.Content)
	return k, number, ok
}

// batch is one transaction.
type batch struct {
	*Uplinks

	now     time.Time
	words   map[string]bool
	numbers *numbers
	senders map[int64][]sender
	write   writes
	parts   int      // segments that came
	longest []*keyed // in the order in which their keys were met
}

// keyed is the segments of one key.
type keyed struct {
	key  segment.Key
	hash int64
	came []*segment.Segment
	wait []*segment.Segment
	sent []segment.Sent
	rows map[int64]*row
	held map[int64]bool // rows of uplink_segment
}

// apply is one transaction; did is false when another process is at it.
func (u *Uplinks) apply(ctx context.Context, p pick) (did bool, err error) {
	var b *batch
	snap := u.Settings.Current()
	if u.numbers == nil || u.numbers.snap != snap {
		u.numbers = newNumbers(snap)
	}
	err = store.Retry(ctx, u.Pool, func(tx pgx.Tx) error {
		if err := tx.QueryRow(ctx, store.SettlementLock, lockClass, lockUplinks).Scan(&did); err != nil || !did {
			return err
		}
		b = &batch{Uplinks: u, numbers: u.numbers, words: map[string]bool{}, senders: map[int64][]sender{}, write: newWrites()}
		return b.run(ctx, tx, p)
	})
	if err != nil || !did {
		return false, err
	}
	u.waiting += int64(b.parts)
	for outcome, n := range b.write.counts {
		u.metrics.uplinks.WithLabelValues(outcome.String()).Add(float64(n))
	}
	u.metrics.optOuts.Add(float64(len(b.write.optOuts)))
	if len(b.write.deliveries) > 0 {
		u.Wake.Publish(wake.Deliveries)
	}
	return true, nil
}

func (b *batch) run(ctx context.Context, tx pgx.Tx, p pick) error {
	var words []string
	if err := tx.QueryRow(ctx, store.UplinkNow).Scan(&b.now, &words); err != nil {
		return fmt.Errorf("read words: %w", err)
	}
	for _, w := range words {
		b.words[policy.Normalize(w)] = true
	}
	delete(b.words, "")
	queued, err := readRows(ctx, tx, store.UplinkRead, p.ids)
	if err != nil {
		return err
	}
	kept, err := b.readSegments(ctx, tx, queued, p.keys)
	if err != nil {
		return err
	}
	if err := b.readSenders(ctx, tx, queued, kept.rows); err != nil {
		return err
	}
	for _, r := range queued {
		b.write.taken = append(b.write.taken, r.ID)
		if err := b.judge(ctx, kept, r); err != nil {
			return err
		}
	}
	for _, k := range b.longest {
		if err := b.join(ctx, k); err != nil {
			return err
		}
	}
	b.write.left = append(b.write.left, p.past...)
	return b.write.send(ctx, tx)
}

func readRows(ctx context.Context, tx pgx.Tx, sql string, ids []int64) ([]*row, error) {
	if len(ids) == 0 {
		return nil, nil
	}
	rows, err := tx.Query(ctx, sql, ids)
	if err != nil {
		return nil, fmt.Errorf("read uplinks: %w", err)
	}
	list, err := pgx.CollectRows(rows, pgx.RowToAddrOfStructByPos[row])
	if err != nil {
		return nil, fmt.Errorf("read uplinks: %w", err)
	}
	slices.SortFunc(list, func(x, y *row) int { return cmp.Compare(x.ID, y.ID) })
	return list, nil
}

// kept is the stored segments of the keys of a batch.
type kept struct {
	by   map[segment.Key]*keyed
	rows []*row
}

// readSegments reads the stored segments of the keys that came, and of keys, whose time has come.
func (b *batch) readSegments(ctx context.Context, tx pgx.Tx, queued []*row, keys []int64) (*kept, error) {
	k := &kept{by: map[segment.Key]*keyed{}}
	hashes := slices.Clone(keys)
	for _, r := range queued {
		if key, _, ok := r.key(); ok {
			hashes = append(hashes, key.Hash())
		}
	}
	if len(hashes) == 0 {
		return k, nil
	}
	rows, err := tx.Query(ctx, store.UplinkWaiting, sorted(hashes))
	if err != nil {
		return nil, fmt.Errorf("read segments: %w", err)
	}
	type stored struct {
		ID, Set, Key, Hash, Repeats int64
		Since, Due                  time.Time
		Number                      int16
		Sent                        bool
	}
	list, err := pgx.CollectRows(rows, pgx.RowToStructByPos[stored])
	if err != nil {
		return nil, fmt.Errorf("read segments: %w", err)
	}
	slices.SortFunc(list, func(x, y stored) int { return cmp.Compare(x.ID, y.ID) })
	ids := make([]int64, len(list))
	for i, s := range list {
		ids[i] = s.ID
	}
	if k.rows, err = readRows(ctx, tx, store.UplinkFind, ids); err != nil {
		return nil, err
	}
	byID := make(map[int64]*row, len(k.rows))
	for _, r := range k.rows {
		byID[r.ID] = r
	}
	for _, s := range list {
		r := byID[s.ID]
		if r == nil { // trimmed: there is nothing left to join
			b.write.left = append(b.write.left, s.ID)
			continue
		}
		key, _, _ := r.key()
		w := b.keyed(k, key)
		w.rows[s.ID], w.held[s.ID] = r, true
		if s.Sent {
			w.sent = append(w.sent, segment.Sent{Message: s.Set, Number: uint8(s.Number), Hash: s.Hash})
			continue
		}
		w.wait = append(w.wait, &segment.Segment{
			ID: s.ID, Set: s.Set, Session: int64(r.Account), Seq: r.MsgID, Number: uint8(s.Number), Hash: s.Hash, Repeats: s.Repeats, Since: s.Since, Due: s.Due,
		})
	}
	return k, nil
}

func (b *batch) keyed(k *kept, key segment.Key) *keyed {
	w := k.by[key]
	if w == nil {
		w = &keyed{key: key, hash: key.Hash(), rows: map[int64]*row{}, held: map[int64]bool{}}
		k.by[key] = w
		b.longest = append(b.longest, w)
	}
	return w
}

const sendersMax = 50 // messages to one phone that are looked at

// readSenders reads what was last sent to the phones.
func (b *batch) readSenders(ctx context.Context, tx pgx.Tx, lists ...[]*row) error {
	var phones []int64
	for _, list := range lists {
		for _, r := range list {
			if n := r.number(); n != 0 {
				phones = append(phones, n)
			}
		}
	}
	if len(phones) == 0 {
		return nil
	}
	since := b.now.Add(-b.Config.SenderWindow)
	// Messages are made before they are committed, but not by long.
	rows, err := tx.Query(ctx, store.UplinkSenders, sorted(phones), since, message.FirstID(since.Add(-time.Minute)), message.FirstID(b.now.Add(time.Hour)), sendersMax)
	if err != nil {
		return fmt.Errorf("read senders: %w", err)
	}
	var s sender
	_, err = pgx.ForEachRow(rows, []any{&s.phone, &s.app, &s.channel, &s.src, &s.service, &s.signature}, func() error {
		s.src, s.service = slices.Clone(s.src), slices.Clone(s.service)
		b.senders[s.phone] = append(b.senders[s.phone], s)
		return nil
	})
	if err != nil {
		return fmt.Errorf("read senders: %w", err)
	}
	return nil
}

func (b *batch) ownerOf(r *row) (owner, Reason) {
	return b.numbers.ownerOf(r.Account, trim(r.Dest), b.senders[r.number()])
}

// judge decides about an uplink from the queue; segments are left to join.
func (b *batch) judge(ctx context.Context, k *kept, r *row) error {
	o, reason := b.ownerOf(r)
	key, number, long := r.key()
	switch {
	case reason != 0:
		b.write.unmatched(r, reason, !long && b.words[policy.Normalize(asks(r))])
		return nil
	case long && b.waiting+int64(b.parts) < int64(b.Config.SegmentsMax):
		b.parts++
		w := b.keyed(k, key)
		w.rows[r.ID] = r
		w.came = append(w.came, &segment.Segment{
			ID: r.ID, Session: int64(r.Account), Seq: r.MsgID, Number: number, Hash: segment.ContentHash(sms.Fmt(r.Fmt), r.Content),
		})
		return nil
	case long:
		return b.deliver(ctx, Delivered, o, []*row{r}, 0, []body{asItCame(r)}, "")
	}
	return b.deliver(ctx, Delivered, o, []*row{r}, 0, []body{asItCame(r)}, asks(r))
}

// deliver writes one message for its customer: bodies of rows, of which the first gives phone and time. text is what it
// says as a whole, "" when it does not matter.
func (b *batch) deliver(ctx context.Context, outcome Outcome, o owner, rows []*row, set int64, list []body, text string) error {
	first := rows[0]
	asked := text != "" && b.words[policy.Normalize(text)]
	for _, r := range rows {
		b.write.ends(r.ID, outcome, o.app.ID, set, asked)
	}
	ids, err := b.IDs.Take(ctx, len(list))
	if err != nil {
		return err
	}
	d := delivery{uplink: first.ID, at: first.At, app: o.app.ID, phone: first.source(), number: o.number}
	if o.last != nil {
		d.service = o.last.service
	}
	for i, c := range list {
		d.id, d.body = ids[i], c
		b.write.deliveries = append(b.write.deliveries, d)
	}
	if phone := first.number(); asked && phone != 0 {
		x := optOut{phone: phone, enterprise: o.app.EnterpriseID}
		if o.last != nil {
			x.signature = o.last.signature
		}
		if _, ok := b.write.optOuts[x]; !ok {
			b.write.optOuts[x] = first.ID
		}
	}
	return nil
}

// join decides about the segments of one key.
func (b *batch) join(ctx context.Context, k *keyed) error {
	limits := segment.Limits{Expiry: b.Config.SegmentExpiry, Doubt: b.Config.SegmentDoubt, Window: b.Config.SegmentWindow}
	out := segment.Join(k.key.Concat.Total, limits, b.now, k.wait, k.came, k.sent)
	for _, s := range out.Complete {
		if err := b.complete(ctx, k, s); err != nil {
			return err
		}
	}
	for _, s := range out.Waiting {
		for _, g := range s.Segments {
			b.write.segments = append(b.write.segments, held{*g, k.hash, false})
		}
	}
	for _, g := range out.Repeated {
		b.write.ends(g.ID, Repeated, 0, max(g.Repeats, -g.Repeats), false)
		b.leave(k, g)
	}
	return b.incomplete(ctx, k, out.Expired)
}

func (b *batch) leave(k *keyed, g *segment.Segment) {
	if k.held[g.ID] {
		b.write.left = append(b.write.left, g.ID)
	}
}

func (b *batch) complete(ctx context.Context, k *keyed, s *segment.Set) error {
	ordered := s.Ordered(k.key.Concat.Total)
	parts := make([]*row, len(ordered))
	used := map[int64]bool{}
	for i, g := range ordered {
		parts[i], used[g.ID] = k.rows[g.ID], true
	}
	for _, g := range s.Segments {
		if !used[g.ID] {
			b.write.ends(g.ID, Repeated, 0, s.ID, false)
		}
	}
	o, reason := b.ownerOf(parts[0])
	if reason != 0 { // the settings have changed meanwhile
		for _, g := range s.Segments {
			if used[g.ID] {
				b.write.unmatched(k.rows[g.ID], reason, false)
			}
			b.leave(k, g)
		}
		return nil
	}
	for _, g := range s.Segments {
		g.Due = b.now.Add(b.Config.SegmentWindow)
		b.write.segments = append(b.write.segments, held{*g, k.hash, true})
	}
	list, text := whole(&k.key, parts)
	return b.deliver(ctx, Joined, o, parts, s.ID, list, text)
}

// incomplete ends sets whose other segments never came.
func (b *batch) incomplete(ctx context.Context, k *keyed, expired []*segment.Segment) error {
	var sets []int64
	bySet := map[int64][]*segment.Segment{}
	for _, g := range expired {
		if bySet[g.Set] == nil {
			sets = append(sets, g.Set)
		}
		bySet[g.Set] = append(bySet[g.Set], g)
		b.leave(k, g)
	}
	for _, set := range sets {
		parts := make([]*row, k.key.Concat.Total)
		var there []*row
		for _, g := range bySet[set] {
			if r := k.rows[g.ID]; parts[g.Number-1] == nil {
				parts[g.Number-1] = r
				there = append(there, r)
			} else {
				b.write.ends(g.ID, Repeated, 0, set, false)
			}
		}
		o, reason := b.ownerOf(there[0])
		if reason != 0 {
			for _, r := range there {
				b.write.unmatched(r, reason, false)
			}
			continue
		}
		if err := b.deliver(ctx, Incomplete, o, there, set, rest(&k.key, parts), ""); err != nil {
			return err
		}
	}
	return nil
}

// bury gives what cannot be worked on to the operators.
func (u *Uplinks) bury(ctx context.Context, p pick) error {
	err := store.Retry(ctx, u.Pool, func(tx pgx.Tx) error {
		var did bool
		if err := tx.QueryRow(ctx, store.SettlementLock, lockClass, lockUplinks).Scan(&did); err != nil || !did {
			return err
		}
		w := newWrites()
		queued, err := readRows(ctx, tx, store.UplinkRead, p.ids)
		if err != nil {
			return err
		}
		for _, r := range queued {
			w.taken = append(w.taken, r.ID)
			w.unmatched(r, Failed, false)
		}
		for _, key := range p.keys {
			rows, err := tx.Query(ctx, store.UplinkSegmentBury, key)
			if err != nil {
				return err
			}
			ids, err := pgx.CollectRows(rows, pgx.RowTo[int64])
			if err != nil {
				return err
			}
			for _, id := range ids {
				w.unmatched(&row{ID: id}, Failed, false)
			}
		}
		return w.send(ctx, tx)
	})
	if err != nil {
		return fmt.Errorf("give up uplinks: %w", err)
	}
	return nil
}

func trim(s string) string {
	for s != "" && (s[len(s)-1] == ' ' || s[len(s)-1] == 0) {
		s = s[:len(s)-1]
	}
	for s != "" && s[0] == ' ' {
		s = s[1:]
	}
	return s
}

func sorted(list []int64) []int64 { return slices.Compact(slices.Sorted(slices.Values(list))) }
