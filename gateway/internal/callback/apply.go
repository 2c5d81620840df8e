package callback

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"hash/fnv"
	"log/slog"
	"slices"
	"time"

	"github.com/jackc/pgx/v5"

	"cmppgateway/gateway/internal/event"
	"cmppgateway/gateway/internal/settlement"
	"cmppgateway/gateway/internal/store"
	"cmppgateway/gateway/internal/wake"
)

// Error codes of events.
const (
	codeBadEvent    = "BAD_EVENT"
	codeUnknownType = "UNKNOWN_TYPE"
	codeBusy        = "DB_BUSY"
	codeTimeout     = "TIMEOUT"
	codeInternal    = "INTERNAL"
)

// fault is why an event was not accepted.
type fault struct {
	code  string // "" = accepted
	cause error
}

func (f fault) retryable() bool { return f.code == codeBusy || f.code == codeTimeout }

// faultOf judges the failure of a transaction.
func faultOf(err error) fault {
	switch {
	case err == nil:
		return fault{}
	case errors.Is(err, context.DeadlineExceeded), errors.Is(err, context.Canceled), store.Code(err) == "57014":
		return fault{codeTimeout, err}
	case store.IsTransient(err) && !errors.Is(err, settlement.ErrResult):
		return fault{codeBusy, err}
	}
	return fault{codeInternal, err}
}

// work applies the events of one request. A shadow does all of it in transactions that are taken back.
type work struct {
	*Server

	shadow bool
}

// errShadow takes a shadow's transaction back.
var errShadow = errors.New("shadow: taken back")

// tx runs fn in a transaction.
func (s *work) tx(ctx context.Context, fn func(pgx.Tx) error) error {
	err := store.Retry(ctx, s.Pool, func(tx pgx.Tx) error {
		if err := fn(tx); err != nil || !s.shadow {
			return err
		}
		return errShadow
	})
	if errors.Is(err, errShadow) {
		return nil
	}
	return err
}

// apply applies the events of a batch and answers them in their order.
func (s *work) apply(ctx context.Context, events []event.Event) []event.Result {
	faults := make([]fault, len(events))
	byType := map[string][]int{}
	for i, e := range events {
		byType[e.Type] = append(byType[e.Type], i)
	}
	for kind, list := range byType {
		start := time.Now()
		label := kind
		switch kind {
		case event.TypeSubmitResult, event.TypeSubmitSegmentResult:
			each(ctx, events, list, faults, parseResult, s.results)
		case event.TypeReceipt:
			each(ctx, events, list, faults, parseReceipt, s.receipts)
		case event.TypeUplink:
			each(ctx, events, list, faults, parseUplink, s.uplinks)
		case event.TypeDeadLetter:
			for _, i := range list {
				faults[i] = s.deadLetter(ctx, events[i])
			}
		default:
			label = "unknown"
			for _, i := range list {
				faults[i] = fault{codeUnknownType, errors.New("type: want one of the five of the protocol")}
			}
		}
		s.metrics.apply.WithLabelValues(label).Observe(time.Since(start).Seconds())
	}
	results := make([]event.Result, len(events))
	for i, e := range events {
		f := faults[i]
		// Refused for good only once its octets are kept.
		if f.code != "" && !f.retryable() && !s.shadow {
			f = s.bury(ctx, e, f)
		}
		if !s.shadow {
			s.metrics.events.WithLabelValues(typeLabel(e.Type), codeLabel(f.code)).Inc()
		}
		results[i] = event.Result{EventID: e.ID, Accepted: f.code == "", Retryable: f.retryable(), ErrorCode: f.code}
	}
	return results
}

// item is an event whose payload was read.
type item[T any] struct {
	index int // in the batch
	event event.Event
	value T
}

// each reads the payloads of one type and applies them.
func each[T any](ctx context.Context, events []event.Event, list []int, faults []fault, read func(event.Event) (T, error), apply func(context.Context, []item[T]) []fault) {
	items := make([]item[T], 0, len(list))
	for _, i := range list {
		v, err := read(events[i])
		if err != nil {
			faults[i] = fault{codeBadEvent, err}
			continue
		}
		items = append(items, item[T]{i, events[i], v})
	}
	if len(items) == 0 {
		return
	}
	for i, f := range apply(ctx, items) {
		faults[items[i].index] = f
	}
}

// alone applies a chunk as one transaction, and one event at a time when that fails for good, so that its neighbours do
// not suffer from a bad one.
func alone[T any](items []item[T], apply func([]item[T]) error) []fault {
	err := apply(items)
	f := faultOf(err)
	faults := slices.Repeat([]fault{f}, len(items))
	if f.code != codeInternal || len(items) == 1 {
		return faults
	}
	for i := range items {
		faults[i] = faultOf(apply(items[i : i+1]))
	}
	return faults
}

// results settles submit results, in transactions of different submits: a batch may hold unknown and then the late answer
// of one.
func (s *work) results(ctx context.Context, items []item[event.SubmitResult]) (faults []fault) {
	for len(items) > 0 {
		n, seen := 0, map[int64]bool{}
		for n < len(items) && n < s.Config.TransactionMax && !seen[items[n].value.SubmitID] {
			seen[items[n].value.SubmitID] = true
			n++
		}
		faults = append(faults, alone(items[:n], func(chunk []item[event.SubmitResult]) error { return s.settle(ctx, chunk) })...)
		items = items[n:]
	}
	return faults
}

func (s *work) settle(ctx context.Context, items []item[event.SubmitResult]) error {
	results := make([]event.SubmitResult, len(items))
	for i, it := range items {
		results[i] = it.value
	}
	var out *settlement.Outcome
	err := s.tx(ctx, func(tx pgx.Tx) (err error) {
		out, err = settlement.ApplyResults(ctx, tx, s.Node.IDs, s.Settings.Current(), results)
		return err
	})
	if err != nil || s.shadow {
		return err
	}
	s.metrics.outcomes.WithLabelValues("moved").Add(float64(out.Moved))
	s.metrics.outcomes.WithLabelValues("repeated").Add(float64(out.Repeated))
	s.metrics.outcomes.WithLabelValues("contradicted").Add(float64(out.Contradicted))
	s.metrics.outcomes.WithLabelValues("resent").Add(float64(out.Resent))
	out.Announce(ctx, s.Hints, s.Wake)
	return nil
}

// receipts hands receipts to the writer of the log.
func (s *work) receipts(ctx context.Context, items []item[event.Receipt]) []fault {
	rows := make([]receipt, len(items))
	for i, it := range items {
		rows[i] = receipt{it.event.ID, it.value}
	}
	if s.shadow {
		return slices.Repeat([]fault{faultOf(s.tx(ctx, func(tx pgx.Tx) error { return s.intake.insert(ctx, tx, rows) }))}, len(rows))
	}
	// Without room for receipts that match nothing, those of the accounts that have most of them stay with their suppliers.
	taken, full := rows, fault{codeBusy, errors.New("too many receipts of the supplier account wait for their submits")}
	if s.Parking != nil {
		taken = slices.DeleteFunc(slices.Clone(rows), func(r receipt) bool { return s.Parking.Full(r.r.AccountID) })
	}
	faults := s.intake.write(ctx, taken)
	s.Wake.Publish(wake.Receipts)
	if len(taken) == len(rows) {
		return faults
	}
	all, next := make([]fault, len(rows)), 0
	for i := range rows {
		if next < len(taken) && taken[next].id == rows[i].id {
			all[i] = faults[next]
			next++
		} else {
			all[i] = full
		}
	}
	return all
}

func (s *work) uplinks(ctx context.Context, items []item[event.Uplink]) (faults []fault) {
	for chunk := range slices.Chunk(items, s.Config.TransactionMax) {
		faults = append(faults, alone(chunk, func(chunk []item[event.Uplink]) error { return s.insertUplinks(ctx, chunk) })...)
	}
	return faults
}

// uplinkKey is what makes an uplink one however often the supplier repeats it.
type uplinkKey struct {
	account     int32
	msgID       int64
	phone, dest string
	hash        int64
}

func compareKeys(a, b uplinkKey) int {
	return cmp.Or(cmp.Compare(a.account, b.account), cmp.Compare(a.msgID, b.msgID), cmp.Compare(a.phone, b.phone), cmp.Compare(a.dest, b.dest), cmp.Compare(a.hash, b.hash))
}

func (s *work) insertUplinks(ctx context.Context, items []item[event.Uplink]) error {
	rows := map[uplinkKey]item[event.Uplink]{}
	for _, it := range items {
		h := fnv.New64a()
		_, _ = h.Write(it.value.Content)
		k := uplinkKey{it.value.AccountID, int64(it.value.SupplierMsgID), it.value.Phone, it.value.Dest, int64(h.Sum64())}
		if _, ok := rows[k]; !ok {
			rows[k] = it
		}
	}
	keys := make([]uplinkKey, 0, len(rows))
	for k := range rows {
		keys = append(keys, k)
	}
	slices.SortFunc(keys, compareKeys)
	var ids, msgIDs, hashes []int64
	var phones, dests []string
	var at []time.Time
	var accounts, channels []int32
	var formats, udhis []int16
	var contents [][]byte
	for _, k := range keys {
		it := rows[k]
		ids, msgIDs, hashes = append(ids, it.event.ID), append(msgIDs, k.msgID), append(hashes, k.hash)
		phones, dests, at = append(phones, k.phone), append(dests, k.dest), append(at, it.value.At)
		accounts, channels = append(accounts, k.account), append(channels, it.value.ChannelID)
		formats, udhis, contents = append(formats, it.value.Fmt), append(udhis, it.value.UDHI), append(contents, raw(it.value.Content))
	}
	err := s.tx(ctx, func(tx pgx.Tx) error {
		_, err := tx.Exec(ctx, store.CallbackUplinks, ids, msgIDs, phones, dests, at, accounts, channels, formats, udhis, contents, hashes)
		return err
	})
	if err == nil && !s.shadow {
		s.Wake.Publish(wake.Uplinks)
	}
	return err
}

// deadLetter keeps what an edge could not make an event of.
func (s *work) deadLetter(ctx context.Context, e event.Event) fault {
	var d event.DeadLetter
	if err := decode(e, &d); err != nil {
		return fault{codeBadEvent, err}
	}
	return faultOf(s.tx(ctx, func(tx pgx.Tx) error {
		_, err := tx.Exec(ctx, store.CallbackDeadLetter, e.ID, clean(d.Kind), clean(d.Reason), raw(d.Raw), d.AccountID)
		return err
	}))
}

// bury keeps a refused event. While that fails, the event is to be offered again.
func (s *work) bury(ctx context.Context, e event.Event, f fault) fault {
	reason := f.code + ": " + clean(f.cause.Error())
	s.Log.Error("event refused", slog.Int64("event_id", e.ID), slog.String("type", typeLabel(e.Type)), slog.String("code", f.code), slog.Any("error", f.cause))
	if _, err := s.Pool.Exec(ctx, store.CallbackDeadLetter, e.ID, "event "+typeLabel(e.Type), reason, raw(e.Payload), accountOf(e)); err != nil {
		return fault{codeBusy, err}
	}
	return f
}

// accountOf is the supplier account a payload names, as far as it can be read.
func accountOf(e event.Event) int32 {
	var p struct {
		Account int32 `json:"accountId"`
	}
	_ = json.Unmarshal(e.Payload, &p) // what cannot be read names none
	return p.Account
}

func raw(b []byte) []byte {
	if b == nil {
		return []byte{}
	}
	return b
}

// typeLabel keeps what callers send out of labels and logs.
func typeLabel(kind string) string {
	switch kind {
	case event.TypeSubmitResult, event.TypeSubmitSegmentResult, event.TypeReceipt, event.TypeUplink, event.TypeDeadLetter:
		return kind
	}
	return "unknown"
}

func codeLabel(code string) string {
	if code == "" {
		return "accepted"
	}
	return code
}
