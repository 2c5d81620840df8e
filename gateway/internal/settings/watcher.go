package settings

import (
	"context"
	"fmt"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"

	"cmppgateway/gateway/internal/routing"
	"cmppgateway/gateway/internal/store"
)

// Watcher holds the current snapshot and replaces it when the version in PostgreSQL was raised. Without PostgreSQL the last
// one stays. Safe for concurrent use.
type Watcher struct {
	pool  *pgxpool.Pool
	every time.Duration
	log   *slog.Logger

	nudges <-chan struct{} // nil: there are none

	current atomic.Pointer[Snapshot]
	mu      sync.Mutex
	changed chan struct{}
}

// NewWatcher polls the version every so often once Run is called. Until the first Refresh, Current is empty.
func NewWatcher(pool *pgxpool.Pool, every time.Duration, log *slog.Logger) *Watcher {
	w := &Watcher{pool: pool, every: every, log: log, changed: make(chan struct{})}
	w.current.Store(&Snapshot{Table: new(routing.Table)})
	return w
}

// Nudges makes Run look at once whenever c has something, between its own times. Call it before Run.
func (w *Watcher) Nudges(c <-chan struct{}) { w.nudges = c }

// Current is the snapshot in use; never nil.
func (w *Watcher) Current() *Snapshot { return w.current.Load() }

// Changed is closed when a newer snapshot than the present one is in use. Take the channel before Current.
func (w *Watcher) Changed() <-chan struct{} {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.changed
}

// Refresh loads the settings now if their version is another one.
func (w *Watcher) Refresh(ctx context.Context) error {
	var version int64
	if err := w.pool.QueryRow(ctx, store.SettingsVersion).Scan(&version); err != nil {
		return fmt.Errorf("settings version: %w", err)
	}
	health, err := loadHealth(ctx, w.pool)
	if err != nil {
		return err
	}
	s := w.Current()
	if version == s.Version {
		if health.equal(s.Health) {
			return nil
		}
	} else if s, err = Load(ctx, w.pool); err != nil {
		return err
	}
	s = s.withHealth(health)
	w.mu.Lock()
	defer w.mu.Unlock()
	w.current.Store(s)
	close(w.changed)
	w.changed = make(chan struct{})
	return nil
}

// Run polls until ctx is done, which is no error. A failing load is logged once until it works again.
func (w *Watcher) Run(ctx context.Context) error {
	tick := time.NewTicker(w.every)
	defer tick.Stop()
	failing := false
	for {
		before := w.Current().Version
		err := w.Refresh(ctx)
		switch {
		case ctx.Err() != nil:
			return nil
		case err != nil && !failing:
			w.log.Warn("settings not loaded, the last ones stay in use", slog.Any("error", err))
		case err == nil && failing:
			w.log.Info("settings load again")
		}
		failing = err != nil
		if v := w.Current().Version; v != before {
			w.log.Info("settings in use", slog.Int64("version", v))
			for _, fault := range w.Current().Faults {
				w.log.Warn("a row of the policy lists cannot be used and matches nothing", slog.Any("error", fault))
			}
		}
		select {
		case <-ctx.Done():
			return nil
		case <-tick.C:
		case <-w.nudges:
		}
	}
}
