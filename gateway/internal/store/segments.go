package store

import (
	"context"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"
)

// Segment is one SUBMIT of the customer that a long message was made of. Each has a Msg_Id and gets receipts of its own.
type Segment struct {
	Message    int64
	MsgID      int64
	Session    int64
	AcceptedAt time.Time
	Registered int16 // 1 = a receipt is wanted
	Node       int16 // that accepted it
}

// Segments reads the segments of long messages, by message, in order of their place and Msg_Id. ids are sorted; the messages
// are locked, for repeated segments are added to them.
func Segments(ctx context.Context, db DB, ids []int64) (map[int64][]Segment, error) {
	lo, hi := Bounds(ids)
	rows, err := db.Query(ctx, SegmentPieces, ids, lo, hi)
	if err != nil {
		return nil, fmt.Errorf("segments: %w", err)
	}
	list, err := pgx.CollectRows(rows, pgx.RowToStructByPos[Segment])
	if err != nil {
		return nil, fmt.Errorf("segments: %w", err)
	}
	found := make(map[int64][]Segment, len(ids))
	for _, s := range list {
		found[s.Message] = append(found[s.Message], s)
	}
	return found, nil
}
