package store_test

import (
	osexec "os/exec"
	"strconv"
	"strings"
	"testing"
	"time"

	"cmppgateway/gateway/internal/store"
)

// A process that was killed on this machine is known to be gone when the next one starts: it waits for no lease. One that
// lives, one whose pid was given out again and one of another machine are told apart.
func TestLeasesOfKilledProcessesEndAtTheNextStart(t *testing.T) {
	t.Parallel()
	p := open(t)
	self := store.ProcessName()
	if self == "" {
		t.Skip("the system does not name processes")
	}
	part := strings.Split(self, "/")
	dead := osexec.CommandContext(t.Context(), "sleep", "0")
	if err := dead.Run(); err != nil {
		t.Fatal(err)
	}
	name := func(boot, namespace, pid, start string) string {
		return strings.Join([]string{boot, namespace, pid, start}, "/")
	}
	deadPID := strconv.Itoa(dead.Process.Pid)
	for i, c := range []struct {
		what, process string
		ends          bool
	}{
		{"alive", self, false},
		{"gone", name(part[0], part[1], deadPID, "1"), true},
		{"its pid is another's", name(part[0], part[1], part[2], "1"), true},
		{"of another boot", name("other", part[1], deadPID, "1"), false},
		{"of another namespace", name(part[0], "pid:[1]", deadPID, "1"), false},
		{"not named", "", false},
		{"odd", "a/b/c", false},
		{"odd pid", name(part[0], part[1], "-1", "1"), false},
	} {
		node := 100 + i
		exec(t, p.Admin, `INSERT INTO node_lease (node, epoch, instance, ids_until, lease_until, process) VALUES ($1, 1, gen_random_uuid(), now(), now() + interval '1 h', $2)`, node, c.process)
		n := lease(t, p.Admin, time.Minute)
		var alive bool
		if err := p.Admin.QueryRow(t.Context(), `SELECT lease_until > clock_timestamp() FROM node_lease WHERE node = $1`, node).Scan(&alive); err != nil {
			t.Fatal(err)
		}
		if alive == c.ends {
			t.Errorf("%s: lease holds %t", c.what, alive)
		}
		if !n.Healthy() {
			t.Errorf("%s: the own lease ended", c.what)
		}
	}
	// While another node adopts it, the lease is the adopter's.
	exec(t, p.Admin, `UPDATE node_lease SET adopter = 1, lease_until = now() + interval '1 h' WHERE node = 101`)
	lease(t, p.Admin, time.Minute)
	var alive bool
	if err := p.Admin.QueryRow(t.Context(), `SELECT lease_until > clock_timestamp() FROM node_lease WHERE node = 101`).Scan(&alive); err != nil || !alive {
		t.Errorf("adopted: lease holds %t, %v", alive, err)
	}
}
