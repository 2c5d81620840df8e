//go:build failpoint

package failpoint

import (
	"fmt"
	"os"
	"os/signal"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"syscall"
	"time"
)

var (
	point string
	hits  int64 // passes until the end; 0 = a delay
	delay time.Duration
	armed atomic.Bool
	left  atomic.Int64
)

// Arm reads FAILPOINT. The process is armed by SIGUSR1; delays hold from the start.
func Arm() error {
	text := os.Getenv("FAILPOINT")
	if text == "" {
		return nil
	}
	name, value, _ := strings.Cut(text, ":")
	n, err := strconv.ParseInt(value, 10, 64)
	if err != nil || n < 1 {
		if delay, err = time.ParseDuration(value); err != nil || delay <= 0 {
			return fmt.Errorf("FAILPOINT %q: want POINT:PASSES or POINT:DURATION, above 0", text)
		}
		n = 0
	}
	if !slices.Contains(Points, name) {
		return fmt.Errorf("FAILPOINT %q: want a point of %s", name, strings.Join(Points, ", "))
	}
	point, hits = name, n
	left.Store(n)
	if n == 0 {
		armed.Store(true)
		return nil
	}
	ready := make(chan os.Signal, 1)
	signal.Notify(ready, syscall.SIGUSR1)
	go func() {
		<-ready
		armed.Store(true)
	}()
	return nil
}

// Hit is a pass of the point. A kill is SIGKILL: nothing is flushed, closed or answered.
func Hit(name string) {
	if name != point || !armed.Load() {
		return
	}
	if hits == 0 {
		for until := time.Now().Add(delay); time.Now().Before(until); {
		} // sleeping is too coarse for a fraction of a millisecond
		return
	}
	if left.Add(-1) == 0 {
		fmt.Fprintln(os.Stderr, "failpoint", name)
		_ = syscall.Kill(os.Getpid(), syscall.SIGKILL) // cannot fail for itself
		select {}
	}
}

// Armed says whether the next pass of the point may end the process: for code that must be slower then.
func Armed(name string) bool { return name == point && hits > 0 && armed.Load() }
