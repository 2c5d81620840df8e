package settlement_test

import (
	"context"
	"testing"
	"time"

	"cmppgateway/gateway/internal/config"
	"cmppgateway/gateway/internal/message"
	"cmppgateway/gateway/internal/wake"
)

// Run settles by nudge and by poll, finds parked receipts and sweeps, until it is stopped.
func TestRun(t *testing.T) {
	t.Parallel()
	b := setup(t, func(c *config.Config) { c.Settlement.Poll, c.Outbox.SweepEvery = time.Hour, 50*time.Millisecond })
	nudged := b.bus.Subscribe(wake.Deliveries)
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- b.Run(ctx) }()
	until := func(what string, m sent, state message.State) {
		t.Helper()
		for deadline := time.Now().Add(20 * time.Second); b.row(t, m).State != state; {
			if time.Now().After(deadline) {
				t.Fatalf("%s: message is %s", what, b.row(t, m))
			}
			select {
			case <-nudged:
			case <-time.After(10 * time.Millisecond):
			}
		}
	}
	m := b.send(t, spec{})
	b.accept(t, m, 7)
	b.report(t, 1, 7, m.phone, delivered)
	b.bus.Publish(wake.Receipts)
	until("receipt", m, message.Delivered)
	early := b.send(t, spec{})
	b.report(t, 1, 8, early.phone, delivered)
	b.bus.Publish(wake.Receipts)
	for b.count(t, `SELECT count(*) FROM receipt_parked`) == 0 {
		<-time.After(time.Millisecond)
	}
	b.accept(t, early, 8)
	until("parked receipt", early, message.Delivered)
	expired := b.queue(t, spec{valid: time.Millisecond})
	until("expired", expired, message.Expired)
	cancel()
	if err := <-done; err != nil {
		t.Fatal(err)
	}
	b.books(t)
}
