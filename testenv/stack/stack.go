package stack

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"os"
)

// The values of Options.Mode.
const (
	ModeAuto       = "auto"
	ModeURLs       = "urls"
	ModeContainers = "containers"
	ModeProcesses  = "processes"
)

// The environment that stands in for empty options.
const (
	EnvMode          = "TESTENV_MODE"
	EnvPostgresURL   = "TESTENV_POSTGRES_URL"
	EnvRedisAddr     = "TESTENV_REDIS_ADDR"
	EnvPostgresImage = "TESTENV_POSTGRES_IMAGE"
	EnvRedisImage    = "TESTENV_REDIS_IMAGE"
)

// ErrUnavailable is returned when there is nothing to run PostgreSQL or Redis
// with; its message names the command that fixes it.
var ErrUnavailable = errors.New("no PostgreSQL and Redis to use; `make setup` installs them")

// Options say where the servers come from. The zero value is the usual choice.
type Options struct {
	// Mode is one of the Mode constants; empty takes TESTENV_MODE, else auto.
	Mode string
	// Dir is the folder the data directories are made in; empty is the
	// system's folder for temporary files. Processes only.
	Dir string
	// PostgresURL (a superuser's) and RedisAddr (host:port) are servers to use
	// as they are; empty takes TESTENV_POSTGRES_URL and TESTENV_REDIS_ADDR.
	PostgresURL, RedisAddr string
	// RedisConfig and PostgresConfig are settings over the defaults, for
	// servers that are started here.
	RedisConfig, PostgresConfig map[string]string
	// Log may be nil.
	Log *slog.Logger
}

func (o Options) withDefaults() Options {
	for _, d := range []struct {
		field *string
		env   string
	}{{&o.Mode, EnvMode}, {&o.PostgresURL, EnvPostgresURL}, {&o.RedisAddr, EnvRedisAddr}} {
		if *d.field == "" {
			*d.field = os.Getenv(d.env)
		}
	}
	if o.Mode == "" {
		o.Mode = ModeAuto
	}
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	return o
}

// Stack is one PostgreSQL and one Redis. Methods are safe for concurrent use.
type Stack struct {
	provisioner     string
	postgresURL     string
	redisAddr       string
	durability      map[string]string
	postgres, redis *Process // process mode
	close           []func() error
}

// Start provides both servers and returns when they answer. Auto takes given
// URLs, else containers when an engine answers and has or gets the images,
// else local processes, else ErrUnavailable with the reasons. ctx bounds the
// start alone; the caller calls Close.
func Start(ctx context.Context, o Options) (*Stack, error) {
	o = o.withDefaults()
	s, err := provide(ctx, o)
	if err != nil {
		return nil, err
	}
	s.durability = map[string]string{}
	if err := errors.Join(postgresDurability(ctx, s.postgresURL, s.durability),
		redisDurability(ctx, s.redisAddr, s.durability)); err != nil {
		return nil, errors.Join(fmt.Errorf("stack from %s: %w", s.provisioner, err), s.Close())
	}
	o.Log.Info("stack ready", slog.String("provisioner", s.provisioner))
	return s, nil
}

func provide(ctx context.Context, o Options) (*Stack, error) {
	switch o.Mode {
	case ModeURLs:
		return fromURLs(o)
	case ModeContainers:
		return startContainers(ctx, o)
	case ModeProcesses:
		return startProcesses(ctx, o)
	case ModeAuto:
	default:
		return nil, fmt.Errorf("stack mode %q is none of %s, %s, %s, %s",
			o.Mode, ModeAuto, ModeURLs, ModeContainers, ModeProcesses)
	}
	if o.PostgresURL != "" || o.RedisAddr != "" {
		return fromURLs(o)
	}
	s, inContainers := startContainers(ctx, o)
	if inContainers == nil {
		return s, nil
	}
	o.Log.Debug("no containers, starting processes", slog.Any("error", inContainers))
	s, asProcesses := startProcesses(ctx, o)
	if asProcesses == nil {
		return s, nil
	}
	return nil, fmt.Errorf("%w\ncontainers: %w\nprocesses: %w", ErrUnavailable, inContainers, asProcesses)
}

func fromURLs(o Options) (*Stack, error) {
	if o.PostgresURL == "" || o.RedisAddr == "" {
		return nil, fmt.Errorf("stack from urls needs both %s and %s", EnvPostgresURL, EnvRedisAddr)
	}
	return &Stack{provisioner: ModeURLs, postgresURL: o.PostgresURL, redisAddr: o.RedisAddr}, nil
}

func startProcesses(ctx context.Context, o Options) (*Stack, error) {
	r, err := StartRedis(ctx, o)
	if err != nil {
		return nil, err
	}
	p, err := StartPostgres(ctx, o)
	if err != nil {
		return nil, errors.Join(err, r.Close()) //nolint:contextcheck // ctx may be over, the server must go
	}
	return &Stack{
		provisioner: ModeProcesses,
		postgresURL: p.URL(), redisAddr: r.Addr(),
		postgres: p, redis: r,
		close: []func() error{p.Close, r.Close},
	}, nil
}

// PostgresURL is the superuser's URL of database "postgres". It holds a
// password: keep it out of logs.
func (s *Stack) PostgresURL() string { return s.postgresURL }

// RedisAddr is host:port.
func (s *Stack) RedisAddr() string { return s.redisAddr }

// Provisioner is "urls", "containers" or "processes".
func (s *Stack) Provisioner() string { return s.provisioner }

// Durability has fsync, synchronous_commit, full_page_writes, appendonly,
// appendfsync and maxmemory-policy as the servers had them at the start.
// Results under different ones are not comparable.
func (s *Stack) Durability() map[string]string { return maps.Clone(s.durability) }

// Postgres is the server to kill, freeze and restart; nil unless the stack
// runs as processes.
func (s *Stack) Postgres() *Process { return s.postgres }

// Redis is the server to kill, freeze and restart; nil unless the stack runs
// as processes.
func (s *Stack) Redis() *Process { return s.redis }

// Close stops what Start started and removes its data; servers given by URL
// are left as they are. Call it once.
func (s *Stack) Close() error {
	var errs []error
	for _, f := range s.close {
		errs = append(errs, f())
	}
	return errors.Join(errs...)
}
