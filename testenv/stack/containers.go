package stack

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"net"
	"net/netip"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/moby/moby/api/types/container"
	"github.com/moby/moby/api/types/network"
	"github.com/moby/moby/client"
	"github.com/testcontainers/testcontainers-go"
	tclog "github.com/testcontainers/testcontainers-go/log"
	tcpostgres "github.com/testcontainers/testcontainers-go/modules/postgres"
	tcredis "github.com/testcontainers/testcontainers-go/modules/redis"
	"github.com/testcontainers/testcontainers-go/wait"
)

const (
	engineLimit   = 2 * time.Second // an engine that exists answers at once
	registryLimit = 2 * time.Second // so does a registry that can be reached
	removeLimit   = 30 * time.Second

	postgresPort = "5432/tcp"
	redisPort    = "6379/tcp"

	// ownerLabel names the program a container belongs to, see owner.
	ownerLabel = "cmppgateway.stack.owner"
	ryukEnv    = "TESTCONTAINERS_RYUK_DISABLED"
	hostEnv    = "TESTCONTAINERS_HOST_OVERRIDE"
)

// errNoContainers: there is no engine, or it has no images and gets none.
var errNoContainers = errors.New("no container engine with images")

// The images, the local ones of `make images` first.
var (
	postgresImages = []string{"cmppgateway/postgres:15", "postgres:15-alpine"}
	redisImages    = []string{"cmppgateway/redis:7", "redis:7-alpine"}
)

// startContainers runs both servers in an engine. It gives up within seconds
// where there is no engine, or no image and no registry.
func startContainers(ctx context.Context, o Options) (_ *Stack, err error) {
	// Ryuk, testcontainers' own cleaner, is one more image to get and wants the
	// engine's socket. What a killed program leaves is removed by
	// removeAbandoned instead.
	if _, set := os.LookupEnv(ryukEnv); !set {
		if err := os.Setenv(ryukEnv, "true"); err != nil {
			return nil, fmt.Errorf("engine: %w", err)
		}
	}
	tclog.SetDefault(engineLog{o.Log})
	engine, err := dialEngine(ctx)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, engine.Close()) }()
	postgresImage, err := pickImage(ctx, engine.Client, os.Getenv(EnvPostgresImage), postgresImages)
	if err != nil {
		return nil, err
	}
	redisImage, err := pickImage(ctx, engine.Client, os.Getenv(EnvRedisImage), redisImages)
	if err != nil {
		return nil, err
	}
	host, err := engineHost(ctx, engine)
	if err != nil {
		return nil, err
	}
	removeAbandoned(ctx, engine.Client, o.Log)
	mark, err := newClaim(os.TempDir(), nil)
	if err != nil {
		return nil, err
	}
	s := &Stack{provisioner: ModeContainers, close: []func() error{mark.release}}
	if err := s.runContainers(ctx, o, postgresImage, redisImage, owner(mark.dir), host); err != nil {
		return nil, errors.Join(err, s.Close())
	}
	return s, nil
}

// runContainers starts both and waits until they answer; Close undoes what was
// started, in the order of starting.
func (s *Stack) runContainers(ctx context.Context, o Options, postgresImage, redisImage, owner, host string) error {
	labels := testcontainers.WithLabels(map[string]string{ownerLabel: owner})
	settings := redisDefaults()
	maps.Copy(settings, o.RedisConfig)
	cmd := []string{"redis-server", "--bind", "0.0.0.0", "--protected-mode", "no"}
	for _, name := range slices.Sorted(maps.Keys(settings)) {
		cmd = append(cmd, "--"+name, settings[name])
	}
	// The engine need only know the ports; what counts is an answer here, and
	// that is waited for below.
	r, err := tcredis.Run(ctx, redisImage, testcontainers.WithCmd(cmd...), labels,
		publish(redisPort, host), testcontainers.WithWaitStrategy(wait.ForMappedPort(redisPort)))
	s.terminateLater(r)
	if err != nil {
		return fmt.Errorf("redis container: %w", err)
	}

	settings = postgresDefaults()
	maps.Copy(settings, o.PostgresConfig)
	password := rand.Text()
	p, err := tcpostgres.Run(ctx, postgresImage, tcpostgres.WithPassword(password),
		testcontainers.WithCmd(append([]string{"postgres"}, postgresArgs(settings)...)...), labels,
		publish(postgresPort, host), testcontainers.WithWaitStrategy(wait.ForMappedPort(postgresPort)))
	s.terminateLater(p)
	if err != nil {
		return fmt.Errorf("postgres container: %w", err)
	}

	if s.redisAddr, err = endpoint(ctx, r, redisPort, host); err != nil {
		return fmt.Errorf("redis container: %w", err)
	}
	addr, err := endpoint(ctx, p, postgresPort, host)
	if err != nil {
		return fmt.Errorf("postgres container: %w", err)
	}
	s.postgresURL = postgresURL(addr, password)
	ctx, cancel := context.WithTimeout(ctx, readyLimit)
	defer cancel()
	var last error
	if err := poll(ctx, func() bool {
		if last = pingRedis(ctx, s.redisAddr); last == nil {
			last = pingPostgres(ctx, s.postgresURL)
		}
		return last == nil
	}); err != nil {
		return fmt.Errorf("wait for the containers: %w", errors.Join(err, last))
	}
	return nil
}

// terminateLater keeps ctr for Close. A container that failed to start may
// still exist, or be nil inside its interface: testcontainers sorts that out.
func (s *Stack) terminateLater(ctr testcontainers.Container) {
	s.close = slices.Insert(s.close, 0, func() error {
		return testcontainers.TerminateContainer(ctr, testcontainers.StopTimeout(0))
	})
}

// dialEngine returns a client of an engine that answers. A DOCKER_HOST that
// does not answer means none: testcontainers would look for another.
func dialEngine(ctx context.Context) (*testcontainers.DockerClient, error) {
	ctx, cancel := context.WithTimeout(ctx, engineLimit)
	defer cancel()
	if os.Getenv(client.EnvOverrideHost) != "" {
		if err := pingEngine(ctx); err != nil {
			return nil, fmt.Errorf("%w: %s: %w", errNoContainers, client.EnvOverrideHost, err)
		}
	}
	engine, err := testcontainers.NewDockerClientWithOpts(ctx)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", errNoContainers, err)
	}
	if _, err := engine.Ping(ctx, client.PingOptions{}); err != nil {
		return nil, errors.Join(fmt.Errorf("%w: %w", errNoContainers, err), engine.Close())
	}
	return engine, nil
}

func pingEngine(ctx context.Context) error {
	engine, err := client.New(client.FromEnv)
	if err != nil {
		return err
	}
	_, err = engine.Ping(ctx, client.PingOptions{})
	return errors.Join(err, engine.Close())
}

// pickImage returns the first of the names that the engine has, else the last
// if a registry has it. A chosen name stands alone.
func pickImage(ctx context.Context, engine *client.Client, chosen string, names []string) (string, error) {
	if chosen != "" {
		names = []string{chosen}
	}
	for _, name := range names {
		if _, err := engine.ImageInspect(ctx, name); err == nil {
			return name, nil
		}
	}
	ctx, cancel := context.WithTimeout(ctx, registryLimit)
	defer cancel()
	name := names[len(names)-1]
	if _, err := engine.DistributionInspect(ctx, name, client.DistributionInspectOptions{}); err != nil {
		return "", fmt.Errorf("%w: it has none of %s (`make images` builds the first) and cannot get the last: %w",
			errNoContainers, strings.Join(names, ", "), err)
	}
	return name, nil
}

// engineHost is where published ports are reached: loopback when the engine
// runs on this machine, even if that is a container itself, which testcontainers
// takes for a sign that the engine is outside.
func engineHost(ctx context.Context, engine *testcontainers.DockerClient) (string, error) {
	info, err := engine.Info(ctx, client.InfoOptions{})
	if err != nil {
		return "", fmt.Errorf("engine: %w", err)
	}
	name, err := os.Hostname()
	if err == nil && info.Info.Name == name && os.Getenv(hostEnv) == "" {
		return loopback, nil
	}
	provider, err := testcontainers.NewDockerProvider()
	if err != nil {
		return "", fmt.Errorf("engine: %w", err)
	}
	host, err := provider.DaemonHost(ctx)
	if err = errors.Join(err, provider.Close()); err != nil {
		return "", fmt.Errorf("engine: %w", err)
	}
	if host == "localhost" { // may mean ::1, where nothing is published
		host = loopback
	}
	return host, nil
}

// publish publishes a port: on loopback, so that nobody else reaches it,
// unless this program has to come from elsewhere itself.
func publish(port, host string) testcontainers.CustomizeRequestOption {
	on := netip.IPv4Unspecified()
	if host == loopback {
		on = netip.MustParseAddr(loopback)
	}
	return testcontainers.WithHostConfigModifier(func(hc *container.HostConfig) {
		hc.PortBindings = network.PortMap{network.MustParsePort(port): {{HostIP: on}}}
	})
}

func endpoint(ctx context.Context, ctr testcontainers.Container, port, host string) (string, error) {
	mapped, err := ctr.MappedPort(ctx, port)
	if err != nil {
		return "", err
	}
	return net.JoinHostPort(host, mapped.Port()), nil
}

// owner names this program to the engine: the machine, and the claimed
// directory that shows whether the program still lives.
func owner(dir string) string {
	name, _ := os.Hostname()
	return name + ":" + dir
}

// removeAbandoned removes containers whose program on this machine was killed.
func removeAbandoned(ctx context.Context, engine *client.Client, log *slog.Logger) {
	list, err := engine.ContainerList(ctx, client.ContainerListOptions{
		All: true, Filters: make(client.Filters).Add("label", ownerLabel),
	})
	if err != nil {
		log.Debug("abandoned containers cannot be listed", slog.Any("error", err))
		return
	}
	for _, ctr := range list.Items {
		dir, local := strings.CutPrefix(ctr.Labels[ownerLabel], owner(""))
		if !local || claimed(dir) {
			continue
		}
		ctx, cancel := context.WithTimeout(ctx, removeLimit)
		_, err := engine.ContainerRemove(ctx, ctr.ID, client.ContainerRemoveOptions{Force: true, RemoveVolumes: true})
		cancel()
		if err != nil {
			log.Debug("abandoned container stays", slog.String("container", ctr.ID), slog.Any("error", err))
		}
	}
}

// engineLog passes testcontainers' lines on.
type engineLog struct{ log *slog.Logger }

func (l engineLog) Printf(format string, v ...any) {
	l.log.Debug("engine", slog.String("line", fmt.Sprintf(format, v...)))
}
