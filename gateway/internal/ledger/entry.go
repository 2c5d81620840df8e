package ledger

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"

	"cmppgateway/gateway/internal/message"
	"cmppgateway/gateway/internal/store"
)

// Entry is what one batch did to one account.
type Entry struct {
	ID      int64
	Account int32
	Kind    message.EntryKind // Freeze, Charge, Release or Refund
	N       int               // messages
	Amount  int64             // 1/10,000 yuan, ≥ 0
}

// Queue adds the entries to the end of a transaction's batch: charges first, since they lock nothing, then the
// movements in ascending account. Nothing but COMMIT may follow. The transaction fails with P0001 for a missing account
// and with IsShort for one that cannot pay.
func Queue(b *pgx.Batch, entries []Entry) {
	entries = slices.Clone(entries)
	slices.SortStableFunc(entries, func(x, y Entry) int {
		if (x.Kind == message.Charge) != (y.Kind == message.Charge) {
			if x.Kind == message.Charge {
				return -1
			}
			return 1
		}
		return int(x.Account) - int(y.Account)
	})
	for _, e := range entries {
		if e.Kind == message.Charge {
			b.Queue(store.LedgerCharge, e.ID, e.Account, e.N, e.Amount)
			continue
		}
		b.Queue(store.LedgerMove, e.ID, e.Account, int16(e.Kind), e.N, e.Amount)
	}
}

// IsShort says that a movement failed because the account cannot pay it.
func IsShort(err error) bool {
	var pg *pgconn.PgError
	return errors.As(err, &pg) && pg.Code == "23514" && pg.ConstraintName == "account_funds"
}

// TopUp adds amount (> 0) to an account once per idem, whoever repeats it: applied is false for a repetition.
func TopUp(ctx context.Context, pool *pgxpool.Pool, ids *message.IDs, account int32, amount int64, idem string) (applied bool, err error) {
	if amount <= 0 {
		return false, fmt.Errorf("top up account %d: amount %d, must be above 0", account, amount)
	}
	if idem == "" {
		return false, fmt.Errorf("top up account %d: no idempotency key", account)
	}
	id, err := ids.Next(ctx)
	if err != nil {
		return false, fmt.Errorf("top up account %d: %w", account, err)
	}
	_, err = pool.Exec(ctx, store.LedgerTopUp, id, account, amount, idem)
	var pg *pgconn.PgError
	if errors.As(err, &pg) && pg.ConstraintName == "account_entry_idem" {
		return false, nil
	}
	if err != nil {
		return false, fmt.Errorf("top up account %d: %w", account, err)
	}
	return true, nil
}
