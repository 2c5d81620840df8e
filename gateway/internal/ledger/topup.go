package ledger

import (
	"context"
	"errors"
	"fmt"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"cmppgateway/gateway/internal/store"
)

// ErrKeyUsed says that the account has a top-up with this idempotency key already.
var ErrKeyUsed = errors.New("the account has a top-up with this key already")

// TopUpIn is TopUp as the last statement of a transaction of others: it takes the account's lock. The transaction fails
// with ErrKeyUsed, since it may have written what belongs to a second top-up.
func TopUpIn(ctx context.Context, tx pgx.Tx, id int64, account int32, amount int64, idem string) (balance int64, err error) {
	if amount <= 0 || idem == "" {
		return 0, fmt.Errorf("top up account %d: amount %d must be above 0, and the key %q must not be empty", account, amount, idem)
	}
	err = tx.QueryRow(ctx, store.LedgerTopUpIn, id, account, amount, idem).Scan(&balance)
	if pg, ok := errors.AsType[*pgconn.PgError](err); ok && pg.ConstraintName == "account_entry_idem" {
		return 0, ErrKeyUsed
	}
	if err != nil {
		return 0, fmt.Errorf("top up account %d: %w", account, err)
	}
	return balance, nil
}
