package runner

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"time"

	_ "embed" // the statements

	"github.com/jackc/pgx/v5"

	"cmppgateway/scenarios/internal/spec"
)

//go:embed sql/callback_waiting.sql
var callbackWaitingSQL string

//go:embed sql/dead_letter_claim.sql
var deadLetterClaimSQL string

//go:embed sql/dead_letters_bad.sql
var deadLettersBadSQL string

// startWire puts a wire between edge and core when the schedule breaks what is on it.
func (r *run) startWire(ctx context.Context) error {
	if !r.s.Wired() {
		return nil
	}
	w, err := newWire(ctx)
	if err != nil {
		return unfit("%w", err)
	}
	r.wire, r.files.Wire = w, w.url()
	r.later(w.close)
	return nil
}

// callback makes the faults of what is between edge and core. The cuts are proved by the
// gateway's own counts of requests that failed, the rest by PostgreSQL.
func (r *run) callback(a *act, x *spec.Injection) {
	switch x.Fault {
	case spec.CallbackPool:
		r.exhaust(a)
	case spec.CallbackTimeout:
		r.cutRequests(a)
	case spec.CallbackBadEvent:
		r.spoilBatches(a, x.Every)
	}
}

// gauge reads one of the gateway's metrics, added up over all its labels but those given.
func (r *run) gauge(ctx context.Context, name string, labels ...string) (float64, error) {
	m, err := scrape(ctx, r.http, "http://"+r.files.Admin+"/metrics")
	if err != nil {
		return 0, err
	}
	return m.sum(name, labels...), nil
}

// poolClaim is the id of the dead letter that a transaction of the harness claims: of a day in
// 1970, when nobody issued ids.
const poolClaim = int64(1 << 20)

// postEvery is how long after an answer the next event that wants it is posted at the latest.
const postEvery = 20 * time.Millisecond

// exhaust keeps every connection of the callback pool waiting: for the harness's transaction,
// which claims a dead letter's id that events of the harness want too.
func (r *run) exhaust(a *act) {
	var stop context.CancelFunc
	var posters sync.WaitGroup
	var conn *pgx.Conn
	var tx pgx.Tx
	size := 0
	a.inject = func(ctx context.Context) (err error) {
		if size, err = strconv.Atoi(r.report.Environment.Settings["postgres.pools.callback"]); err != nil || size < 1 {
			return fmt.Errorf("postgres.pools.callback is %q", r.report.Environment.Settings["postgres.pools.callback"])
		}
		if conn, err = pgx.Connect(ctx, r.files.Postgres); err != nil {
			return err
		}
		if tx, err = conn.Begin(ctx); err == nil {
			_, err = tx.Exec(ctx, deadLetterClaimSQL, poolClaim)
		}
		if err != nil {
			return errors.Join(err, conn.Close(ctx))
		}
		body := fmt.Sprintf(`{"batchId":"scenario","events":[{"eventId":"%d","type":"dead_letter","payload":{"kind":"scenario","raw":""}}]}`, poolClaim)
		var posting context.Context
		posting, stop = context.WithCancel(context.WithoutCancel(ctx)) //nolint:gosec // revert calls stop
		for range 2 * size {                                           // half of them wait for a connection
			posters.Go(func() {
				tick := time.NewTicker(postEvery)
				defer tick.Stop()
				for {
					r.post(posting, body)
					select {
					case <-tick.C:
					case <-posting.Done():
						return
					}
				}
			})
		}
		return nil
	}
	waiting := func(ctx context.Context) (n int, err error) {
		watch, err := pgx.Connect(ctx, r.files.Postgres)
		if err != nil {
			return 0, err
		}
		err = watch.QueryRow(ctx, callbackWaitingSQL).Scan(&n)
		return n, errors.Join(err, watch.Close(ctx))
	}
	a.here = func(ctx context.Context) (string, error) {
		n, err := waiting(ctx)
		if err == nil && n < size {
			err = fmt.Errorf("%d of the callback pool's %d sessions wait for a lock", n, size)
		}
		return fmt.Sprintf("all %d sessions of the callback pool wait for a lock", size), err
	}
	a.revert = func(ctx context.Context) error {
		backlog, err := r.gauge(ctx, "cmppgw_event_backlog")
		a.seen = append(a.seen, fmt.Sprintf("the edge held %.0f events", backlog))
		stop()
		r.buried++ // the claim stays as a dead letter: its rivals are told so, whenever they come
		err = errors.Join(err, tx.Commit(ctx), conn.Close(ctx))
		posters.Wait()
		if err == nil && backlog == 0 {
			err = errors.New("the edge held no events: the pool was not exhausted")
		}
		return err
	}
	a.over = func(ctx context.Context) (string, error) {
		n, err := waiting(ctx)
		if err == nil && n > 0 {
			err = fmt.Errorf("%d sessions of the callback pool wait for a lock", n)
		}
		return "none of its sessions waits", err
	}
	r.goesOn(a)
}

// post offers the core a batch; what it answers is of no interest.
func (r *run) post(ctx context.Context, body string) {
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, "http://"+r.files.Callback+"/api/gateway/events/batch", bytes.NewReader([]byte(body)))
	if err != nil {
		return
	}
	resp, err := r.http.Do(req)
	if err != nil {
		return
	}
	_, _ = io.Copy(io.Discard, io.LimitReader(resp.Body, maxMetrics))
	_ = resp.Body.Close()
}

// cutRequests cuts every request to the core: before its body, and after the core's answer, which
// comes after the COMMIT, in turns.
func (r *run) cutRequests(a *act) {
	var failed, taken, repeated float64
	read := func(ctx context.Context) (f, t, again float64, err error) {
		m, err := scrape(ctx, r.http, "http://"+r.files.Admin+"/metrics")
		if err != nil {
			return 0, 0, 0, err
		}
		return m.sum("cmppgw_event_requests_total", "outcome", "failed"), m.sum("cmppgw_event_requests_total", "outcome", "ok"),
			m.sum("cmppgw_callback_results_total", "outcome", "repeated"), nil
	}
	a.inject = func(ctx context.Context) (err error) {
		if failed, _, repeated, err = read(ctx); err != nil {
			return err
		}
		r.wire.setCut(true)
		return nil
	}
	a.here = func(ctx context.Context) (string, error) {
		f, _, again, err := read(ctx)
		if err != nil {
			return "", err
		}
		n := r.wire.counts()
		if f-failed < 2 || n.before == 0 || n.after == 0 || again == repeated {
			return "", fmt.Errorf("%.0f requests failed, %d cut before the body and %d after the answer, %.0f results came again", f-failed, n.before, n.after, again-repeated)
		}
		return "", nil
	}
	a.revert = func(ctx context.Context) (err error) {
		r.wire.setCut(false)
		f, t, again, err := read(ctx)
		if err != nil {
			return err
		}
		taken = t
		n := r.wire.counts()
		a.seen = append(a.seen, fmt.Sprintf("the edge counted %.0f requests that failed: %d cut before the body, %d after the core had committed; the core counted %.0f results that came again",
			f-failed, n.before, n.after, again-repeated))
		return nil
	}
	a.over = func(ctx context.Context) (string, error) {
		_, t, _, err := read(ctx)
		if err == nil && t == taken {
			err = errors.New("no request has been answered since")
		}
		return "requests are answered again", err
	}
}

// spoilBatches puts events into batches that the core refuses for good: they must become dead letters, and their
// neighbours must not feel it.
func (r *run) spoilBatches(a *act, every int) {
	kept := func(ctx context.Context) (n int64, err error) {
		conn, err := pgx.Connect(ctx, r.files.Postgres)
		if err != nil {
			return 0, err
		}
		err = conn.QueryRow(ctx, deadLettersBadSQL, badFirst, poolClaim-1).Scan(&n)
		return n, errors.Join(err, conn.Close(ctx))
	}
	a.inject = func(context.Context) error {
		r.wire.spoil(every)
		return nil
	}
	a.here = func(ctx context.Context) (string, error) {
		n, err := kept(ctx)
		if err == nil && (n == 0 || r.wire.counts().neighbours == 0) {
			err = fmt.Errorf("%d of them are dead letters, %d of their neighbours were accepted", n, r.wire.counts().neighbours)
		}
		return "", err
	}
	a.revert = func(context.Context) error {
		r.wire.spoil(0)
		return nil
	}
	a.over = func(ctx context.Context) (string, error) {
		c := r.wire.counts()
		if len(c.held) > 0 {
			return "", &lostError{errors.New(strings.Join(c.held[:min(len(c.held), 5)], "; "))}
		}
		n, err := kept(ctx)
		if err == nil && n != c.bad {
			err = fmt.Errorf("%d of %d of them are dead letters", n, c.bad)
		}
		if err != nil {
			return "", err
		}
		r.buried += n
		return fmt.Sprintf("%d bad events are dead letters, %d of their neighbours were accepted at once", n, c.neighbours), nil
	}
}
