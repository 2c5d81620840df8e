package store

import (
	"context"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"cmppgateway/gateway/internal/message"
)

// DB is what a single statement runs on: a connection, a pool or a transaction.
type DB interface {
	Exec(ctx context.Context, sql string, args ...any) (pgconn.CommandTag, error)
	Query(ctx context.Context, sql string, args ...any) (pgx.Rows, error)
	QueryRow(ctx context.Context, sql string, args ...any) pgx.Row
}

// facts are the partitioned tables with the fill factor of their leaves: a message is updated twice, the others rarely.
var facts = []struct {
	table string
	fill  int
}{{"message", 80}, {"message_segment", 100}, {"submit", 100}, {"receipt", 100}}

func leafName(table string, day time.Time) string { return table + "_" + day.Format("20060102") }

func utcDay(t time.Time) time.Time {
	y, m, d := t.UTC().Date()
	return time.Date(y, m, d, 0, 0, 0, 0, time.UTC)
}

// EnsurePartitions makes the leaves of the partitioned tables for days UTC days from the one of from on. A leaf that
// exists stays as it is; others that write to the tables do not wait.
func EnsurePartitions(ctx context.Context, db DB, from time.Time, days int) error {
	for i := range days {
		day := utcDay(from).AddDate(0, 0, i)
		for _, f := range facts {
			leaf := leafName(f.table, day)
			if _, err := db.Exec(ctx, PartitionEnsure, f.table, leaf, message.FirstID(day), message.FirstID(day.AddDate(0, 0, 1)), f.fill); err != nil {
				return fmt.Errorf("partition %s: %w", leaf, err)
			}
		}
	}
	return nil
}

// MissingPartitions names the leaves EnsurePartitions would make.
func MissingPartitions(ctx context.Context, db DB, from time.Time, days int) ([]string, error) {
	var parents, leaves []string
	for i := range days {
		for _, f := range facts {
			parents, leaves = append(parents, f.table), append(leaves, leafName(f.table, utcDay(from).AddDate(0, 0, i)))
		}
	}
	rows, err := db.Query(ctx, PartitionMissing, parents, leaves)
	if err != nil {
		return nil, fmt.Errorf("partitions: %w", err)
	}
	missing, err := pgx.CollectRows(rows, pgx.RowTo[string])
	if err != nil {
		return nil, fmt.Errorf("partitions: %w", err)
	}
	return missing, nil
}
