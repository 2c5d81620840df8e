package workflow

import (
	"cmp"
	"context"
	"slices"
	"time"

	"github.com/jackc/pgx/v5"

	"cmppgateway/gateway/internal/message"
	"cmppgateway/gateway/internal/policy"
	"cmppgateway/gateway/internal/routing"
	"cmppgateway/gateway/internal/settings"
	"cmppgateway/gateway/internal/store"
)

// skew is how far an id's time may be from the time of the transaction that writes it.
const skew = 10 * time.Minute

// used is what an application has sent today.
type used struct {
	enterprise, app int32
	messages        int64
}

// known is what the database says of the numbers of a batch.
type known struct {
	tally     *policy.Tally
	overrides map[uint64]routing.Carrier
	held      map[int32]int // messages held for review, by enterprise
}

// wanted is what a batch asks of the database: each thing once, sorted. One statement each, however many rows.
type wanted struct {
	phones  map[uint64]bool
	recent  map[policy.Number]bool
	blocks  map[policy.Block]bool
	repeats map[repeat]bool
	holds   map[int32]bool
}

type repeat struct {
	app     int32
	phone   uint64
	content string
}

// lookUp reads what is known of the recipients that nothing has objected to so far.
func (w *Workflow) lookUp(ctx context.Context, tx pgx.Tx, snap *settings.Snapshot, b *batch, list []subject) (*known, error) {
	k := &known{tally: policy.NewTally(snap.Policy, b.now), overrides: map[uint64]routing.Carrier{}, held: map[int32]int{}}
	for _, u := range b.used {
		k.tally.Used(u.enterprise, u.app, u.messages)
	}
	ask := wanted{map[uint64]bool{}, map[policy.Number]bool{}, map[policy.Block]bool{}, map[repeat]bool{}, map[int32]bool{}}
	for i := range list {
		list[i].ask(snap, &ask)
	}
	var q pgx.Batch
	k.askOverrides(&q, ask.phones)
	k.askBlocks(&q, ask.blocks)
	k.askRecent(&q, snap.Policy, b.now, ask.recent)
	k.askRepeats(&q, snap.Policy, b.now, ask.repeats)
	if len(ask.holds) > 0 {
		q.Queue(store.WorkflowHeld, sorted(ask.holds, cmp.Compare[int32]), w.Config.ReviewMax).Query(func(rows pgx.Rows) error {
			var enterprise int32
			var n int
			_, err := pgx.ForEachRow(rows, []any{&enterprise, &n}, func() error {
				k.held[enterprise] = n
				return nil
			})
			return err
		})
	}
	if q.Len() == 0 {
		return k, nil
	}
	return k, tx.SendBatch(ctx, &q).Close()
}

func sorted[K comparable](set map[K]bool, compare func(a, b K) int) []K {
	list := make([]K, 0, len(set))
	for x := range set {
		list = append(list, x)
	}
	slices.SortFunc(list, compare)
	return list
}

func (k *known) askOverrides(q *pgx.Batch, phones map[uint64]bool) {
	if len(phones) == 0 {
		return
	}
	list := make([]int64, 0, len(phones))
	for _, p := range sorted(phones, cmp.Compare[uint64]) {
		list = append(list, int64(p))
	}
	q.Queue(store.WorkflowOverride, list).Query(func(rows pgx.Rows) error {
		var phone int64
		var carrier routing.Carrier
		_, err := pgx.ForEachRow(rows, []any{&phone, &carrier}, func() error {
			k.overrides[uint64(phone)] = carrier
			return nil
		})
		return err
	})
}

func (k *known) askBlocks(q *pgx.Batch, blocks map[policy.Block]bool) {
	if len(blocks) == 0 {
		return
	}
	var phones []int64
	var enterprises []int32
	var signatures []string
	var marketing []bool
	for _, b := range sorted(blocks, func(x, y policy.Block) int {
		return cmp.Or(cmp.Compare(x.Phone, y.Phone), cmp.Compare(x.Enterprise, y.Enterprise), cmp.Compare(x.Signature, y.Signature))
	}) {
		phones, enterprises = append(phones, int64(b.Phone)), append(enterprises, b.Enterprise)
		signatures, marketing = append(signatures, b.Signature), append(marketing, b.Marketing)
	}
	q.Queue(store.WorkflowOptOut, phones, enterprises, signatures, marketing).Query(func(rows pgx.Rows) error {
		var b policy.Block
		var phone int64
		_, err := pgx.ForEachRow(rows, []any{&phone, &b.Enterprise, &b.Signature, &b.Marketing}, func() error {
			b.Phone = uint64(phone)
			k.tally.OptedOut(b)
			return nil
		})
		return err
	})
}

func (k *known) askRecent(q *pgx.Batch, set *policy.Set, now time.Time, numbers map[policy.Number]bool) {
	if len(numbers) == 0 {
		return
	}
	var enterprises, most, seconds []int32
	var phones []int64
	var longest time.Duration
	for _, n := range sorted(numbers, func(x, y policy.Number) int {
		return cmp.Or(cmp.Compare(x.Phone, y.Phone), cmp.Compare(x.Enterprise, y.Enterprise))
	}) {
		count, window := set.Limits(n.Enterprise).Needed()
		enterprises, phones = append(enterprises, n.Enterprise), append(phones, int64(n.Phone))
		most, seconds = append(most, int32(count)), append(seconds, int32(window/time.Second))
		longest = max(longest, window)
	}
	lo, hi := bounds(now, longest)
	q.Queue(store.WorkflowRecent, enterprises, phones, most, seconds, lo, hi).Query(func(rows pgx.Rows) error {
		for rows.Next() {
			var n policy.Number
			var phone int64
			var at []time.Time
			if err := rows.Scan(&n.Enterprise, &phone, &at); err != nil {
				return err
			}
			n.Phone = uint64(phone)
			k.tally.Recent(n, at)
		}
		return rows.Err()
	})
}

func (k *known) askRepeats(q *pgx.Batch, set *policy.Set, now time.Time, repeats map[repeat]bool) {
	if len(repeats) == 0 {
		return
	}
	var apps, seconds []int32
	var phones []int64
	var contents [][]byte
	longest := 0
	for _, r := range sorted(repeats, func(x, y repeat) int {
		return cmp.Or(cmp.Compare(x.phone, y.phone), cmp.Compare(x.app, y.app), cmp.Compare(x.content, y.content))
	}) {
		window := set.Modes(r.app).DuplicateSeconds
		apps, phones = append(apps, r.app), append(phones, int64(r.phone))
		seconds, contents = append(seconds, int32(window)), append(contents, []byte(r.content))
		longest = max(longest, window)
	}
	lo, hi := bounds(now, time.Duration(longest)*time.Second)
	q.Queue(store.WorkflowRepeated, apps, phones, contents, seconds, lo, hi).Query(func(rows pgx.Rows) error {
		var app int32
		var phone int64
		var content []byte
		_, err := pgx.ForEachRow(rows, []any{&app, &phone, &content}, func() error {
			k.tally.Sent(app, policy.Recipient{Phone: uint64(phone), Content: string(content)})
			return nil
		})
		return err
	})
}

// bounds of the ids of messages made within the window before now: they keep the statement to the leaves it needs.
func bounds(now time.Time, window time.Duration) (lo, hi int64) {
	return message.FirstID(now.Add(-window - skew)), message.FirstID(now.Add(skew))
}
