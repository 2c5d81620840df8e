package store

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgtype"
	"github.com/jackc/pgx/v5/pgxpool"

	"cmppgateway/gateway/internal/config"
)

// Pools are the connections of one process, apart by role: exhausting one does not stop another. On all of them a COMMIT
// waits for the disk, statements and idle transactions are bounded, and waiting for a connection ends after
// config.Postgres.AcquireTimeout with context.DeadlineExceeded.
type Pools struct {
	Inbox, Workflow, Outbox, Callback, Settlement, Delivery, Admin *pgxpool.Pool
}

// Named is one pool and its name, for gauges and logs.
type Named struct {
	Name string
	Pool *pgxpool.Pool
}

// All lists the pools in a fixed order.
func (p *Pools) All() []Named {
	return []Named{
		{"inbox", p.Inbox},
		{"workflow", p.Workflow},
		{"outbox", p.Outbox},
		{"callback", p.Callback},
		{"settlement", p.Settlement},
		{"delivery", p.Delivery},
		{"admin", p.Admin},
	}
}

// Statement time-outs. A batch takes milliseconds: the hot one only ends statements that wait for a lock or a dying disk.
// The callback's is its own setting.
const (
	hotTimeout   = 10 * time.Second
	adminTimeout = 2 * time.Minute
	idleInTx     = 10 * time.Second
)

// Open makes the pools. They connect when first used, so it works without a server; only a faulty URL is an error.
// callback is the statement time-out of the callback pool.
func Open(ctx context.Context, c config.Postgres, callback time.Duration) (*Pools, error) {
	p := new(Pools)
	for _, r := range []struct {
		to      **pgxpool.Pool
		name    string
		size    int32
		timeout time.Duration
	}{
		{&p.Inbox, "inbox", c.Pools.Inbox, hotTimeout},
		{&p.Workflow, "workflow", c.Pools.Workflow, hotTimeout},
		{&p.Outbox, "outbox", c.Pools.Outbox, hotTimeout},
		{&p.Callback, "callback", c.Pools.Callback, callback},
		{&p.Settlement, "settlement", c.Pools.Settlement, hotTimeout},
		{&p.Delivery, "delivery", c.Pools.Delivery, hotTimeout},
		{&p.Admin, "admin", c.Pools.Admin, adminTimeout},
	} {
		pool, err := open(ctx, c, r.name, r.size, r.timeout)
		if err != nil {
			p.Close()
			return nil, fmt.Errorf("pool %s: %w", r.name, err)
		}
		*r.to = pool
	}
	return p, nil
}

func open(ctx context.Context, c config.Postgres, name string, size int32, timeout time.Duration) (*pgxpool.Pool, error) {
	pc, err := pgxpool.ParseConfig(c.URL)
	if err != nil {
		return nil, err
	}
	pc.MaxConns = size
	pc.PingTimeout = c.AcquireTimeout
	pc.ConnConfig.ConnectTimeout = c.AcquireTimeout
	pc.ConnConfig.Tracer = acquireDeadline(c.AcquireTimeout)
	params := pc.ConnConfig.RuntimeParams
	params["application_name"] = "cmppgw/" + name
	params["timezone"] = "UTC"
	params["synchronous_commit"] = "on"
	params["statement_timeout"] = milliseconds(timeout)
	params["idle_in_transaction_session_timeout"] = milliseconds(idleInTx)
	if name != "admin" {
		// Every hot statement has one usable access path, tested as a generic plan (data §1.6): queue tables are empty
		// when they are analysed, and the planner then believes in scans that collapse under load.
		for _, off := range []string{"enable_seqscan", "enable_mergejoin", "enable_bitmapscan", "jit"} {
			params[off] = "off"
		}
		params["plan_cache_mode"] = "force_generic_plan"
	}
	pc.AfterConnect = func(_ context.Context, c *pgx.Conn) error {
		timesInUTC(c.TypeMap())
		return nil
	}
	return pgxpool.NewWithConfig(ctx, pc)
}

// timesInUTC makes read times UTC, whatever the zone of the process: they go into answers and files as they are (P12).
func timesInUTC(m *pgtype.Map) {
	utc := &pgtype.Type{Name: "timestamptz", OID: pgtype.TimestamptzOID, Codec: &pgtype.TimestamptzCodec{ScanLocation: time.UTC}}
	m.RegisterType(utc)
	m.RegisterType(&pgtype.Type{Name: "_timestamptz", OID: pgtype.TimestamptzArrayOID, Codec: &pgtype.ArrayCodec{ElementType: utc}})
}

func milliseconds(d time.Duration) string { return strconv.FormatInt(d.Milliseconds(), 10) }

// Close ends the pools; it waits for connections that are in use.
func (p *Pools) Close() {
	for _, n := range p.All() {
		if n.Pool != nil {
			n.Pool.Close()
		}
	}
}

// Ping asks the server for a sign of life.
func (p *Pools) Ping(ctx context.Context) error { return p.Admin.Ping(ctx) }

// acquireDeadline bounds the wait for a connection of a pool. pgxpool has no setting for it, but lets a tracer give the
// context that an acquisition runs under.
type acquireDeadline time.Duration

type cancelKey struct{}

func (d acquireDeadline) TraceAcquireStart(ctx context.Context, _ *pgxpool.Pool, _ pgxpool.TraceAcquireStartData) context.Context {
	ctx, cancel := context.WithTimeoutCause(ctx, time.Duration(d), errors.New("no connection of the pool in time"))
	return context.WithValue(ctx, cancelKey{}, cancel)
}

func (d acquireDeadline) TraceAcquireEnd(ctx context.Context, _ *pgxpool.Pool, _ pgxpool.TraceAcquireEndData) {
	if cancel, ok := ctx.Value(cancelKey{}).(context.CancelFunc); ok {
		cancel()
	}
}

func (d acquireDeadline) TraceQueryStart(ctx context.Context, _ *pgx.Conn, _ pgx.TraceQueryStartData) context.Context {
	return ctx
}

func (d acquireDeadline) TraceQueryEnd(context.Context, *pgx.Conn, pgx.TraceQueryEndData) {}
