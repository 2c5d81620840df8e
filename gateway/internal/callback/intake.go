package callback

import (
	"context"
	"log/slog"
	"time"

	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"

	"cmppgateway/gateway/internal/event"
	"cmppgateway/gateway/internal/store"
)

const (
	intakeRequests = 32  // requests written at once
	intakeRows     = 512 // and their rows, as far as a request does not have more
	intakePause    = 20 * time.Millisecond
	intakePauseMax = time.Second
)

// receipt is a row of the log to be.
type receipt struct {
	id int64
	r  event.Receipt
}

// intake is the one writer of this node's shard of the receipt log. Settlement reads the log by a cursor, so the order of
// commits must be the order of seq (data §1.15): rows whose COMMIT was not answered are written again, under their event
// ids, before any others are, however long that takes.
type intake struct {
	pool  *pgxpool.Pool
	node  *store.Node
	log   *slog.Logger
	queue chan *parcel
}

// parcel is the receipts of one request.
type parcel struct {
	rows   []receipt
	faults []fault
	done   chan struct{}
}

func newIntake(pool *pgxpool.Pool, node *store.Node, log *slog.Logger) *intake {
	return &intake{pool: pool, node: node, log: log, queue: make(chan *parcel, intakeRequests)}
}

// write has rows written and waits for their COMMIT, no longer than ctx.
func (in *intake) write(ctx context.Context, rows []receipt) []fault {
	p := &parcel{rows: rows, done: make(chan struct{})}
	timeout := func() []fault {
		faults := make([]fault, len(rows))
		for i := range faults {
			faults[i] = fault{codeTimeout, ctx.Err()}
		}
		return faults
	}
	select {
	case in.queue <- p:
	case <-ctx.Done():
		return timeout()
	}
	select {
	case <-p.done:
		return p.faults
	case <-ctx.Done():
		return timeout()
	}
}

// run writes until ctx is done.
func (in *intake) run(ctx context.Context) {
	for {
		var parcels []*parcel
		select {
		case <-ctx.Done():
			return
		case p := <-in.queue:
			parcels = append(parcels, p)
		}
		rows := len(parcels[0].rows)
	collect:
		for len(parcels) < intakeRequests && rows < intakeRows {
			select {
			case p := <-in.queue:
				parcels = append(parcels, p)
				rows += len(p.rows)
			default:
				break collect
			}
		}
		in.writeAll(ctx, parcels)
	}
}

func (in *intake) writeAll(ctx context.Context, parcels []*parcel) {
	var rows []receipt
	for _, p := range parcels {
		rows = append(rows, p.rows...)
	}
	faults := in.insist(ctx, rows)
	for _, p := range parcels {
		p.faults, faults = faults[:len(p.rows)], faults[len(p.rows):]
		close(p.done)
	}
}

// insist writes rows until the outcome is known, or ctx is done. Rows that fail for good are found by halves.
func (in *intake) insist(ctx context.Context, rows []receipt) []fault {
	faults := make([]fault, len(rows))
	pause := intakePause
	for {
		err := in.insert(ctx, in.pool, rows)
		f := faultOf(err)
		if f.code == codeInternal {
			if len(rows) == 1 {
				faults[0] = f
				return faults
			}
			half := len(rows) / 2
			return append(in.insist(ctx, rows[:half]), in.insist(ctx, rows[half:])...)
		}
		if f.code == "" {
			return faults
		}
		in.log.Warn("receipts not written, trying again", slog.Int("rows", len(rows)), slog.Any("error", err))
		t := time.NewTimer(pause)
		select {
		case <-ctx.Done():
			t.Stop()
			for i := range faults {
				faults[i] = f
			}
			return faults
		case <-t.C:
		}
		pause = min(2*pause, intakePauseMax)
	}
}

// execer is a pool or a transaction.
type execer interface {
	Exec(ctx context.Context, sql string, args ...any) (pgconn.CommandTag, error)
}

func (in *intake) insert(ctx context.Context, on execer, rows []receipt) error {
	seqs, err := in.node.IDs.Take(ctx, len(rows))
	if err != nil {
		return err
	}
	n := len(rows)
	ids, msgIDs, phones := make([]int64, n), make([]int64, n), make([]int64, n)
	at, accounts, channels := make([]time.Time, n), make([]int32, n), make([]int32, n)
	stats, submitTimes, doneTimes, srcs := make([]string, n), make([]string, n), make([]string, n), make([]string, n)
	for i, row := range rows {
		r := &row.r
		ids[i], msgIDs[i], phones[i], at[i] = row.id, int64(r.SupplierMsgID), r.Phone, r.At
		accounts[i], channels[i] = r.AccountID, r.ChannelID
		stats[i], submitTimes[i], doneTimes[i], srcs[i] = r.Stat, r.SubmitTime, r.DoneTime, r.Src
	}
	_, err = on.Exec(ctx, store.CallbackReceipts, ids, seqs, msgIDs, phones, at, accounts, channels, in.node.Number, stats, submitTimes, doneTimes, srcs)
	return err
}
