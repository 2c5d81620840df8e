package main_test

import (
	"bytes"
	"context"
	"fmt"
	"net"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/redis/go-redis/v9"

	"cmppgateway/gateway/internal/message"
	"cmppgateway/gateway/internal/observe"
	"cmppgateway/simulator/ismg"
	"cmppgateway/simulator/simclock"
	"cmppgateway/testenv"
)

// inboxOf are SUBMITs answered with Result 0 and not worked on yet. $1 lowest id, $2 how many
const inboxOf = `INSERT INTO inbox (id, pos, msg_id, session, seq, accepted_at, enterprise_id, app_id, weight, node, registered, fmt, udhi, pk_total, pk_number, dest, src, service, content)
	SELECT $1::bigint + i, $1::bigint + i, $1::bigint + i, 1, i, now(), 1, 11, 1, 1, 1, 0, 0, 1, 1, (13800000000 + i)::text::bytea, '', '', 'code 4711' FROM generate_series(1, $2::int) i`

// A database restored from a copy has forgotten what was sent after it. The gateway notices, sends nothing, and every message
// reaches its supplier once whatever the operator does.
func restored(t *testing.T, gw binary) {
	t.Helper()
	const messages = 5
	supplier, err := ismg.New(ismg.Profile{Accounts: []ismg.Account{{ID: "900001", Secret: "s1"}}}, simclock.New(), ismg.Options{})
	if err != nil {
		t.Fatal(err)
	}
	listener, err := new(net.ListenConfig).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	served := make(chan error, 1)
	go func() { served <- supplier.Serve(ctx, listener) }()
	t.Cleanup(func() {
		cancel()
		if err := <-served; err != nil {
			t.Error(err)
		}
	})

	pg, rd := testenv.PostgresServer(t), testenv.RedisServer(t)
	env := environment(t, pg.URL(), rd.Addr(), 0)
	if code, _, stderr := gw.run(t, env, "migrate"); code != 0 {
		t.Fatal(stderr)
	}
	file := write(t, "seed.yaml", strings.Replace(seedFile, "127.0.0.1:1", listener.Addr().String(), 1))
	if code, _, stderr := gw.run(t, env, "seed", "--file", file); code != 0 {
		t.Fatal(stderr)
	}
	// A life before the copy.
	r := start(t, gw, env)
	r.until(t, "ready", ready)
	if err := r.cmd.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	if code := r.exit(t); code != 0 {
		t.Fatalf("exit %d after SIGTERM\n%s", code, r.stderr)
	}
	sql(t, pg.URL(), inboxOf, message.FirstID(time.Now()), messages)

	// The copy: all of it is in the inbox.
	data := filepath.Join(filepath.Dir(pg.LogPath()), "data")
	shell := func(script string) {
		t.Helper()
		if out, err := exec.CommandContext(t.Context(), "sh", "-ec", script, "sh", data).CombinedOutput(); err != nil {
			t.Fatalf("%s: %v\n%s", script, err, out)
		}
	}
	stopped := func(script string) {
		t.Helper()
		if err := pg.Stop(t.Context()); err != nil {
			t.Fatal(err)
		}
		shell(script)
		if err := pg.Restart(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	stopped(`cp -a "$1" "$1.copy"`)

	r = start(t, gw, env)
	r.until(t, "all sent", func(observe.State) bool { return len(supplier.Record().Submits) == messages })
	rdb := redis.NewClient(&redis.Options{Addr: rd.Addr()})
	defer rdb.Close() // the test is over
	r.until(t, "a beat told", func(observe.State) bool {
		keys, err := rdb.Keys(t.Context(), "{restore:*").Result()
		return err == nil && len(keys) > 0
	})
	if err := r.cmd.Process.Signal(syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	r.exit(t)
	stopped(`mv "$1" "$1.lost"; mv "$1.copy" "$1"`)

	r = start(t, gw, env)
	r.until(t, "quarantine", func(s observe.State) bool { return !s.Ready && breaks("quarantine")(s) })
	code, stdout, stderr := gw.run(t, env, "recover")
	if code != 0 || !strings.Contains(stdout, fmt.Sprintf("%d messages in the inbox", messages)) {
		t.Errorf("recover: exit %d, %q %q", code, stdout, stderr)
	}
	if s, err := r.state(t); err != nil || !breaks("quarantine")(s) {
		t.Errorf("looking ended the quarantine: %+v, %v", s, err)
	}
	code, stdout, stderr = gw.run(t, env, "recover", "--confirm")
	if code != 0 || !strings.Contains(stdout, fmt.Sprintf("%d submits are unknown now", messages)) {
		t.Fatalf("recover --confirm: exit %d, %q %q", code, stdout, stderr)
	}
	r.until(t, "ready", ready)

	var statement bytes.Buffer
	if err := supplier.WriteStatement(&statement); err != nil {
		t.Fatal(err)
	}
	code, stdout, stderr = gw.run(t, env, "unknown", "resolve", "--from", write(t, "statement.csv", statement.String()))
	if code != 0 || !strings.HasPrefix(stdout, fmt.Sprintf("%d accepted", messages)) {
		t.Errorf("unknown resolve: exit %d, %q %q", code, stdout, stderr)
	}
	if code, stdout, stderr = gw.run(t, env, "ledger", "verify"); code != 0 || !strings.Contains(stdout, fmt.Sprintf("%d charged", messages)) {
		t.Errorf("ledger: exit %d, %q %q", code, stdout, stderr)
	}
	if n := len(supplier.Record().Submits); n != messages {
		t.Errorf("the supplier saw %d submits of %d messages", n, messages)
	}
	if err := r.cmd.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	if code := r.exit(t); code != 0 {
		t.Errorf("exit %d after SIGTERM\n%s", code, r.stderr)
	}
}

func sql(t *testing.T, url, statement string, args ...any) {
	t.Helper()
	conn, err := pgx.Connect(t.Context(), url)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close(context.Background()) // its work is done
	if _, err := conn.Exec(t.Context(), statement, args...); err != nil {
		t.Fatalf("%s: %v", statement, err)
	}
}
