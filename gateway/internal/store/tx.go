package store

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"
)

// SQLSTATE codes that callers tell apart.
const (
	codeSerialization = "40001"
	codeDeadlock      = "40P01"
	// CodeCheck is a broken CHECK: on the account, not enough money.
	CodeCheck = "23514"
	// CodeGuard is raised by must_be: another number of rows was touched than expected.
	CodeGuard = "P0001"
)

const (
	tries   = 3
	backOff = 5 * time.Millisecond // between the tries; grows with each
)

// InTx runs fn in a transaction (read committed) and commits it, or rolls it back when fn fails.
func InTx(ctx context.Context, pool *pgxpool.Pool, fn func(pgx.Tx) error) error {
	tx, err := pool.Begin(ctx)
	if err != nil {
		return fmt.Errorf("begin: %w", err)
	}
	if err := fn(tx); err != nil {
		rollback(ctx, tx)
		return err
	}
	if err := tx.Commit(ctx); err != nil {
		rollback(ctx, tx)
		return fmt.Errorf("commit: %w", err)
	}
	return nil
}

// rollback gives the connection back also when ctx is over. Its error adds nothing: the transaction is not committed, and
// a connection that cannot roll back is closed by the pool.
func rollback(ctx context.Context, tx pgx.Tx) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), time.Second)
	defer cancel()
	_ = tx.Rollback(ctx) // see above
}

// Retry is InTx, run anew after a deadlock or a serialization failure: three tries in all. fn must do nothing outside its
// transaction.
func Retry(ctx context.Context, pool *pgxpool.Pool, fn func(pgx.Tx) error) error {
	var err error
	for i := range tries {
		if err = InTx(ctx, pool, fn); !IsConflict(err) {
			return err
		}
		select {
		case <-ctx.Done():
			return err
		case <-time.After(time.Duration(i+1) * backOff):
		}
	}
	return err
}

// Code is the SQLSTATE in err, or "".
func Code(err error) string {
	if pg, ok := errors.AsType[*pgconn.PgError](err); ok {
		return pg.Code
	}
	return ""
}

// IsConflict says that a transaction lost against another one and left nothing: deadlock or serialization failure.
func IsConflict(err error) bool {
	c := Code(err)
	return c == codeDeadlock || c == codeSerialization
}

// IsTransient says that the same work may succeed later: conflicts, lock and statement time-outs, a server that starts,
// stops or has no room, a lost connection, a pool without a free one. After a lost connection or a time-out a COMMIT may
// or may not have happened. Data errors and guards are not transient, nor is a canceled context.
func IsTransient(err error) bool {
	if err == nil || errors.Is(err, context.Canceled) {
		return false
	}
	c := Code(err)
	if c == "" {
		return !errors.Is(err, pgx.ErrNoRows) && !errors.Is(err, pgx.ErrTxCommitRollback)
	}
	switch c[:2] {
	case "08", "40", "53", "57", "58", "XX": // connection, rollback, resources, operator intervention, system, internal
		return true
	}
	return c == "55P03" || c == "25P03" || c == "25006" // lock not available, idle in transaction, read-only (fail-over)
}

// Bounds is the lowest and the highest of ids, for `id BETWEEN lo AND hi` beside `id = ANY(…)`: only scalars prune
// partitions. For no ids it is an empty range.
func Bounds(ids []int64) (lo, hi int64) {
	if len(ids) == 0 {
		return 1, 0
	}
	return slices.Min(ids), slices.Max(ids)
}
