package runner

import (
	"bufio"
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"time"
)

// ticks is the kernel's unit of CPU time: USER_HZ, 100 on every Linux that Go runs on.
const ticks = 100

// Fields of /proc/PID/stat after the name, from 0.
const (
	statParent = 1
	statUser   = 11
	statSystem = 12
	statChildU = 13
	statChildS = 14
)

// procStat reads the fields behind a process's name, which may hold anything.
func procStat(pid int) ([]string, error) {
	data, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return nil, err
	}
	fields := strings.Fields(string(data[bytes.LastIndexByte(data, ')')+1:]))
	if len(fields) <= statChildS {
		return nil, fmt.Errorf("stat of %d has %d fields", pid, len(fields))
	}
	return fields, nil
}

func ticksOf(fields []string, at ...int) time.Duration {
	sum := int64(0)
	for _, i := range at {
		n, err := strconv.ParseInt(fields[i], 10, 64)
		if err == nil {
			sum += n
		}
	}
	return time.Duration(sum) * time.Second / ticks
}

// cpuOf is the CPU time of a process and, with tree, of its living and ended
// children (PostgreSQL's sessions are children of its main process).
func cpuOf(pid int, tree bool) (time.Duration, error) {
	fields, err := procStat(pid)
	if err != nil {
		return 0, err
	}
	if !tree {
		return ticksOf(fields, statUser, statSystem), nil
	}
	sum := ticksOf(fields, statUser, statSystem, statChildU, statChildS)
	for _, id := range children(pid) {
		if f, err := procStat(id); err == nil {
			sum += ticksOf(f, statUser, statSystem)
		}
	}
	return sum, nil
}

// children lists the direct children of pid.
func children(pid int) []int {
	var list []int
	stats, _ := filepath.Glob("/proc/[0-9]*/stat")
	for _, path := range stats {
		id, err := strconv.Atoi(filepath.Base(filepath.Dir(path)))
		if err != nil {
			continue
		}
		if f, err := procStat(id); err == nil && f[statParent] == strconv.Itoa(pid) {
			list = append(list, id)
		}
	}
	return list
}

// footprint is the memory and the open files of a process.
func footprint(pid int) (rss, files int64) {
	data, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	if err != nil {
		return 0, 0
	}
	for line := range strings.SplitSeq(string(data), "\n") {
		if rest, ok := strings.CutPrefix(line, "VmRSS:"); ok {
			kb, err := strconv.ParseInt(strings.Fields(rest)[0], 10, 64)
			if err == nil {
				rss = kb << 10
			}
		}
	}
	entries, err := os.ReadDir(fmt.Sprintf("/proc/%d/fd", pid))
	if err == nil {
		files = int64(len(entries))
	}
	return rss, files
}

// machine is the CPU time of the whole machine since boot.
type machine struct{ busy, steal, total time.Duration }

func readMachine() (machine, error) {
	f, err := os.Open("/proc/stat")
	if err != nil {
		return machine{}, err
	}
	defer f.Close()
	scan := bufio.NewScanner(f)
	if !scan.Scan() {
		return machine{}, fmt.Errorf("read /proc/stat: %w", scan.Err())
	}
	fields := strings.Fields(scan.Text()) // cpu user nice system idle iowait irq softirq steal …
	if len(fields) < 9 {
		return machine{}, fmt.Errorf("/proc/stat has %d fields", len(fields))
	}
	m := machine{
		busy:  ticksOf(fields, 1, 2, 3, 6, 7),
		steal: ticksOf(fields, 8),
	}
	m.total = m.busy + m.steal + ticksOf(fields, 4, 5)
	return m, nil
}

// cpuModel is the processor's name.
func cpuModel() string {
	data, err := os.ReadFile("/proc/cpuinfo")
	if err != nil {
		return runtime.GOARCH
	}
	for line := range strings.SplitSeq(string(data), "\n") {
		if name, value, ok := strings.Cut(line, ":"); ok && strings.TrimSpace(name) == "model name" {
			return strings.TrimSpace(value)
		}
	}
	return runtime.GOARCH
}

// kernel is the running kernel's release.
func kernel() string {
	data, err := os.ReadFile("/proc/sys/kernel/osrelease")
	if err != nil {
		return ""
	}
	return strings.TrimSpace(string(data))
}

// memory is the machine's memory in octets.
func memory() int64 {
	data, err := os.ReadFile("/proc/meminfo")
	if err != nil {
		return 0
	}
	for line := range strings.SplitSeq(string(data), "\n") {
		if rest, ok := strings.CutPrefix(line, "MemTotal:"); ok {
			kb, err := strconv.ParseInt(strings.Fields(rest)[0], 10, 64)
			if err == nil {
				return kb << 10
			}
		}
	}
	return 0
}

// findPostgres is the main process of the server that has a session on the
// database, 0 when it cannot be seen. PostgreSQL writes the database into the title
// of every session's process, and a run's database has a name of its own, so this
// works also for a server in a container of this machine.
func findPostgres(database string) int {
	found := 0
	dirs, _ := filepath.Glob("/proc/[0-9]*")
	for _, dir := range dirs {
		title, err := os.ReadFile(filepath.Join(dir, "cmdline"))
		if err != nil || !bytes.HasPrefix(title, []byte("postgres: ")) || !bytes.Contains(title, []byte(" "+database+" ")) {
			continue
		}
		pid, err := strconv.Atoi(filepath.Base(dir))
		if err != nil {
			continue
		}
		fields, err := procStat(pid)
		if err != nil {
			continue
		}
		parent, err := strconv.Atoi(fields[statParent])
		if err != nil || found != 0 && found != parent {
			return 0
		}
		found = parent
	}
	return found
}

// findRedis is the process of a Redis that says it has the process id inner in its
// own namespace, 0 when none or several could be it.
func findRedis(inner int64) int {
	found := 0
	dirs, _ := filepath.Glob("/proc/[0-9]*")
	for _, dir := range dirs {
		name, err := os.ReadFile(filepath.Join(dir, "comm"))
		if err != nil || strings.TrimSpace(string(name)) != "redis-server" {
			continue
		}
		data, err := os.ReadFile(filepath.Join(dir, "status"))
		if err != nil {
			continue
		}
		_, rest, _ := strings.Cut(string(data), "NSpid:")
		line, _, _ := strings.Cut(rest, "\n")
		ids := strings.Fields(line)
		if len(ids) == 0 || ids[len(ids)-1] != strconv.FormatInt(inner, 10) {
			continue
		}
		if found != 0 {
			return 0
		}
		found, _ = strconv.Atoi(filepath.Base(dir))
	}
	return found
}
