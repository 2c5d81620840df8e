package main

import (
	"context"
	"os"
	"os/signal"
	"syscall"
	"time"
)

// again is how long after the first signal another one still counts as the same: some senders signal a process and then
// its group.
const again = 500 * time.Millisecond

// signals gives a context that ends with the first SIGINT or SIGTERM and one that ends with the second, if it comes more than
// again later.
func signals(again time.Duration) (ctx, cut context.Context, stop func()) {
	ctx, first := context.WithCancel(context.Background())
	cut, second := context.WithCancel(context.Background())
	c := make(chan os.Signal, 2)
	done := make(chan struct{})
	signal.Notify(c, syscall.SIGINT, syscall.SIGTERM)
	go func() {
		defer close(done)
		var at time.Time
		for range c {
			switch {
			case ctx.Err() == nil:
				at = time.Now()
				first()
			case time.Since(at) > again:
				second()
			}
		}
	}()
	return ctx, cut, func() {
		signal.Stop(c)
		close(c)
		<-done
		first()
		second()
	}
}
