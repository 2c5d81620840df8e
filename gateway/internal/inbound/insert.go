package inbound

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgtype"

	"cmppgateway/gateway/internal/message"
	"cmppgateway/gateway/internal/store"
)

// columns are the arrays of one INSERT, kept from batch to batch. As plain slices, pgx would encode most of them by
// reflection, an allocation for each value.
type columns struct {
	ids, msgIDs, sessions, seqs                  pgtype.FlatArray[int64]
	validUntil, atTimes                          pgtype.FlatArray[pgtype.Timestamptz]
	enterprises, apps, weights                   pgtype.FlatArray[int32]
	registered, fmts, udhis, pkTotals, pkNumbers pgtype.FlatArray[int16]
	dests, srcs, services, contents              pgtype.FlatArray[[]byte]
	octets                                       []byte // that dests, srcs and services point into
}

func (c *columns) fill(batch []*request) {
	c.reset(batch)
	for _, r := range batch {
		p := r.submit
		c.ids = append(c.ids, r.id)
		c.msgIDs = append(c.msgIDs, int64(r.resp.MsgID))
		c.sessions = append(c.sessions, r.conn.id)
		c.seqs = append(c.seqs, int64(r.seq))
		c.validUntil = append(c.validUntil, pgtype.Timestamptz{Time: r.validUntil, Valid: !r.validUntil.IsZero()})
		c.atTimes = append(c.atTimes, pgtype.Timestamptz{Time: r.atTime, Valid: !r.atTime.IsZero()})
		c.enterprises = append(c.enterprises, r.conn.enterprise)
		c.apps = append(c.apps, r.conn.app)
		c.weights = append(c.weights, int32(len(p.DestTerminalID)))
		c.registered = append(c.registered, int16(p.RegisteredDelivery))
		c.fmts = append(c.fmts, int16(p.MsgFmt))
		c.udhis = append(c.udhis, int16(p.TPUDHI))
		c.pkTotals = append(c.pkTotals, int16(p.PkTotal))
		c.pkNumbers = append(c.pkNumbers, int16(p.PkNumber))
		c.dests = append(c.dests, c.bytes(p.DestTerminalID...))
		c.srcs = append(c.srcs, c.bytes(p.SrcID))
		c.services = append(c.services, c.bytes(p.ServiceID))
		content := p.MsgContent
		if content == nil {
			content = c.octets[:0]
		}
		c.contents = append(c.contents, content)
	}
}

// bytes is the words joined by commas, in c.octets; never nil, which would be NULL.
func (c *columns) bytes(words ...string) []byte {
	from := len(c.octets)
	for i, w := range words {
		if i > 0 {
			c.octets = append(c.octets, ',')
		}
		c.octets = append(c.octets, w...)
	}
	return c.octets[from:len(c.octets):len(c.octets)]
}

func (c *columns) reset(batch []*request) {
	c.ids, c.msgIDs, c.sessions, c.seqs = c.ids[:0], c.msgIDs[:0], c.sessions[:0], c.seqs[:0]
	c.validUntil, c.atTimes = c.validUntil[:0], c.atTimes[:0]
	c.enterprises, c.apps, c.weights = c.enterprises[:0], c.apps[:0], c.weights[:0]
	c.registered, c.fmts, c.udhis, c.pkTotals, c.pkNumbers = c.registered[:0], c.fmts[:0], c.udhis[:0], c.pkTotals[:0], c.pkNumbers[:0]
	c.dests, c.srcs, c.services, c.contents = c.dests[:0], c.srcs[:0], c.services[:0], c.contents[:0]
	need := 0
	for _, r := range batch {
		need += len(r.submit.SrcID) + len(r.submit.ServiceID)
		for _, d := range r.submit.DestTerminalID {
			need += len(d) + 1
		}
	}
	c.octets = slices.Grow(c.octets[:0], max(need, 1)) // it must not move while it is pointed into
}

type querier interface {
	Query(ctx context.Context, sql string, args ...any) (pgx.Rows, error)
}

// insert is T1. missing are the rows whose ids were there already, in the order of batch.
func (b *batcher) insert(ctx context.Context, db querier, batch []*request) (missing []*request, err error) {
	c := &b.columns
	c.fill(batch)
	rows, err := db.Query(ctx, store.InboundInsert, c.ids, c.msgIDs, c.sessions, c.seqs, c.validUntil, c.enterprises, c.apps, c.weights,
		c.registered, c.fmts, c.udhis, c.pkTotals, c.pkNumbers, c.dests, c.srcs, c.services, c.contents, b.node.Number, c.atTimes)
	if err != nil {
		return nil, fmt.Errorf("insert into inbox: %w", err)
	}
	stored, err := ids(rows)
	if err != nil {
		return nil, fmt.Errorf("insert into inbox: %w", err)
	}
	if len(stored) == len(batch) {
		return nil, nil
	}
	return pick(batch, stored, func(r *request) int64 { return r.id }), nil
}

// pick is what of batch is not among the keys found.
func pick(batch []*request, found []int64, key func(*request) int64) (missing []*request) {
	slices.Sort(found)
	for _, r := range batch {
		if _, ok := slices.BinarySearch(found, key(r)); !ok {
			missing = append(missing, r)
		}
	}
	return missing
}

func ids(rows pgx.Rows) (list []int64, err error) {
	var id int64
	_, err = pgx.ForEachRow(rows, []any{&id}, func() error {
		list = append(list, id)
		return nil
	})
	return list, err
}

// processedAge is how much the clocks of the nodes may differ.
const processedAge = 5 * time.Minute

// repeat offers rows of which an earlier transaction may have stored any part, in one transaction. Inserting waits for that
// transaction if it still runs. Rows that it had stored are still in the inbox, or the workflow has taken them out
// meanwhile, for messages or to wait elsewhere: what was inserted of those now must go again. foreign are rows whose ids belong to others.
func (b *batcher) repeat(ctx context.Context, batch []*request) (foreign []*request, err error) {
	err = store.InTx(ctx, b.pool, func(tx pgx.Tx) error {
		conflicting, err := b.insert(ctx, tx, batch)
		if err != nil {
			return err
		}
		if foreign, err = b.notOurs(ctx, tx, conflicting); err != nil {
			return err
		}
		processed, err := b.processed(ctx, tx, batch)
		if err != nil {
			return err
		}
		if len(processed) == 0 {
			return nil
		}
		done := func(r *request) int64 { return int64(r.resp.MsgID) }
		foreign = pick(foreign, processed, done)
		var again []int64
		for _, r := range without(batch, conflicting) {
			if _, ok := slices.BinarySearch(processed, done(r)); ok {
				again = append(again, r.id)
			}
		}
		_, err = tx.Exec(ctx, store.InboundRemove, again)
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("repeat inbox commit: %w", err)
	}
	return foreign, nil
}

// notOurs is which of the rows that are not inserted because their id exists have it from another session or sequence.
func (b *batcher) notOurs(ctx context.Context, tx pgx.Tx, batch []*request) ([]*request, error) {
	if len(batch) == 0 {
		return nil, nil
	}
	list := make([]int64, len(batch))
	for i, r := range batch {
		list[i] = r.id
	}
	rows, err := tx.Query(ctx, store.InboundCompare, list)
	if err != nil {
		return nil, err
	}
	type row struct {
		id, session, seq int64
		node             int16
	}
	ours := make(map[row]bool, len(batch))
	var found row
	if _, err := pgx.ForEachRow(rows, []any{&found.id, &found.node, &found.session, &found.seq}, func() error {
		ours[found] = true
		return nil
	}); err != nil {
		return nil, err
	}
	var foreign []*request
	for _, r := range batch {
		if !ours[row{r.id, r.conn.id, int64(r.seq), b.node.Number}] {
			foreign = append(foreign, r)
		}
	}
	return foreign, nil
}

// processed are the first Msg_Ids, ascending, of the rows that have left the inbox already.
func (b *batcher) processed(ctx context.Context, tx pgx.Tx, batch []*request) ([]int64, error) {
	rowIDs, msgIDs, apps := make([]int64, len(batch)), make([]int64, len(batch)), make([]int32, len(batch))
	since := batch[0].at
	for i, r := range batch {
		rowIDs[i], msgIDs[i], apps[i] = r.id, int64(r.resp.MsgID), r.conn.app
		if r.at.Before(since) {
			since = r.at
		}
	}
	rows, err := tx.Query(ctx, store.InboundProcessed, rowIDs, msgIDs, apps, message.FirstID(since.Add(-processedAge)))
	if err != nil {
		return nil, err
	}
	list, err := ids(rows)
	slices.Sort(list)
	return list, err
}
