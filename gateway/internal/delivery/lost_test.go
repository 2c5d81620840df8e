package delivery_test

import (
	"bytes"
	"context"
	"io"
	"net"
	"sync/atomic"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"cmppgateway/gateway/cmpp"
	"cmppgateway/testenv"
)

// wire is a connection to PostgreSQL that loses the answer to a claim while armed: the statement commits, and nobody hears
// of it.
type wire struct {
	net.Conn

	armed    *atomic.Bool
	lost     *atomic.Int32
	prepared bool        // the claim was described; what is written next executes it
	lose     atomic.Bool // a reader may be under way while the driver writes
}

func (w *wire) Write(b []byte) (int, error) {
	if w.prepared {
		w.lose.Store(true)
	}
	w.prepared = bytes.Contains(b, []byte("UPDATE delivery SET claim = $2")) && w.armed.CompareAndSwap(true, false)
	return w.Conn.Write(b)
}

func (w *wire) Read(b []byte) (int, error) {
	for {
		n, err := w.Conn.Read(b)
		if err != nil || !w.lose.Load() {
			return n, err
		}
		if bytes.HasSuffix(b[:n], []byte{'Z', 0, 0, 0, 5, 'I'}) { // ready, idle: it has committed
			w.lost.Add(1)
			_ = w.Close()
			return 0, io.ErrUnexpectedEOF
		}
	}
}

// Rows of a claim whose answer was lost are delivered at once and once, not when their lease ends, and the try that never
// was is not counted.
func TestLostClaimIsAskedForAgain(t *testing.T) {
	t.Parallel()
	c, err := pgxpool.ParseConfig(testenv.DB(t))
	if err != nil {
		t.Fatal(err)
	}
	var armed atomic.Bool
	var lost atomic.Int32
	c.ConnConfig.DefaultQueryExecMode = pgx.QueryExecModeDescribeExec // every statement is seen on the wire
	c.ConnConfig.DialFunc = func(ctx context.Context, network, addr string) (net.Conn, error) {
		conn, err := new(net.Dialer).DialContext(ctx, network, addr)
		if err != nil {
			return nil, err
		}
		return &wire{Conn: conn, armed: &armed, lost: &lost}, nil
	}
	b := setup(t)
	if b.Pool, err = pgxpool.NewWithConfig(t.Context(), c); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(b.Close)
	p := b.boot(t)
	id := p.receipt(t, 1)
	armed.Store(true)
	customer := p.connect(t, 1, cmpp.V30, accept)
	if d := customer.next(); d.MsgID != cmpp.MsgID(id) {
		t.Errorf("DELIVER %d, want %d", d.MsgID, id)
	}
	if lost.Load() != 1 {
		t.Fatal("no answer was lost")
	}
	if n := b.count(t, "SELECT coalesce(max(attempts), 1) FROM delivery"); n != 1 {
		t.Errorf("%d tries counted", n)
	}
	eventually(t, "row gone", func() bool { return b.rows(t, 1) == 0 })
}
