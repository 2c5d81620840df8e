package uplink

import (
	"context"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"cmppgateway/gateway/internal/store"
)

// Item is an uplink that is nobody's, for operators.
type Item struct {
	EventID     int64
	At          time.Time
	Account     int32 // supplier account it came from
	Reason      Reason
	OptOut      bool // its text asks for no more messages
	Phone, Dest string
	Fmt, UDHI   int16
	Content     []byte
}

// Text is what it says, as far as it can be read; for a segment, that of the segment.
func (i *Item) Text() string { return asks(&row{Fmt: i.Fmt, UDHI: i.UDHI, Content: i.Content}) }

// List is at most limit uplinks that are nobody's, behind the one with the id after, oldest first.
func List(ctx context.Context, pool *pgxpool.Pool, after int64, limit int) ([]Item, error) {
	rows, err := pool.Query(ctx, store.UplinkList, after, limit)
	if err != nil {
		return nil, fmt.Errorf("list uplinks: %w", err)
	}
	list, err := pgx.CollectRows(rows, pgx.RowToStructByPos[Item])
	if err != nil {
		return nil, fmt.Errorf("list uplinks: %w", err)
	}
	return list, nil
}

// Rematch puts uplinks that are nobody's back into the queue, and says how many there were: after the numbers of applications
// were set right. Running gateways look within uplink.poll, or at once when they are told (wake.Uplinks).
func Rematch(ctx context.Context, pool *pgxpool.Pool, ids []int64) (int64, error) {
	tag, err := pool.Exec(ctx, store.UplinkRematch, sorted(ids))
	if err != nil {
		return 0, fmt.Errorf("match uplinks again: %w", err)
	}
	return tag.RowsAffected(), nil
}

const rematchPage = 500

// RematchAll is Rematch for all that are on the list when it begins, page by page.
func RematchAll(ctx context.Context, pool *pgxpool.Pool) (total int64, err error) {
	for after := int64(0); ; {
		list, err := List(ctx, pool, after, rematchPage)
		if err != nil || len(list) == 0 {
			return total, err
		}
		ids := make([]int64, len(list))
		for i := range list {
			ids[i] = list[i].EventID
		}
		n, err := Rematch(ctx, pool, ids)
		total += n
		if err != nil {
			return total, err
		}
		after = ids[len(ids)-1]
	}
}

// Discard takes uplinks off the list of those that are nobody's, and says how many there were. They stay stored.
func Discard(ctx context.Context, pool *pgxpool.Pool, ids []int64) (int64, error) {
	tag, err := pool.Exec(ctx, store.UplinkDiscard, sorted(ids))
	if err != nil {
		return 0, fmt.Errorf("discard uplinks: %w", err)
	}
	return tag.RowsAffected(), nil
}
