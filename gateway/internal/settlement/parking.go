package settlement

import (
	"context"
	"time"

	"github.com/jackc/pgx/v5"

	"cmppgateway/gateway/internal/store"
)

// Full says that there is no room for more receipts of a supplier account whose submit is not known yet (data, table 2.2).
// At settlement.parked_max that is so for every account with at least its share of the parked ones, so that an account that
// reports what nobody has sent does not stop the reports of the others. What is not taken stays with the edges and, at their
// bound, with the supplier. It is counted every 5 s, from half the bound on at each sweep.
func (s *Settlement) Full(account int32) bool {
	full := s.full.Load()
	return full != nil && (*full)[account]
}

// countWaiting counts what waits to be known, for the gauges and for Full.
func (s *Settlement) countWaiting(ctx context.Context) error {
	var unknown, overdue, refused float64
	var oldest *time.Time
	if err := s.Pool.QueryRow(ctx, store.SettlementWaiting, s.Config.UnknownAlert).Scan(&unknown, &overdue, &oldest, &refused); err != nil {
		return err
	}
	rows, err := s.Pool.Query(ctx, store.SettlementParkedCount)
	if err != nil {
		return err
	}
	parked := map[int32]int{}
	total := 0
	var oldestParked time.Time
	var account int32
	var n int
	var since time.Time
	if _, err := pgx.ForEachRow(rows, []any{&account, &n, &since}, func() error {
		parked[account] = n
		total += n
		if oldestParked.IsZero() || since.Before(oldestParked) {
			oldestParked = since
		}
		return nil
	}); err != nil {
		return err
	}
	full := map[int32]bool{}
	if total >= s.Config.ParkedMax {
		for account, n := range parked {
			full[account] = n*len(parked) >= total
		}
	}
	s.full.Store(&full)

	m, now := s.metrics, time.Now()
	for place, n := range map[string]float64{"unknown": unknown, "overdue": overdue, "refused_part": refused, "parked": float64(total)} {
		m.waiting.WithLabelValues(place).Set(n)
	}
	m.oldest.WithLabelValues("unknown").Set(age(now, oldest))
	m.oldest.WithLabelValues("parked").Set(age(now, &oldestParked))
	m.parked.Set(float64(total) / float64(s.Config.ParkedMax))
	if s.counted = now; 2*total >= s.Config.ParkedMax {
		s.counted = time.Time{}
	}
	return nil
}

func age(now time.Time, since *time.Time) float64 {
	if since == nil || since.IsZero() {
		return 0
	}
	return max(0, now.Sub(*since).Seconds())
}
