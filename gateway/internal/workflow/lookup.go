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

// wanted is what a batch asks of the database: one statement each, however many rows. Sorted and each once when asked.
type wanted struct {
	numbers []policy.Number // every number that nothing has objected to so far
	repeats []repeat        // of applications that refuse repetitions
	holds   []int32         // enterprises with a message to be held
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
	ask := wanted{numbers: make([]policy.Number, 0, len(list))}
	for i := range list {
		list[i].ask(snap, &ask)
	}
	if len(ask.numbers) == 0 {
		return k, nil
	}
	ask.numbers = unique(ask.numbers, func(x, y policy.Number) int {
		return cmp.Or(cmp.Compare(x.Phone, y.Phone), cmp.Compare(x.Enterprise, y.Enterprise))
	})
	var q pgx.Batch
	k.askPhones(&q, ask.numbers)
	k.askRecent(&q, &w.frequent, snap.Policy, b.now, ask.numbers)
	k.askRepeats(&q, snap.Policy, b.now, ask.repeats)
	if len(ask.holds) > 0 {
		q.Queue(store.WorkflowHeld, unique(ask.holds, cmp.Compare[int32]), w.Config.ReviewMax).Query(func(rows pgx.Rows) error {
			var enterprise int32
			var n int
			_, err := pgx.ForEachRow(rows, []any{&enterprise, &n}, func() error {
				k.held[enterprise] = n
				return nil
			})
			return err
		})
	}
	return k, tx.SendBatch(ctx, &q).Close()
}

func unique[T comparable](list []T, compare func(a, b T) int) []T {
	slices.SortFunc(list, compare)
	return slices.Compact(list)
}

// askPhones asks what is known of a number whoever sends to it: where it was ported to, and what it has opted out of.
func (k *known) askPhones(q *pgx.Batch, numbers []policy.Number) {
	phones, enterprises := make([]int64, 0, len(numbers)), []int32{0}
	for _, n := range numbers {
		phones, enterprises = append(phones, int64(n.Phone)), append(enterprises, n.Enterprise)
	}
	phones, enterprises = slices.Compact(phones), unique(enterprises, cmp.Compare[int32])
	q.Queue(store.WorkflowOverride, phones).Query(func(rows pgx.Rows) error {
		var phone int64
		var carrier routing.Carrier
		_, err := pgx.ForEachRow(rows, []any{&phone, &carrier}, func() error {
			k.overrides[uint64(phone)] = carrier
			return nil
		})
		return err
	})
	q.Queue(store.WorkflowOptOut, phones, enterprises).Query(func(rows pgx.Rows) error {
		var phone int64
		var o policy.OptOut
		_, err := pgx.ForEachRow(rows, []any{&phone, &o.Enterprise, &o.Signature, &o.MarketingOnly}, func() error {
			o.Phone = uint64(phone)
			k.tally.OptedOut(o)
			return nil
		})
		return err
	})
}

func (k *known) askRecent(q *pgx.Batch, f *frequent, set *policy.Set, now time.Time, numbers []policy.Number) {
	enterprises, most, seconds := make([]int32, 0, len(numbers)), make([]int32, 0, len(numbers)), make([]int32, 0, len(numbers))
	phones := make([]int64, 0, len(numbers))
	var longest time.Duration
	for _, n := range numbers {
		limits := set.Limits(n.Enterprise)
		count, window := limits.Needed()
		if count == 0 {
			continue
		}
		if at := f.full(n, limits, now); at != nil {
			k.tally.Recent(n, at)
			continue
		}
		enterprises, phones = append(enterprises, n.Enterprise), append(phones, int64(n.Phone))
		most, seconds = append(most, int32(count)), append(seconds, int32(window/time.Second))
		longest = max(longest, window)
	}
	if len(phones) == 0 {
		return
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
			f.note(n, set.Limits(n.Enterprise), at, now)
		}
		return rows.Err()
	})
}

func (k *known) askRepeats(q *pgx.Batch, set *policy.Set, now time.Time, repeats []repeat) {
	if len(repeats) == 0 {
		return
	}
	var apps, seconds []int32
	var phones []int64
	var contents [][]byte
	longest := 0
	for _, r := range unique(repeats, func(x, y repeat) int {
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
