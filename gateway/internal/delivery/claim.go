package delivery

import (
	"cmp"
	"context"
	"fmt"
	"log/slog"
	"slices"
	"time"

	"github.com/jackc/pgx/v5"

	"cmppgateway/gateway/internal/message"
	"cmppgateway/gateway/internal/session"
	"cmppgateway/gateway/internal/store"
)

const (
	claimMax    = 512             // rows per claim
	floorMargin = 2 * time.Second // commits arrive out of order, and ids are taken before the commit
	floorFull   = time.Second     // how often a claim begins at the beginning of the queue
	heldWait    = 10 * time.Millisecond
)

// queue is what the claimer knows of one live application's rows.
type queue struct {
	floor   int64     // rows up to it were claimed
	full    time.Time // of the last claim from the beginning
	claimed time.Time // of the last claim
	more    bool      // there may be more rows than the last claim had room for
	turn    int       // the connection that got the last DELIVER
}

// schedule says when to claim for all live applications; the zero time is never.
type schedule struct {
	first time.Time // nudge since the last claim
	due   time.Time
	sweep time.Time
}

// claims is the claimer.
func (d *Delivery) claims(ctx context.Context) {
	timer := time.NewTimer(0)
	defer timer.Stop()
	s := schedule{sweep: time.Now()}
	failing := false
	for ctx.Err() == nil {
		now := time.Now()
		var next time.Time
		var err error
		if s.isDue(now) || d.isAgain(now) {
			if full := !now.Before(s.sweep); full {
				s.sweep = now.Add(d.Config.Sweep)
				d.rewind()
				err = d.expire(ctx)
			}
			s.first, s.due = time.Time{}, time.Time{}
			if err == nil {
				err = d.claim(ctx, func(*queue, int, int) bool { return true })
			}
		}
		for more := true; more && err == nil && ctx.Err() == nil; {
			more, next, err = d.claimMore(ctx, time.Now())
		}
		if failed := err != nil && ctx.Err() == nil; failed != failing {
			failing = failed
			d.Log.Warn("deliveries claimed", slog.Bool("working", !failed), slog.Any("error", err))
		}
		if failing {
			wait(ctx, failPause)
			s.due = time.Now()
			continue
		}
		timer.Reset(time.Until(earliest(s.due, s.sweep, d.nextAgain(), next)))
		select {
		case <-ctx.Done():
		case <-timer.C:
		case <-d.room:
		case <-d.retry:
		case <-d.login:
			d.rewind()
			s.due = time.Now()
		case <-d.nudge:
			s.nudge(time.Now(), d.Config.Merge, d.Config.MergeCap)
		}
	}
}

func (s *schedule) isDue(now time.Time) bool {
	return !now.Before(s.sweep) || !s.due.IsZero() && !now.Before(s.due)
}

// nudge puts the claim off until merge has passed without another nudge, at most until limit after the first.
func (s *schedule) nudge(now time.Time, merge, limit time.Duration) {
	if s.first.IsZero() {
		s.first = now
	}
	due := earliest(now.Add(merge), s.first.Add(limit))
	if s.due.IsZero() || s.due.After(now) { // a claim that is due already is not put off
		s.due = due
	}
}

// earliest of the times that are not zero; at least one must be.
func earliest(times ...time.Time) (t time.Time) {
	for _, u := range times {
		if !u.IsZero() && (t.IsZero() || u.Before(t)) {
			t = u
		}
	}
	return t
}

// rewind lets the next claims begin at the beginning.
func (d *Delivery) rewind() {
	for _, q := range d.apps {
		q.full = time.Time{}
	}
}

// isAgain says that rows put back may be claimed now; they may be anywhere in their queues.
func (d *Delivery) isAgain(now time.Time) bool {
	d.mu.Lock()
	a := &d.again
	due := !a.first.IsZero() && !now.Before(a.first)
	if due {
		a.first = time.Time{}
		if a.last.After(now) {
			a.first = earliest(a.last, now.Add(floorFull))
		}
	}
	d.mu.Unlock()
	if due {
		d.rewind()
	}
	return due
}

func (d *Delivery) nextAgain() time.Time {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.again.first
}

// claimAgain wakes the claimer at t for rows that were put back. d.mu is held.
func (d *Delivery) claimAgain(t time.Time) {
	d.again.first = earliest(d.again.first, t)
	if t.After(d.again.last) {
		d.again.last = t
	}
	poke(d.retry)
}

// claimMore claims for applications that had more rows than room, once half of their window is free or Merge has passed.
// claimed says that it did so for some; next is when Merge will have passed for others, zero when nothing has room.
func (d *Delivery) claimMore(ctx context.Context, now time.Time) (claimed bool, next time.Time, err error) {
	some := false
	for _, q := range d.apps {
		some = some || q.more
	}
	if !some {
		return false, time.Time{}, nil
	}
	err = d.claim(ctx, func(q *queue, free, window int) bool {
		switch at := q.claimed.Add(max(d.Config.Merge, heldWait)); {
		case !q.more || free == 0:
			return false
		case 2*free >= window || !now.Before(at):
			claimed = true
			return true
		default:
			next = earliest(next, at)
			return false
		}
	})
	return claimed, next, err
}

// share is one application's part of a claim.
type share struct {
	app   int32
	queue *queue
	links []*session.Session
	slots []int // acquired on each link
	room  int   // sum of slots
	floor int64
	rows  []*row
}

// claim takes rows of the applications that wanted says yes to, by their free slots and window, and sends them.
func (d *Delivery) claim(ctx context.Context, wanted func(q *queue, free, window int) bool) error {
	start := time.Now()
	shares := d.acquire(start, wanted)
	defer func() {
		for _, s := range shares {
			for i, link := range s.links {
				link.Release(s.slots[i])
			}
		}
	}()
	if len(shares) == 0 {
		return nil
	}
	byApp := make(map[int32]*share, len(shares))
	apps, rooms, floors := make([]int32, len(shares)), make([]int32, len(shares)), make([]int64, len(shares))
	for i, s := range shares {
		byApp[s.app] = s
		apps[i], rooms[i], floors[i] = s.app, int32(s.room), s.floor
	}
	// A claim whose answer was lost may have been granted: asked for again by its id, it is granted the same rows, which
	// would otherwise wait for the end of their lease.
	if d.claiming == 0 {
		var err error
		if d.claiming, err = d.Node.IDs.Next(ctx); err != nil {
			return err
		}
	}
	claim := d.claiming
	rows, err := d.Pool.Query(ctx, store.DeliveryClaim, apps, claim, floors, d.Node.Number, d.Config.Lease, rooms, d.Config.AcceptHold)
	if err != nil {
		return fmt.Errorf("claim deliveries: %w", err)
	}
	list, err := pgx.CollectRows(rows, pgx.RowToAddrOfStructByPos[row])
	if err != nil {
		return fmt.Errorf("claim deliveries: %w", err)
	}
	d.claiming = 0
	d.metrics.claimSeconds.Observe(time.Since(start).Seconds())
	d.metrics.claimRows.Observe(float64(len(list)))
	slices.SortFunc(list, func(a, b *row) int { return cmp.Compare(a.ID, b.ID) })
	for _, r := range list {
		s := byApp[r.App]
		s.rows = append(s.rows, r)
	}
	for _, s := range shares {
		s.queue.note(s, start)
		d.send(s, claim, start)
	}
	return nil
}

// note remembers how far a claim went.
func (q *queue) note(s *share, at time.Time) {
	q.claimed, q.more = at, len(s.rows) == s.room
	if s.floor == 0 {
		q.full = at
	}
	if n := len(s.rows); n > 0 {
		q.floor = max(q.floor, message.FirstID(message.TimeOf(s.rows[n-1].ID).Add(-floorMargin)))
	}
}

// acquire reserves the free slots of the wanted applications, in turn, up to claimMax.
func (d *Delivery) acquire(now time.Time, wanted func(q *queue, free, window int) bool) (shares []*share) {
	live := make(map[int32]bool, len(d.apps))
	d.Sessions.Each(func(app int32, links []*session.Session) {
		live[app] = true
		q := d.apps[app]
		if q == nil {
			q = &queue{}
			d.apps[app] = q
		}
		free := 0
		for _, link := range links {
			free += link.Free()
		}
		if !wanted(q, free, d.Config.DeliverWindow*len(links)) {
			return
		}
		if free == 0 {
			q.more = true // there may be rows; a free slot will tell
			return
		}
		s := &share{app: app, queue: q, links: links, slots: make([]int, len(links)), floor: q.floor}
		if now.Sub(q.full) > floorFull {
			s.floor = 0
		}
		shares = append(shares, s)
	})
	for app := range d.apps {
		if !live[app] {
			delete(d.apps, app)
		}
	}
	return d.reserve(shares)
}

func (d *Delivery) reserve(shares []*share) (got []*share) {
	slices.SortFunc(shares, func(a, b *share) int { return cmp.Compare(a.app, b.app) })
	first, _ := slices.BinarySearchFunc(shares, d.turn+1, func(s *share, app int32) int { return cmp.Compare(s.app, app) })
	left := claimMax
	for i := range shares {
		s := shares[(first+i)%len(shares)]
		if left == 0 {
			s.queue.more = true
			continue
		}
		for k, link := range s.links {
			n := link.Acquire(left)
			s.slots[k] += n
			s.room += n
			left -= n
		}
		if s.room == 0 {
			s.queue.more = true
			continue
		}
		d.turn = s.app
		got = append(got, s)
	}
	return got
}

// expire moves rows that nobody took for KeepMax to the dead letters.
func (d *Delivery) expire(ctx context.Context) error {
	for {
		tag, err := d.Pool.Exec(ctx, store.DeliveryExpire, message.FirstID(time.Now().Add(-d.Config.KeepMax)), expireMax, d.Config.KeepMax)
		if err != nil {
			return fmt.Errorf("expire deliveries: %w", err)
		}
		n := tag.RowsAffected()
		if n > 0 {
			d.Log.Warn("deliveries moved to the dead letters: nobody took them in time", slog.Int64("rows", n))
			d.metrics.outcomes.WithLabelValues("expired").Add(float64(n))
		}
		if n < expireMax {
			return nil
		}
	}
}

const expireMax = 200 // rows per transaction
