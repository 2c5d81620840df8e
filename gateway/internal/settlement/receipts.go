package settlement

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"time"

	"github.com/jackc/pgx/v5"

	"cmppgateway/gateway/cmpp"
	"cmppgateway/gateway/internal/message"
	"cmppgateway/gateway/internal/store"
)

// matchDays is how far back the submit of a report is looked for (data §1.15).
const matchDays = 4

// receipt is a supplier's status report.
type receipt struct {
	seq, event, supplierMsgID, phone int64
	at                               time.Time
	account                          int32
	stat, submitTime, doneTime, src  string
	tries                            int16
	candidates                       []int64 // unknown submits it may be about
	atOnce                           bool    // parked again, and due
}

// reportTime reads YYMMDDHHMM of a report.
func reportTime(text string) (time.Time, bool) {
	t, err := time.ParseInLocation("0601021504", text, cmpp.Shanghai)
	return t, err == nil
}

// done is the done time of the report, or now when it has none that can be read.
func (r *receipt) done(now time.Time) time.Time {
	if t, ok := reportTime(r.doneTime); ok {
		return t
	}
	return now
}

// settle settles all shards that have receipts, until none has.
func (s *Settlement) settle(ctx context.Context) error {
	if !s.begun { // a shard without a cursor is never looked at
		if _, err := s.Pool.Exec(ctx, store.SettlementCursorNew, s.Node.Number); err != nil {
			return err
		}
		s.begun = true
	}
	for ctx.Err() == nil {
		rows, err := s.Pool.Query(ctx, store.SettlementCursorReady)
		if err != nil {
			return err
		}
		shards, err := pgx.CollectRows(rows, pgx.RowTo[int16])
		if err != nil {
			return err
		}
		busy := false
		for _, shard := range shards {
			n, err := s.settleShard(context.WithoutCancel(ctx), shard)
			if err != nil {
				return fmt.Errorf("shard %d: %w", shard, err)
			}
			busy = busy || n > 0
		}
		if !busy {
			return nil
		}
	}
	return nil
}

// settleShard settles the next receipts of a shard. A receipt that fails alone is parked, and tried again from there.
func (s *Settlement) settleShard(ctx context.Context, shard int16) (int, error) {
	limit := s.limits[shard]
	if limit == 0 {
		limit = s.Config.BatchMax
	}
	n, err := s.shardBatch(ctx, shard, limit, false)
	if err == nil {
		s.limits[shard] = min(2*limit, s.Config.BatchMax)
		return n, nil
	}
	if !permanent(err) {
		return 0, err
	}
	if n > 1 {
		s.limits[shard] = (n + 1) / 2
		return n, nil
	}
	s.Log.Error("receipt parked: it fails alone", slog.Int("shard", int(shard)), slog.Any("error", err))
	return s.shardBatch(ctx, shard, 1, true)
}

// permanent says that the same transaction would fail again. A broken guard is none: what it guards has changed.
func permanent(err error) bool {
	return err != nil && !store.IsTransient(err) && store.Code(err) != store.CodeGuard && !errors.Is(err, context.Canceled)
}

// shardBatch is one transaction of T6: read above the cursor, match, decide, write, move the cursor.
func (s *Settlement) shardBatch(ctx context.Context, shard int16, limit int, park bool) (n int, err error) {
	start := time.Now()
	var w *work
	var counts map[string]int
	err = store.Retry(ctx, s.Pool, func(tx pgx.Tx) error {
		w, counts = newWork(s.Node.IDs, s.Settings.Current()), map[string]int{}
		var list []receipt
		locked := false
		var q pgx.Batch
		q.Queue(store.SettlementLock, lockShard, int32(shard)).QueryRow(func(row pgx.Row) error { return row.Scan(&locked) })
		q.Queue(store.SettlementReceipts, shard, limit).Query(func(rows pgx.Rows) (err error) {
			list, err = pgx.CollectRows(rows, func(row pgx.CollectableRow) (r receipt, err error) {
				err = row.Scan(&r.seq, &r.event, &r.supplierMsgID, &r.phone, &r.at, &r.account, &r.stat, &r.submitTime, &r.doneTime, &r.src)
				return r, err
			})
			return err
		})
		if err := send(ctx, tx, &q); err != nil {
			return err
		}
		n = len(list)
		if !locked || n == 0 {
			n = 0
			return errSkip
		}
		missed := list
		var behind []receipt
		if !park {
			var first []receipt
			if first, behind, err = w.behindParked(ctx, tx, list); err != nil {
				return err
			}
			if missed, err = w.receipts(ctx, tx, first, counts); err != nil {
				return err
			}
			missed = append(missed, behind...)
		}
		counts["parked"] = len(missed)
		var out pgx.Batch
		if err := w.queue(&out); err != nil {
			return err
		}
		queuePark(&out, missed)
		if len(behind) > 0 {
			out.Queue(store.SettlementParkedNudge, sorted(msgIDsOf(behind)))
		}
		out.Queue(store.SettlementCursorMove, shard, list[n-1].seq)
		w.queueAccounts(&out)
		return send(ctx, tx, &out)
	})
	if errors.Is(err, errSkip) {
		return 0, nil
	}
	if err != nil {
		return n, err
	}
	s.metrics.apply.WithLabelValues("receipts").Observe(time.Since(start).Seconds())
	s.count(counts)
	s.committed(ctx, &w.Outcome)
	return n, nil
}

func msgIDsOf(list []receipt) []int64 {
	ids := make([]int64, len(list))
	for i := range list {
		ids[i] = list[i].supplierMsgID
	}
	return ids
}

// behindParked splits off the receipts about a Msg_Id that has parked ones: a report that came before its submit was known
// must not be overtaken by one that contradicts it. They are parked too, and all of them tried at once, in their order.
func (w *work) behindParked(ctx context.Context, tx pgx.Tx, list []receipt) (first, behind []receipt, err error) {
	rows, err := tx.Query(ctx, store.SettlementParkedSame, sorted(msgIDsOf(list)))
	if err != nil {
		return nil, nil, err
	}
	parked, err := pgx.CollectRows(rows, pgx.RowTo[int64])
	if err != nil || len(parked) == 0 {
		return list, nil, err
	}
	for _, r := range list {
		if r.supplierMsgID != 0 && slices.Contains(parked, r.supplierMsgID) {
			behind = append(behind, r)
		} else {
			first = append(first, r)
		}
	}
	return first, behind, nil
}

func (s *Settlement) count(counts map[string]int) {
	for outcome, n := range counts {
		s.metrics.receipts.WithLabelValues(outcome).Add(float64(n))
	}
}

func queuePark(q *pgx.Batch, list []receipt) {
	if len(list) == 0 {
		return
	}
	var events, msgIDs, phones []int64
	var at []time.Time
	var accounts []int32
	var stats, submitTimes, doneTimes, srcs []string
	for _, r := range list {
		events, msgIDs, phones, at = append(events, r.event), append(msgIDs, r.supplierMsgID), append(phones, r.phone), append(at, r.at)
		accounts, stats, srcs = append(accounts, r.account), append(stats, r.stat), append(srcs, r.src)
		submitTimes, doneTimes = append(submitTimes, r.submitTime), append(doneTimes, r.doneTime)
	}
	q.Queue(store.SettlementPark, events, msgIDs, phones, at, accounts, stats, submitTimes, doneTimes, srcs, milliseconds(parkedEvery))
}

// receipts matches reports to their submits and applies them, in the order given; missed are those whose submit is not
// known.
func (w *work) receipts(ctx context.Context, tx pgx.Tx, list []receipt, counts map[string]int) (missed []receipt, err error) {
	var msgIDs []int64
	for i := range list {
		if message.FinalStat(list[i].stat) && list[i].supplierMsgID != 0 { // 0 is no id: submits without one have it
			msgIDs = append(msgIDs, list[i].supplierMsgID)
		}
	}
	candidates, err := w.candidates(ctx, tx, sorted(msgIDs))
	if err != nil {
		return nil, err
	}
	messages := w.also
	for _, found := range candidates {
		for _, s := range found {
			messages = append(messages, s.message)
		}
	}
	if err := w.load(ctx, tx, messages); err != nil {
		return nil, err
	}
	if err := w.loadTried(ctx, tx, w.failedChains(candidates)); err != nil {
		return nil, err
	}
	for i := range list {
		r := &list[i]
		if !message.FinalStat(r.stat) {
			counts["intermediate"]++
			continue
		}
		s := w.choose(r, candidates[r.supplierMsgID])
		if s == nil {
			missed = append(missed, *r)
			continue
		}
		before := w.Outcome
		w.apply(ctx, s, r)
		switch {
		case w.Contradicted > before.Contradicted:
			counts["contradicted"]++
		case w.Repeated > before.Repeated:
			counts["repeated"]++
		default:
			counts["settled"]++
		}
	}
	return missed, nil
}

// candidates are the submits with one of the supplier's Msg_Ids, by Msg_Id.
func (w *work) candidates(ctx context.Context, tx pgx.Tx, msgIDs []int64) (map[int64][]submit, error) {
	found := make(map[int64][]submit, len(msgIDs))
	if len(msgIDs) == 0 {
		return found, nil
	}
	lowest := message.FirstID(w.now.UTC().Truncate(24*time.Hour).AddDate(0, 0, 1-matchDays))
	aliases := map[int64][]int64{} // submit → other Msg_Ids it was answered with
	var q pgx.Batch
	q.Queue(store.SettlementMatch, msgIDs, lowest).Query(func(rows pgx.Rows) error {
		list, err := pgx.CollectRows(rows, scanSubmit)
		for _, s := range list {
			found[s.supplierMsgID] = append(found[s.supplierMsgID], s)
		}
		return err
	})
	q.Queue(store.SettlementMatchAlias, msgIDs).Query(func(rows pgx.Rows) error {
		var msgID, id int64
		_, err := pgx.ForEachRow(rows, []any{&msgID, &id}, func() error {
			aliases[id] = append(aliases[id], msgID)
			return nil
		})
		return err
	})
	if err := send(ctx, tx, &q); err != nil || len(aliases) == 0 {
		return found, err
	}
	list, err := readSubmits(ctx, tx, sortedKeys(aliases))
	for _, s := range list {
		for _, msgID := range aliases[s.id] {
			found[msgID] = append(found[msgID], s)
		}
	}
	return found, err
}

// choose is the submit that a report is about: of the reports' account, the newest whose message goes to that number and
// has not ended, since suppliers use their ids again; else the newest.
func (w *work) choose(r *receipt, candidates []submit) *submit {
	var best *submit
	rank := func(s *submit) (n int) {
		m := w.msgs[s.message]
		if m != nil && (m.phone == r.phone || r.phone == 0) {
			n += 2
			if !m.state.Final() {
				n++
			}
		}
		return n
	}
	for i := range candidates {
		s := &candidates[i]
		if s.account != r.account {
			continue
		}
		if best == nil || rank(s) > rank(best) || rank(s) == rank(best) && s.id > best.id {
			best = s
		}
	}
	return best
}

// apply applies a report to the submit it is about.
func (w *work) apply(ctx context.Context, s *submit, r *receipt) {
	m := w.msgs[s.message]
	switch {
	case m == nil:
		w.exception(r.event, s, kindContradiction, "message not found, then "+r.stat)
	case r.phone != 0 && r.phone != m.phone:
		w.exception(r.event, s, kindRecipient, r.stat) // numbers stay out of what people read
	case s.state != message.Accepted:
		w.exception(r.event, s, kindNotAccepted, r.stat)
	default:
		w.Moved++
		w.report(ctx, m, s, r)
	}
}
