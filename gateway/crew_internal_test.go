package main

import (
	"context"
	"errors"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"
)

func TestCrewStopsInSteps(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		c := newCrew(10*time.Second, slog.New(slog.DiscardHandler))
		var mu sync.Mutex
		var ended []string
		part := func(name string, takes time.Duration) {
			c.start(name, func(ctx context.Context) error {
				<-ctx.Done()
				time.Sleep(takes)
				mu.Lock()
				defer mu.Unlock()
				ended = append(ended, name)
				return nil
			})
		}
		part("pool", 0)
		part("intake", 3*time.Second)
		part("batcher", time.Second)
		begin := time.Now()
		c.stop(t.Context(), "intake", "never started")
		c.stop(t.Context(), "batcher")
		c.stop(t.Context(), "pool")
		if want := []string{"intake", "batcher", "pool"}; !slices.Equal(ended, want) {
			t.Errorf("ended %v, want %v", ended, want)
		}
		if took := time.Since(begin); took != 4*time.Second {
			t.Errorf("took %s", took)
		}
		if err := c.leftover(); err != nil {
			t.Error(err)
		}
		select {
		case err := <-c.failed:
			t.Errorf("stopped parts count as failed: %v", err)
		default:
		}
	})
}

func TestCrewDoesNotWaitForEver(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		c := newCrew(10*time.Second, slog.New(slog.DiscardHandler))
		release := make(chan struct{})
		for _, name := range []string{"a", "b", "c"} {
			c.start(name, func(context.Context) error {
				<-release
				return nil
			})
		}
		begin := time.Now()
		c.stop(t.Context(), "a") // its drain time
		total, cancel := context.WithTimeout(t.Context(), 3*time.Second)
		defer cancel()
		c.stop(total, "b") // the time of the whole stop
		cut, second := context.WithCancel(t.Context())
		second()
		c.stop(cut, "c") // a second signal
		if took := time.Since(begin); took != 13*time.Second {
			t.Errorf("took %s, want 13s", took)
		}
		if err := c.leftover(); err == nil || !strings.Contains(err.Error(), "a, b, c") {
			t.Errorf("leftover %v", err)
		}
		close(release)
		synctest.Wait()
	})
}

func TestCrewReportsTheFirstFailure(t *testing.T) {
	t.Parallel()
	broken := errors.New("broken")
	for _, c := range []struct {
		returns error
		want    string
	}{{broken, "part: broken"}, {nil, "part: ended by itself"}} {
		crew := newCrew(time.Minute, slog.New(slog.DiscardHandler))
		crew.start("part", func(context.Context) error { return c.returns })
		if err := <-crew.failed; err.Error() != c.want || c.returns != nil && !errors.Is(err, broken) {
			t.Errorf("failed with %v, want %s", err, c.want)
		}
		crew.start("other", func(context.Context) error { return nil }) // reported or logged, but never blocking
		crew.start("third", func(context.Context) error { return nil })
		crew.stop(t.Context(), "part", "other", "third")
		if err := crew.leftover(); err != nil {
			t.Error(err)
		}
	}
}
