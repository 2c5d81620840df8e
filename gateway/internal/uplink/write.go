package uplink

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/jackc/pgx/v5"

	"cmppgateway/gateway/internal/segment"
	"cmppgateway/gateway/internal/store"
)

// end is what became of an uplink.
type end struct {
	outcome Outcome
	app     int32
	set     int64
	asked   bool
	reason  Reason // of Unmatched
}

// held is a segment as it is to be stored.
type held struct {
	segment.Segment

	key  int64
	sent bool
}

type delivery struct {
	id, uplink int64
	at         time.Time
	app        int32
	phone      string
	number     string
	service    []byte
	body       body
}

type optOut struct {
	phone      int64
	enterprise int32
	signature  string
}

// writes are what one transaction writes.
type writes struct {
	taken      []int64 // from the queue
	outcomes   map[int64]end
	counts     map[Outcome]int
	segments   []held
	left       []int64 // uplink_segment
	deliveries []delivery
	optOuts    map[optOut]int64 // uplinks
}

func newWrites() writes {
	return writes{outcomes: map[int64]end{}, counts: map[Outcome]int{}, optOuts: map[optOut]int64{}}
}

func (w *writes) ends(id int64, outcome Outcome, app int32, set int64, asked bool) {
	w.outcomes[id] = end{outcome: outcome, app: app, set: set, asked: asked}
	w.counts[outcome]++
}

func (w *writes) unmatched(r *row, reason Reason, asked bool) {
	w.outcomes[r.ID] = end{outcome: Unmatched, asked: asked, reason: reason}
	w.counts[Unmatched]++
}

// send writes everything in the lock order of the package.
func (w *writes) send(ctx context.Context, tx pgx.Tx) error {
	var q pgx.Batch
	if len(w.taken) > 0 {
		q.Queue(store.UplinkTake, sorted(w.taken), len(w.taken))
	}
	w.queueOutcomes(&q)
	w.queueSegments(&q)
	w.queueUnmatched(&q)
	w.queueDeliveries(&q)
	w.queueOptOuts(&q)
	if q.Len() == 0 {
		return nil
	}
	if err := tx.SendBatch(ctx, &q).Close(); err != nil {
		return fmt.Errorf("write uplinks: %w", err)
	}
	return nil
}

func (w *writes) queueOutcomes(q *pgx.Batch) {
	if len(w.outcomes) == 0 {
		return
	}
	ids := slices.Sorted(maps.Keys(w.outcomes))
	n := len(ids)
	outcomes, apps, sets, asked := make([]int16, n), make([]int32, n), make([]int64, n), make([]bool, n)
	for i, id := range ids {
		e := w.outcomes[id]
		outcomes[i], apps[i], sets[i], asked[i] = int16(e.outcome), e.app, e.set, e.asked
	}
	q.Queue(store.UplinkOutcome, ids, outcomes, apps, sets, asked)
}

func (w *writes) queueSegments(q *pgx.Batch) {
	if len(w.left) > 0 {
		q.Queue(store.UplinkSegmentLeave, sorted(w.left))
	}
	n := len(w.segments)
	if n == 0 {
		return
	}
	slices.SortFunc(w.segments, func(a, b held) int { return cmp.Compare(a.ID, b.ID) })
	ids, sets, keys, hashes, repeats := make([]int64, n), make([]int64, n), make([]int64, n), make([]int64, n), make([]int64, n)
	since, due, numbers, sent := make([]time.Time, n), make([]time.Time, n), make([]int16, n), make([]bool, n)
	for i, s := range w.segments {
		ids[i], sets[i], keys[i], hashes[i], repeats[i] = s.ID, s.Set, s.key, s.Hash, s.Repeats
		since[i], due[i], numbers[i], sent[i] = s.Since, s.Due, int16(s.Number), s.sent
	}
	q.Queue(store.UplinkSegment, ids, sets, keys, hashes, repeats, since, due, numbers, sent)
}

func (w *writes) queueUnmatched(q *pgx.Batch) {
	var ids []int64
	var reasons []int16
	var asked []bool
	for _, id := range slices.Sorted(maps.Keys(w.outcomes)) {
		if e := w.outcomes[id]; e.outcome == Unmatched {
			ids, reasons, asked = append(ids, id), append(reasons, int16(e.reason)), append(asked, e.asked)
		}
	}
	if len(ids) > 0 {
		q.Queue(store.UplinkUnmatched, ids, reasons, asked)
	}
}

func (w *writes) queueDeliveries(q *pgx.Batch) {
	n := len(w.deliveries)
	if n == 0 {
		return
	}
	slices.SortFunc(w.deliveries, func(a, b delivery) int { return cmp.Compare(a.id, b.id) })
	ids, uplinks, at, apps := make([]int64, n), make([]int64, n), make([]time.Time, n), make([]int32, n)
	formats, udhis := make([]int16, n), make([]int16, n)
	phones, numbers, services, contents := make([][]byte, n), make([][]byte, n), make([][]byte, n), make([][]byte, n)
	for i, d := range w.deliveries {
		ids[i], uplinks[i], at[i], apps[i], formats[i], udhis[i] = d.id, d.uplink, d.at, d.app, d.body.fmt, d.body.udhi
		phones[i], numbers[i], services[i], contents[i] = []byte(d.phone), []byte(d.number), octets(d.service), octets(d.body.content)
	}
	q.Queue(store.UplinkDelivery, ids, uplinks, at, apps, formats, udhis, phones, numbers, services, contents)
}

func octets(b []byte) []byte {
	if b == nil {
		return []byte{} // nil would be NULL
	}
	return b
}

func (w *writes) queueOptOuts(q *pgx.Batch) {
	if len(w.optOuts) == 0 {
		return
	}
	var phones, uplinks []int64
	var enterprises []int32
	var signatures []string
	for _, x := range slices.SortedFunc(maps.Keys(w.optOuts), func(a, b optOut) int {
		return cmp.Or(cmp.Compare(a.phone, b.phone), cmp.Compare(a.enterprise, b.enterprise), cmp.Compare(a.signature, b.signature))
	}) {
		phones, enterprises, signatures, uplinks = append(phones, x.phone), append(enterprises, x.enterprise), append(signatures, x.signature), append(uplinks, w.optOuts[x])
	}
	q.Queue(store.UplinkOptOut, phones, enterprises, signatures, uplinks)
}
