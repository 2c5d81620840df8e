package settings

import (
	"context"
	"fmt"
	"maps"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"cmppgateway/gateway/internal/routing"
	"cmppgateway/gateway/internal/store"
)

// downAfter is how long a channel may be without a usable connection before messages go to other candidates. A reconnect
// takes less.
const downAfter = 3 * time.Second

// Breaker is the breaker of a channel that refuses too much.
type Breaker struct {
	State BreakerState
	Trips int       // in a row
	Until time.Time // half-open from then on
}

// BreakerState of a channel; 0 is closed.
type BreakerState int16

// Breaker states.
const (
	BreakerClosed BreakerState = iota
	BreakerOpen
	BreakerHalfOpen
)

func (b BreakerState) String() string {
	switch b {
	case BreakerClosed:
		return "closed"
	case BreakerOpen:
		return "open"
	case BreakerHalfOpen:
		return "half-open"
	}
	return fmt.Sprintf("breaker(%d)", int16(b))
}

// Health is what the processes that hold the channels have published about them; what is not named is well.
type Health struct {
	Down     map[int32]bool // without a usable connection for downAfter
	Breakers map[int32]Breaker
}

// equal compares what choices depend on.
func (h Health) equal(o Health) bool {
	return maps.Equal(h.Down, o.Down) && maps.EqualFunc(h.Breakers, o.Breakers, func(a, b Breaker) bool {
		return a.State == b.State && a.Trips == b.Trips && a.Until.Equal(b.Until)
	})
}

func loadHealth(ctx context.Context, pool *pgxpool.Pool) (h Health, err error) {
	h = Health{Down: map[int32]bool{}, Breakers: map[int32]Breaker{}}
	r, err := pool.Query(ctx, store.SettingsHealth, downAfter)
	if err != nil {
		return h, fmt.Errorf("health of channels: %w", err)
	}
	var id int32
	var down bool
	var b Breaker
	_, err = pgx.ForEachRow(r, []any{&id, &down, &b.State, &b.Trips, &b.Until}, func() error {
		if down {
			h.Down[id] = true
		}
		if b.State != BreakerClosed {
			h.Breakers[id] = b
		}
		return nil
	})
	if err != nil {
		return h, fmt.Errorf("health of channels: %w", err)
	}
	return h, nil
}

// Health of a channel as its candidates carry it: one that cannot be opened, has no connection or refuses too much is out.
func (s *Snapshot) healthOf(channel int32) routing.Health {
	switch {
	case len(s.Refused[channel]) > 0 || s.Health.Down[channel] || s.Health.Breakers[channel].State == BreakerOpen:
		return routing.Out
	case s.Health.Breakers[channel].State == BreakerHalfOpen:
		return routing.Trial
	}
	return routing.Well
}

// withHealth is the same settings with other health: groups are made anew, for snapshots are never changed.
func (s *Snapshot) withHealth(h Health) *Snapshot {
	n := *s
	n.Health = h
	n.Groups = make(map[int32]*routing.Group, len(s.Groups))
	for id, g := range s.Groups {
		list := make([]routing.Candidate, len(g.Candidates))
		for i, c := range g.Candidates {
			c.Health = n.healthOf(c.ChannelID)
			list[i] = c
		}
		n.Groups[id] = &routing.Group{ID: g.ID, Candidates: list}
	}
	return &n
}
