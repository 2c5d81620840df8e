package verify

import (
	"context"
	_ "embed" // the statements
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"
)

//go:embed sql/accounts.sql
var accountsSQL string

//go:embed sql/entries.sql
var entriesSQL string

//go:embed sql/messages.sql
var messagesSQL string

//go:embed sql/submits.sql
var submitsSQL string

//go:embed sql/receipts.sql
var receiptsSQL string

//go:embed sql/segments.sql
var segmentsSQL string

//go:embed sql/stored_uplinks.sql
var storedUplinksSQL string

//go:embed sql/sample.sql
var sampleSQL string

//go:embed sql/queues.sql
var queuesSQL string

//go:embed sql/locks.sql
var locksSQL string

// Snapshot reads the whole database state in one REPEATABLE READ transaction:
// balances and ledger of two transactions would never balance under load.
func Snapshot(ctx context.Context, conn *pgx.Conn) (Database, error) {
	tx, err := conn.BeginTx(ctx, pgx.TxOptions{IsoLevel: pgx.RepeatableRead, AccessMode: pgx.ReadOnly})
	if err != nil {
		return Database{}, fmt.Errorf("snapshot: %w", err)
	}
	defer tx.Rollback(ctx) //nolint:errcheck // nothing was written
	return Read(ctx, tx)
}

// Read reads the database state as the transaction sees it; it must be REPEATABLE
// READ, or nobody else may write.
func Read(ctx context.Context, tx pgx.Tx) (d Database, err error) {
	if err := tx.QueryRow(ctx, "SELECT clock_timestamp()").Scan(&d.At); err != nil {
		return d, fmt.Errorf("snapshot: %w", err)
	}
	if d.Accounts, err = read(ctx, tx, accountsSQL, func(r pgx.Rows, a *Account) error {
		return r.Scan(&a.ID, &a.Available, &a.Credit)
	}); err != nil {
		return d, fmt.Errorf("snapshot of accounts: %w", err)
	}
	if d.Entries, err = read(ctx, tx, entriesSQL, func(r pgx.Rows, e *Entry) error {
		var balance *int64
		err := r.Scan(&e.ID, &e.Account, &e.Kind, &e.N, &e.Amount, &balance, &e.At)
		if balance != nil {
			e.Balance, e.HasBalance = *balance, true
		}
		return err
	}); err != nil {
		return d, fmt.Errorf("snapshot of entries: %w", err)
	}
	if d.Messages, err = read(ctx, tx, messagesSQL, scanMessage); err != nil {
		return d, fmt.Errorf("snapshot of messages: %w", err)
	}
	if d.Submits, err = read(ctx, tx, submitsSQL, scanSubmit); err != nil {
		return d, fmt.Errorf("snapshot of submits: %w", err)
	}
	if d.Receipts, err = read(ctx, tx, receiptsSQL, func(r pgx.Rows, x *Receipt) error {
		var msgID, phone int64
		err := r.Scan(&x.EventID, &msgID, &x.Account, &phone, &x.Stat)
		x.SupplierMsgID, x.Phone = uint64(msgID), uint64(phone)
		return err
	}); err != nil {
		return d, fmt.Errorf("snapshot of receipts: %w", err)
	}
	if d.Segments, err = read(ctx, tx, segmentsSQL, func(r pgx.Rows, s *Segment) error {
		var msgID int64
		err := r.Scan(&s.Message, &msgID, &s.Number, &s.Registered)
		s.MsgID = uint64(msgID)
		return err
	}); err != nil {
		return d, fmt.Errorf("snapshot of segments: %w", err)
	}
	if d.Uplinks, err = read(ctx, tx, storedUplinksSQL, func(r pgx.Rows, u *StoredUplink) error {
		var msgID int64
		err := r.Scan(&u.EventID, &msgID, &u.Account, &u.Phone, &u.Dest)
		u.SupplierMsgID = uint64(msgID)
		return err
	}); err != nil {
		return d, fmt.Errorf("snapshot of uplinks: %w", err)
	}
	return d, nil
}

func scanMessage(r pgx.Rows, m *Message) error {
	var msgID, phone int64
	err := r.Scan(&m.ID, &msgID, &m.Enterprise, &phone, &m.Price, &m.Units, &m.State, &m.Bill, &m.Reason, &m.Registered,
		&m.Stat, &m.FreezeEntry, &m.SettleEntry, &m.RefundEntry, &m.AcceptedAt, &m.CreatedAt, &m.FinalAt)
	m.MsgID, m.Phone = uint64(msgID), uint64(phone)
	return err
}

func scanSubmit(r pgx.Rows, s *Submit) error {
	var msgID int64
	err := r.Scan(&s.ID, &s.Message, &s.RetryOf, &msgID, &s.Channel, &s.Account, &s.Result, &s.Attempt, &s.Part, &s.State, &s.DispatchedAt, &s.RespAt)
	s.SupplierMsgID = uint64(msgID)
	return err
}

type queryer interface {
	Query(ctx context.Context, sql string, args ...any) (pgx.Rows, error)
}

func read[T any](ctx context.Context, q queryer, sql string, scan func(pgx.Rows, *T) error) ([]T, error) {
	rows, err := q.Query(ctx, sql)
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	var list []T
	for rows.Next() {
		var v T
		if err := scan(rows, &v); err != nil {
			return nil, err
		}
		list = append(list, v)
	}
	return list, rows.Err()
}

// Books reads the balances and the sums of the entries of every account in one
// statement.
func Books(ctx context.Context, conn *pgx.Conn) ([]Sample, error) {
	at := time.Now()
	list, err := read(ctx, conn, sampleSQL, func(r pgx.Rows, s *Sample) error {
		s.At = at
		return r.Scan(&s.Enterprise, &s.Available, &s.TopUps, &s.Frozen, &s.Charged, &s.Released, &s.Refunded)
	})
	if err != nil {
		return nil, fmt.Errorf("read the books: %w", err)
	}
	return list, nil
}

type count struct {
	name string
	n    int64
}

func counts(ctx context.Context, conn *pgx.Conn, sql string) (map[string]int64, error) {
	list, err := read(ctx, conn, sql, func(r pgx.Rows, c *count) error { return r.Scan(&c.name, &c.n) })
	if err != nil {
		return nil, err
	}
	m := make(map[string]int64, len(list))
	for _, c := range list {
		m[c.name] = c.n
	}
	return m, nil
}

// Queues counts what is under way in the database, by queue; unknown and
// open_freezes count messages.
func Queues(ctx context.Context, conn *pgx.Conn) (map[string]int64, error) {
	m, err := counts(ctx, conn, queuesSQL)
	if err != nil {
		return nil, fmt.Errorf("count the queues: %w", err)
	}
	return m, nil
}

// Locks counts waiting locks, sessions idle in a transaction for over a second,
// and prepared transactions of the database.
func Locks(ctx context.Context, conn *pgx.Conn) (map[string]int64, error) {
	m, err := counts(ctx, conn, locksSQL)
	if err != nil {
		return nil, fmt.Errorf("count the locks: %w", err)
	}
	return m, nil
}
