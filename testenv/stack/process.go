package stack

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"sync"
	"syscall"
	"time"
)

const (
	pollEvery  = 20 * time.Millisecond
	readyLimit = 30 * time.Second // crash recovery of a small data set takes a second or two
	checkLimit = 3 * time.Second  // whoever took the port may keep silent
	stopLimit  = 20 * time.Second
	startTries = 5
)

// ErrNotRunning is returned for a signal to a server that is not running.
var ErrNotRunning = errors.New("server is not running")

// Process is a PostgreSQL or Redis server that this program started and may
// kill, freeze and restart. It keeps its data directory and its port over
// restarts. Methods are safe for concurrent use; starting and stopping
// exclude each other, Signal does not wait for them.
type Process struct {
	name  string
	home  *home
	log   *slog.Logger
	build func(port int) *exec.Cmd
	// check reports whether the server answers; pid tells it which process
	// must be the one answering.
	check func(ctx context.Context, addr string, pid int) error
	stop  stopSignals
	url   func(addr string) string

	change sync.Mutex // held while starting or stopping

	mu   sync.Mutex
	port int
	run  *running // nil before the first start
}

// stopSignals are the signals for an orderly stop and for one that leaves
// recovery to the next start.
type stopSignals struct{ fast, immediate syscall.Signal }

// running is one life of the server.
type running struct {
	cmd  *exec.Cmd
	done chan struct{} // closed after state is set
	// state is the exit status, readable after done.
	state *os.ProcessState
}

func (r *running) alive() bool {
	select {
	case <-r.done:
		return false
	default:
		return true
	}
}

// Name is "postgres" or "redis".
func (p *Process) Name() string { return p.name }

// Addr is the server's host:port; it stays the same over restarts.
func (p *Process) Addr() string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return fmt.Sprintf("%s:%d", loopback, p.port)
}

// URL is the server's URL: postgres://… as superuser on database "postgres",
// or redis://….
func (p *Process) URL() string { return p.url(p.Addr()) }

// PID is the main process's id, 0 while the server is down.
func (p *Process) PID() int {
	if r := p.current(); r != nil && r.alive() {
		return r.cmd.Process.Pid
	}
	return 0
}

// Done is closed when the present life of the server has ended.
func (p *Process) Done() <-chan struct{} {
	if r := p.current(); r != nil {
		return r.done
	}
	closed := make(chan struct{})
	close(closed)
	return closed
}

// ExitState is how the last life ended, the proof of a kill
// (syscall.WaitStatus.Signal); nil while the server runs.
func (p *Process) ExitState() *os.ProcessState {
	if r := p.current(); r != nil && !r.alive() {
		return r.state
	}
	return nil
}

// LogPath is the file that has the server's output.
func (p *Process) LogPath() string { return filepath.Join(p.home.dir, p.name+".log") }

func (p *Process) current() *running {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.run
}

// Signal sends sig. SIGSTOP, SIGCONT and SIGKILL go to every process of the
// server, because stopping only PostgreSQL's postmaster leaves the sessions
// working; any other signal goes to the main process, which knows what it
// means. SIGKILL returns when all of them are gone.
func (p *Process) Signal(sig syscall.Signal) error {
	r := p.current()
	if r == nil || !r.alive() {
		return fmt.Errorf("signal %s: %w", p.name, ErrNotRunning)
	}
	pid := r.cmd.Process.Pid
	var err error
	switch sig { //nolint:exhaustive // three signals are special, the rest pass
	case syscall.SIGSTOP:
		err = freeze(pid)
	case syscall.SIGCONT:
		for _, child := range descendants(pid) {
			_ = syscall.Kill(child, syscall.SIGCONT) // may have ended by itself
		}
		err = syscall.Kill(pid, syscall.SIGCONT)
	case syscall.SIGKILL:
		err = p.kill(r)
	default:
		err = syscall.Kill(pid, sig)
	}
	if err != nil {
		return fmt.Errorf("signal %s: %w", p.name, err)
	}
	return nil
}

// freeze stops the main process first, so that it starts no more children,
// then the children.
func freeze(pid int) error {
	if err := syscall.Kill(pid, syscall.SIGSTOP); err != nil {
		return err
	}
	for _, child := range descendants(pid) {
		_ = syscall.Kill(child, syscall.SIGSTOP) // may have ended by itself
	}
	return nil
}

// kill takes the whole process tree down at once. The main process is stopped
// while its children are listed: none is born meanwhile, and none is reaped,
// so no id can be another program's by now.
func (p *Process) kill(r *running) error {
	pid := r.cmd.Process.Pid
	if err := syscall.Kill(pid, syscall.SIGSTOP); err != nil {
		return err
	}
	children := descendants(pid)
	for _, child := range children {
		_ = syscall.Kill(child, syscall.SIGKILL)
	}
	if err := syscall.Kill(pid, syscall.SIGKILL); err != nil {
		return err
	}
	<-r.done
	tick := time.NewTicker(pollEvery)
	defer tick.Stop()
	limit := time.NewTimer(stopLimit)
	defer limit.Stop()
	for !allEnded(children) {
		select {
		case <-limit.C:
			return fmt.Errorf("processes %v do not end", children)
		case <-tick.C:
		}
	}
	return nil
}

// Kill sends SIGKILL to every process of the server and returns when they are
// gone. Killing a server that is down is an error: the caller's fault did not
// happen.
func (p *Process) Kill() error { return p.Signal(syscall.SIGKILL) }

// Freeze stops every process of the server (SIGSTOP); connections stay open
// and new ones still succeed, but nothing answers until Thaw.
func (p *Process) Freeze() error { return p.Signal(syscall.SIGSTOP) }

// Thaw continues a frozen server (SIGCONT).
func (p *Process) Thaw() error { return p.Signal(syscall.SIGCONT) }

// Stop stops the server in order: PostgreSQL ends its sessions and writes a
// checkpoint (pg_ctl -m fast), Redis writes its append-only file. A server
// that is down is left alone; a frozen one is continued first.
func (p *Process) Stop(ctx context.Context) error { return p.halt(ctx, p.stop.fast) }

// StopImmediate stops the server at once and leaves recovery to the next
// start: pg_ctl -m immediate for PostgreSQL, SIGKILL for Redis.
func (p *Process) StopImmediate(ctx context.Context) error { return p.halt(ctx, p.stop.immediate) }

func (p *Process) halt(ctx context.Context, sig syscall.Signal) error {
	p.change.Lock()
	defer p.change.Unlock()
	return p.haltLocked(ctx, sig)
}

func (p *Process) haltLocked(ctx context.Context, sig syscall.Signal) error {
	r := p.current()
	if r == nil || !r.alive() {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, stopLimit)
	defer cancel()
	// A frozen server must run to act on the signal. A server that is gone by then has done what it was asked, even if
	// whoever waits for it has not been told yet.
	for _, sig := range []syscall.Signal{sig, syscall.SIGCONT} {
		if err := p.Signal(sig); err != nil && !errors.Is(err, syscall.ESRCH) && r.alive() {
			return err
		}
	}
	select {
	case <-r.done:
		return nil
	case <-ctx.Done():
		return fmt.Errorf("stop %s: %w", p.name, context.Cause(ctx))
	}
}

// Restart starts the server again with the same data and port, after an
// orderly stop if it still runs, and returns when it answers.
func (p *Process) Restart(ctx context.Context) error {
	p.change.Lock()
	defer p.change.Unlock()
	if err := p.haltLocked(ctx, p.stop.fast); err != nil {
		return err
	}
	return p.start(ctx)
}

// first starts the server for the first time, on another port when the one
// picked was taken meanwhile.
func (p *Process) first(ctx context.Context, pick func(context.Context) (int, error)) error {
	var errs []error
	for range startTries {
		port, err := pick(ctx)
		if err != nil {
			return err
		}
		p.mu.Lock()
		p.port = port
		p.mu.Unlock()
		if err = p.start(ctx); err == nil {
			return nil
		}
		errs = append(errs, err)
		if !errors.Is(err, errEndedEarly) {
			break
		}
	}
	return errors.Join(errs...)
}

var errEndedEarly = errors.New("server ended while starting")

func (p *Process) start(ctx context.Context) error {
	logFile, err := os.OpenFile(p.LogPath(), os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o600)
	if err != nil {
		return fmt.Errorf("start %s: %w", p.name, err)
	}
	defer func() { _ = logFile.Close() }()
	p.mu.Lock()
	port := p.port
	p.mu.Unlock()
	cmd := p.build(port)
	cmd.Stdout, cmd.Stderr = logFile, logFile
	if err := p.home.spawner.start(cmd); err != nil {
		return fmt.Errorf("start %s: %w", p.name, err)
	}
	r := &running{cmd: cmd, done: make(chan struct{})}
	go func() { // ends with the child; Close kills the child and waits for done
		_ = cmd.Wait() // the status is what callers ask for
		r.state = cmd.ProcessState
		close(r.done)
	}()
	p.mu.Lock()
	p.run = r
	p.mu.Unlock()
	if err := p.Ready(ctx); err != nil {
		if r.alive() {
			err = errors.Join(err, p.kill(r))
		}
		return err
	}
	p.log.Debug("server started", slog.String("server", p.name), slog.Int("pid", cmd.Process.Pid), slog.Int("port", port))
	return nil
}

// Ready returns when the server answers a query, at the latest after 30 s, or
// with an error and the end of the log when it has ended.
func (p *Process) Ready(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, readyLimit)
	defer cancel()
	r := p.current()
	if r == nil {
		return fmt.Errorf("wait for %s: %w", p.name, ErrNotRunning)
	}
	addr := p.Addr()
	var last error
	err := poll(ctx, func() bool {
		if !r.alive() {
			return true
		}
		ctx, cancel := context.WithTimeout(ctx, checkLimit)
		defer cancel()
		last = p.check(ctx, addr, r.cmd.Process.Pid)
		return last == nil
	})
	switch {
	case !r.alive():
		return fmt.Errorf("start %s: %w: %s\n%s", p.name, errEndedEarly, r.state, tail(p.LogPath()))
	case err != nil:
		return fmt.Errorf("wait for %s: %w", p.name, errors.Join(err, last))
	default:
		return nil
	}
}

// Close stops the server without ceremony and removes its data. Calling it
// again is an error of the caller.
func (p *Process) Close() error {
	p.change.Lock()
	defer p.change.Unlock()
	// PostgreSQL gives its shared memory back on an immediate stop, not on
	// SIGKILL; hence the polite attempt first.
	ctx, cancel := context.WithTimeout(context.Background(), stopLimit)
	defer cancel()
	err := p.haltLocked(ctx, p.stop.immediate)
	if r := p.current(); r != nil && r.alive() {
		err = errors.Join(err, p.kill(r))
	}
	return errors.Join(err, p.home.close())
}

// poll calls f every 20 ms until it returns true or ctx is done.
func poll(ctx context.Context, f func() bool) error {
	tick := time.NewTicker(pollEvery)
	defer tick.Stop()
	for !f() {
		select {
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-tick.C:
		}
	}
	return nil
}

// descendants lists the children of pid, their children and so on.
func descendants(pid int) []int {
	children := map[int][]int{}
	stats, _ := filepath.Glob("/proc/[0-9]*/stat")
	for _, path := range stats {
		child, err := strconv.Atoi(filepath.Base(filepath.Dir(path)))
		if err != nil {
			continue
		}
		if _, parent, err := procStat(child); err == nil {
			children[parent] = append(children[parent], child)
		}
	}
	all := slices.Clone(children[pid])
	for i := 0; i < len(all); i++ {
		all = append(all, children[all[i]]...)
	}
	return all
}

// allEnded tells whether every process is gone or only waits to be reaped.
func allEnded(pids []int) bool {
	for _, pid := range pids {
		if state, _, err := procStat(pid); err == nil && state != "Z" && state != "X" {
			return false
		}
	}
	return true
}

// procStat reads a process's state letter and its parent. The name before
// them may hold spaces and brackets, so reading starts after the last one.
func procStat(pid int) (state string, parent int, err error) {
	data, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return "", 0, err
	}
	_, err = fmt.Sscan(string(data[bytes.LastIndexByte(data, ')')+1:]), &state, &parent)
	return state, parent, err
}
