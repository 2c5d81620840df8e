package inbound

import (
	"context"
	"errors"
	"log/slog"
	"slices"
	"sync"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"

	"cmppgateway/gateway/cmpp"
	"cmppgateway/gateway/internal/config"
	"cmppgateway/gateway/internal/failpoint"
	"cmppgateway/gateway/internal/store"
	"cmppgateway/gateway/internal/wake"
)

// request is one checked SUBMIT on its way into the inbox.
type request struct {
	conn   *conn
	seq    uint32
	at     time.Time // read
	submit *cmpp.Submit
	checked

	id   int64           // inbox row
	resp cmpp.SubmitResp // Msg_Id of the first recipient; result 0 once committed
}

// receipts is how many of its Msg_Ids will have receipts relayed to the customer.
func (r *request) receipts() int {
	if r.submit.RegisteredDelivery != 1 {
		return 0
	}
	return len(r.submit.DestTerminalID)
}

const (
	attemptLeast = time.Second // one try of a transaction
	attemptMost  = 10 * time.Second
	repeatFirst  = 20 * time.Millisecond
	repeatMost   = time.Second
)

// batcher commits requests, batch after batch.
type batcher struct {
	cfg      config.Inbound
	pool     *pgxpool.Pool
	node     *store.Node
	wake     Waker
	sessions *Sessions
	log      *slog.Logger
	metrics  *metrics

	mu     sync.Mutex
	queue  []*request
	closed bool
	ready  chan struct{}

	columns columns // committer only
}

// add queues a request; false when the queue is full or closed.
func (b *batcher) add(r *request) bool {
	b.mu.Lock()
	ok := !b.closed && len(b.queue) < b.cfg.QueueMax
	if ok {
		b.queue = append(b.queue, r)
	}
	b.mu.Unlock()
	b.poke()
	return ok
}

func (b *batcher) poke() {
	select {
	case b.ready <- struct{}{}:
	default:
	}
}

// close lets nothing more in; run returns when the queue is empty.
func (b *batcher) close() {
	b.mu.Lock()
	b.closed = true
	b.mu.Unlock()
	b.poke()
}

func (b *batcher) depth() int {
	b.mu.Lock()
	defer b.mu.Unlock()
	return len(b.queue)
}

// run is the committer.
func (b *batcher) run(ctx context.Context) {
	batch := make([]*request, 0, b.cfg.BatchMax)
	for {
		var closed bool
		batch, closed = b.take(batch[:0])
		switch {
		case len(batch) > 0:
			b.commit(ctx, batch)
			clear(batch)
		case closed:
			return
		default:
			<-b.ready
		}
	}
}

// take moves what is there into batch.
func (b *batcher) take(batch []*request) ([]*request, bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	batch = append(batch, b.queue[:min(len(b.queue), cap(batch))]...)
	n := copy(b.queue, b.queue[len(batch):])
	clear(b.queue[n:])
	b.queue = b.queue[:n]
	return batch, b.closed
}

// commit makes a batch durable and answers it. ctx is not the one whose end stops the server: what was read is committed.
func (b *batcher) commit(ctx context.Context, batch []*request) {
	start := time.Now()
	late, batch := b.overdue(batch)
	if !b.number(ctx, batch) {
		late, batch = append(late, batch...), nil
	}
	for _, r := range late { // never offered, so surely not stored
		r.conn.answer(r, resultFlow)
	}
	if len(batch) == 0 {
		return
	}
	b.sessions.hold(batch)
	b.offer(ctx, batch)
	b.metrics.commitSeconds.Observe(time.Since(start).Seconds())
	b.metrics.batchRows.Observe(float64(len(batch)))
}

// overdue splits off the requests that have waited for the whole commit deadline.
func (b *batcher) overdue(batch []*request) (late, rest []*request) {
	limit := time.Now().Add(-b.cfg.CommitDeadline)
	if !slices.ContainsFunc(batch, func(r *request) bool { return r.at.Before(limit) }) {
		return nil, batch
	}
	for _, r := range batch {
		if r.at.Before(limit) {
			late = append(late, r)
		} else {
			rest = append(rest, r)
		}
	}
	return late, rest
}

// number gives every request its row id and its Msg_Ids; false when the node's lease allows none for too long.
func (b *batcher) number(ctx context.Context, batch []*request) bool {
	if len(batch) == 0 {
		return true
	}
	ctx, cancel := context.WithDeadline(ctx, batch[0].at.Add(b.cfg.CommitDeadline))
	defer cancel()
	err := b.renumber(ctx, batch)
	for _, r := range batch {
		if err != nil {
			break
		}
		r.resp.MsgID, err = b.node.MsgIDs.Take(ctx, len(r.submit.DestTerminalID))
	}
	if err != nil {
		b.log.Error("no ids for SUBMITs, they are refused", slog.Int("rows", len(batch)), slog.Any("error", err))
	}
	return err == nil
}

func (b *batcher) renumber(ctx context.Context, batch []*request) error {
	ids, err := b.node.IDs.Take(ctx, len(batch))
	if err != nil {
		return err
	}
	for i, r := range batch {
		r.id = ids[i]
	}
	return nil
}

// offer inserts a batch. The common case is one statement and one answer.
func (b *batcher) offer(ctx context.Context, batch []*request) {
	try, cancel := b.attempt(ctx, batch)
	missing, err := b.insert(try, b.pool, batch)
	cancel()
	switch {
	case err == nil && len(missing) == 0:
		b.accept(batch)
	case err == nil: // an id that is there already: ours or, if ids ever collided, another's
		b.accept(without(batch, missing))
		b.settle(ctx, missing)
	case store.IsTransient(err):
		b.log.Warn("inbox commit without an answer, offered again", slog.Int("rows", len(batch)), slog.Any("error", err))
		b.settle(ctx, batch)
	default:
		b.halve(ctx, batch, err, b.offer)
	}
}

// attempt bounds one try: a frozen PostgreSQL answers nothing at all, and nobody is to wait much beyond the deadline.
func (b *batcher) attempt(ctx context.Context, batch []*request) (context.Context, context.CancelFunc) {
	first := batch[0].at
	for _, r := range batch {
		if r.at.Before(first) {
			first = r.at
		}
	}
	left := time.Until(first.Add(b.cfg.CommitDeadline))
	return context.WithTimeout(ctx, min(attemptMost, max(left, attemptLeast)))
}

// halve finds the row that fails a batch for good and refuses that one alone.
func (b *batcher) halve(ctx context.Context, batch []*request, cause error, offer func(context.Context, []*request)) {
	if len(batch) == 1 {
		r := batch[0]
		b.log.Error("SUBMIT refused: its row fails alone", slog.Int("app", int(r.conn.app)), slog.Uint64("sequence", uint64(r.seq)), slog.Any("error", cause))
		r.conn.answer(r, resultOther)
		return
	}
	offer(ctx, batch[:len(batch)/2])
	offer(ctx, batch[len(batch)/2:])
}

// settle offers a batch, of which any part may be stored, until PostgreSQL answers.
func (b *batcher) settle(ctx context.Context, batch []*request) {
	pause := repeatFirst
	for {
		var late []*request
		late, batch = b.overdue(batch)
		b.drop(late)
		if len(batch) == 0 {
			return
		}
		b.metrics.repeats.Inc()
		try, cancel := b.attempt(ctx, batch)
		foreign, err := b.repeat(try, batch)
		if err == nil {
			b.accept(without(batch, foreign))
			if batch = foreign; len(batch) > 0 {
				b.log.Error("inbox ids were taken by other rows, new ones are used", slog.Int("rows", len(batch)))
				err = b.renumber(try, batch)
			}
		}
		cancel()
		switch {
		case err == nil:
		case store.IsTransient(err):
			wait(ctx, pause)
			pause = min(2*pause, repeatMost)
		default:
			b.halve(ctx, batch, err, b.settle)
			return
		}
	}
}

func wait(ctx context.Context, d time.Duration) {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
	case <-ctx.Done():
	}
}

// without is batch less the rows of some; both in the same order.
func without(batch, some []*request) []*request {
	if len(some) == 0 {
		return batch
	}
	rest := make([]*request, 0, len(batch)-len(some))
	for _, r := range batch {
		if len(some) > 0 && some[0] == r {
			some = some[1:]
			continue
		}
		rest = append(rest, r)
	}
	return rest
}

// accept answers rows that are committed.
func (b *batcher) accept(batch []*request) {
	if len(batch) == 0 {
		return
	}
	failpoint.Hit(failpoint.AfterInboxCommit)
	b.wake.Publish(wake.Inbox)
	now := time.Now()
	for _, r := range batch {
		r.conn.answer(r, resultOK)
		b.metrics.answerSeconds.Observe(now.Sub(r.at).Seconds())
	}
}

var errNoAnswer = errors.New("PostgreSQL did not say in time whether SUBMITs are stored")

// drop closes the connections of rows that may be stored: the customer learns nothing rather than something false.
func (b *batcher) drop(batch []*request) {
	if len(batch) == 0 {
		return
	}
	b.log.Error("SUBMITs left without an answer, their connections are closed", slog.Int("rows", len(batch)))
	b.metrics.dropped.Add(float64(len(batch)))
	for _, r := range batch {
		r.conn.session.Close(errNoAnswer)
		b.sessions.open(r)
	}
}
