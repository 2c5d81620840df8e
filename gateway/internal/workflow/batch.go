package workflow

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strconv"
	"time"

	"github.com/jackc/pgx/v5"

	"cmppgateway/gateway/internal/failpoint"
	"cmppgateway/gateway/internal/ledger"
	"cmppgateway/gateway/internal/message"
	"cmppgateway/gateway/internal/outbox"
	"cmppgateway/gateway/internal/policy"
	"cmppgateway/gateway/internal/store"
	"cmppgateway/gateway/internal/wake"
	"cmppgateway/gateway/sms"
)

// row is one inbox row.
type row struct {
	id, msgID, session                             int64
	acceptedAt                                     time.Time
	validUntil                                     *time.Time
	enterprise, app, weight                        int32
	node, registered, fmt, udhi, pkTotal, pkNumber int16
	dest, src, service, content                    []byte
	seq                                            int64
	atTime                                         *time.Time
	ends                                           message.State // 0 = it is to be sent
	joined                                         *joined       // nil = one SUBMIT

	// of a segment that waits
	set, key, repeats int64 // set 0 = it has just come
	since, due        time.Time

	messages []int64 // made of it, one for each recipient
}

// terms are an application's price, status and policy in this transaction.
type terms struct {
	enterprise                  int32
	appActive, enterpriseActive bool
	price                       int64
	priceVersion                int32
	unitRule                    sms.UnitRule
	chargeOn                    message.ChargeOn
	refundOn                    message.RefundOn
	lane                        message.Lane
}

// mode says how a batch is run again after it failed.
type mode struct {
	only   map[int64]bool // these rows, nil = all claimed
	lock   bool           // hold the accounts while the batch is cut to what they can pay
	refuse error          // refuse the (single) row with SYSTEM, for this error
	due    *dueSet        // no rows of the inbox, but this set of segments
}

// batch is one transaction's work.
type batch struct {
	claimed   []row // they leave the inbox
	rows      []row // of them, those that become messages now; and joined ones
	waits     waits
	segments  segments
	from      map[int32]int64 // floor used, per enterprise
	terms     map[int32]terms
	funds     map[int32]int64
	messages  messages
	submits   submits
	refusals  refusals
	holds     holds
	uses      uses
	now       time.Time // of the transaction
	used      []used    // today, before this batch
	keywords  map[hit]int
	deads     []deadLetter
	freezes   []ledger.Entry
	commands  map[int32][]outbox.Command
	refusedBy map[message.Reason]int
}

// hit is a keyword found in messages of an enterprise.
type hit struct {
	action     policy.Action
	keyword    int32
	enterprise int32
}

type deadLetter struct {
	id     int64
	reason string
	raw    []byte
}

// errShort says that an account cannot pay the whole batch; it is run again with the account held and cut.
var errShort = errors.New("account too short for the batch")

// process runs one batch of the enterprises and returns how many inbox rows it took.
func (w *Workflow) process(ctx context.Context, enterprises []int32) (int, error) {
	b, err := w.try(ctx, enterprises, mode{})
	if err == nil || store.IsTransient(err) || len(b.claimed) == 0 {
		return len(b.claimed), err
	}
	return w.isolate(ctx, enterprises, ids(b.claimed), err)
}

// isolate halves a batch that fails for good until the failing row is alone, and refuses that one.
func (w *Workflow) isolate(ctx context.Context, enterprises []int32, rows []int64, cause error) (int, error) {
	if len(rows) == 1 {
		w.Log.Error("inbox row refused: it fails alone", slog.Int64("inbox_id", rows[0]), slog.Any("error", cause))
		b, err := w.try(ctx, enterprises, mode{only: map[int64]bool{rows[0]: true}, refuse: cause})
		return len(b.claimed), err
	}
	total := 0
	for _, half := range [][]int64{rows[:len(rows)/2], rows[len(rows)/2:]} {
		only := make(map[int64]bool, len(half))
		for _, id := range half {
			only[id] = true
		}
		b, err := w.try(ctx, enterprises, mode{only: only})
		n := len(b.claimed)
		if err != nil && !store.IsTransient(err) && n > 0 {
			n, err = w.isolate(ctx, enterprises, ids(b.claimed), err)
		}
		if err != nil {
			return total, err
		}
		total += n
	}
	return total, nil
}

func ids(rows []row) []int64 {
	list := make([]int64, len(rows))
	for i, r := range rows {
		list[i] = r.id
	}
	return list
}

// try runs one batch as one transaction, again after conflicts and, once, with the accounts held when one is too short.
func (w *Workflow) try(ctx context.Context, enterprises []int32, m mode) (*batch, error) {
	start := time.Now()
	b := &batch{}
	run := func() error {
		return store.Retry(ctx, w.Pool, func(tx pgx.Tx) error {
			fresh := &batch{from: map[int32]int64{}, terms: map[int32]terms{}, funds: map[int32]int64{}, commands: map[int32][]outbox.Command{}, refusedBy: map[message.Reason]int{}, keywords: map[hit]int{}}
			err := w.transact(ctx, tx, enterprises, m, fresh)
			b = fresh
			return err
		})
	}
	err := run()
	if !m.lock && (errors.Is(err, errShort) || ledger.IsShort(err)) {
		m.lock = true
		err = run()
	}
	if err != nil {
		return b, fmt.Errorf("workflow: %w", err)
	}
	if len(b.claimed)+len(b.rows) > 0 {
		w.metrics.apply.Observe(time.Since(start).Seconds())
		w.committed(ctx, b)
	}
	return b, nil
}

func (w *Workflow) transact(ctx context.Context, tx pgx.Tx, enterprises []int32, m mode, b *batch) error {
	if err := w.claim(ctx, tx, enterprises, m, b); err != nil || len(b.claimed) == 0 && m.due == nil {
		return err
	}
	if m.due != nil {
		if _, locked := b.from[m.due.enterprise]; !locked {
			return nil // a worker is at it; the next sweep comes
		}
	}
	if err := w.divide(ctx, tx, m, b); err != nil {
		return err
	}
	if err := w.decide(ctx, tx, m, b); err != nil {
		return err
	}
	var q pgx.Batch
	if len(b.claimed) > 0 {
		q.Queue(store.WorkflowTake, b.claimedIDs())
	}
	if err := b.waits.queue(&q); err != nil {
		return err
	}
	b.holds.queue(&q)
	b.messages.queue(&q)
	b.segments.queue(&q)
	b.submits.queue(&q)
	b.refusals.queue(&q)
	for _, d := range b.deads {
		q.Queue(store.WorkflowDeadLetter, d.id, d.reason, d.raw)
	}
	b.uses.queue(&q)
	ledger.Queue(&q, b.freezes)
	return tx.SendBatch(ctx, &q).Close()
}

// claim locks the enterprises and reads their oldest rows, terms and funds in one round trip.
func (w *Workflow) claim(ctx context.Context, tx pgx.Tx, enterprises []int32, m mode, b *batch) error {
	floors := w.floorsOf(enterprises)
	var q pgx.Batch
	locked := map[int32]bool{}
	q.Queue(store.WorkflowLock, enterprises).Query(func(rows pgx.Rows) error {
		var id int32
		_, err := pgx.ForEachRow(rows, []any{&id}, func() error {
			locked[id] = true
			return nil
		})
		return err
	})
	most := w.Config.BatchMax
	if m.due != nil {
		most = 0
	}
	q.Queue(store.WorkflowClaim, enterprises, floors, most).Query(func(rows pgx.Rows) error {
		for rows.Next() {
			var r row
			var segments []byte
			if err := rows.Scan(&r.id, &r.msgID, &r.session, &r.acceptedAt, &r.validUntil, &r.enterprise, &r.app, &r.weight, &r.node, &r.registered, &r.fmt, &r.udhi,
				&r.pkTotal, &r.pkNumber, &r.dest, &r.src, &r.service, &r.content, &r.seq, &r.atTime, &r.ends, &segments); err != nil {
				return err
			}
			var err error
			if r.joined, err = readJoined(segments); err != nil {
				return err
			}
			if locked[r.enterprise] && (m.only == nil || m.only[r.id]) {
				b.rows = append(b.rows, r)
			}
		}
		return rows.Err()
	})
	q.Queue(store.WorkflowTerms, enterprises).Query(func(rows pgx.Rows) error {
		var app int32
		var t terms
		_, err := pgx.ForEachRow(rows, []any{&app, &t.enterprise, &t.appActive, &t.enterpriseActive, &t.price, &t.priceVersion, &t.unitRule, &t.chargeOn, &t.refundOn, &t.lane}, func() error {
			b.terms[app] = t
			return nil
		})
		return err
	})
	q.Queue(store.WorkflowUse, enterprises).Query(func(rows pgx.Rows) error {
		var u used
		_, err := pgx.ForEachRow(rows, []any{&b.now, &u.enterprise, &u.app, &u.messages}, func() error {
			b.used = append(b.used, u)
			return nil
		})
		return err
	})
	funds := store.WorkflowFunds
	if m.lock {
		funds = store.WorkflowFundsLock
	}
	q.Queue(funds, enterprises).Query(func(rows pgx.Rows) error {
		var account int32
		var amount int64
		_, err := pgx.ForEachRow(rows, []any{&account, &amount}, func() error {
			b.funds[account] = amount
			return nil
		})
		return err
	})
	if err := tx.SendBatch(ctx, &q).Close(); err != nil {
		return err
	}
	for i, id := range enterprises {
		if locked[id] {
			b.from[id] = floors[i]
		}
	}
	b.claimed = w.cut(b.rows)
	return nil
}

// cut keeps rows up to the row and weight bounds; enterprises take turns, so that none fills a shared batch alone. One
// row may exceed the weight by itself.
func (w *Workflow) cut(rows []row) []row {
	queues, order := map[int32][]row{}, []int32{}
	for _, r := range rows {
		if queues[r.enterprise] == nil {
			order = append(order, r.enterprise)
		}
		queues[r.enterprise] = append(queues[r.enterprise], r)
	}
	kept, weight := make([]row, 0, len(rows)), 0
	for len(order) > 0 {
		open := order[:0:0]
		for _, id := range order {
			r := queues[id][0]
			if len(kept) > 0 && (len(kept) == w.Config.BatchMax || weight+int(r.weight) > w.Config.BatchWeightMax) {
				return kept
			}
			kept, weight = append(kept, r), weight+int(r.weight)
			if queues[id] = queues[id][1:]; len(queues[id]) > 0 {
				open = append(open, id)
			}
		}
		order = open
	}
	return kept
}

// committed tells the edges and the metrics.
func (w *Workflow) committed(ctx context.Context, b *batch) {
	now := time.Now()
	highest, count := map[int32]int64{}, map[int32]int{}
	for _, r := range b.claimed {
		highest[r.enterprise] = max(highest[r.enterprise], r.id)
		count[r.enterprise]++
		w.metrics.wait.WithLabelValues(label(r.enterprise)).Observe(now.Sub(r.acceptedAt).Seconds())
	}
	for id, n := range count {
		w.advance(id, b.from[id], highest[id])
		w.metrics.rows.WithLabelValues(label(id)).Observe(float64(n))
	}
	for reason, n := range b.refusedBy {
		name := reason.String()
		if reason == message.NoReason {
			name = "passed"
		}
		w.metrics.messages.WithLabelValues(name).Add(float64(n))
	}
	for h, n := range b.keywords {
		w.metrics.keywords.WithLabelValues(h.action.String()).Add(float64(n))
		if h.action == policy.Alert {
			w.Log.Warn("keyword alert", slog.Int("keyword_id", int(h.keyword)), slog.Int("enterprise_id", int(h.enterprise)), slog.Int("messages", n))
		}
	}
	failpoint.Hit(failpoint.AfterWorkflowCommit)
	for channel, commands := range b.commands {
		w.Hints.Hint(ctx, channel, commands)
		failpoint.Hit(failpoint.BetweenHints)
	}
	if len(b.refusals.id) > 0 {
		w.Wake.Publish(wake.Deliveries)
	}
}

func label(enterprise int32) string { return strconv.Itoa(int(enterprise)) }
