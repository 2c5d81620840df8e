package fault

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"syscall"
)

// ErrNotThere is a process that does not exist, or is another one than before.
var ErrNotThere = errors.New("no such process")

// process is a process by its id and start time: ids are used again, and a signal
// must never reach another process than the one meant.
type process struct {
	pid   int
	start uint64 // clock ticks since boot
}

// signalFault sends one signal and maybe another to take it back.
type signalFault struct {
	name   string
	bite   syscall.Signal
	mend   syscall.Signal // 0: cannot be mended
	victim []process
	there  func(state string, err error) bool // the state of a victim that the fault has bitten
}

// Kill is SIGKILL to a process, or to every process of its group. It cannot be
// reverted; it is over at once.
func Kill(pid int, group bool) (Fault, error) {
	f := &signalFault{name: "process.kill", bite: syscall.SIGKILL, there: ended}
	return f, f.aim(pid, group)
}

// Arm is SIGUSR1 to a gateway that was built with failpoints: it ends by SIGKILL when it
// passes its point for as many times as it was told. Like a kill it cannot be reverted.
func Arm(pid int) (Fault, error) {
	f := &signalFault{name: "process.failpoint", bite: syscall.SIGUSR1, there: ended}
	return f, f.aim(pid, false)
}

// ended is a process that is gone, or waits for its parent to look.
func ended(state string, err error) bool { return err != nil || state == "Z" || state == "X" }

// Stop is SIGSTOP to a process, or to every process of its group, reverted by
// SIGCONT. The victims' connections stay open and nothing answers on them.
func Stop(pid int, group bool) (Fault, error) {
	f := &signalFault{name: "process.stop", bite: syscall.SIGSTOP, mend: syscall.SIGCONT, there: func(state string, err error) bool {
		return err == nil && (state == "T" || state == "t")
	}}
	return f, f.aim(pid, group)
}

// aim finds the victims. The caller's own process is refused.
func (f *signalFault) aim(pid int, group bool) error {
	if pid <= 1 {
		return fmt.Errorf("%s: %d is no process to break", f.name, pid)
	}
	if _, _, err := stat(pid); err != nil {
		return fmt.Errorf("%s: %d: %w", f.name, pid, ErrNotThere)
	}
	pids := []int{pid}
	if group {
		pgid, err := syscall.Getpgid(pid)
		if err != nil {
			return fmt.Errorf("%s: %d: %w", f.name, pid, ErrNotThere)
		}
		pids = members(pgid)
	}
	if slices.Contains(pids, os.Getpid()) {
		return fmt.Errorf("%s: %d would break this program itself", f.name, pid)
	}
	for _, id := range pids {
		if _, start, err := stat(id); err == nil {
			f.victim = append(f.victim, process{id, start})
		}
	}
	return nil
}

// Name is process.kill, process.failpoint or process.stop.
func (f *signalFault) Name() string { return f.name }

// Inject sends the signal to every victim.
func (f *signalFault) Inject(context.Context) error { return f.send(f.bite) }

// Revert sends the signal that takes it back.
func (f *signalFault) Revert(context.Context) error {
	if f.mend == 0 {
		return nil
	}
	err := f.send(f.mend)
	if errors.Is(err, ErrNotThere) {
		return nil // it ended meanwhile: stopped it is not
	}
	return err
}

func (f *signalFault) send(sig syscall.Signal) error {
	var errs []error
	for _, v := range f.victim {
		_, start, err := stat(v.pid)
		if err != nil || start != v.start {
			errs = append(errs, fmt.Errorf("%d: %w", v.pid, ErrNotThere))
			continue
		}
		if err := syscall.Kill(v.pid, sig); err != nil {
			errs = append(errs, fmt.Errorf("signal %d: %w", v.pid, err))
		}
	}
	return errors.Join(errs...)
}

// Verify looks at the kernel's record of every victim. A kill is never over, so
// there is nothing to ask.
func (f *signalFault) Verify(_ context.Context, want bool) error {
	if !want && f.mend == 0 {
		return nil
	}
	for _, v := range f.victim {
		state, start, err := stat(v.pid)
		if err == nil && start != v.start {
			err = ErrNotThere // the id belongs to another one by now
		}
		if f.there(state, err) != want {
			return fmt.Errorf("process %d is in state %q", v.pid, state)
		}
	}
	return nil
}

// members lists the processes of a group.
func members(pgid int) []int {
	var list []int
	dirs, _ := filepath.Glob("/proc/[0-9]*")
	for _, dir := range dirs {
		pid, err := strconv.Atoi(filepath.Base(dir))
		if err != nil {
			continue
		}
		if got, err := syscall.Getpgid(pid); err == nil && got == pgid {
			list = append(list, pid)
		}
	}
	return list
}

// Fields of /proc/PID/stat after the name, from 0.
const (
	fieldState = 0
	fieldStart = 19
)

// stat reads a process's state letter and start time. The name before them may
// hold spaces and brackets, so reading begins after the last one.
func stat(pid int) (state string, start uint64, err error) {
	data, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return "", 0, err
	}
	fields := bytes.Fields(data[bytes.LastIndexByte(data, ')')+1:])
	if len(fields) <= fieldStart {
		return "", 0, fmt.Errorf("stat of %d: %d fields", pid, len(fields))
	}
	start, err = strconv.ParseUint(string(fields[fieldStart]), 10, 64)
	return string(fields[fieldState]), start, err
}
