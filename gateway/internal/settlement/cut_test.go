package settlement_test

import (
	"bytes"
	"context"
	"errors"
	"net"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"
)

// cut is where a process dies, or loses its database, as seen from the database: a transaction is rolled back, or it is
// committed and nobody hears of it.
type cut string

const (
	noCut       cut = "none"
	atStatement cut = "at a statement"
	beforeEnd   cut = "before COMMIT"
	afterEnd    cut = "after COMMIT, without an answer"
)

var errCut = errors.New("connection cut by the test")

// cuts breaks the connections of a pool where it is told to, once each time it is armed.
type cuts struct {
	mu     sync.Mutex
	where  cut
	writes int // of statements until the cut
	struck bool
}

// pool is a pool like p whose connections c breaks.
func (c *cuts) pool(tb testing.TB, p *pgxpool.Pool) *pgxpool.Pool {
	tb.Helper()
	config := p.Config().Copy()
	dial := config.ConnConfig.DialFunc
	config.ConnConfig.DialFunc = func(ctx context.Context, network, addr string) (net.Conn, error) {
		inner, err := dial(ctx, network, addr)
		if err != nil {
			return nil, err
		}
		return &cutConn{Conn: inner, cuts: c}, nil
	}
	config.MaxConns = 2
	pool, err := pgxpool.NewWithConfig(tb.Context(), config)
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(pool.Close)
	return pool
}

func (c *cuts) arm(where cut, writes int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.where, c.writes, c.struck = where, writes, false
}

// disarm says whether a connection was cut since arm.
func (c *cuts) disarm() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.where = noCut
	return c.struck
}

// meets is what happens to a write: noCut, or the end of its connection before it or after it.
func (c *cuts) meets(commit bool) cut {
	c.mu.Lock()
	defer c.mu.Unlock()
	switch c.where {
	case atStatement:
		if c.writes--; commit || c.writes > 0 {
			return noCut
		}
	case beforeEnd, afterEnd:
		if !commit {
			return noCut
		}
	case noCut:
		return noCut
	}
	where := c.where
	c.where, c.struck = noCut, true
	return where
}

type cutConn struct {
	net.Conn

	cuts *cuts
	lost atomic.Bool // what the server answers does not arrive
}

func (c *cutConn) Write(p []byte) (int, error) {
	switch c.cuts.meets(bytes.Contains(p, []byte("commit\x00"))) {
	case atStatement, beforeEnd:
		return 0, errors.Join(errCut, c.Close())
	case afterEnd:
		c.lost.Store(true)
	case noCut:
	}
	return c.Conn.Write(p)
}

func (c *cutConn) Read(p []byte) (int, error) {
	n, err := c.Conn.Read(p)
	if n > 0 && c.lost.Load() { // the server has committed
		return 0, errors.Join(errCut, c.Close())
	}
	return n, err
}

// quiet waits until the server has noticed that connections are gone, and rolled their transactions back.
func (b *bench) quiet(tb testing.TB) {
	tb.Helper()
	for deadline := time.Now().Add(30 * time.Second); ; {
		if b.count(tb, `SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() AND pid <> pg_backend_pid() AND xact_start IS NOT NULL AND backend_type = 'client backend'`) == 0 {
			return
		}
		if time.Now().After(deadline) {
			tb.Fatal("a transaction of a cut connection goes on")
		}
		<-time.After(time.Millisecond)
	}
}
