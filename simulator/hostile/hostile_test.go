package hostile_test

import (
	"context"
	"net"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"

	"cmppgateway/simulator/hostile"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// Every connection is opened again when the server cuts it off, and all end with Run.
func TestConnectionsKeepComing(t *testing.T) {
	t.Parallel()
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	const connections, rounds = 20, 3
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
	defer cancel()
	var wg sync.WaitGroup
	wg.Go(func() {
		for n := 0; ; n++ {
			sock, err := ln.Accept()
			if err != nil {
				return
			}
			_ = sock.Close()
			if n == connections*rounds {
				cancel()
			}
		}
	})
	a := &hostile.Attack{Addr: ln.Addr().String(), Connections: connections, Seed: 1, Pause: time.Millisecond}
	a.Run(ctx)
	_ = ln.Close()
	wg.Wait()
	c := a.Counts()
	// Each place may have a connection that the end cut off while it was opened.
	if c.Open != 0 || c.Opened < connections || c.Cut == 0 {
		t.Errorf("%+v after %d connections were taken and cut", c, connections*rounds)
	}
}
