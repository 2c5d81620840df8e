package stack

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"os/exec"
	"os/user"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"

	"golang.org/x/sys/unix"
)

const (
	claimPattern = "cmppgateway-stack-*"
	lockName     = "lock"
)

// claim is a directory that shows whether the program that made it still
// lives: the kernel drops the lock in it with the process, however that ends.
type claim struct {
	dir  string
	lock *os.File
}

// newClaim makes a directory below base that belongs to cred's user.
func newClaim(base string, cred *syscall.Credential) (*claim, error) {
	dir, err := os.MkdirTemp(base, claimPattern)
	if err != nil {
		return nil, fmt.Errorf("claim a directory: %w", err)
	}
	// The lock is taken before the file gets its name: sweep never sees it free.
	lock, err := os.CreateTemp(dir, "lock-*")
	if err == nil {
		err = unix.Flock(int(lock.Fd()), unix.LOCK_EX|unix.LOCK_NB)
	}
	if err == nil {
		err = os.Rename(lock.Name(), filepath.Join(dir, lockName))
	}
	if err == nil && cred != nil {
		err = os.Chown(dir, int(cred.Uid), int(cred.Gid))
	}
	if err != nil {
		return nil, errors.Join(fmt.Errorf("claim a directory: %w", err), lock.Close(), os.RemoveAll(dir))
	}
	return &claim{dir: dir, lock: lock}, nil
}

func (c *claim) release() error {
	return errors.Join(os.RemoveAll(c.dir), c.lock.Close())
}

// claimed tells whether the program that claimed dir still lives, or whether
// that cannot be known.
func claimed(dir string) bool {
	lock, err := os.OpenFile(filepath.Join(dir, lockName), os.O_RDWR, 0)
	if err != nil {
		return !errors.Is(err, os.ErrNotExist)
	}
	defer func() { _ = lock.Close() }()
	return unix.Flock(int(lock.Fd()), unix.LOCK_EX|unix.LOCK_NB) != nil
}

// sweep removes what killed programs left below base: the directory, and any
// process still working in it (a backend frozen by SIGSTOP does not notice
// that its postmaster died).
func sweep(base string, log *slog.Logger) {
	locks, _ := filepath.Glob(filepath.Join(base, claimPattern, lockName))
	for _, lock := range locks {
		dir := filepath.Dir(lock)
		if claimed(dir) {
			continue
		}
		for _, pid := range processesIn(dir) {
			_ = syscall.Kill(pid, syscall.SIGKILL)
		}
		if err := os.RemoveAll(dir); err != nil {
			log.Debug("abandoned directory stays", slog.String("dir", dir), slog.Any("error", err))
		}
	}
}

// home is the throw-away directory of one server process, the unprivileged
// user it runs as, and the thread it is started from.
type home struct {
	*claim
	cred    *syscall.Credential // nil when this program is not root
	spawner *spawner
}

// newHome makes a directory below base (empty: the system's folder for
// temporary files) owned by the user the server will run as.
func newHome(base string, log *slog.Logger) (*home, error) {
	cred, err := unprivileged()
	if err != nil {
		return nil, err
	}
	if base == "" {
		base = os.TempDir()
	}
	if base, err = filepath.Abs(base); err != nil {
		return nil, fmt.Errorf("data directory: %w", err)
	}
	if !reachable(base, cred) {
		log.Warn("data directory is closed to the unprivileged user, using the temporary folder",
			slog.String("dir", base), slog.String("temp_dir", os.TempDir()))
		base = os.TempDir()
	}
	sweep(base, log)
	c, err := newClaim(base, cred)
	if err != nil {
		return nil, err
	}
	return &home{claim: c, cred: cred, spawner: newSpawner()}, nil
}

// command builds a child that runs as the unprivileged user, leads its own
// process group and dies with this program.
func (h *home) command(path string, args ...string) *exec.Cmd {
	cmd := exec.Command(path, args...) //nolint:noctx // a server outlives the context it was started under
	cmd.Dir = h.dir
	cmd.Env = []string{"PATH=" + os.Getenv("PATH"), "LC_ALL=C", "TZ=UTC", "HOME=" + h.dir}
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL, Credential: h.cred}
	return cmd
}

// run runs a short command to its end; its output goes into the error.
func (h *home) run(ctx context.Context, path string, args ...string) error {
	out, err := os.CreateTemp(h.dir, "run-*.log")
	if err != nil {
		return err
	}
	defer func() { _ = out.Close() }()
	cmd := h.command(path, args...)
	cmd.Stdout, cmd.Stderr = out, out
	if err := h.spawner.start(cmd); err != nil {
		return err
	}
	kill := context.AfterFunc(ctx, func() { _ = syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) })
	defer kill()
	if err := cmd.Wait(); err != nil {
		return errors.Join(context.Cause(ctx), fmt.Errorf("%s: %w\n%s", filepath.Base(path), err, tail(out.Name())))
	}
	return nil
}

// close ends the thread and removes the directory. The children must be gone.
func (h *home) close() error {
	h.spawner.close()
	return h.release()
}

// unprivileged returns whom servers run as when this program is root, since
// PostgreSQL refuses root; nil keeps the current user.
func unprivileged() (*syscall.Credential, error) {
	if os.Geteuid() != 0 {
		return nil, nil //nolint:nilnil // nil is SysProcAttr's word for "the same user"
	}
	for _, name := range []string{"postgres", "nobody"} {
		u, err := user.Lookup(name)
		if err != nil {
			continue
		}
		uid, err := strconv.ParseUint(u.Uid, 10, 32)
		if err != nil {
			continue
		}
		gid, err := strconv.ParseUint(u.Gid, 10, 32)
		if err != nil {
			continue
		}
		return &syscall.Credential{Uid: uint32(uid), Gid: uint32(gid)}, nil
	}
	return nil, errors.New("running as root without a user postgres or nobody to run servers as")
}

// reachable tells whether cred may pass through every folder down to dir.
func reachable(dir string, cred *syscall.Credential) bool {
	if cred == nil {
		return true
	}
	for {
		var st unix.Stat_t
		if unix.Stat(dir, &st) != nil {
			return false
		}
		var bit uint32 = 0o001
		switch {
		case st.Uid == cred.Uid:
			bit = 0o100
		case st.Gid == cred.Gid:
			bit = 0o010
		}
		if st.Mode&bit == 0 {
			return false
		}
		parent := filepath.Dir(dir)
		if parent == dir {
			return true
		}
		dir = parent
	}
}

// processesIn lists the processes whose working directory is dir or below it.
func processesIn(dir string) []int {
	links, _ := filepath.Glob("/proc/[0-9]*/cwd")
	var pids []int
	for _, link := range links {
		cwd, err := os.Readlink(link)
		if err != nil || (cwd != dir && !strings.HasPrefix(cwd, dir+"/")) {
			continue
		}
		if pid, err := strconv.Atoi(filepath.Base(filepath.Dir(link))); err == nil {
			pids = append(pids, pid)
		}
	}
	return pids
}

// folders are where programs are that PATH need not have: Debian's place for
// PostgreSQL's, Fedora's, and that of a build by hand.
var folders = []string{"/usr/lib/postgresql/*/bin", "/usr/pgsql-*/bin", "/usr/local/pgsql/bin", "/usr/local/bin", "/usr/bin"}

// lookup finds a program on PATH or in folders; the newest of several versions
// of PostgreSQL wins.
func lookup(name string) (string, error) {
	if path, err := exec.LookPath(name); err == nil {
		return filepath.Abs(path)
	}
	for _, pattern := range folders {
		found, _ := filepath.Glob(filepath.Join(pattern, name))
		slices.SortFunc(found, byVersion)
		if len(found) > 0 {
			return found[len(found)-1], nil
		}
	}
	return "", fmt.Errorf("%w: %s", exec.ErrNotFound, name)
}

// byVersion orders /usr/lib/postgresql/9/bin/x before /usr/lib/postgresql/15/bin/x.
func byVersion(a, b string) int {
	if len(a) != len(b) {
		return len(a) - len(b)
	}
	return strings.Compare(a, b)
}

// tail returns the end of a server's log for an error message.
func tail(path string) string {
	const limit = 2000
	data, err := os.ReadFile(path)
	if err != nil {
		return ""
	}
	return strings.TrimSpace(string(data[max(0, len(data)-limit):]))
}
