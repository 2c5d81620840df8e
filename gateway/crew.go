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
	cut     <-chan struct{} // closed when nothing is waited for any more
	failed  chan error      // the first part that failed: the process stops
	members []*member
	drain   time.Duration    // for each step of the stop
	over    <-chan time.Time // the end of the stop as a whole
	late    []string
}

type member struct {
	name   string
	cancel context.CancelFunc
	done   chan struct{}
}

func newCrew(cut <-chan struct{}, log *slog.Logger) *crew {
	return &crew{log: log, cut: cut, failed: make(chan error, 1)}
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

// limit begins the stop: each step may take drain, all of them total.
func (c *crew) limit(drain, total time.Duration) {
	c.drain, c.over = drain, time.After(total)
}

// stop is one step: it ends the named parts at the same time and waits for them. Parts that were never started are none.
func (c *crew) stop(names ...string) {
	begin := time.Now()
	wait := make(chan struct{})
	timer := time.AfterFunc(c.drain, func() { close(wait) })
	defer timer.Stop()
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
			continue
		default:
		}
		select {
		case <-m.done:
		case <-wait:
			c.late = append(c.late, m.name)
		case <-c.over:
			c.over = closed
			c.late = append(c.late, m.name)
		case <-c.cut:
			c.late = append(c.late, m.name)
		}
	}
	if len(step) > 0 {
		c.log.Info("stopped", slog.Any("parts", names), slog.Duration("took", time.Since(begin)))
	}
}

// closed is a time that has come.
var closed = func() <-chan time.Time { c := make(chan time.Time); close(c); return c }()

// leftover is the error of parts that did not end in time.
func (c *crew) leftover() error {
	if len(c.late) == 0 {
		return nil
	}
	return fmt.Errorf("not stopped in time: %s", strings.Join(c.late, ", "))
}
