package reconcile

import (
	"context"
	"encoding/hex"
	"errors"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"cmppgateway/gateway/cmpp"
	"cmppgateway/gateway/internal/message"
	"cmppgateway/gateway/internal/routing"
	"cmppgateway/gateway/internal/store"
)

// save stores r in place of an earlier one of its account and day.
func save(ctx context.Context, pool *pgxpool.Pool, ids *message.IDs, r *Report, hash []byte) error {
	id, err := ids.Next(ctx)
	if err != nil {
		return fmt.Errorf("store reconciliation: %w", err)
	}
	day, err := time.Parse(time.DateOnly, r.Day)
	if err != nil {
		return fmt.Errorf("store reconciliation: %w", err)
	}
	var channels, lines, numbers, where []int32
	var carriers []int16
	var oursN, oursUnits, theirsN, theirsUnits, counts, submits, messages, msgIDs, phones []int64
	var kinds, of, oursText, theirsText []string
	var times []*time.Time
	for _, c := range r.Cells {
		channels, carriers = append(channels, c.Channel), append(carriers, int16(c.Carrier))
		oursN, oursUnits = append(oursN, c.OursN), append(oursUnits, c.OursUnits)
		theirsN, theirsUnits = append(theirsN, c.TheirsN), append(theirsUnits, c.TheirsUnits)
	}
	for k, n := range r.Kinds {
		kinds, counts = append(kinds, string(k)), append(counts, n)
	}
	for i, d := range r.List {
		numbers, of, where, times = append(numbers, int32(i)), append(of, string(d.Kind)), append(where, d.Channel), append(times, d.At)
		submits, messages, msgIDs = append(submits, d.SubmitID), append(messages, d.MessageID), append(msgIDs, int64(d.MsgID))
		phones, lines = append(phones, d.Phone), append(lines, int32(d.Line))
		oursText, theirsText = append(oursText, d.Ours), append(theirsText, d.Theirs)
	}
	err = store.Retry(ctx, pool, func(tx pgx.Tx) error {
		if _, err := tx.Exec(ctx, "SELECT pg_advisory_xact_lock(13, $1)", r.Account); err != nil { // two at once: the later one stays
			return err
		}
		if _, err := tx.Exec(ctx, store.ReconcileDrop, r.Account, day); err != nil {
			return err
		}
		var q pgx.Batch
		q.Queue(store.ReconcileSave, id, r.Account, day, r.Lines, r.Differing, r.Ratio, int32(r.Closed), r.File, hash)
		q.Queue(store.ReconcileCell, id, channels, carriers, oursN, oursUnits, theirsN, theirsUnits)
		q.Queue(store.ReconcileKind, id, kinds, counts)
		q.Queue(store.ReconcileDifference, id, numbers, of, submits, messages, msgIDs, phones, lines, where, times, oursText, theirsText)
		return tx.SendBatch(ctx, &q).Close()
	})
	if err != nil {
		return fmt.Errorf("store reconciliation: %w", err)
	}
	return nil
}

// List returns the newest stored comparisons without their cells and differences, at most limit.
func List(ctx context.Context, pool *pgxpool.Pool, limit int) ([]Report, error) {
	rows, err := pool.Query(ctx, store.ReconcileList, limit)
	if err != nil {
		return nil, fmt.Errorf("list reconciliations: %w", err)
	}
	list, err := pgx.CollectRows(rows, func(row pgx.CollectableRow) (r Report, err error) {
		var day time.Time
		var hash []byte
		err = row.Scan(&r.Account, &day, &r.At, &r.Lines, &r.Differing, &r.Ratio, &r.Closed, &r.File, &hash)
		r.Day, r.SHA256 = day.Format(time.DateOnly), hex.EncodeToString(hash)
		return r, err
	})
	if err != nil {
		return nil, fmt.Errorf("list reconciliations: %w", err)
	}
	return list, nil
}

// ErrNone says that there is no stored comparison of an account and day.
var ErrNone = errors.New("no such reconciliation")

// Find returns the stored comparison of an account and day, or ErrNone.
func Find(ctx context.Context, pool *pgxpool.Pool, account int32, at time.Time) (*Report, error) {
	r := &Report{Kinds: map[Kind]int64{}}
	var id int64
	var day time.Time
	var hash []byte
	err := pool.QueryRow(ctx, store.ReconcileFind, account, at.In(cmpp.Shanghai).Format(time.DateOnly)).
		Scan(&id, &r.Account, &day, &r.At, &r.Lines, &r.Differing, &r.Ratio, &r.Closed, &r.File, &hash)
	if errors.Is(err, pgx.ErrNoRows) {
		return nil, ErrNone
	}
	if err != nil {
		return nil, fmt.Errorf("find reconciliation: %w", err)
	}
	r.Day, r.SHA256 = day.Format(time.DateOnly), hex.EncodeToString(hash)
	rows, err := pool.Query(ctx, store.ReconcileCells, id)
	if err != nil {
		return nil, fmt.Errorf("find reconciliation: %w", err)
	}
	var c Cell
	var carrier int16
	if _, err = pgx.ForEachRow(rows, []any{&c.Channel, &carrier, &c.OursN, &c.OursUnits, &c.TheirsN, &c.TheirsUnits}, func() error {
		r.Cells = append(r.Cells, c)
		r.Cells[len(r.Cells)-1].Carrier = routing.Carrier(carrier)
		return nil
	}); err != nil {
		return nil, fmt.Errorf("find reconciliation: %w", err)
	}
	if rows, err = pool.Query(ctx, store.ReconcileKinds, id); err != nil {
		return nil, fmt.Errorf("find reconciliation: %w", err)
	}
	var kind string
	var n int64
	if _, err = pgx.ForEachRow(rows, []any{&kind, &n}, func() error {
		r.Kinds[Kind(kind)] = n
		return nil
	}); err != nil {
		return nil, fmt.Errorf("find reconciliation: %w", err)
	}
	if rows, err = pool.Query(ctx, store.ReconcileDifferences, id); err != nil {
		return nil, fmt.Errorf("find reconciliation: %w", err)
	}
	r.List, err = pgx.CollectRows(rows, func(row pgx.CollectableRow) (d Difference, err error) {
		var kind string
		var msgID int64
		var line int32
		err = row.Scan(&kind, &d.SubmitID, &d.MessageID, &msgID, &d.Phone, &line, &d.Channel, &d.At, &d.Ours, &d.Theirs)
		d.Kind, d.MsgID, d.Line = Kind(kind), uint64(msgID), int(line)
		return d, err
	})
	if err != nil {
		return nil, fmt.Errorf("find reconciliation: %w", err)
	}
	return r, nil
}
