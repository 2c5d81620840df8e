package stack

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/redis/go-redis/v9"
)

// redisDefaults are the settings of a server this package starts. With the
// append-only file every answered write survives kill -9; 256 databases give
// each test one of its own.
func redisDefaults() map[string]string {
	return map[string]string{
		"databases":        "256",
		"save":             "",
		"appendonly":       "yes",
		"appendfsync":      "everysec",
		"maxmemory-policy": "noeviction",
	}
}

// StartRedis starts a private Redis server as a process, for a test that
// kills, freezes or restarts it. Of the options it uses Dir, RedisConfig and
// Log. The caller calls Close.
func StartRedis(ctx context.Context, o Options) (*Process, error) {
	o = o.withDefaults()
	server, err := lookup("redis-server")
	if err != nil {
		return nil, fmt.Errorf("start redis: %w", err)
	}
	h, err := newHome(o.Dir, o.Log)
	if err != nil {
		return nil, fmt.Errorf("start redis: %w", err)
	}
	settings := redisDefaults()
	maps.Copy(settings, map[string]string{"bind": loopback, "dir": h.dir, "daemonize": "no"})
	maps.Copy(settings, o.RedisConfig)
	conf := filepath.Join(h.dir, "redis.conf")
	if err := writeRedisConf(conf, settings); err != nil {
		return nil, errors.Join(fmt.Errorf("start redis: %w", err), h.close())
	}
	p := &Process{
		name:  "redis",
		home:  h,
		log:   o.Log,
		stop:  stopSignals{fast: syscall.SIGTERM, immediate: syscall.SIGKILL},
		url:   func(addr string) string { return "redis://" + addr },
		build: func(port int) *exec.Cmd { return h.command(server, conf, "--port", strconv.Itoa(port)) },
		check: checkRedis,
	}
	if err := p.first(ctx, FreePort); err != nil {
		return nil, errors.Join(err, p.Close()) //nolint:contextcheck // ctx may be over, the server must go
	}
	return p, nil
}

func writeRedisConf(path string, settings map[string]string) error {
	var b strings.Builder
	for _, name := range slices.Sorted(maps.Keys(settings)) {
		value := settings[name]
		if value == "" {
			value = `""`
		}
		fmt.Fprintf(&b, "%s %s\n", name, value)
	}
	return os.WriteFile(path, []byte(b.String()), 0o644) //nolint:gosec // read by the unprivileged user, holds no secret
}

// checkRedis proves that the server at addr answers and is process pid: a
// stranger could have taken the port.
func checkRedis(ctx context.Context, addr string, pid int) error {
	return withRedis(ctx, addr, func(c *redis.Client) error {
		info, err := c.InfoMap(ctx, "server").Result()
		if err != nil {
			return err
		}
		if got := info["Server"]["process_id"]; got != strconv.Itoa(pid) {
			return fmt.Errorf("process %s answers instead of %d", got, pid)
		}
		return nil
	})
}

func pingRedis(ctx context.Context, addr string) error {
	return withRedis(ctx, addr, func(c *redis.Client) error { return c.Ping(ctx).Err() })
}

// withRedis runs f on a client of its own, over a connection made beforehand:
// the library logs dials that fail, and while a server starts most do.
func withRedis(ctx context.Context, addr string, f func(*redis.Client) error) error {
	dialer := net.Dialer{Timeout: time.Second}
	conn, err := dialer.DialContext(ctx, "tcp", addr)
	if err != nil {
		return err
	}
	c := redis.NewClient(&redis.Options{
		Dialer:   func(context.Context, string, string) (net.Conn, error) { return conn, nil },
		PoolSize: 1, MaxRetries: -1, DisableIdentity: true, ReadTimeout: time.Second,
	})
	return errors.Join(f(c), c.Close())
}

// redisDurability reads the settings that decide what an answer is worth; a
// managed server may hide them.
func redisDurability(ctx context.Context, addr string, into map[string]string) error {
	return withRedis(ctx, addr, func(c *redis.Client) error {
		if err := c.Ping(ctx).Err(); err != nil {
			return err
		}
		for _, name := range []string{"appendonly", "appendfsync", "maxmemory-policy"} {
			into[name] = "unknown"
			if got, err := c.ConfigGet(ctx, name).Result(); err == nil {
				into[name] = got[name]
			}
		}
		return nil
	})
}
