package store

import (
	"context"
	"database/sql"
	"embed"
	"errors"
	"fmt"
	"io/fs"
	"time"

	"github.com/jackc/pgx/v5"
	_ "github.com/jackc/pgx/v5/stdlib" // database/sql driver "pgx", which goose needs
	"github.com/pressly/goose/v3"
	"github.com/pressly/goose/v3/lock"
)

//go:embed migrations/*.sql
var migrations embed.FS

// LeafDays is how many days of leaves, today's included, must exist ahead (data §1.18).
const LeafDays = 4

// Migrate brings the schema of the database at url up to date and makes the leaves of today and the next three days.
// Several processes may call it at once: one does the work, the others wait for it.
func Migrate(ctx context.Context, url string) error {
	if err := migrate(ctx, url); err != nil {
		return fmt.Errorf("migrate: %w", err)
	}
	conn, err := pgx.Connect(ctx, url)
	if err != nil {
		return fmt.Errorf("migrate: connect: %w", err)
	}
	err = EnsurePartitions(ctx, conn, time.Now(), LeafDays)
	return errors.Join(err, conn.Close(ctx))
}

func migrate(ctx context.Context, url string) error {
	return withProvider(url, func(p *goose.Provider) error {
		_, err := p.Up(ctx)
		return err
	})
}

// Version is the schema version of the database at url and the one this program wants. A database that was never migrated
// has version 0.
func Version(ctx context.Context, url string) (have, want int64, err error) {
	err = withProvider(url, func(p *goose.Provider) error {
		var err error
		have, want, err = p.GetVersions(ctx)
		return err
	})
	if err != nil {
		return 0, 0, fmt.Errorf("schema version: %w", err)
	}
	return have, want, nil
}

func withProvider(url string, f func(*goose.Provider) error) (err error) {
	db, err := sql.Open("pgx", url)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, db.Close()) }()
	locker, err := lock.NewPostgresSessionLocker()
	if err != nil {
		return err
	}
	dir, err := fs.Sub(migrations, "migrations")
	if err != nil {
		return err
	}
	p, err := goose.NewProvider(goose.DialectPostgres, db, dir, goose.WithSessionLocker(locker), goose.WithDisableGlobalRegistry(true))
	if err != nil {
		return err
	}
	return f(p)
}
