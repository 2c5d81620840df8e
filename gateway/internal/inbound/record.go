package inbound

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/netip"
	"os"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"

	"cmppgateway/gateway/cmpp"
	"cmppgateway/gateway/internal/session"
	"cmppgateway/gateway/internal/store"
)

// record is what is stored of logins and refusals (table login_event, for `gateway doctor`): counted here by account,
// address, status and cause, and written once a second, so that a flood costs one row a second and a login never waits for
// PostgreSQL. Beyond recordMost different keys between two writes the rest is only counted; without PostgreSQL they stay.
type record struct {
	pool *pgxpool.Pool
	node int16
	log  *slog.Logger

	mu      sync.Mutex
	seen    map[occasion]*occurrence
	dropped int
}

const (
	recordMost    = 4096
	recordEvery   = time.Second
	recordWait    = 5 * time.Second // for one write
	recordSweep   = time.Minute
	recordAccount = 100  // rows kept of an account
	recordUnknown = 1000 // rows kept of all that name no account
	recordDetail  = 200  // octets
	closedStatus  = -1   // no CONNECT_RESP was sent
)

// occasion is the key of a row. Causes are fixed texts: what varies is detail.
type occasion struct {
	account string
	addr    netip.Addr
	status  int16
	cause   string
}

type occurrence struct {
	first, last   time.Time
	n             int64
	app           int32
	version       int16
	stamp, detail string
}

// note adds one occurrence.
func (r *record) note(a *attempt, status int, cause, detail string, now time.Time) {
	k := occasion{addr: a.addr, status: int16(min(max(status, closedStatus), 1<<15-1)), cause: cause}
	o := occurrence{first: now, last: now, n: 1, app: a.app, detail: printable(detail, recordDetail)}
	if a.connect != nil {
		k.account = printable(a.connect.SourceAddr, len(a.connect.SourceAddr))
		o.version, o.stamp = int16(a.connect.Version), fmt.Sprintf("%010d", a.connect.Timestamp)
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.merge(k, &o)
}

func (r *record) merge(k occasion, o *occurrence) {
	old, ok := r.seen[k]
	switch {
	case !ok && len(r.seen) >= recordMost:
		r.dropped++
	case !ok:
		r.seen[k] = o
	default:
		o.n += old.n
		if old.first.Before(o.first) {
			o.first = old.first
		}
		r.seen[k] = o
	}
}

// printable is s as ASCII that PostgreSQL takes, cut to most octets.
func printable(s string, most int) string {
	return strings.Map(func(c rune) rune {
		if c < ' ' || c > '~' {
			return '?'
		}
		return c
	}, s[:min(len(s), most)])
}

// run writes until ctx is done, and what is left then.
func (r *record) run(ctx context.Context) {
	tick := time.NewTicker(recordEvery)
	defer tick.Stop()
	failing := false
	swept := time.Now()
	for end := false; !end; {
		select {
		case <-ctx.Done():
			end = true
		case <-tick.C:
		}
		try, cancel := context.WithTimeout(context.WithoutCancel(ctx), recordWait)
		n, err := r.write(try)
		if err == nil && n > 0 && time.Since(swept) > recordSweep {
			swept = time.Now()
			_, err = r.pool.Exec(try, store.LoginEventSweep, recordAccount, recordUnknown)
		}
		cancel()
		if (err != nil) != failing {
			failing = err != nil
			r.log.Info("logins and refusals recorded", slog.Bool("working", !failing), slog.Any("error", err))
		}
	}
}

// write stores what was noted; on an error it is kept.
func (r *record) write(ctx context.Context) (n int, err error) {
	r.mu.Lock()
	seen, dropped := r.seen, r.dropped
	r.seen, r.dropped = make(map[occasion]*occurrence), 0
	r.mu.Unlock()
	if dropped > 0 {
		r.log.Warn("more kinds of logins and refusals than are recorded", slog.Int("dropped", dropped))
	}
	if len(seen) == 0 {
		return 0, nil
	}
	keys := make([]occasion, 0, len(seen))
	for k := range seen {
		keys = append(keys, k)
	}
	slices.SortFunc(keys, func(a, b occasion) int { // in one order in every process
		return cmp.Or(cmp.Compare(a.account, b.account), a.addr.Compare(b.addr), cmp.Compare(a.status, b.status), cmp.Compare(a.cause, b.cause))
	})
	var (
		accounts, causes, stamps, details []string
		addrs                             []netip.Addr
		statuses, versions                []int16
		firsts, lasts                     []time.Time
		counts                            []int64
		apps                              []int32
	)
	for _, k := range keys {
		o := seen[k]
		accounts, addrs, statuses, causes = append(accounts, k.account), append(addrs, k.addr), append(statuses, k.status), append(causes, k.cause)
		firsts, lasts, counts, apps = append(firsts, o.first), append(lasts, o.last), append(counts, o.n), append(apps, o.app)
		versions, stamps, details = append(versions, o.version), append(stamps, o.stamp), append(details, o.detail)
	}
	if _, err := r.pool.Exec(ctx, store.LoginEventAdd, accounts, addrs, statuses, causes, firsts, lasts, counts, apps, versions, stamps, details, r.node); err != nil {
		r.mu.Lock()
		defer r.mu.Unlock()
		newer := r.seen
		r.seen = seen
		for k, o := range newer {
			r.merge(k, o)
		}
		return 0, fmt.Errorf("record logins: %w", err)
	}
	return len(keys), nil
}

// stranded is why a connection ended without a CONNECT_RESP: a fixed text, and what belongs to it.
func stranded(err error) (cause, detail string) {
	if f, ok := errors.AsType[*cmpp.FrameError](err); ok {
		if name := protocol(f.Head); name != "" {
			return "not CMPP but " + name, ""
		}
		return "no CMPP: the first octets are no length of a frame", fmt.Sprintf("length %d", f.Length)
	}
	if u, ok := errors.AsType[*session.UnexpectedError](err); ok {
		return "another request than CONNECT before the login", u.Command.String()
	}
	switch {
	case errors.Is(err, session.ErrTerminated):
		return "TERMINATE before the login", ""
	case errors.Is(err, context.Canceled):
		return "the gateway stopped", ""
	case errors.Is(err, context.DeadlineExceeded), errors.Is(err, os.ErrDeadlineExceeded):
		return "no whole CONNECT in time", ""
	case errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF):
		return "closed by the peer before the login", ""
	case errors.Is(err, net.ErrClosed):
		return "closed without a CONNECT, for a newer connection", ""
	}
	return "the connection failed before the login", err.Error()
}

// protocol recognises what scanners speak by the first four octets.
func protocol(head [4]byte) string {
	switch h := string(head[:]); {
	case h == "GET " || h == "POST" || h == "HEAD" || h == "OPTI" || h == "CONN" || h == "PUT " || h == "HTTP" || h == "PRI ":
		return "HTTP"
	case h == "AMQP":
		return "AMQP"
	case h == "SSH-":
		return "SSH"
	case h == "PROX" || h == "\r\n\r\n":
		return "the PROXY protocol"
	case head[0] == 22 && head[1] == 3:
		return "TLS"
	case head[0] == 3 && head[1] == 0:
		return "remote desktop"
	}
	return ""
}
