package stack_test

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"go.uber.org/goleak"

	"cmppgateway/testenv/stack"
)

// childEnv makes this test binary play a program that uses the package, for
// tests about what becomes of servers when that program dies.
const childEnv = "STACK_TEST_CHILD"

func TestMain(m *testing.M) {
	if role := os.Getenv(childEnv); role != "" {
		if err := child(role); err != nil {
			fmt.Println(err)
			os.Exit(1)
		}
		return
	}
	goleak.VerifyTestMain(m)
}

// child starts what the role says, prints it and waits to be killed.
func child(role string) error {
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	switch role {
	case "processes", "frozen", "containers":
		mode := stack.ModeProcesses
		if role == "containers" {
			mode = stack.ModeContainers
		}
		s, err := stack.Start(ctx, stack.Options{Mode: mode, Dir: os.Getenv("STACK_TEST_DIR")})
		if err != nil {
			return err
		}
		if role == "frozen" {
			if err := s.Postgres().Freeze(); err != nil {
				return err
			}
		}
		fmt.Println(s.PostgresURL(), s.RedisAddr())
		select {}
	case "nothing":
		stack.HideFolders()
		_, err := stack.Start(ctx, stack.Options{})
		if errors.Is(err, stack.ErrUnavailable) {
			fmt.Println("unavailable")
		}
		return err
	default:
		return fmt.Errorf("role %q", role)
	}
}

// startChild runs this binary in a role and returns it with its first line.
func startChild(t *testing.T, role string, env ...string) (*exec.Cmd, string) {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), os.Args[0])
	cmd.Env = append(os.Environ(), append(env, childEnv+"="+role)...)
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = cmd.Process.Kill(); _ = cmd.Wait() })
	line, err := bufio.NewReader(out).ReadString('\n')
	if err != nil {
		t.Fatalf("child %s: %v", role, err)
	}
	return cmd, strings.TrimSpace(line)
}

// kill kills the child the way nobody can prepare for.
func kill(t *testing.T, cmd *exec.Cmd) {
	t.Helper()
	if err := cmd.Process.Signal(syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	_ = cmd.Wait()
}

// eventually polls until f holds, for at most 30 s.
func eventually(t *testing.T, what string, f func() bool) {
	t.Helper()
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	limit := time.After(30 * time.Second)
	for !f() {
		select {
		case <-limit:
			t.Fatalf("not within 30 s: %s", what)
		case <-tick.C:
		}
	}
}

// openDir is a directory that an unprivileged user can reach, unlike TempDir.
func openDir(t *testing.T) string {
	t.Helper()
	dir, err := os.MkdirTemp("", "stack-test-*") //nolint:usetesting // see above
	if err != nil {
		t.Fatal(err)
	}
	if err := os.Chmod(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	return dir
}

func startPostgres(t *testing.T) *stack.Process {
	t.Helper()
	return started(t, stack.StartPostgres)
}

func startRedis(t *testing.T) *stack.Process {
	t.Helper()
	return started(t, stack.StartRedis)
}

func started(t *testing.T, start func(context.Context, stack.Options) (*stack.Process, error)) *stack.Process {
	t.Helper()
	p, err := start(t.Context(), stack.Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := p.Close(); err != nil {
			t.Error(err)
		}
	})
	return p
}

func connect(t *testing.T, url string) *pgx.Conn {
	t.Helper()
	conn, err := pgx.Connect(t.Context(), url)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), time.Second)
		defer cancel()
		_ = conn.Close(ctx)
	})
	return conn
}

func exec1(t *testing.T, conn *pgx.Conn, sql string) {
	t.Helper()
	if _, err := conn.Exec(t.Context(), sql); err != nil {
		t.Fatal(err)
	}
}

func queryInt(t *testing.T, conn *pgx.Conn, sql string) (n int) {
	t.Helper()
	if err := conn.QueryRow(t.Context(), sql).Scan(&n); err != nil {
		t.Fatal(err)
	}
	return n
}
