package testenv

import (
	"context"
	"fmt"
	"log/slog"
	"os"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"

	"cmppgateway/testenv/stack"
)

const (
	startLimit = 3 * time.Minute // an engine may have to pull images once
	stepLimit  = time.Minute
)

// Migration brings the database at url to the present schema. See DBWith for
// what makes two migrations the same.
type Migration = func(ctx context.Context, url string) error

// env is what one test binary shares.
type env struct {
	mu        sync.Mutex
	stack     *stack.Stack
	err       error // why there is no stack: one attempt is enough
	migrate   Migration
	templates map[funcID]*template
}

var shared = env{templates: map[funcID]*template{}}

// Main is the TestMain of a package that uses this one: it runs the tests,
// stops what was started and then fails the run if goroutines are left over.
//
//	func TestMain(m *testing.M) {
//		testenv.Migrated(schema.Up)
//		testenv.Main(m)
//	}
func Main(m *testing.M) {
	localZone()
	goleak.VerifyTestMain(runner{m})
}

type runner struct{ m *testing.M }

func (r runner) Run() int {
	code := r.m.Run()
	if err := shared.close(); err != nil {
		fmt.Fprintf(os.Stderr, "testenv: %v\n", err)
		code = max(code, 1)
	}
	return code
}

// Stack is the binary's stack, started by the first call; the test fails when
// there is none to be had. Its servers are shared by every test of the binary:
// take PostgresServer or RedisServer for one to break.
func Stack(tb testing.TB) *stack.Stack {
	tb.Helper()
	shared.mu.Lock()
	defer shared.mu.Unlock()
	return shared.start(tb)
}

// start is called with the lock held.
func (e *env) start(tb testing.TB) *stack.Stack {
	tb.Helper()
	if e.stack == nil && e.err == nil {
		ctx, cancel := context.WithTimeout(context.Background(), startLimit) // outlives the test
		defer cancel()
		e.stack, e.err = stack.Start(ctx, stack.Options{})
	}
	if e.err != nil {
		tb.Fatalf("testenv: %v", e.err)
	}
	return e.stack
}

func (e *env) close() error {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.stack == nil {
		return nil
	}
	return e.closeStack()
}

// PostgresServer starts a PostgreSQL of the test's own, to kill, freeze or
// restart. It runs as a process whatever the shared stack runs on, and is
// stopped at the end of the test.
func PostgresServer(tb testing.TB) *stack.Process {
	tb.Helper()
	return server(tb, stack.StartPostgres)
}

// RedisServer starts a Redis of the test's own, to kill, freeze or restart.
// It runs as a process whatever the shared stack runs on, and is stopped at
// the end of the test.
func RedisServer(tb testing.TB) *stack.Process {
	tb.Helper()
	return server(tb, stack.StartRedis)
}

func server(tb testing.TB, start func(context.Context, stack.Options) (*stack.Process, error)) *stack.Process {
	tb.Helper()
	ctx, cancel := context.WithTimeout(tb.Context(), stepLimit)
	defer cancel()
	p, err := start(ctx, stack.Options{Log: slog.New(slog.DiscardHandler)})
	if err != nil {
		tb.Fatalf("testenv: %v; `make setup` installs what is missing", err)
	}
	tb.Cleanup(func() {
		if err := p.Close(); err != nil {
			tb.Errorf("testenv: %v", err)
		}
	})
	return p
}
