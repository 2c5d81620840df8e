package settlement

import (
	"context"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"cmppgateway/gateway/internal/store"
)

// Exception is something that contradicts what is settled, or cannot be settled without a person (docs/operations.md has the
// kinds). It changes neither states nor money.
type Exception struct {
	ID            int64     `json:"id,string"`
	At            time.Time `json:"at"`
	Kind          string    `json:"kind"`
	SubmitID      int64     `json:"submitId,string"` // 0 = not known
	SupplierMsgID uint64    `json:"supplierMsgId,string"`
	Account       int32     `json:"account"` // supplier account
	Detail        string    `json:"detail"`
	Candidates    []int64   `json:"candidates,omitempty"` // unknown submits that could be meant
}

// ListExceptions lists at most limit exceptions of a kind ("" = all) since then, newest first.
func ListExceptions(ctx context.Context, pool *pgxpool.Pool, kind string, since time.Time, limit int) ([]Exception, error) {
	rows, err := pool.Query(ctx, store.SettlementExceptions, kind, since, limit)
	if err != nil {
		return nil, fmt.Errorf("list exceptions: %w", err)
	}
	list, err := pgx.CollectRows(rows, func(row pgx.CollectableRow) (e Exception, err error) {
		var msgID int64
		err = row.Scan(&e.ID, &e.At, &e.Kind, &e.SubmitID, &msgID, &e.Account, &e.Detail, &e.Candidates)
		e.SupplierMsgID = uint64(msgID)
		return e, err
	})
	if err != nil {
		return nil, fmt.Errorf("list exceptions: %w", err)
	}
	return list, nil
}
