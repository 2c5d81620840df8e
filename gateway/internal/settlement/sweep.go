package settlement

import (
	"context"
	"errors"
	"slices"
	"time"

	"github.com/jackc/pgx/v5"

	"cmppgateway/gateway/internal/event"
	"cmppgateway/gateway/internal/message"
	"cmppgateway/gateway/internal/routing"
	"cmppgateway/gateway/internal/settings"
	"cmppgateway/gateway/internal/store"
)

const (
	pageRows   = 1000               // rows looked at in one transaction
	staleAfter = 10 * time.Second   // beyond the channel's response time-out (data, table 2.2)
	keptDays   = 9 * 24 * time.Hour // no command in the queue is about an older message
	countEvery = 5 * time.Second

	exceptionsKept = 90 * 24 * time.Hour
	forgetEvery    = time.Hour        // between clearings of submits closed as not sent
	response       = 60 * time.Second // of a channel that the settings do not name
)

// place is a position in the queue of a channel.
type place struct {
	lane int16
	pos  int64
}

// sweep looks through the waiting places once.
func (s *Settlement) sweep(ctx context.Context) error {
	var errs []error
	if err := s.rounds(ctx); err != nil {
		errs = append(errs, err)
	}
	for _, one := range []struct {
		name  string
		lock  int32
		pages int // most transactions; the next sweep goes on
		step  func(context.Context, pgx.Tx, *work) (swept, error)
	}{
		{"queue", sweepQueue, 10, s.sweepQueue},
		{"ended", sweepEnded, 50, s.sweepEnded},
		{"reroute", sweepReroute, 50, s.sweepReroute},
		{"overdue", sweepOverdue, 20, s.sweepOverdue},
	} {
		for range one.pages {
			more, err := s.sweepStep(context.WithoutCancel(ctx), one.name, one.lock, one.step)
			if err != nil {
				errs = append(errs, err)
			}
			if err != nil || !more || ctx.Err() != nil {
				break
			}
		}
	}
	return errors.Join(errs...)
}

// rounds does what is due now and then.
func (s *Settlement) rounds(ctx context.Context) error {
	if time.Since(s.counted) > countEvery {
		if err := s.countWaiting(ctx); err != nil {
			return err
		}
	}
	if time.Since(s.forgot) > forgetEvery {
		if _, err := s.Pool.Exec(ctx, store.SettlementUnknownForget, s.Config.ParkMax); err != nil {
			return err
		}
		for range 100 { // the next hour goes on
			tag, err := s.Pool.Exec(ctx, store.SettlementExceptionForget, exceptionsKept, pageRows)
			if err != nil {
				return err
			}
			if tag.RowsAffected() < pageRows {
				break
			}
		}
		s.forgot = time.Now()
	}
	return nil
}

// swept is what one transaction of a sweep did.
type swept struct {
	rows int
	more bool   // there is more to look at
	done func() // after COMMIT
}

// sweepStep is one transaction of a sweep, if no other process is at it.
func (s *Settlement) sweepStep(ctx context.Context, name string, lock int32, step func(context.Context, pgx.Tx, *work) (swept, error)) (more bool, err error) {
	var w *work
	var did swept
	err = store.Retry(ctx, s.Pool, func(tx pgx.Tx) error {
		w = newWork(s.Node.IDs, s.Settings.Current())
		var locked bool
		if err := tx.QueryRow(ctx, store.SettlementLock, lockSweep, lock).Scan(&locked); err != nil {
			return err
		}
		if !locked {
			return errSkip
		}
		did, err = step(ctx, tx, w)
		return err
	})
	if errors.Is(err, errSkip) {
		return false, nil
	}
	if err != nil {
		return false, err
	}
	if did.done != nil {
		did.done()
	}
	s.metrics.swept.WithLabelValues(name).Add(float64(did.rows))
	s.committed(ctx, &w.Outcome)
	return did.more, nil
}

// queued is a command that the walk over the queue has looked at.
type queued struct {
	id, message, phone   int64
	channel              int32
	attempt, part, parts int16
	node                 int16
	at                   time.Time
	expired              bool
	age                  int64 // ms since dispatch by a living node, 0 for others
}

// sweepQueue ends commands whose validity has passed, and makes those unknown whose answer is overdue.
func (s *Settlement) sweepQueue(ctx context.Context, tx pgx.Tx, w *work) (swept, error) {
	rows, err := tx.Query(ctx, store.SettlementOutboxPage, s.walk, pageRows, oldest(w.now))
	if err != nil {
		return swept{}, err
	}
	page, err := pgx.CollectRows(rows, func(row pgx.CollectableRow) (q queued, err error) {
		err = row.Scan(&q.id, &q.message, &q.channel, &q.attempt, &q.part, &q.parts, &q.node, &q.at, &q.phone, &q.expired, &q.age)
		return q, err
	})
	if err != nil {
		return swept{}, err
	}
	// A page ends where its transaction would become too large.
	var expired, stale []queued
	next := int64(0)
	for i, q := range page {
		switch {
		case q.expired:
			expired = append(expired, q)
		case time.Duration(q.age)*time.Millisecond > responseOf(w.snap, q.channel)+staleAfter:
			stale = append(stale, q)
		}
		next = q.id
		if len(expired)+len(stale) == sweepRows {
			page = page[:i+1]
			break
		}
	}
	more := len(page) == pageRows || len(expired)+len(stale) == sweepRows
	did := swept{rows: len(expired) + len(stale), more: more, done: func() {
		if s.walk = next; !more {
			s.walk = 0
		}
	}}
	if did.rows == 0 {
		return did, nil
	}
	return did, s.endQueued(ctx, tx, w, expired, stale)
}

func responseOf(snap *settings.Snapshot, channel int32) time.Duration {
	if ch := snap.Channels[channel]; ch != nil {
		return time.Duration(ch.ResponseSeconds) * time.Second
	}
	return response
}

func oldest(now time.Time) int64 { return message.FirstID(now.Add(-keptDays)) }

func (s *Settlement) endQueued(ctx context.Context, tx pgx.Tx, w *work, expired, stale []queued) error {
	stale, err := hold(ctx, tx, stale)
	if err != nil {
		return err
	}
	results := make([]event.SubmitResult, len(stale))
	for i, q := range stale {
		r := event.SubmitResult{SubmitID: q.id, MessageID: q.message, ChannelID: q.channel, State: event.Unknown, Node: q.node, Attempt: q.attempt, Part: q.part, Parts: q.parts}
		if ch := w.snap.Channels[q.channel]; ch != nil {
			r.AccountID = ch.AccountID
		}
		results[i] = r
		w.also = append(w.also, q.message)
	}
	var gone []submit
	if len(expired) > 0 {
		ids := make([]int64, len(expired))
		for i, q := range expired {
			ids[i] = q.id
			w.also = append(w.also, q.message)
		}
		if gone, err = w.withdrawn(ctx, tx, ids); err != nil {
			return err
		}
	}
	// One statement locks the messages of both.
	if err := w.load(ctx, tx, w.also); err != nil {
		return err
	}
	for i := range gone {
		if m := w.msgs[gone[i].message]; m != nil {
			w.withdraw(ctx, m, message.Expired, message.ReasonExpired)
		}
	}
	if len(results) > 0 {
		return w.results(ctx, tx, results)
	}
	return w.write(ctx, tx)
}

// hold locks dispatched commands that are as they were when the page was read.
func hold(ctx context.Context, tx pgx.Tx, list []queued) ([]queued, error) {
	if len(list) == 0 {
		return nil, nil
	}
	ids, nodes, at := make([]int64, len(list)), make([]int16, len(list)), make([]time.Time, len(list))
	for i, q := range list {
		ids[i], nodes[i], at[i] = q.id, q.node, q.at
	}
	rows, err := tx.Query(ctx, store.SettlementStale, ids, nodes, at)
	if err != nil {
		return nil, err
	}
	held, err := pgx.CollectRows(rows, pgx.RowTo[int64])
	return slices.DeleteFunc(list, func(q queued) bool { return !slices.Contains(held, q.id) }), err
}

func (w *work) withdrawn(ctx context.Context, tx pgx.Tx, ids []int64) ([]submit, error) {
	rows, err := tx.Query(ctx, store.SettlementWithdraw, sorted(ids))
	if err != nil {
		return nil, err
	}
	return pgx.CollectRows(rows, func(row pgx.CollectableRow) (s submit, err error) {
		err = row.Scan(&s.id, &s.message, &s.retryOf, &s.channel, &s.attempt, &s.part)
		return s, err
	})
}

// links say which channels can send now (up), and which could not for so long that their commands go elsewhere (lost).
type links struct {
	up, lost map[int32]bool
	known    map[int32]bool
}

func readLinks(ctx context.Context, tx pgx.Tx, after time.Duration) (l links, err error) {
	l = links{map[int32]bool{}, map[int32]bool{}, map[int32]bool{}}
	rows, err := tx.Query(ctx, store.SettlementLinks, after)
	if err != nil {
		return l, err
	}
	var id int32
	var up, lost bool
	_, err = pgx.ForEachRow(rows, []any{&id, &up, &lost}, func() error {
		l.up[id], l.lost[id], l.known[id] = up, lost, true
		return nil
	})
	return l, err
}

// waiting is a pending command of a channel that cannot send it, and what is to become of it.
type waiting struct {
	id, message, retryOf, phone, pos int64
	lane                             int16
	app                              int32
	carrier, parts                   int16
	signature                        string

	to int32 // the channel it moves to, 0 = it ends
}

// sweepReroute looks for commands of channels that are disabled, gone, or down for too long, and moves them: to another
// candidate, or, when their channel is disabled and there is none, to their end. Those of a channel that is down wait for
// it when nothing else is up.
func (s *Settlement) sweepReroute(ctx context.Context, tx pgx.Tx, w *work) (did swept, err error) {
	rows, err := tx.Query(ctx, store.SettlementChannels)
	if err != nil {
		return swept{}, err
	}
	channels, err := pgx.CollectRows(rows, pgx.RowTo[int32])
	if err != nil || len(channels) == 0 {
		return swept{}, err
	}
	l, err := readLinks(ctx, tx, s.Outbox.RerouteAfter)
	if err != nil {
		return swept{}, err
	}
	next := map[int32]place{}
	var moving []waiting
	budget := sweepRows
	for _, id := range channels {
		off, leaves := w.barred(id)
		if budget == 0 {
			did.more = true
			break
		}
		if !leaves && !l.lost[id] && l.known[id] {
			continue
		}
		from := s.reroute[id]
		page, err := readWaiting(ctx, tx, id, from, budget, oldest(w.now))
		if err != nil {
			return swept{}, err
		}
		if len(page) == budget { // the next transaction goes on behind them; else it begins again
			last := page[len(page)-1]
			next[id], did.more = place{last.lane, last.pos}, true
		}
		budget -= len(page)
		if !leaves && !l.known[id] { // never seen: its first connection may be about to open
			page = slices.DeleteFunc(page, func(q waiting) bool { return w.now.Sub(message.TimeOf(q.id)) < s.Outbox.RerouteAfter })
		}
		routed, err := w.routes(ctx, tx, id, off, page, l)
		if err != nil {
			return swept{}, err
		}
		moving = append(moving, routed...)
	}
	did.rows, did.done = len(moving), func() { s.reroute = next }
	return did, w.move(ctx, tx, moving)
}

func readWaiting(ctx context.Context, tx pgx.Tx, channel int32, from place, limit int, lowest int64) ([]waiting, error) {
	rows, err := tx.Query(ctx, store.SettlementReroutePage, channel, from.lane, from.pos, limit, lowest)
	if err != nil {
		return nil, err
	}
	return pgx.CollectRows(rows, func(row pgx.CollectableRow) (q waiting, err error) {
		err = row.Scan(&q.id, &q.message, &q.retryOf, &q.lane, &q.pos, &q.phone, &q.app, &q.carrier, &q.parts, &q.signature)
		return q, err
	})
}

// routes decides where commands of one channel go; those that stay are left out.
func (w *work) routes(ctx context.Context, tx pgx.Tx, channel int32, off bool, page []waiting, l links) ([]waiting, error) {
	var chains []int64
	for _, q := range page {
		chains = append(chains, q.retryOf)
	}
	if err := w.loadTried(ctx, tx, chains); err != nil {
		return nil, err
	}
	var silent []int32
	for id := range w.snap.Channels {
		if !l.up[id] || w.passed(id) {
			silent = append(silent, id)
		}
	}
	var moving []waiting
	for _, q := range page {
		group := int32(0)
		if app := w.snap.Applications[q.app]; app != nil && q.parts == 1 { // parts of a long message do not travel apart
			group = app.Routes[routing.Carrier(q.carrier)]
		}
		tried := w.chain(&submit{channel: channel, retryOf: q.retryOf})
		choices := [][]int32{append(slices.Clone(tried), silent...), append(slices.Clone(silent), channel)}
		if off {
			choices = [][]int32{choices[0], tried, {channel}}
		}
		for _, not := range choices {
			if c, ok := w.pick(group, q.phone, not, q.app, q.signature); ok {
				q.to = c
				break
			}
		}
		if q.to != 0 || off {
			moving = append(moving, q)
		}
	}
	return moving, nil
}

// move withdraws commands and writes those that follow them. One that an edge has dispatched meanwhile stays.
func (w *work) move(ctx context.Context, tx pgx.Tx, moving []waiting) error {
	if len(moving) == 0 {
		return nil
	}
	ids, messages := make([]int64, len(moving)), make([]int64, len(moving))
	to := make(map[int64]int32, len(moving))
	for i, q := range moving {
		ids[i], messages[i], to[q.id] = q.id, q.message, q.to
	}
	gone, err := w.withdrawn(ctx, tx, ids)
	if err != nil {
		return err
	}
	if err := w.load(ctx, tx, messages); err != nil {
		return err
	}
	for i := range gone {
		q := &gone[i]
		m := w.msgs[q.message]
		switch {
		case m == nil || m.state.Final():
		case to[q.id] == 0:
			w.withdraw(ctx, m, message.Failed, message.ReasonRoute)
		default:
			// It was never sent: the attempt is the same, and the chain goes on with the refused ones before it.
			link := q.retryOf
			if link == 0 {
				link = q.id
			}
			m.changed, m.channel = true, to[q.id]
			w.command(ctx, m, link, to[q.id], 0, q.attempt, q.part)
			w.Resent++
		}
	}
	return w.write(ctx, tx)
}

// sweepOverdue walks behind the present at the distance of ReceiptWait and marks messages that still wait for a receipt.
// Its place is kept under shard 0, which is no node.
func (s *Settlement) sweepOverdue(ctx context.Context, tx pgx.Tx, w *work) (swept, error) {
	var from int64
	err := tx.QueryRow(ctx, store.SettlementCursor, 0).Scan(&from)
	if errors.Is(err, pgx.ErrNoRows) {
		_, err = tx.Exec(ctx, store.SettlementCursorNew, 0)
	}
	if err != nil {
		return swept{}, err
	}
	rows, err := tx.Query(ctx, store.SettlementOverduePage, from, message.FirstID(w.now.Add(-s.Config.ReceiptWait)), pageRows)
	if err != nil {
		return swept{}, err
	}
	var id int64
	var waits bool
	var overdue []int64
	seen := 0
	_, err = pgx.ForEachRow(rows, []any{&id, &waits}, func() error {
		if len(overdue) == sweepRows {
			return nil
		}
		if waits {
			overdue = append(overdue, id)
		}
		from = id
		seen++
		return nil
	})
	if err != nil || seen == 0 {
		return swept{}, err
	}
	if err := w.load(ctx, tx, overdue); err != nil {
		return swept{}, err
	}
	for _, m := range w.msgs {
		w.expireReceipt(ctx, m)
	}
	var q pgx.Batch
	if err := w.queue(&q); err != nil {
		return swept{}, err
	}
	q.Queue(store.SettlementCursorMove, 0, from)
	w.queueAccounts(&q)
	return swept{rows: len(overdue), more: seen == pageRows || len(overdue) == sweepRows}, send(ctx, tx, &q)
}
