package settlement

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"

	"cmppgateway/gateway/internal/message"
	"cmppgateway/gateway/internal/store"
)

const (
	parkedMax = 5 * time.Minute // most time between two tries
	// bindWithin is how far the Submit_time of a report may be from the dispatch of an unknown submit: report times have
	// minutes only, and the supplier's clock is its own (data §1.4).
	bindWithin = 10 * time.Minute
)

// parked tries parked receipts again whose time has come.
func (s *Settlement) parked(ctx context.Context) error {
	for ctx.Err() == nil {
		n, err := s.parkedBatch(context.WithoutCancel(ctx))
		if err != nil || n == 0 {
			return err
		}
	}
	return nil
}

// parkedBatch is one transaction of the sweeper. Nobody else changes parked rows, so its advisory lock is all they need.
func (s *Settlement) parkedBatch(ctx context.Context) (n int, err error) {
	limit := sweepRows
	if s.alone {
		limit = 1
	}
	n, err = s.parkedTx(ctx, limit, false)
	switch {
	case !permanent(err):
		s.alone = s.alone && err == nil && n > 0 // until the failing one is found, or gone
		return n, err
	case n > 1:
		s.alone = true
		return n, nil
	}
	s.Log.Error("parked receipt fails", slog.Any("error", err))
	s.alone = false
	return s.parkedTx(ctx, 1, true)
}

func (s *Settlement) parkedTx(ctx context.Context, limit int, later bool) (n int, err error) {
	start := time.Now()
	var w *work
	var counts map[string]int
	err = store.Retry(ctx, s.Pool, func(tx pgx.Tx) error {
		w, counts = newWork(s.Node.IDs, s.Settings.Current()), map[string]int{}
		var list []receipt
		locked := false
		var q pgx.Batch
		q.Queue(store.SettlementLock, lockSweep, sweepParked).QueryRow(func(row pgx.Row) error { return row.Scan(&locked) })
		q.Queue(store.SettlementParked, limit).Query(func(rows pgx.Rows) (err error) {
			list, err = pgx.CollectRows(rows, func(row pgx.CollectableRow) (r receipt, err error) {
				err = row.Scan(&r.event, &r.supplierMsgID, &r.phone, &r.at, &r.account, &r.stat, &r.submitTime, &r.doneTime, &r.src, &r.tries)
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
		slices.SortFunc(list, func(a, b receipt) int { return cmp.Compare(a.event, b.event) }) // as they came
		left := list
		var closed bindings
		if !later {
			if left, closed, err = s.retry(ctx, tx, w, list, counts); err != nil {
				return err
			}
		}
		for _, r := range left {
			if w.now.Sub(r.at) >= s.Config.ParkMax {
				w.exception(r.event, &submit{supplierMsgID: r.supplierMsgID, account: r.account}, kindUnmatched, r.stat, r.candidates...)
			}
		}
		var out pgx.Batch
		if err := w.queue(&out); err != nil {
			return err
		}
		closed.queue(&out)
		events := make([]int64, n)
		for i := range list {
			events[i] = list[i].event
		}
		out.Queue(store.SettlementParkedHold, sorted(events))
		if err := s.queueParked(&out, w.now, list, left, counts); err != nil {
			return err
		}
		w.queueAccounts(&out)
		return send(ctx, tx, &out)
	})
	if errors.Is(err, errSkip) {
		return 0, nil
	}
	if err != nil {
		return n, err
	}
	s.metrics.apply.WithLabelValues("parked").Observe(time.Since(start).Seconds())
	s.count(counts)
	s.committed(ctx, &w.Outcome)
	return n, nil
}

// queueParked removes what is settled and puts the next try of what is left off, or makes dead letters of it.
func (s *Settlement) queueParked(q *pgx.Batch, now time.Time, list, left []receipt, counts map[string]int) error {
	var dead []int64
	again, atOnce := map[int16][]int64{}, map[int16][]int64{} // by tries
	var reasons []string
	var raws [][]byte
	slices.SortFunc(left, func(a, b receipt) int { return cmp.Compare(a.event, b.event) })
	gone := map[int64]bool{}
	for _, r := range list {
		gone[r.event] = true
	}
	for _, r := range left {
		if now.Sub(r.at) < s.Config.ParkMax {
			gone[r.event] = false
			if r.atOnce {
				atOnce[r.tries] = append(atOnce[r.tries], r.event)
			} else {
				again[r.tries] = append(again[r.tries], r.event)
			}
			continue
		}
		raw, err := json.Marshal(map[string]any{
			"account": r.account, "supplierMsgId": strconv.FormatUint(uint64(r.supplierMsgID), 10), "phone": r.phone, "stat": r.stat, "submitTime": r.submitTime,
			"doneTime": r.doneTime, "src": r.src, "at": r.at, "candidates": r.candidates,
		})
		if err != nil {
			return err
		}
		dead, reasons, raws = append(dead, r.event), append(reasons, "no submit with its Msg_Id"), append(raws, raw)
	}
	for _, tries := range sortedKeys(again) {
		wait := min(parkedEvery<<min(max(tries, 0)+1, 20), parkedMax)
		q.Queue(store.SettlementParkedLater, again[tries], milliseconds(wait), tries)
	}
	for _, tries := range sortedKeys(atOnce) {
		q.Queue(store.SettlementParkedLater, atOnce[tries], int32(0), tries)
	}
	drop := slices.DeleteFunc(sortedKeys(gone), func(id int64) bool { return !gone[id] })
	if len(drop) > 0 {
		q.Queue(store.SettlementParkedDrop, drop)
	}
	if len(dead) > 0 {
		q.Queue(store.SettlementDeadLetter, dead, "receipt", reasons, raws)
	}
	counts["dead"] = len(dead)
	return nil
}

// retry matches parked receipts again; those old enough are bound to unknown submits.
func (s *Settlement) retry(ctx context.Context, tx pgx.Tx, w *work, list []receipt, counts map[string]int) (left []receipt, closed bindings, err error) {
	// What a binding would be about must be locked together with the rest.
	var old []receipt
	for _, r := range list {
		if w.now.Sub(r.at) >= s.Config.UnknownAfter && r.phone != 0 {
			old = append(old, r)
		}
	}
	found, err := w.readUnknown(ctx, tx, old)
	if err != nil {
		return nil, closed, err
	}
	rivals, err := w.readRivals(ctx, tx, old, found)
	if err != nil {
		return nil, closed, err
	}
	for _, u := range found {
		for i := range u {
			w.also = append(w.also, u[i].message)
		}
	}
	if left, err = w.receipts(ctx, tx, list, counts); err != nil {
		return nil, closed, err
	}
	if len(found) == 0 {
		return left, closed, nil
	}
	return w.bind(ctx, tx, left, found, rivals, counts)
}

// unknown is a submit that waits to be closed.
type unknown struct {
	submit, message int64
	dispatchedAt    time.Time
	part            int16
	src             []byte
	channel         int32
	closed          bool // as not sent
}

// readUnknown finds the unknown submits that could be meant, by event: of the reports' account, to the same number, from the
// same Src_Id and at about the same time.
func (w *work) readUnknown(ctx context.Context, tx pgx.Tx, list []receipt) (map[int64][]unknown, error) {
	if len(list) == 0 {
		return nil, nil
	}
	accounts, phones := make([]int32, len(list)), make([]int64, len(list))
	for i, r := range list {
		accounts[i], phones[i] = r.account, r.phone
	}
	rows, err := tx.Query(ctx, store.SettlementUnknownFind, accounts, phones)
	if err != nil {
		return nil, err
	}
	found := map[int64][]unknown{}
	var n int64
	var u unknown
	_, err = pgx.ForEachRow(rows, []any{&n, &u.submit, &u.message, &u.dispatchedAt, &u.part, &u.src, &u.channel, &u.closed}, func() error {
		r := &list[n-1]
		at, ok := reportTime(r.submitTime)
		if ok && at.Sub(u.dispatchedAt).Abs() <= bindWithin && w.sameSrc(r.src, string(u.src), u.channel) {
			x := u
			x.src = slices.Clone(u.src)
			found[r.event] = append(found[r.event], x)
		}
		return nil
	})
	return found, err
}

// sameSrc says that a report may be about a submit from used: suppliers put digits of their own before it. Where the Src_Id used
// is not known, it begins with the access number of the channel.
func (w *work) sameSrc(reported, used string, channel int32) bool {
	if used != "" {
		return strings.HasSuffix(reported, used)
	}
	ch := w.snap.Channels[channel]
	return ch == nil || strings.Contains(reported, ch.AccessNumber)
}

// number is where reports of an account may belong.
type number struct {
	account int32
	phone   int64
}

// readRivals finds the messages whose own answers are still to come, to the numbers of reports that have candidates.
func (w *work) readRivals(ctx context.Context, tx pgx.Tx, list []receipt, found map[int64][]unknown) (map[number]map[int64]bool, error) {
	var phones []int64
	accounts := map[int64][]int32{}
	for i := range list {
		if r := &list[i]; len(found[r.event]) > 0 {
			phones = append(phones, r.phone)
			accounts[r.phone] = append(accounts[r.phone], r.account)
		}
	}
	if len(phones) == 0 {
		return nil, nil
	}
	rows, err := tx.Query(ctx, store.SettlementRivals, sorted(phones), w.now.Add(-keptDays))
	if err != nil {
		return nil, err
	}
	rivals := map[number]map[int64]bool{}
	var phone, id int64
	var channel int32
	_, err = pgx.ForEachRow(rows, []any{&phone, &id, &channel}, func() error {
		for _, account := range accounts[phone] {
			if ch := w.snap.Channels[channel]; ch != nil && ch.AccountID != account {
				continue
			}
			k := number{account, phone}
			if rivals[k] == nil {
				rivals[k] = map[int64]bool{}
			}
			rivals[k][id] = true
		}
		return nil
	})
	return rivals, err
}

// single is the one unknown submit meant: the only candidate, or the first part of the only message.
func single(list []unknown, taken map[int64]bool) (u unknown, ok bool) {
	for _, closed := range []bool{false, true} {
		var first *unknown
		for i := range list {
			x := &list[i]
			if x.closed != closed || taken[x.submit] {
				continue
			}
			if first != nil && x.message != first.message {
				return unknown{}, false
			}
			if first == nil || x.part < first.part {
				first = x
			}
		}
		if first != nil {
			return *first, true
		}
	}
	return unknown{}, false
}

// pair is a report and the unknown submit it means.
type pair struct {
	r *receipt
	u unknown
}

// readSent finds, of the closed ones, those that an operator closed as sent: they are accepted without a Msg_Id.
func (w *work) readSent(ctx context.Context, tx pgx.Tx, pairs []pair) (map[int64]submit, error) {
	var ids []int64
	for _, p := range pairs {
		if p.u.closed {
			ids = append(ids, p.u.submit)
		}
	}
	if len(ids) == 0 {
		return nil, nil
	}
	list, err := readSubmits(ctx, tx, sorted(ids))
	sent := make(map[int64]submit, len(list))
	for _, s := range list {
		if s.state == message.Accepted && s.supplierMsgID == 0 {
			sent[s.id] = s
		}
	}
	return sent, err
}

// bindings are unknown submits that receipts have closed.
type bindings struct {
	accepted []int64 // no longer unknown
}

func (b *bindings) queue(q *pgx.Batch) {
	if len(b.accepted) > 0 {
		slices.Sort(b.accepted)
		q.Queue(store.SettlementUnknownDrop, b.accepted)
	}
}

// bind closes unknown submits by the receipts that can mean them only: accepted with the receipt's Msg_Id, and the receipt
// applied, in this transaction.
func (w *work) bind(ctx context.Context, tx pgx.Tx, list []receipt, found map[int64][]unknown, rivals map[number]map[int64]bool, counts map[string]int) (left []receipt, closed bindings, err error) {
	var pairs []pair
	taken, learned := map[int64]bool{}, map[[2]int64]bool{}
	for i := range list {
		r := &list[i]
		r.candidates = nil
		for _, u := range found[r.event] {
			r.candidates = append(r.candidates, u.submit)
		}
		slices.Sort(r.candidates)
		u, ok := single(found[r.event], taken)
		if !ok {
			if len(r.candidates) > 1 {
				w.exception(r.event, &submit{supplierMsgID: r.supplierMsgID, account: r.account}, kindAmbiguous, fmt.Sprintf("%d candidates", len(r.candidates)), r.candidates...)
			}
			left = append(left, *r)
			continue
		}
		if rivals := rivals[number{r.account, r.phone}]; len(rivals) > 1 || len(rivals) == 1 && !rivals[u.message] {
			counts["waits"]++
			left = append(left, *r) // an answer that is still to come may say that it is about another message
			continue
		}
		known := [2]int64{int64(r.account), r.supplierMsgID}
		if learned[known] {
			r.atOnce = true // a repetition: the next try finds it by Msg_Id
			left = append(left, *r)
			continue
		}
		learned[known] = true
		taken[u.submit] = true
		pairs = append(pairs, pair{r, u})
	}
	if len(pairs) == 0 {
		return left, closed, nil
	}
	slices.SortFunc(pairs, func(a, b pair) int { return cmp.Compare(a.u.submit, b.u.submit) })
	var ids, msgIDs []int64
	var states []message.Submit
	var results []int32
	var at []time.Time
	for _, p := range pairs {
		if p.u.closed {
			continue
		}
		ids, msgIDs, at = append(ids, p.u.submit), append(msgIDs, p.r.supplierMsgID), append(at, p.r.at)
		states, results = append(states, message.Accepted), append(results, 0)
	}
	sent, err := w.readSent(ctx, tx, pairs)
	if err != nil {
		return nil, closed, err
	}
	moved := map[int64]submit{}
	if len(ids) > 0 {
		lo, hi := store.Bounds(ids)
		rows, err := tx.Query(ctx, store.SettlementLate, ids, lo, hi, states, results, msgIDs, at)
		if err != nil {
			return nil, closed, err
		}
		list, err := pgx.CollectRows(rows, scanMoved)
		if err != nil {
			return nil, closed, err
		}
		for _, s := range list {
			moved[s.id] = s
		}
	}
	for _, p := range pairs {
		m := w.msgs[p.u.message]
		if p.u.closed {
			if s, ok := sent[p.u.submit]; ok && m != nil {
				s.supplierMsgID = p.r.supplierMsgID
				w.aliases[[2]int64{p.r.supplierMsgID, s.id}] = true
				w.apply(ctx, &s, p.r)
			} else {
				w.reportNotSent(m, p.u, p.r)
			}
			closed.accepted = append(closed.accepted, p.u.submit)
			counts["bound"]++
			continue
		}
		s, ok := moved[p.u.submit]
		if !ok || m == nil { // its answer came meanwhile: the next try finds it by Msg_Id
			left = append(left, *p.r)
			continue
		}
		s.state, s.account, s.supplierMsgID = message.Accepted, p.r.account, p.r.supplierMsgID
		closed.accepted = append(closed.accepted, s.id)
		counts["bound"]++
		w.accept(ctx, m, &s)
		w.apply(ctx, &s, p.r)
	}
	return left, closed, nil
}

// reportNotSent is a receipt of a submit that was closed as not sent: the money stays where it is.
func (w *work) reportNotSent(m *msg, u unknown, r *receipt) {
	s := submit{id: u.submit, supplierMsgID: r.supplierMsgID, account: r.account}
	w.exception(r.event, &s, kindNotSent, r.stat)
	w.aliases[[2]int64{r.supplierMsgID, u.submit}] = true // repetitions are recognised
	if m != nil && m.bill == message.Released && r.stat == message.StatDelivered {
		w.unbilled.add(m)
	}
}
