package inbound

import (
	"context"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"cmppgateway/gateway/cmpp"
	"cmppgateway/gateway/internal/segment"
	"cmppgateway/gateway/internal/store"
)

const (
	setsEvery = time.Second
	setsFresh = 5 * time.Second // a set that was let in counts so long, until it is seen among those that wait
)

// sets bounds the SUBMITs that wait behind the inbox: long messages that are not complete, and those with an At_Time. What
// waits is read once a second; sets that came since count too. A segment of a set that waits already is always let in, for it
// may complete it.
type sets struct {
	pool     *pgxpool.Pool
	log      *slog.Logger
	most     int // sets of an application
	rowsMost int // rows of an application that wait for their time

	mu   sync.Mutex
	apps map[int32]*waitingSets
}

type waitingSets struct {
	keys      map[int64]struct{}
	fresh     map[int64]time.Time // let in, not seen yet
	scheduled int
}

func (s *sets) of(app int32) *waitingSets {
	w := s.apps[app]
	if w == nil {
		w = &waitingSets{keys: map[int64]struct{}{}, fresh: map[int64]time.Time{}}
		s.apps[app] = w
	}
	return w
}

// admit says why a SUBMIT may not wait, "" if it may.
func (s *sets) admit(app int32, p *cmpp.Submit, found *checked, now time.Time) (cause string) {
	key, _, _, segmented := segment.KeyOf(app, joinNumbers(p.DestTerminalID), p.SrcID, p.TPUDHI, p.MsgContent)
	if !segmented && found.atTime.IsZero() {
		return ""
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	w := s.of(app)
	if !found.atTime.IsZero() && w.scheduled >= s.rowsMost {
		return "the application has too many SUBMITs that wait for their time"
	}
	if !segmented {
		return ""
	}
	hash := key.Hash()
	if _, waits := w.keys[hash]; waits {
		return ""
	}
	if _, fresh := w.fresh[hash]; !fresh && len(w.keys)+len(w.fresh) >= s.most {
		return "the application has too many long messages that are not complete"
	}
	w.fresh[hash] = now
	return ""
}

func joinNumbers(list []string) string {
	if len(list) == 1 {
		return list[0]
	}
	n := len(list)
	for _, d := range list {
		n += len(d)
	}
	b := make([]byte, 0, n)
	for i, d := range list {
		if i > 0 {
			b = append(b, ',')
		}
		b = append(b, d...)
	}
	return string(b)
}

// run reads what waits, of the applications that live gives. Without PostgreSQL the last counts stay.
func (s *sets) run(ctx context.Context, live func() []int32) {
	timer := time.NewTimer(setsEvery)
	defer timer.Stop()
	failing := false
	for {
		select {
		case <-ctx.Done():
			return
		case <-timer.C:
		}
		start := time.Now()
		err := s.read(ctx, live(), start)
		if failed := err != nil && ctx.Err() == nil; failed != failing {
			failing = failed
			s.log.Info("waiting places counted", slog.Bool("working", !failed), slog.Any("error", err))
		}
		timer.Reset(max(setsEvery, backlogShare*time.Since(start)))
	}
}

func (s *sets) read(ctx context.Context, live []int32, now time.Time) error {
	rows, err := s.pool.Query(ctx, store.InboundWaiting, live, s.most+1, s.rowsMost)
	if err != nil {
		return fmt.Errorf("count waiting SUBMITs: %w", err)
	}
	type count struct {
		app       int32
		keys      []int64
		scheduled int
	}
	list, err := pgx.CollectRows(rows, func(row pgx.CollectableRow) (c count, err error) {
		err = row.Scan(&c.app, &c.keys, &c.scheduled)
		return c, err
	})
	if err != nil {
		return fmt.Errorf("count waiting SUBMITs: %w", err)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	before := s.apps
	s.apps = make(map[int32]*waitingSets, len(list))
	for _, c := range list {
		w := s.of(c.app)
		w.scheduled = c.scheduled
		for _, k := range c.keys {
			w.keys[k] = struct{}{}
		}
		if old := before[c.app]; old != nil {
			for k, at := range old.fresh {
				if _, seen := w.keys[k]; !seen && now.Sub(at) < setsFresh {
					w.fresh[k] = at
				}
			}
		}
	}
	return nil
}

// waiting are the sets and the SUBMITs for later of the application that has most of each.
func (s *sets) waiting() (sets, scheduled int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, w := range s.apps {
		sets, scheduled = max(sets, len(w.keys)+len(w.fresh)), max(scheduled, w.scheduled)
	}
	return sets, scheduled
}
