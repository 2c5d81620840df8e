package store_test

import (
	"context"
	"errors"
	"log/slog"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"

	"cmppgateway/gateway/cmpp"
	"cmppgateway/gateway/internal/config"
	"cmppgateway/gateway/internal/store"
)

var quiet = slog.New(slog.DiscardHandler)

func lease(t *testing.T, pool *pgxpool.Pool, d time.Duration) *store.Node {
	t.Helper()
	n, err := store.LeaseNode(t.Context(), pool, config.Node{GatewayCode: 1000, Lease: d}, quiet)
	if err != nil {
		t.Fatal(err)
	}
	return n
}

func take(t *testing.T, n *store.Node, count int) []int64 {
	t.Helper()
	ids, err := n.IDs.Take(t.Context(), count)
	if err != nil {
		t.Fatal(err)
	}
	return ids
}

// die makes n's lease run out now, as a while after a SIGKILL.
func die(t *testing.T, pool *pgxpool.Pool, n *store.Node) {
	t.Helper()
	exec(t, pool, "UPDATE node_lease SET lease_until = clock_timestamp() - interval '1 second' WHERE node = $1", n.Number)
}

func TestProcessesAtOnceGetDifferentNumbers(t *testing.T) {
	t.Parallel()
	p := open(t, func(c *config.Postgres) { c.Pools.Admin = 8 })
	numbers := make([]int16, 24)
	var wg sync.WaitGroup
	for i := range numbers {
		wg.Go(func() {
			n, err := store.LeaseNode(t.Context(), p.Admin, config.Node{Lease: time.Minute}, quiet)
			if err != nil {
				t.Error(err)
				return
			}
			numbers[i] = n.Number
			if i%3 == 0 { // some leave at once: their number may be taken again, but only then
				numbers[i] = 0
				if err := n.Release(t.Context(), true); err != nil {
					t.Error(err)
				}
			}
		})
	}
	wg.Wait()
	numbers = slices.DeleteFunc(numbers, func(n int16) bool { return n == 0 })
	slices.Sort(numbers)
	if len(slices.Compact(slices.Clone(numbers))) != len(numbers) {
		t.Errorf("a number twice: %v", numbers)
	}
	if numbers[len(numbers)-1] > 24 {
		t.Errorf("numbers are not the lowest: %v", numbers)
	}
}

func TestNumbersRunOut(t *testing.T) {
	t.Parallel()
	p := open(t)
	exec(t, p.Admin, "INSERT INTO node_lease (node, epoch, instance, ids_until, lease_until) SELECT n, 1, gen_random_uuid(), now(), now() FROM generate_series(1, 255) n")
	if _, err := store.LeaseNode(t.Context(), p.Admin, config.Node{Lease: time.Second}, quiet); !errors.Is(err, store.ErrNoNode) {
		t.Errorf("error %v, want ErrNoNode", err)
	}
}

// A number passes from process to process without an id or Msg_Id coming twice, in the same millisecond and second.
func TestIDsAscendOverRestarts(t *testing.T) {
	t.Parallel()
	p := open(t)
	last := make(map[int16]int64)
	seen := make(map[cmpp.MsgID]bool)
	for i := range 20 {
		n := lease(t, p.Admin, 5*time.Second)
		for range 200 { // milliseconds' worth of ids in less time than that: they run ahead of the clock
			ids := take(t, n, 16384)
			if ids[0] <= last[n.Number] {
				t.Fatalf("start %d: id %d after %d", i, ids[0], last[n.Number])
			}
			last[n.Number] = ids[len(ids)-1]
		}
		m, err := n.MsgIDs.Take(t.Context(), 5)
		if err != nil {
			t.Fatal(err)
		}
		for k := range cmpp.MsgID(5) {
			if seen[m+k] {
				t.Fatalf("start %d: Msg_Id %d twice", i, m+k)
			}
			seen[m+k] = true
		}
		if err := n.Release(t.Context(), true); err != nil {
			t.Fatal(err)
		}
		if i == 10 { // the clock of the next process is behind what was already issued
			exec(t, p.Admin, "UPDATE node_lease SET ids_until = greatest(ids_until, clock_timestamp() + interval '3 seconds')")
		}
	}
	// Every start uses up a second of Msg_Ids; a number too far ahead of the clock rests meanwhile.
	if len(last) > 10 {
		t.Errorf("20 starts used %d numbers", len(last))
	}
}

func TestNumberFarAheadOfTheClockIsNotTaken(t *testing.T) {
	t.Parallel()
	p := open(t)
	n := lease(t, p.Admin, time.Second)
	if err := n.Release(t.Context(), true); err != nil {
		t.Fatal(err)
	}
	exec(t, p.Admin, "UPDATE node_lease SET ids_until = now() + interval '2 days'")
	if n := lease(t, p.Admin, time.Second); n.Number != 2 {
		t.Errorf("number %d: its ids would lie days ahead, where no partition is", n.Number)
	}
}

func TestDeadNodeIsAdoptedOnceThenFree(t *testing.T) {
	t.Parallel()
	p := open(t, func(c *config.Postgres) { c.Pools.Admin = 6 })
	const d = time.Minute
	dead := lease(t, p.Admin, d)
	before := take(t, dead, 16384)
	alive := []*store.Node{lease(t, p.Admin, d), lease(t, p.Admin, d), lease(t, p.Admin, d)}
	die(t, p.Admin, dead)

	if got := lease(t, p.Admin, d); got.Number != 5 {
		t.Fatalf("a new process got number %d, dead but not adopted", got.Number)
	}
	for _, n := range alive {
		n.Age(2 * d)
	}
	claimed := make([][]store.DeadNode, len(alive))
	var wg sync.WaitGroup
	for i, n := range alive {
		wg.Go(func() {
			var err error
			if claimed[i], err = n.DeadNodes(t.Context()); err != nil {
				t.Error(err)
			}
		})
	}
	wg.Wait()
	all := slices.Concat(claimed...)
	if len(all) != 1 || all[0].Number != dead.Number || all[0].Epoch <= dead.Epoch {
		t.Fatalf("claimed %v", all)
	}
	adopter := alive[slices.IndexFunc(claimed, func(c []store.DeadNode) bool { return len(c) > 0 })]

	// The old process wakes up: it must stop.
	if err := dead.Renew(t.Context()); !errors.Is(err, store.ErrLeaseLost) {
		t.Errorf("the dead one renews: %v, want ErrLeaseLost", err)
	}

	insert := `INSERT INTO submit_outbox (id, pos, message_id, channel_id, enterprise_id, attempt, part, parts, lane, state, node) VALUES (1, 1, 1, 1, 1, 1, 1, 1, 1, 1, $1)`
	exec(t, p.Admin, insert, dead.Number)
	if err := adopter.Adopted(t.Context(), all[0]); !errors.Is(err, store.ErrNotDrained) {
		t.Errorf("with a dispatched row: %v, want ErrNotDrained", err)
	}
	exec(t, p.Admin, "DELETE FROM submit_outbox")
	exec(t, p.Admin, `INSERT INTO delivery (id, pos, message_id, msg_id, accept_session, claim, accepted_at, lease, app_id, kind, accept_node, owner, dest, src)
		SELECT n, n, 1, 1, 1, 7, now(), now() + interval '1 hour', 1, 1, 1, n, '', '' FROM unnest(ARRAY[$1, $2]::smallint[]) n`, dead.Number, alive[0].Number)
	if err := adopter.Renew(t.Context()); err != nil { // an adoption lives on with its adopter
		t.Fatal(err)
	}
	if err := adopter.Adopted(t.Context(), all[0]); err != nil {
		t.Fatal(err)
	}
	var claims []int16
	if err := p.Admin.QueryRow(t.Context(), "SELECT array_agg(owner) FROM delivery WHERE claim IS NOT NULL").Scan(&claims); err != nil || !slices.Equal(claims, []int16{alive[0].Number}) {
		t.Errorf("deliveries are claimed by %v, %v; want the living node's claim alone", claims, err)
	}
	again := lease(t, p.Admin, d)
	if again.Number != dead.Number || again.Epoch <= all[0].Epoch {
		t.Fatalf("next process: number %d epoch %d", again.Number, again.Epoch)
	}
	if after := take(t, again, 1); after[0] <= before[len(before)-1] {
		t.Errorf("id %d after %d of the dead process", after[0], before[len(before)-1])
	}
}

func TestAdoptionIsTakenOverFromADeadAdopter(t *testing.T) {
	t.Parallel()
	p := open(t)
	const d = time.Minute
	dead, first, second := lease(t, p.Admin, d), lease(t, p.Admin, d), lease(t, p.Admin, d)
	first.Age(2 * d)
	second.Age(2 * d)
	die(t, p.Admin, dead)
	claimed, err := first.DeadNodes(t.Context())
	if err != nil || len(claimed) != 1 {
		t.Fatalf("claimed %v, %v", claimed, err)
	}
	die(t, p.Admin, dead)
	die(t, p.Admin, first)
	again, err := second.DeadNodes(t.Context())
	if err != nil || len(again) != 2 || again[0].Epoch <= claimed[0].Epoch {
		t.Fatalf("claimed %v, %v", again, err)
	}
	if err := first.Adopted(t.Context(), claimed[0]); !errors.Is(err, store.ErrLeaseLost) {
		t.Errorf("the first adopter frees the number: %v, want ErrLeaseLost", err)
	}
}

// After an outage all leases have run out at once: nobody may adopt before everybody had the time to renew.
func TestNobodyAdoptsRightAfterAnOutage(t *testing.T) {
	t.Parallel()
	p := open(t)
	const d = 10 * time.Minute
	a, b := lease(t, p.Admin, d), lease(t, p.Admin, d)
	die(t, p.Admin, b)
	if got, err := a.DeadNodes(t.Context()); err != nil || len(got) > 0 {
		t.Errorf("claimed %v, %v by a node that has not yet renewed for a lease", got, err)
	}
	if err := b.Renew(t.Context()); err != nil {
		t.Errorf("the other one renews late: %v", err)
	}
	a.Age(2 * d)
	if got, err := a.DeadNodes(t.Context()); err != nil || len(got) > 0 {
		t.Errorf("claimed %v, %v though it renewed", got, err)
	}
	die(t, p.Admin, a)
	die(t, p.Admin, b)
	if got, err := a.DeadNodes(t.Context()); err != nil || len(got) > 0 {
		t.Errorf("claimed %v, %v by a node whose own lease ran out", got, err)
	}
}

func TestReleaseWithWorkLeftWaitsForAdoption(t *testing.T) {
	t.Parallel()
	p := open(t)
	const d = time.Minute
	for _, drained := range []bool{true, false} {
		n := lease(t, p.Admin, d)
		if drained { // shard empty, but a row is dispatched
			exec(t, p.Admin, `INSERT INTO submit_outbox (id, pos, message_id, channel_id, enterprise_id, attempt, part, parts, lane, state, node) VALUES (1, 1, 1, 1, 1, 1, 1, 1, 1, 1, $1)`, n.Number)
		}
		if err := n.Release(t.Context(), drained); err != nil {
			t.Fatal(err)
		}
		next := lease(t, p.Admin, d)
		if next.Number == n.Number {
			t.Errorf("drained %t: number %d was taken with work left under it", drained, n.Number)
		}
		next.Age(2 * d)
		if got, err := next.DeadNodes(t.Context()); err != nil || len(got) != 1 || got[0].Number != n.Number {
			t.Errorf("drained %t: claimed %v, %v, want %d at once", drained, got, err, n.Number)
		}
	}
}

func TestRunRenewsAndReportsALostLease(t *testing.T) {
	t.Parallel()
	p := open(t)
	n := lease(t, p.Admin, 300*time.Millisecond)
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	done := make(chan error, 1)
	go func() { done <- n.Run(ctx) }()
	// More milliseconds of ids than one lease holds: they come only while Run extends it.
	for range 500 {
		take(t, n, 16384)
	}
	if !n.Healthy() {
		t.Error("not healthy while Run renews")
	}
	exec(t, p.Admin, "UPDATE node_lease SET epoch = epoch + 1")
	if err := <-done; !errors.Is(err, store.ErrLeaseLost) {
		t.Errorf("error %v, want ErrLeaseLost", err)
	}

	n = lease(t, p.Admin, 300*time.Millisecond)
	go func() { done <- n.Run(ctx) }()
	cancel()
	if err := <-done; err != nil {
		t.Errorf("stopped: %v", err)
	}
}

func TestMsgIDs(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		start := time.Now()
		m := store.NewMsgIDs(1007, start, start.Add(4*time.Second))
		sequence := func(id cmpp.MsgID) (second, seq int) {
			_, _, _, _, s, gateway, q := id.Fields()
			if gateway != 1007 {
				t.Fatalf("gateway code %d", gateway)
			}
			return s, int(q)
		}
		for i, n := range []int{1, 99, 65436} { // exactly one second's worth
			id, err := m.Take(t.Context(), n)
			if err != nil {
				t.Fatal(err)
			}
			want := []int{0, 1, 100}[i]
			if s, q := sequence(id); s != start.Add(time.Second).Second() || q != want {
				t.Fatalf("second %d, sequence %d; want the second after the start, %d", s, q, want)
			}
		}
		if time.Since(start) != 0 {
			t.Fatalf("waited %s", time.Since(start))
		}
		// 65,536 are spent: the next one waits for its second.
		id, err := m.Take(t.Context(), 2)
		if err != nil {
			t.Fatal(err)
		}
		if s, q := sequence(id); s != start.Add(2*time.Second).Second() || q != 0 || time.Since(start) != time.Second {
			t.Fatalf("second %d, sequence %d after %s", s, q, time.Since(start))
		}
		// n in one second, or none: what does not fit goes to the next one whole.
		if id, err = m.Take(t.Context(), 65535); err != nil {
			t.Fatal(err)
		}
		if s, q := sequence(id); s != start.Add(3*time.Second).Second() || q != 0 {
			t.Fatalf("second %d, sequence %d", s, q)
		}
		// The lease bounds it.
		time.Sleep(10 * time.Second)
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		if id, err := m.Take(ctx, 1); !errors.Is(err, context.DeadlineExceeded) {
			t.Fatalf("id %d, %v beyond the lease", id, err)
		}
		go func() { m.Extend(time.Now().Add(4 * time.Second)) }()
		if id, err = m.Take(t.Context(), 1); err != nil {
			t.Fatal(err)
		}
		if s, _ := sequence(id); s != time.Now().Second() {
			t.Fatalf("second %d, want now", s)
		}
		for _, n := range []int{0, -1, 65537} {
			if _, err := m.Take(t.Context(), n); err == nil {
				t.Errorf("%d at once", n)
			}
		}
	})
}
