package runner_test

import (
	"slices"
	"testing"

	"github.com/redis/go-redis/v9"

	"cmppgateway/chaos/fault"
	"cmppgateway/scenarios/internal/runner"
	"cmppgateway/scenarios/internal/spec"
	"cmppgateway/testenv/stack"
)

// carryOut runs a fault that must not be proved before it is there.
func carryOut(t *testing.T, name string, f fault.Slow, meanwhile func()) {
	t.Helper()
	if err := f.Verify(t.Context(), true); err == nil {
		t.Errorf("%s is proved and was not injected", name)
	}
	var steps []string
	err := fault.Run(t.Context(), f, 0, func(s fault.Step) {
		steps = append(steps, s.What)
		if s.What == "proved" && meanwhile != nil {
			if err := f.Verify(t.Context(), false); err == nil {
				t.Errorf("%s is proved to be over and is not", name)
			}
			meanwhile()
		}
	})
	if err != nil || !slices.Equal(steps, []string{"injected", "proved", "reverted", "proved over"}) {
		t.Errorf("%s: %v, %v", name, steps, err)
	}
}

// Every fault of Redis is proved by another client, as is its end; and neither is without it.
func TestRedisFaults(t *testing.T) {
	t.Parallel()
	for _, name := range []string{spec.RedisFreeze, spec.RedisRestart, spec.RedisEmpty, spec.RedisStale} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			o := stack.Options{RedisConfig: map[string]string{}}
			if name == spec.RedisStale {
				o.RedisConfig["appendonly"] = "no"
			}
			server, err := stack.StartRedis(t.Context(), o)
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { _ = server.Close() })
			edge := redis.NewClient(&redis.Options{Addr: server.Addr()})
			defer edge.Close()
			const epoch = "{ev:1}:epoch"
			if err := edge.MSet(t.Context(), epoch, "1", "scenario:marker", "before").Err(); err != nil {
				t.Fatal(err)
			}
			meanwhile := func() {}
			if name == spec.RedisEmpty { // over as soon as an edge has written its epoch again
				meanwhile = func() {
					if err := edge.Set(t.Context(), epoch, "2", 0).Err(); err != nil {
						t.Fatal(err)
					}
				}
			}
			carryOut(t, name, runner.RedisFault(name, server), meanwhile)
		})
	}
}

// With its append-only file Redis would know everything again.
func TestRedisStaleNeedsASnapshot(t *testing.T) {
	t.Parallel()
	server, err := stack.StartRedis(t.Context(), stack.Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = server.Close() })
	if err := runner.RedisFault(spec.RedisStale, server).Inject(t.Context()); err == nil || server.PID() == 0 {
		t.Errorf("injected: %v, process %d", err, server.PID())
	}
}

func TestPostgresRestart(t *testing.T) {
	t.Parallel()
	server, err := stack.StartPostgres(t.Context(), stack.Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = server.Close() })
	carryOut(t, spec.PostgresRestart, runner.PostgresRestart(server), func() {})
}
