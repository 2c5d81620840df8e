package restore

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/redis/go-redis/v9"

	"cmppgateway/gateway/internal/store"
)

// ErrQuarantine says that the database went back in time under a running process: it must end at once.
var ErrQuarantine = errors.New("the database went back in time: run `gateway recover`")

const (
	beatEvery = time.Second
	lookEvery = 500 * time.Millisecond
)

// Guard compares the witnesses for one process.
type Guard struct {
	pool *pgxpool.Pool
	rdb  *redis.Client
	log  *slog.Logger
	key  string // of the mark in Redis
	last int64  // highest beat this process has seen committed
}

// state is the row and what the server says of itself.
type state struct {
	id                string
	beat              int64
	system, systemNow int64
	line, lineNow     int32
	since             *time.Time
	reason            string
}

// Open looks for the first time, and writes where the installation lives when nobody has. A difference puts it into quarantine.
// Redis that does not answer is no witness: that is logged, and no error.
func Open(ctx context.Context, pool *pgxpool.Pool, rdb *redis.Client, log *slog.Logger) (*Guard, error) {
	g := &Guard{pool: pool, rdb: rdb, log: log}
	if _, err := pool.Exec(ctx, store.RestoreBegin); err != nil {
		return nil, fmt.Errorf("installation: %w", err)
	}
	if _, err := g.look(ctx); err != nil {
		return nil, err
	}
	return g, nil
}

// look compares and, with a difference, puts the installation into quarantine. It returns why it is there, or "".
func (g *Guard) look(ctx context.Context) (reason string, err error) {
	err = store.InTx(ctx, g.pool, func(tx pgx.Tx) error {
		s, err := read(ctx, tx)
		if err != nil {
			return err
		}
		g.key = key(s.id)
		if s.since != nil {
			reason = s.reason
			return nil
		}
		if reason = g.judge(ctx, s); reason == "" {
			g.last = max(g.last, s.beat)
			return nil
		}
		_, err = tx.Exec(ctx, store.RestoreQuarantine, reason)
		return err
	})
	if err != nil {
		return "", fmt.Errorf("installation: %w", err)
	}
	return reason, nil
}

func key(installation string) string { return "{restore:" + installation + "}:beat" }

func read(ctx context.Context, tx pgx.Tx) (s state, err error) {
	err = tx.QueryRow(ctx, store.RestoreLook).Scan(&s.id, &s.beat, &s.system, &s.line, &s.since, &s.reason, &s.systemNow, &s.lineNow)
	return s, err
}

func (g *Guard) judge(ctx context.Context, s state) string {
	if s.system != s.systemNow {
		return fmt.Sprintf("the rows were written in cluster %d, this is cluster %d", s.system, s.systemNow)
	}
	if s.line != s.lineNow {
		return fmt.Sprintf("the rows were written on timeline %d, this is timeline %d", s.line, s.lineNow)
	}
	told, err := g.told(ctx)
	if err != nil {
		g.log.Warn("Redis does not say how far the database had come", slog.Any("error", err))
	}
	if seen := max(told, g.last); seen > s.beat {
		return fmt.Sprintf("the database is at beat %d, processes have seen it at %d", s.beat, seen)
	}
	return ""
}

// told is the highest beat that any process has told Redis; 0 when none has, or Redis forgot.
func (g *Guard) told(ctx context.Context) (int64, error) {
	score, err := g.rdb.ZScore(ctx, g.key, "beat").Result()
	if errors.Is(err, redis.Nil) {
		return 0, nil
	}
	return int64(score), err
}

// Wait returns when the installation is not in quarantine; until then it tells why, through told, whenever it looks.
func (g *Guard) Wait(ctx context.Context, told func(reason string)) error {
	tick := time.NewTicker(lookEvery)
	defer tick.Stop()
	logged := ""
	for {
		reason, err := g.look(ctx)
		if err != nil {
			return err
		}
		told(reason)
		if reason == "" {
			return nil
		}
		if reason != logged {
			g.log.Error("quarantine: nothing is sent and no customer let in until `gateway recover --confirm`", slog.String("reason", reason))
			logged = reason
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-tick.C:
		}
	}
}

// Run raises the beat every second until ctx is done. It returns ErrQuarantine when the database went back under it, or when
// another process found that. Without PostgreSQL there is nothing to compare, and without Redis nobody to tell.
func (g *Guard) Run(ctx context.Context) error {
	tick := time.NewTicker(beatEvery)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-tick.C:
		}
		if err := g.beat(ctx); errors.Is(err, ErrQuarantine) {
			return err
		} else if err != nil && ctx.Err() == nil {
			g.log.Warn("no beat", slog.Any("error", err))
		}
	}
}

func (g *Guard) beat(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, 5*beatEvery)
	defer cancel()
	// Redis first: what it was told must have been there before.
	reason, err := g.look(ctx)
	if err != nil {
		return err
	}
	if reason != "" {
		return fmt.Errorf("%w: %s", ErrQuarantine, reason)
	}
	var beat int64
	if err := g.pool.QueryRow(ctx, store.RestoreBeat).Scan(&beat); err != nil {
		if errors.Is(err, pgx.ErrNoRows) { // since the look another process found it
			return ErrQuarantine
		}
		return err
	}
	g.last = max(g.last, beat)
	return g.rdb.ZAddArgs(ctx, g.key, redis.ZAddArgs{GT: true, Members: []redis.Z{{Score: float64(beat), Member: "beat"}}}).Err()
}
