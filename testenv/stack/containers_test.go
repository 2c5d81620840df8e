package stack_test

import (
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"

	"cmppgateway/testenv/stack"
)

func connectOnce(ctx context.Context, url string) error {
	conn, err := pgx.Connect(ctx, url)
	if err != nil {
		return err
	}
	return conn.Close(ctx)
}

// Both tests need an engine and the images of `make images`, or others that
// TESTENV_POSTGRES_IMAGE and TESTENV_REDIS_IMAGE name, or a registry.
func containers(t *testing.T) *stack.Stack {
	t.Helper()
	s, err := stack.Start(t.Context(), stack.Options{Mode: stack.ModeContainers})
	if errors.Is(err, stack.ErrNoContainers) {
		t.Skipf("needs a container engine with images: %v", err)
	}
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func TestContainersAreADurableStackOnLoopback(t *testing.T) {
	t.Parallel()
	s := containers(t)
	defer func() {
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	}()
	if s.Provisioner() != stack.ModeContainers || s.Postgres() != nil || s.Redis() != nil {
		t.Errorf("provisioner %q with processes %v, %v", s.Provisioner(), s.Postgres(), s.Redis())
	}
	for name, want := range map[string]string{
		"fsync": "on", "synchronous_commit": "on", "full_page_writes": "on",
		"appendonly": "yes", "appendfsync": "everysec", "maxmemory-policy": "noeviction",
	} {
		if got := s.Durability()[name]; got != want {
			t.Errorf("%s = %q, want %q", name, got, want)
		}
	}
	checkDatabases(t, stack.Options{PostgresURL: s.PostgresURL(), RedisAddr: s.RedisAddr()})
}

func TestContainersOfAKilledProgramAreRemovedByTheNext(t *testing.T) {
	t.Parallel()
	if err := containers(t).Close(); err != nil {
		t.Fatal(err)
	}
	cmd, line := startChild(t, "containers")
	url, _, ok := strings.Cut(line, " ")
	if !ok {
		t.Fatalf("child said %q", line)
	}
	kill(t, cmd)
	if err := connectOnce(t.Context(), url); err != nil {
		t.Fatalf("the container ended with its program: %v", err)
	}
	if err := containers(t).Close(); err != nil {
		t.Fatal(err)
	}
	if err := connectOnce(t.Context(), url); err == nil {
		t.Error("an abandoned container is still there")
	}
}
