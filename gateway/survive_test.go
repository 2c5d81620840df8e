package main_test

import (
	"context"
	"fmt"
	"net"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"cmppgateway/simulator/ismg"
	"cmppgateway/simulator/simclock"
	"cmppgateway/testenv"
)

// Edge and core are processes of their own and die in turns, without warning, while a supplier sends uplinks: each uplink
// that the supplier was acknowledged is stored once and on its way to its customer once (P4, P5).
func uplinksSurvive(t *testing.T, gw binary) {
	t.Helper()
	const (
		rounds, each = 4, 12
		account      = "900001"
	)
	supplier, err := ismg.New(ismg.Profile{
		Accounts: []ismg.Account{{ID: account, Secret: "s1"}}, Timers: ismg.Timers{DeliverTimeout: 500 * time.Millisecond, DeliverTries: 1000},
	}, simclock.New(), ismg.Options{})
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
	addr, db := testenv.Redis(t)
	url := testenv.DB(t)
	core := append(environment(t, url, addr, db), "CMPPGW_NODE_LEASE=2s")
	for _, kv := range core {
		if callback, ok := strings.CutPrefix(kv, "CMPPGW_CALLBACK_LISTEN="); ok {
			core = append(core, "CMPPGW_EVENT_URL=http://"+callback)
		}
	}
	edge := append(slices.Clip(core), "CMPPGW_ADMIN_LISTEN="+free(t))
	if code, _, stderr := gw.run(t, core, "migrate"); code != 0 {
		t.Fatal(stderr)
	}
	file := write(t, "seed.yaml", strings.Replace(seedFile, "127.0.0.1:1", listener.Addr().String(), 1))
	if code, _, stderr := gw.run(t, core, "seed", "--file", file); code != 0 {
		t.Fatal(stderr)
	}
	run := func(i int) *running {
		if i == 0 {
			return start(t, gw, core, "--roles", "core")
		}
		return start(t, gw, edge, "--roles", "edge")
	}
	processes := []*running{run(0), run(1)}
	for _, r := range processes {
		r.until(t, "ready", ready)
	}
	long := strings.Repeat("今天天气很好。", 15) // two segments
	sent := 0
	for round := range rounds {
		for range each {
			sent++
			source := fmt.Sprintf("139%08d", sent)
			if sent%4 == 0 {
				_, err = supplier.SendLongUplink(account, source, "1069000155", long, uint16(sent), sent%8 == 0, []int{1, 0})
			} else {
				_, err = supplier.SendUplink(account, source, "1069000155", fmt.Sprint("uplink ", sent))
			}
			if err != nil {
				t.Fatal(err)
			}
		}
		i := round % 2
		if err := processes[i].cmd.Process.Kill(); err != nil {
			t.Fatal(err)
		}
		processes[i].exit(t)
		processes[i] = run(i)
	}
	conn, err := pgx.Connect(t.Context(), url)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close(context.Background()) // the test is over
	const longs = rounds * each / 4
	var stored, waiting, deliveries, phones, most int
	tick := time.NewTicker(100 * time.Millisecond)
	defer tick.Stop()
	over := time.After(2 * limit)
	for {
		// Each is acknowledged, stored, and delivered to the queue of its customer; none is worked on any more.
		if err := conn.QueryRow(t.Context(), `SELECT count(*), count(*) FILTER (WHERE outcome = 0) FROM uplink`).Scan(&stored, &waiting); err != nil {
			t.Fatal(err)
		}
		counts := supplier.Counts()[0]
		if stored == sent+longs && waiting == 0 && counts.Acked == counts.Uplinks {
			break
		}
		select {
		case <-tick.C:
		case <-over:
			t.Fatalf("%d of %d stored, %d wait, supplier %+v\ncore: %s\nedge: %s", stored, sent+longs, waiting, counts, processes[0].stderr, processes[1].stderr)
		}
	}
	if err := conn.QueryRow(t.Context(), `SELECT coalesce(sum(n), 0), count(*), coalesce(max(n), 0) FROM (SELECT count(*) n FROM delivery WHERE kind = 2 AND app_id = 11 GROUP BY dest) d`).Scan(&deliveries, &phones, &most); err != nil {
		t.Fatal(err)
	}
	if deliveries != sent+longs || phones != sent || most != 2 {
		t.Errorf("%d deliveries of %d phones, at most %d of one; want %d of %d, 2", deliveries, phones, most, sent+longs, sent)
	}
}
