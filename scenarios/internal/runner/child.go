package runner

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"strings"
	"syscall"
	"time"
)

// child is the gateway as a process of its own: in its own group, killed with
// this program.
type child struct {
	cmd  *exec.Cmd
	done chan struct{} // closed after err is set
	err  error
}

// startChild starts cmd. Linux sends Pdeathsig when the thread that forked the
// child ends, not when the process does, so that thread waits for the child and
// is given to nothing else meanwhile.
func startChild(cmd *exec.Cmd) (*child, error) {
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
	c := &child{cmd: cmd, done: make(chan struct{})}
	started := make(chan error, 1)
	go func() { // ends with the child; stop waits for it
		runtime.LockOSThread()
		defer runtime.UnlockOSThread()
		if err := cmd.Start(); err != nil {
			started <- err
			return
		}
		started <- nil
		c.err = cmd.Wait()
		close(c.done)
	}()
	if err := <-started; err != nil {
		return nil, err
	}
	return c, nil
}

func (c *child) pid() int { return c.cmd.Process.Pid }

func (c *child) alive() bool {
	select {
	case <-c.done:
		return false
	default:
		return true
	}
}

// exitCode is how the child ended: its code, or 128 + the signal; -1 while it runs.
func (c *child) exitCode() int {
	if c.alive() {
		return -1
	}
	status, ok := c.cmd.ProcessState.Sys().(syscall.WaitStatus)
	if ok && status.Signaled() {
		return 128 + int(status.Signal())
	}
	return c.cmd.ProcessState.ExitCode()
}

// stop asks the child to end, and after limit makes it. It returns how long that
// took and whether it had to be made.
func (c *child) stop(limit time.Duration) (took time.Duration, killed bool) {
	begin := time.Now()
	_ = syscall.Kill(c.pid(), syscall.SIGTERM) // it may have ended
	timer := time.NewTimer(limit)
	defer timer.Stop()
	select {
	case <-c.done:
	case <-timer.C:
		killed = true
	}
	_ = syscall.Kill(-c.pid(), syscall.SIGKILL) // the rest of its group, if any
	<-c.done
	return time.Since(begin), killed
}

// environ is what a child gets of this program's environment: nothing that would
// override the configuration written for it.
func environ() []string {
	var env []string
	for _, name := range []string{"PATH", "HOME", "TMPDIR", "TZ", "LANG", "GOMAXPROCS", "GOGC", "GOMEMLIMIT", "GOTRACEBACK", "GOCOVERDIR"} {
		if v, ok := os.LookupEnv(name); ok {
			env = append(env, name+"="+v)
		}
	}
	return env
}

// commandError is a command of the gateway that failed.
type commandError struct {
	Command string
	Code    int
	Stderr  string
}

func (e *commandError) Error() string {
	return fmt.Sprintf("gateway %s: exit %d: %s", e.Command, e.Code, lastLine(e.Stderr))
}

// lastLine is the last line that is not empty.
func lastLine(s string) string {
	lines := strings.Split(strings.TrimSpace(s), "\n")
	return strings.TrimSpace(lines[len(lines)-1])
}

// command runs one command of the gateway to its end.
func command(ctx context.Context, binary string, args ...string) (stdout string, err error) {
	cmd := exec.CommandContext(ctx, binary, args...)
	cmd.Env = environ()
	cmd.Cancel = func() error { return cmd.Process.Signal(syscall.SIGTERM) }
	cmd.WaitDelay = 5 * time.Second
	var out, errs bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &errs
	err = cmd.Run()
	var exit *exec.ExitError
	switch {
	case ctx.Err() != nil:
		return out.String(), context.Cause(ctx)
	case errors.As(err, &exit):
		return out.String(), &commandError{Command: strings.Join(args, " "), Code: exit.ExitCode(), Stderr: errs.String()}
	}
	return out.String(), err
}

// cpu is the CPU time the child used; 0 while it runs.
func (c *child) cpu() time.Duration {
	if c.alive() {
		return 0
	}
	return c.cmd.ProcessState.UserTime() + c.cmd.ProcessState.SystemTime()
}
