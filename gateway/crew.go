package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"time"
)

// crew runs the parts of a process, each under a context of its own, so that they can be stopped one after another.
type crew struct {
	log     *slog.Logger
	drain   time.Duration // for each step of the stop
	failed  chan error    // the first part that failed: the process stops
	members []*member
	late    []string
}

type member struct {
	name   string
	cancel context.CancelFunc
	done   chan struct{}
}

func newCrew(drain time.Duration, log *slog.Logger) *crew {
	return &crew{log: log, drain: drain, failed: make(chan error, 1)}
}

// start runs a part until it is stopped. One that returns before has failed, whatever it returns.
func (c *crew) start(name string, run func(context.Context) error) {
	ctx, cancel := context.WithCancel(context.Background()) // not under the signal's: parts stop in an order
	m := &member{name: name, cancel: cancel, done: make(chan struct{})}
	c.members = append(c.members, m)
	go func() {
		defer close(m.done)
		err := run(ctx)
		stopped := ctx.Err() != nil
		cancel()
		switch {
		case stopped && err == nil:
			return
		case stopped:
			c.log.Error("part stopped with an error", slog.String("part", name), slog.Any("error", err))
			return
		case err == nil:
			err = errors.New("ended by itself")
		}
		select {
		case c.failed <- fmt.Errorf("%s: %w", name, err):
		default:
			c.log.Error("part failed", slog.String("part", name), slog.Any("error", err))
		}
	}()
}

// stop is one step: it ends the named parts at the same time and waits for them, no longer than the drain time and ctx.
// Parts that were never started are none.
func (c *crew) stop(ctx context.Context, names ...string) {
	begin := time.Now()
	ctx, cancel := context.WithTimeout(ctx, c.drain)
	defer cancel()
	var step []*member
	for _, m := range c.members {
		if slices.Contains(names, m.name) {
			m.cancel()
			step = append(step, m)
		}
	}
	for _, m := range step {
		select {
		case <-m.done:
			c.log.Info("stopped", slog.String("part", m.name), slog.Duration("took", time.Since(begin)))
		case <-ctx.Done():
			c.late = append(c.late, m.name)
		}
	}
}

// leftover is the error of parts that did not end in time.
func (c *crew) leftover() error {
	if len(c.late) == 0 {
		return nil
	}
	return fmt.Errorf("not stopped in time: %s", strings.Join(c.late, ", "))
}
