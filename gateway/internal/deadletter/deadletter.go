package deadletter

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/prometheus/client_golang/prometheus"

	"cmppgateway/gateway/internal/event"
	"cmppgateway/gateway/internal/store"
)

// Kinds that can be offered again. Events are kept as EventPrefix and their type.
const (
	EventPrefix  = "event "
	KindReceipt  = "receipt"  // a report without a submit, parked to the end
	KindDelivery = "delivery" // a receipt or uplink its customer did not take
)

// Letter is one dead letter.
type Letter struct {
	ID         int64      `json:"id,string"`
	At         time.Time  `json:"at"`
	Kind       string     `json:"kind"`
	Reason     string     `json:"reason"`
	Account    int32      `json:"account"` // supplier account, 0 = not told
	Raw        []byte     `json:"raw"`
	ReplayedAt *time.Time `json:"replayedAt,omitempty"`
}

// List returns at most limit letters of a kind ("" = all), newest first; replayed ones when all is set.
func List(ctx context.Context, pool *pgxpool.Pool, kind string, all bool, limit int) ([]Letter, error) {
	list, err := collect(ctx, pool, store.DeadLetterList, kind, all, limit)
	if err != nil {
		return nil, fmt.Errorf("list dead letters: %w", err)
	}
	return list, nil
}

type querier interface {
	Query(ctx context.Context, sql string, args ...any) (pgx.Rows, error)
}

func collect(ctx context.Context, on querier, sql string, args ...any) ([]Letter, error) {
	rows, err := on.Query(ctx, sql, args...)
	if err != nil {
		return nil, err
	}
	return pgx.CollectRows(rows, pgx.RowToStructByPos[Letter])
}

// Outcome is what became of one letter in a replay.
type Outcome struct {
	ID  int64
	Err error // nil = taken
}

// Reasons why a letter is not offered again.
var (
	ErrNone     = errors.New("no such dead letter")
	ErrReplayed = errors.New("replayed before")
	ErrKind     = errors.New("this kind cannot be offered again")
)

// Replay offers the letters again, each on its own: one that fails stays, and is told. offer posts an event to the callback.
func Replay(ctx context.Context, pool *pgxpool.Pool, ids []int64, offer func(context.Context, event.Event) (event.Result, error)) []Outcome {
	ids = slices.Compact(slices.Sorted(slices.Values(ids)))
	outcomes := make([]Outcome, len(ids))
	for i, id := range ids {
		outcomes[i] = Outcome{id, replay(ctx, pool, id, offer)}
	}
	return outcomes
}

func replay(ctx context.Context, pool *pgxpool.Pool, id int64, offer func(context.Context, event.Event) (event.Result, error)) error {
	var posted *event.Event
	err := store.Retry(ctx, pool, func(tx pgx.Tx) error {
		posted = nil
		list, err := collect(ctx, tx, store.DeadLetterFind, []int64{id})
		switch {
		case err != nil:
			return err
		case len(list) == 0:
			return ErrNone
		case list[0].ReplayedAt != nil:
			return ErrReplayed
		}
		l := list[0]
		var sql string
		switch {
		case strings.HasPrefix(l.Kind, EventPrefix):
			posted = &event.Event{ID: l.ID, Type: strings.TrimPrefix(l.Kind, EventPrefix), Payload: l.Raw}
			return nil // the callback is another process: not inside a transaction
		case l.Kind == KindReceipt:
			sql = store.DeadLetterReceipt
		case l.Kind == KindDelivery:
			sql = store.DeadLetterDelivery
		default:
			return fmt.Errorf("kind %q: %w", l.Kind, ErrKind)
		}
		if _, err := tx.Exec(ctx, sql, id); err != nil {
			return err
		}
		_, err = tx.Exec(ctx, store.DeadLetterReplayed, id)
		return err
	})
	if err != nil || posted == nil {
		return err
	}
	r, err := offer(ctx, *posted)
	if err != nil {
		return err
	}
	if !r.Accepted {
		return fmt.Errorf("refused again: %s", r.ErrorCode)
	}
	// Twice at once, or a crash before this mark: the event is known by its id.
	_, err = pool.Exec(ctx, store.DeadLetterReplayed, id)
	return err
}

const watchEvery = time.Minute

// Watch keeps the gauge cmppgw_dead_letters{kind} until ctx is done.
func Watch(ctx context.Context, pool *pgxpool.Pool, r prometheus.Registerer, log *slog.Logger) error {
	gauge := prometheus.NewGaugeVec(prometheus.GaugeOpts{
		Name: "cmppgw_dead_letters", Help: "Dead letters nobody has replayed, counted every minute.",
	}, []string{"kind"})
	if err := r.Register(gauge); err != nil {
		return fmt.Errorf("dead letters: %w", err)
	}
	tick := time.NewTicker(watchEvery)
	defer tick.Stop()
	for {
		if err := refresh(ctx, pool, gauge); err != nil && ctx.Err() == nil {
			log.Warn("dead letters not counted", slog.Any("error", err))
		}
		select {
		case <-ctx.Done():
			return nil
		case <-tick.C:
		}
	}
}

func refresh(ctx context.Context, pool *pgxpool.Pool, gauge *prometheus.GaugeVec) error {
	rows, err := pool.Query(ctx, store.DeadLetterCounts)
	if err != nil {
		return err
	}
	counts := map[string]float64{}
	var kind string
	var n int64
	if _, err := pgx.ForEachRow(rows, []any{&kind, &n}, func() error {
		counts[kind] = float64(n)
		return nil
	}); err != nil {
		return err
	}
	gauge.Reset() // kinds that are gone
	for kind, n := range counts {
		gauge.WithLabelValues(kind).Set(n)
	}
	return nil
}
