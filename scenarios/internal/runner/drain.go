package runner

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"cmppgateway/scenarios/internal/spec"
)

// drainEvery is how often the counts are asked for.
const drainEvery = 250 * time.Millisecond

// drained is how a drain ended.
type drained struct {
	// Took is from the beginning to the first moment of the last stretch in
	// which everything was empty; or all of it when it never was.
	Took time.Duration
	Left map[string]int64 // what was not empty at the end, by name
}

// drain asks probe until everything it counts is zero and stays so without a
// break for cfg.Stable, or until cfg.Limit. Counts, not time, decide: a sleep of
// thirty seconds proves nothing. An error of probe counts as not empty.
func drain(ctx context.Context, cfg spec.Drain, probe func(context.Context) (map[string]int64, error)) (drained, error) {
	begin := time.Now()
	limit := time.NewTimer(cfg.Limit)
	defer limit.Stop()
	tick := time.NewTicker(drainEvery)
	defer tick.Stop()
	var empty time.Time // since when; zero: not
	var d drained
	for {
		counts, err := probe(ctx)
		now := time.Now()
		if err != nil {
			counts = map[string]int64{"(" + err.Error() + ")": 1}
		}
		d.Left = nonZero(counts)
		switch {
		case len(d.Left) > 0:
			empty = time.Time{}
			d.Took = now.Sub(begin)
		case empty.IsZero():
			empty = now
			d.Took = now.Sub(begin)
		}
		if !empty.IsZero() && now.Sub(empty) >= cfg.Stable {
			return d, nil
		}
		select {
		case <-tick.C:
		case <-limit.C:
			return d, nil
		case <-ctx.Done():
			return d, context.Cause(ctx)
		}
	}
}

func nonZero(counts map[string]int64) map[string]int64 {
	left := map[string]int64{}
	for name, n := range counts {
		if n != 0 {
			left[name] = n
		}
	}
	return left
}

// describe lists counts for people, in the order of their names.
func describe(counts map[string]int64) string {
	parts := make([]string, 0, len(counts))
	for _, name := range slices.Sorted(maps.Keys(counts)) {
		parts = append(parts, fmt.Sprintf("%s %d", name, counts[name]))
	}
	return strings.Join(parts, ", ")
}
