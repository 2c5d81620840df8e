package store

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"strings"

	"github.com/jackc/pgx/v5"
)

// processName names this process so that another one on the same machine, in the same pid namespace, can see that it is gone:
// boot, namespace, pid, and the time at which the pid was given out. Empty where the system does not say.
func processName() string {
	boot, err := os.ReadFile("/proc/sys/kernel/random/boot_id")
	if err != nil {
		return ""
	}
	namespace, err := os.Readlink("/proc/self/ns/pid")
	if err != nil {
		return ""
	}
	pid := os.Getpid()
	_, start, err := processStat(pid)
	if err != nil {
		return ""
	}
	return fmt.Sprintf("%s/%s/%d/%s", strings.TrimSpace(string(boot)), namespace, pid, start)
}

// processStat reads the state and the start time of a process.
func processStat(pid int) (state, start string, err error) {
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return "", "", err
	}
	// The name, in brackets, may have spaces and brackets in it.
	fields := strings.Fields(string(stat[bytes.LastIndexByte(stat, ')')+1:]))
	const stateField, startField = 0, 19 // fields 3 and 22 of proc(5), counted behind the name
	if len(fields) <= startField {
		return "", "", fmt.Errorf("/proc/%d/stat has %d fields", pid, len(fields))
	}
	return fields[stateField], fields[startField], nil
}

// processGone says that the process that other names has surely ended, as seen by the process that self names. Of processes
// of other machines, boots and namespaces nothing can be said.
func processGone(self, other string) bool {
	mine, theirs := strings.Split(self, "/"), strings.Split(other, "/")
	const parts = 4
	if len(mine) != parts || len(theirs) != parts || mine[0] != theirs[0] || mine[1] != theirs[1] {
		return false
	}
	var pid int
	if _, err := fmt.Sscan(theirs[2], &pid); err != nil || pid <= 0 {
		return false
	}
	state, start, err := processStat(pid)
	if errors.Is(err, fs.ErrNotExist) {
		return true
	}
	return err == nil && (start != theirs[3] || state == "Z" || state == "X")
}

// bury ends the leases of processes that ran on this machine and are gone: their connections are closed, so whoever waits for
// their lease (a channel's, a delivery's) need not wait until it runs out. What they left is adopted as ever.
func (n *Node) bury(ctx context.Context, self string) error {
	if self == "" {
		return nil
	}
	rows, err := n.pool.Query(ctx, NodeProcesses, n.Number)
	if err != nil {
		return fmt.Errorf("processes of nodes: %w", err)
	}
	var number int16
	var name string
	var nodes []int16
	var names []string
	if _, err := pgx.ForEachRow(rows, []any{&number, &name}, func() error {
		if processGone(self, name) {
			nodes, names = append(nodes, number), append(names, name)
		}
		return nil
	}); err != nil {
		return fmt.Errorf("processes of nodes: %w", err)
	}
	if len(nodes) == 0 {
		return nil
	}
	if _, err := n.pool.Exec(ctx, NodeBury, nodes, names); err != nil {
		return fmt.Errorf("end the leases of processes that are gone: %w", err)
	}
	n.log.Info("processes of this machine are gone, their leases end now", slog.Any("nodes", nodes))
	return nil
}
