package settlement

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/jackc/pgx/v5"

	"cmppgateway/gateway/internal/ledger"
	"cmppgateway/gateway/internal/message"
	"cmppgateway/gateway/internal/outbox"
	"cmppgateway/gateway/internal/settings"
	"cmppgateway/gateway/internal/store"
	"cmppgateway/gateway/internal/wake"
)

// ErrResult marks errors that lie in a result and not in the database: it can never be applied.
var ErrResult = errors.New("faulty result")

// errVanished says that a submit's message is not in the database (any more).
var errVanished = fmt.Errorf("%w: message not found", ErrResult)

// msg is a message row that this transaction has locked.
type msg struct {
	id, msgID, price, phone, session               int64
	acceptedAt, createdAt                          time.Time
	validUntil                                     *time.Time
	overdue                                        bool
	enterprise, app, channel, units                int32
	state                                          message.State
	bill                                           message.Bill
	chargeOn                                       message.ChargeOn
	refundOn                                       message.RefundOn
	attempt, parts, acc, fin                       int16
	reason                                         message.Reason
	carrier                                        int16
	lane                                           message.Lane
	registered, fmt, udhi, pkTotal, pkNumber, node int16
	stat, signature                                string
	dest, src, service, content                    []byte
	settle, refund                                 int64 // entries of this transaction, 0 = none
	changed                                        bool

	segments, outFmt int16 // of a long message: how many the customer sent, and the format of its parts; 0 = one SUBMIT
	ref              int32
	cutAnew          bool
	pieces           []store.Segment

	// of a long message: refused parts that wait for their siblings
	refused                     []refusal
	refusedStored               int // rows there are of them
	refusedRead, refusedChanged bool

	was struct {
		state             message.State
		bill              message.Bill
		channel           int32
		attempt, acc, fin int16
	} // as it was read
}

// submit is one submit that moved in this transaction, or that a receipt is about.
type submit struct {
	id, message, retryOf, supplierMsgID int64
	channel, account, enterprise        int32
	attempt, part, parts                int16
	state                               message.Submit
	stat                                string
	result                              int32 // the supplier's code
	dispatchedAt                        time.Time
}

// work is what one transaction reads, decides and writes.
type work struct {
	Outcome

	snap  *settings.Snapshot
	now   time.Time
	msgs  map[int64]*msg
	tried map[int64]submit // refused attempts by id, for the chain of retry_of
	also  []int64          // messages to lock beside those of the matched submits

	ids        *message.IDs
	idErr      error
	entries    map[entryKey]*ledger.Entry
	resends    resends
	submits    submits
	deliveries deliveries
	unknowns   unknowns
	parts      map[int64]string // final stat of parts, by submit
	exceptions exceptions
	aliases    map[[2]int64]bool // (supplier Msg_Id, submit)
	unbilled   unbilled
	learned    map[int64]ported // by number
	closed     map[string]int   // unknown submits closed, by their new state
}

type entryKey struct {
	kind    message.EntryKind
	account int32
}

func newWork(ids *message.IDs, snap *settings.Snapshot) *work {
	return &work{
		snap: snap, now: time.Now(), ids: ids, msgs: map[int64]*msg{}, tried: map[int64]submit{},
		entries: map[entryKey]*ledger.Entry{}, parts: map[int64]string{}, aliases: map[[2]int64]bool{}, learned: map[int64]ported{}, closed: map[string]int{},
		Outcome: Outcome{commands: map[int32][]outbox.Command{}},
	}
}

// id is a new id. Its error ends the transaction when it is written.
func (w *work) id(ctx context.Context) int64 {
	id, err := w.ids.Next(ctx)
	if err != nil {
		w.idErr = err
	}
	return id
}

// queueLoad locks and reads messages when q is sent; all that the transaction is about at once, or two transactions could
// wait for each other.
func (w *work) queueLoad(q *pgx.Batch, ids []int64) {
	ids = slices.DeleteFunc(sorted(ids), func(id int64) bool { return w.msgs[id] != nil })
	if len(ids) == 0 {
		return
	}
	lo, hi := store.Bounds(ids)
	q.Queue(store.SettlementMessages, ids, lo, hi).Query(func(rows pgx.Rows) error {
		for rows.Next() {
			m := new(msg)
			if err := rows.Scan(&m.id, &m.msgID, &m.price, &m.phone, &m.session, &m.acceptedAt, &m.createdAt, &m.validUntil, &m.overdue, &m.enterprise, &m.app,
				&m.channel, &m.units, &m.state, &m.bill, &m.chargeOn, &m.refundOn, &m.attempt, &m.parts, &m.acc, &m.fin, &m.reason, &m.carrier, &m.lane,
				&m.registered, &m.fmt, &m.udhi, &m.pkTotal, &m.pkNumber, &m.node, &m.stat, &m.dest, &m.src, &m.service, &m.content, &m.signature,
				&m.segments, &m.outFmt, &m.ref); err != nil {
				return err
			}
			m.was.state, m.was.bill, m.was.channel, m.was.attempt, m.was.acc, m.was.fin = m.state, m.bill, m.channel, m.attempt, m.acc, m.fin
			w.msgs[m.id] = m
		}
		return rows.Err()
	})
}

// load is queueLoad in a round trip of its own.
func (w *work) load(ctx context.Context, tx pgx.Tx, ids []int64) error {
	var q pgx.Batch
	w.queueLoad(&q, ids)
	if err := send(ctx, tx, &q); err != nil {
		return err
	}
	return w.loadRefused(ctx, tx)
}

// loadTried reads the chain of refused attempts behind ids.
func (w *work) loadTried(ctx context.Context, tx pgx.Tx, ids []int64) error {
	for range message.MaxSubmits {
		ids = slices.DeleteFunc(sorted(ids), func(id int64) bool { return id == 0 })
		if len(ids) == 0 {
			return nil
		}
		found, err := readSubmits(ctx, tx, ids)
		if err != nil {
			return err
		}
		ids = ids[:0]
		for _, s := range found {
			w.tried[s.id] = s
			ids = append(ids, s.retryOf)
		}
	}
	return nil
}

func readSubmits(ctx context.Context, tx pgx.Tx, ids []int64) ([]submit, error) {
	lo, hi := store.Bounds(ids)
	rows, err := tx.Query(ctx, store.SettlementSubmits, ids, lo, hi)
	if err != nil {
		return nil, err
	}
	return pgx.CollectRows(rows, scanSubmit)
}

func scanSubmit(row pgx.CollectableRow) (s submit, err error) {
	err = row.Scan(&s.id, &s.message, &s.retryOf, &s.supplierMsgID, &s.channel, &s.account, &s.attempt, &s.part, &s.state, &s.stat, &s.result)
	return s, err
}

// entry is this transaction's entry of a kind for an account.
func (w *work) entry(ctx context.Context, kind message.EntryKind, m *msg) int64 {
	k := entryKey{kind, m.enterprise}
	e := w.entries[k]
	if e == nil {
		e = &ledger.Entry{ID: w.id(ctx), Account: m.enterprise, Kind: kind}
		w.entries[k] = e
	}
	e.N++
	e.Amount += m.amount()
	return e.ID
}

func (m *msg) amount() int64 { return int64(m.units) * m.price }

// queue adds everything decided to q, up to and without the accounts. The order is the global lock order (data §1.9).
func (w *work) queue(q *pgx.Batch) error {
	if w.idErr != nil {
		return w.idErr
	}
	w.resends.queue(q)
	queueMoves(q, w.msgs)
	w.queueRecut(q)
	w.submits.queue(q)
	w.queueRefused(q)
	byStat := map[string][]int64{}
	for _, id := range sortedKeys(w.parts) {
		byStat[w.parts[id]] = append(byStat[w.parts[id]], id)
	}
	for _, stat := range sortedKeys(byStat) {
		lo, hi := store.Bounds(byStat[stat])
		q.Queue(store.SettlementPart, byStat[stat], lo, hi, stat)
	}
	w.unknowns.queue(q)
	w.exceptions.queue(q)
	if len(w.aliases) > 0 {
		pairs := make([][2]int64, 0, len(w.aliases))
		for pair := range w.aliases {
			pairs = append(pairs, pair)
		}
		slices.SortFunc(pairs, func(a, b [2]int64) int { return slices.Compare(a[:], b[:]) })
		msgIDs, submits := make([]int64, len(pairs)), make([]int64, len(pairs))
		for i, p := range pairs {
			msgIDs[i], submits[i] = p[0], p[1]
		}
		q.Queue(store.SettlementAlias, msgIDs, submits)
	}
	w.unbilled.queue(q)
	w.deliveries.queue(q)
	w.queueLearned(q)
	w.Outcome.deliveries = len(w.deliveries.id) > 0
	return nil
}

// queueAccounts adds the entries; nothing but COMMIT may follow.
func (w *work) queueAccounts(q *pgx.Batch) {
	entries := make([]ledger.Entry, 0, len(w.entries))
	for _, e := range w.entries {
		entries = append(entries, *e)
	}
	ledger.Queue(q, entries)
}

// write sends everything decided.
func (w *work) write(ctx context.Context, tx pgx.Tx) error {
	var q pgx.Batch
	if err := w.queue(&q); err != nil {
		return err
	}
	w.queueAccounts(&q)
	return send(ctx, tx, &q)
}

func send(ctx context.Context, tx pgx.Tx, q *pgx.Batch) error {
	if q.Len() == 0 {
		return nil
	}
	return tx.SendBatch(ctx, q).Close()
}

func sorted(ids []int64) []int64 {
	ids = slices.Clone(ids)
	slices.Sort(ids)
	return slices.Compact(ids)
}

// Outcome is what a committed transaction did, and what is to be announced of it.
type Outcome struct {
	Moved        int // submits or messages that changed
	Repeated     int // events that said what was known
	Contradicted int // events that contradict what was known, listed in submit_exception
	Resent       int
	Ended        int // messages that became final
	Parked       int

	commands   map[int32][]outbox.Command
	deliveries bool
	known      bool // parked receipts may match now
}

// Announce offers new commands to the edges, and wakes the senders of receipts and the sweeper of parked ones. Call it after
// COMMIT.
func (o *Outcome) Announce(ctx context.Context, hints outbox.Hinter, bus Waker) {
	for channel, commands := range o.commands {
		hints.Hint(ctx, channel, commands)
	}
	if o.deliveries {
		bus.Publish(wake.Deliveries)
	}
	if o.known {
		bus.Publish(wake.Parked)
	}
}
