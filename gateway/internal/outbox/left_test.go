package outbox_test

import (
	"context"
	"log/slog"
	"sync/atomic"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"cmppgateway/gateway/internal/config"
	"cmppgateway/gateway/internal/message"
	"cmppgateway/gateway/internal/outbox"
)

// Commands that waited longer than their class of traffic allows are not offered, whether they come by hint or by pull; a
// command that follows a refused one is as old as that.
func TestCommandsThatWaitedTooLongAreLeft(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	r.cfg.Pull = 20 * time.Millisecond
	old := message.FirstID(time.Now().Add(-time.Hour))
	tooOld := r.commands(t, 1, int16(message.Verification), 2)
	r.commands(t, 1, int16(message.Notification), 150) // more than a lane keeps: they must not hide the others
	if _, err := r.pool.Exec(t.Context(), `UPDATE submit_outbox SET retry_of = $1`, old); err != nil {
		t.Fatal(err)
	}
	tooOld[0].RetryOf = old
	inTime := append(r.commands(t, 1, int16(message.Verification), 1), r.commands(t, 1, int16(message.Notification), 1)...)
	marketing := r.commands(t, 1, int16(message.Marketing), 1)
	if _, err := r.pool.Exec(t.Context(), `UPDATE submit_outbox SET retry_of = $1 WHERE id = $2`, old, marketing[0].SubmitID); err != nil {
		t.Fatal(err)
	}
	s := r.source(t, 8)
	r.hints.Hint(t.Context(), 1, tooOld[:1])
	want := map[int64]bool{inTime[0].SubmitID: true, inTime[1].SubmitID: true, marketing[0].SubmitID: true}
	for _, c := range r.sent(t, s, 3, 4) {
		if !want[c.SubmitID] {
			t.Errorf("command %d of lane %d was offered", c.SubmitID, c.Lane)
		}
	}
	ages := outbox.Oldest(r.cfg, time.Now())
	for lane, age := range outbox.Ages(config.Default().Outbox) {
		if got := time.Since(message.TimeOf(ages[lane])); got < age || got > age+time.Minute {
			t.Errorf("lane %d: commands may be %s old, want %s", lane, got, age)
		}
	}
}

// What is stopped is left, and a held enterprise's backlog hides nobody's commands; when it is lifted, they go.
func TestStoppedCommandsAreLeftAndHideNobody(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	r.cfg.Pull = 20 * time.Millisecond
	var stopped atomic.Bool
	stopped.Store(true)
	s := outbox.NewSource(outbox.SourceOptions{
		Config: r.cfg, Channel: 1, Pool: r.pool, Redis: r.rdb, Wake: r.wake, Notify: func() {},
		Leave: func(c *outbox.Command) bool { return stopped.Load() && c.EnterpriseID != 3 },
		Held: func() []int32 {
			if stopped.Load() {
				return []int32{1}
			}
			return nil
		},
		Metrics: outbox.NewMetrics(prometheus.NewRegistry()), Log: slog.New(slog.NewTextHandler(t.Output(), nil)),
	})
	s.Window(8)
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- s.Run(ctx) }()
	t.Cleanup(func() {
		cancel()
		if err := <-done; err != nil {
			t.Error(err)
		}
	})
	held := r.commands(t, 1, 1, 500)
	r.hints.Hint(t.Context(), 1, held[:100])
	r.hints.Hint(t.Context(), 1, r.commands(t, 2, 1, 10))
	r.commands(t, 3, 1, 20)
	for _, c := range r.sent(t, s, 20, 7) {
		if c.EnterpriseID != 3 {
			t.Fatalf("command of enterprise %d was offered", c.EnterpriseID)
		}
	}
	stopped.Store(false)
	r.sent(t, s, 510, 50)
}
