package wake_test

import (
	"context"
	"log/slog"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"cmppgateway/gateway/internal/wake"
	"cmppgateway/testenv"
)

func TestMain(m *testing.M) { testenv.Main(m) }

var quiet = slog.New(slog.DiscardHandler)

func run(t *testing.T, rdb *redis.Client) *wake.Bus {
	t.Helper()
	b := wake.New(rdb, quiet)
	ctx, cancel := context.WithCancel(context.Background()) // until the cleanup, which comes after the test's own context
	done := make(chan error, 1)
	go func() { done <- b.Run(ctx) }()
	t.Cleanup(func() {
		cancel()
		if err := <-done; err != nil {
			t.Error(err)
		}
	})
	return b
}

func client(t *testing.T, addr string, db int) *redis.Client {
	t.Helper()
	c := redis.NewClient(&redis.Options{Addr: addr, DB: db, DialTimeout: time.Second, MaxRetries: -1})
	t.Cleanup(func() {
		if err := c.Close(); err != nil {
			t.Error(err)
		}
	})
	return c
}

func got(c <-chan struct{}) bool {
	select {
	case <-c:
		return true
	default:
		return false
	}
}

func wait(t *testing.T, c <-chan struct{}) {
	t.Helper()
	select {
	case <-c:
	case <-time.After(20 * time.Second):
		t.Fatal("no nudge")
	}
}

func TestNudgesWithinTheProcess(t *testing.T) {
	t.Parallel()
	b := run(t, nil)
	a1, a2, other := b.Subscribe("{wf}"), b.Subscribe("{wf}"), b.Subscribe("{dl}")
	for range 100 { // many nudges are one
		b.Publish("{wf}")
	}
	if !got(a1) || !got(a2) {
		t.Error("a subscriber was not nudged at once")
	}
	if got(a1) || got(other) {
		t.Error("a nudge too many")
	}
}

func TestNudgesBetweenProcesses(t *testing.T) {
	t.Parallel()
	addr, db := testenv.Redis(t)
	here, there := run(t, client(t, addr, db)), run(t, client(t, addr, db))
	far, other := there.Subscribe("{ob}:7"), there.Subscribe("{ob}:8")
	// Subscribing itself nudges all: what came before may have been missed.
	wait(t, far)
	wait(t, other)
	here.Publish("{ob}:7")
	wait(t, far)
	if got(other) {
		t.Error("nudged under another topic")
	}
}

func TestWithoutRedisNothingBlocks(t *testing.T) {
	t.Parallel()
	server := testenv.RedisServer(t)
	b := run(t, client(t, server.Addr(), 0))
	c := b.Subscribe("{st}")
	wait(t, c) // connected
	if err := server.Kill(); err != nil {
		t.Fatal(err)
	}
	for range 10_000 {
		b.Publish("{st}")
	}
	if !got(c) {
		t.Error("no nudge within the process")
	}
	if err := server.Restart(t.Context()); err != nil {
		t.Fatal(err)
	}
	wait(t, c) // subscribed again
}
