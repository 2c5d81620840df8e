package sp_test

import (
	"context"
	"fmt"
	"net"
	"sync"
	"testing"
	"time"

	"cmppgateway/simulator/ismg"
	"cmppgateway/simulator/simclock"
	"cmppgateway/simulator/sp"
)

// pair is one simulated customer wired straight to one simulated supplier.
type pair struct {
	clock    *simclock.Clock
	supplier *ismg.Server
	customer *sp.Client
	addr     string
}

const (
	pairID     = "900001"
	pairSecret = "secret"
	firstKey   = 13800000000
)

func profile() ismg.Profile {
	return ismg.Profile{
		Seed: 7,
		Accounts: []ismg.Account{{
			ID: pairID, Secret: pairSecret, Version: 0x30, MaxConnections: 8, Window: 32, GatewayCode: 1001,
		}},
	}
}

// start runs a supplier of p, and a customer of cfg whose empty fields are
// filled in, until the test ends.
func start(t testing.TB, p ismg.Profile, o ismg.Options, cfg sp.Config) *pair {
	t.Helper()
	clock := simclock.New()
	supplier, err := ismg.New(p, clock, o)
	if err != nil {
		t.Fatal(err)
	}
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	cfg.Addr = ln.Addr().String()
	if cfg.ID == "" {
		cfg.ID, cfg.Secret = pairID, pairSecret
	}
	customer, err := sp.New(cfg, clock)
	if err != nil {
		t.Fatal(err)
	}
	up, stopSupplier := context.WithCancel(context.Background())
	run, stopCustomer := context.WithCancel(context.Background())
	var suppliers, customers sync.WaitGroup
	suppliers.Go(func() {
		if err := supplier.Serve(up, ln); err != nil {
			t.Error(err)
		}
	})
	customers.Go(func() {
		if err := customer.Run(run); err != nil {
			t.Error(err)
		}
	})
	t.Cleanup(func() {
		stopCustomer()
		customers.Wait()
		stopSupplier()
		suppliers.Wait()
	})
	return &pair{clock: clock, supplier: supplier, customer: customer, addr: cfg.Addr}
}

func limit(t testing.TB) context.Context {
	t.Helper()
	ctx, cancel := context.WithTimeoutCause(context.Background(), 30*time.Second, fmt.Errorf("%s took too long", t.Name()))
	t.Cleanup(cancel)
	return ctx
}

// messages returns n messages to consecutive numbers, evenly due over hold.
func messages(n int, hold time.Duration) []sp.Message {
	due := sp.Even(n, hold)
	list := make([]sp.Message, n)
	for i := range list {
		key := firstKey + uint64(i) //nolint:gosec // small
		list[i] = sp.Message{
			Due: due[i], Key: key, Number: fmt.Sprint(key), Content: []byte("hello"), Registered: 1, SrcID: "10690001",
		}
	}
	return list
}

// send fires the messages now and waits until all are answered or given up.
func (p *pair) send(ctx context.Context, t testing.TB, list []sp.Message) {
	t.Helper()
	if err := p.customer.Send(ctx, list, p.clock.Now()); err != nil {
		t.Fatal(err)
	}
	if err := p.customer.Drain(ctx); err != nil {
		t.Fatal(err)
	}
}

func TestSmoke(t *testing.T) {
	t.Parallel()
	p := profile()
	p.Behaviour.SubmitRTT = ismg.FixedAt(5 * time.Millisecond)
	p.Behaviour.ReceiptDelay = ismg.FixedAt(20 * time.Millisecond)
	pr := start(t, p, ismg.Options{}, sp.Config{Connections: 2})
	ctx := limit(t)
	if err := pr.customer.Ready(ctx, 2); err != nil {
		t.Fatal(err)
	}
	pr.send(ctx, t, messages(100, 100*time.Millisecond))
	for pr.customer.Counts().Receipts < 100 && ctx.Err() == nil {
		time.Sleep(5 * time.Millisecond)
	}
	t.Logf("%+v", pr.customer.Counts())
	rec := pr.supplier.Record()
	t.Logf("%d %d %+v %+v", len(rec.Submits), len(rec.Reports), rec.Conns, rec.Violations)
}
