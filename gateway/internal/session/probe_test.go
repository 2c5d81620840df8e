package session_test

import (
	"context"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"cmppgateway/gateway/cmpp"
	"cmppgateway/gateway/internal/session"
)

func TestProbe(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name   string
		answer func(p *peer) // after the ACTIVE_TEST was seen
		alive  bool
		took   time.Duration
	}{
		{"answered", func(p *peer) { p.send(1, &cmpp.ActiveTestResp{}) }, true, 0},
		{"any frame will do", func(p *peer) { p.send(9, submit("alive")) }, true, 0},
		{"silence", func(*peer) {}, false, 3 * time.Second},
		{"half a frame is none", func(p *peer) { p.raw([]byte{0, 0, 0, 12, 0, 0}) }, false, 3 * time.Second},
		{"gone", func(p *peer) { _ = p.conn.Close() }, false, 0},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				l := server(t, setup{cfg: session.Config{IdleInterval: time.Hour}, handler: echo(t)})
				l.peer.send(1, &cmpp.ActiveTest{}) // a frame before the probe says nothing about now
				expect[*cmpp.ActiveTestResp](l.peer)
				synctest.Wait()
				ctx, cancel := context.WithTimeout(t.Context(), 3*time.Second)
				defer cancel()
				begin := time.Now()
				var alive [3]bool
				var probes sync.WaitGroup
				for i := range alive { // they share one ACTIVE_TEST
					probes.Go(func() { alive[i] = l.Probe(ctx) })
				}
				expect[*cmpp.ActiveTest](l.peer)
				synctest.Wait()
				c.answer(l.peer)
				probes.Wait()
				if alive != [3]bool{c.alive, c.alive, c.alive} || time.Since(begin) != c.took {
					t.Errorf("alive %v after %v, want %t after %v", alive, time.Since(begin), c.alive, c.took)
				}
				synctest.Wait()
				for range len(l.peer.frames) {
					if f := <-l.peer.frames; f.pdu != nil && f.pdu.Command() == cmpp.CmdActiveTest {
						t.Error("a second ACTIVE_TEST for probes that overlap")
					}
				}
				l.Close(nil)
				if l.Probe(t.Context()) {
					t.Error("a session that is over is alive")
				}
			})
		})
	}
}
