package event

import (
	"context"
	"encoding/json"
	"fmt"
	"hash/fnv"
	"log/slog"
	"net/http"
	"slices"
	"strconv"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/redis/go-redis/v9"

	"cmppgateway/gateway/internal/config"
	"cmppgateway/gateway/internal/settings"
)

// AnswerWithin is how long a DELIVER may wait to be safe; after it the supplier repeats, and the repeat is the same event
// (data §1.5).
const AnswerWithin = 20 * time.Second

// IDs issues ids of the node (package message).
type IDs interface {
	Take(ctx context.Context, n int) ([]int64, error)
}

// Options is what a Queue needs.
type Options struct {
	Config     config.Event
	Node       int16
	NodeEpoch  int64
	IDs        IDs
	Instance   string        // gatewayInstanceId of the requests
	Redis      *redis.Client // its address and credentials are used by a client of the queue's own
	URL        string        // base of the core's callback, as http://127.0.0.1:8090
	Token      string
	Mode       func(eventType string) settings.CallbackMode // how a type travels, asked whenever an event is first offered; nil = in batches
	Log        *slog.Logger
	Registerer prometheus.Registerer
}

// Queue holds the events the core has not accepted yet. Safe for concurrent use; no method but Load, Adopt, Drain and Run
// blocks.
type Queue struct {
	o     Options
	rdb   *redis.Client
	http  *http.Client
	m     *metrics
	lanes [3]*lane

	instance []byte // Options.Instance as JSON

	mu       sync.Mutex
	held     int // events in all lanes
	bytes    int
	reserved int
	onRoom   []func()
	empty    chan struct{} // closed when the last event went; nil when nobody waits

	epoch  epoch
	client clientState
}

// lane is one of the three queues. Guarded by Queue.mu, but for what copier and sender own.
type lane struct {
	name     string // result, receipt, uplink
	stream   string
	held     int
	moved    time.Time       // when the core last took one, or the first came into an empty queue
	ids      map[int64]*item // everything held that has an id
	keys     map[key]*item   // DELIVERs held, to know a repeat
	fresh    []*item         // to be copied
	ready    []*item         // to be offered, in order
	offering []*item         // in the request under way
	later    []*item         // refused for now
	gone     []string        // entries of the copy whose events are all accepted
	resync   bool            // the copy is in doubt: write everything again

	toCopy, toSend chan struct{}
}

// item is one event held.
type item struct {
	id      int64
	kind    string
	payload []byte
	raw     []byte // the encoded Event, once it has an id
	key     key
	acks    []ack
	since   time.Time
	due     time.Time // when in later
	tries   int
	done    bool
	via     settings.CallbackMode // how it was first offered; it is finished that way
	offered bool                  // via is set
	submit  int64                 // results of one submit go one after the other; 0 = not told
	own     *entry                // its copy in this node's shard
	adopted *shard
}

// entry is one entry of the own stream; left counts its events still held.
type entry struct {
	id   string
	left int
}

// shard is what was loaded from a dead node.
type shard struct {
	left int
	done chan struct{}
}

type ack struct {
	f     func()
	until time.Time
}

// key is the business key of a DELIVER: its repeat is the same event while that is held.
type key struct {
	kind    string
	account int32
	msgID   uint64
	a, b    string
	hash    uint64
}

// Names of the queues, in their order.
const (
	results = iota
	receipts
	uplinks
)

// New makes a queue; the error is of the TLS files. Load fills it with what an earlier life of the node left.
func New(o Options) (*Queue, error) {
	if o.Mode == nil {
		o.Mode = func(string) settings.CallbackMode { return settings.CallbackBatch }
	}
	q := &Queue{o: o}
	q.instance, _ = json.Marshal(o.Instance) // a string always encodes
	for i, name := range []string{"result", "receipt", "uplink"} {
		q.lanes[i] = &lane{
			name: name, stream: streamKey(o.Node, name), ids: make(map[int64]*item), keys: make(map[key]*item),
			toCopy: make(chan struct{}, 1), toSend: make(chan struct{}, 1),
		}
	}
	var err error
	if q.http, err = NewHTTPClient(o.Config); err != nil {
		return nil, fmt.Errorf("event queue: %w", err)
	}
	q.m = newMetrics(q, o.Registerer)
	q.rdb = q.newClient()
	return q, nil
}

func shardKey(node int16, name string) string { return "{ev:" + strconv.Itoa(int(node)) + "}:" + name }

func streamKey(node int16, name string) string { return shardKey(node, name) }

// Reserve keeps places for the results of at most n submits and says for how many: 0 at the bound. Each place is used up by
// Result or given back by Release.
func (q *Queue) Reserve(n int) int {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.bytes >= q.o.Config.RetainBytes {
		return 0
	}
	n = max(0, min(n, q.o.Config.RetainMax-q.held-q.reserved))
	q.reserved += n
	return n
}

// Release gives n places back.
func (q *Queue) Release(n int) {
	q.mu.Lock()
	full := q.full()
	q.reserved -= n
	room := full && !q.full()
	q.mu.Unlock()
	if room {
		q.tellRoom()
	}
}

// OnRoom adds a function that is called whenever the queue leaves its bound; it must not block.
func (q *Queue) OnRoom(f func()) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.onRoom = append(q.onRoom, f)
}

func (q *Queue) tellRoom() {
	q.mu.Lock()
	told := slices.Clip(q.onRoom)
	q.mu.Unlock()
	for _, f := range told {
		f()
	}
}

// full says that nothing more is taken in. mu is held.
func (q *Queue) full() bool {
	return q.held+q.reserved >= q.o.Config.RetainMax || q.bytes >= q.o.Config.RetainBytes
}

func (q *Queue) fullness() float64 {
	q.mu.Lock()
	defer q.mu.Unlock()
	return max(float64(q.held+q.reserved)/float64(max(1, q.o.Config.RetainMax)), float64(q.bytes)/float64(max(1, q.o.Config.RetainBytes)))
}

// Held is the number of events the core has not accepted yet.
func (q *Queue) Held() int {
	q.mu.Lock()
	defer q.mu.Unlock()
	return q.held
}

// Stuck names the queues that have held events since then, of which the core has taken none.
func (q *Queue) Stuck(since time.Time) (names []string) {
	q.mu.Lock()
	defer q.mu.Unlock()
	for _, l := range q.lanes {
		if l.held > 0 && l.moved.Before(since) {
			names = append(names, l.name)
		}
	}
	return names
}

// offered is the number of events offered in that mode and not accepted yet.
func (q *Queue) offered(mode settings.CallbackMode) (n int) {
	q.mu.Lock()
	defer q.mu.Unlock()
	for _, l := range q.lanes {
		for _, list := range [][]*item{l.offering, l.later, l.ready} {
			for _, it := range list {
				if it.offered && it.via == mode && !it.done {
					n++
				}
			}
		}
	}
	return n
}

// Result queues the outcome of a submit. It is always taken: reserved says that it uses up a place kept by Reserve; a late
// answer has none, and is bounded by the windows.
func (q *Queue) Result(r *SubmitResult, reserved bool) {
	kind := TypeSubmitResult
	if r.Parts > 1 {
		kind = TypeSubmitSegmentResult
	}
	it := &item{id: ResultID(r.SubmitID, r.State, r.SupplierMsgID), kind: kind, submit: r.SubmitID}
	if !q.encode(it, r) {
		return
	}
	it.stamp(it.id)
	q.mu.Lock()
	defer q.mu.Unlock()
	if reserved {
		q.reserved--
	}
	if q.lanes[results].ids[it.id] == nil {
		q.add(q.lanes[results], it)
	}
}

// Receipt queues a status report. ack is called once the event is safe, unless that takes longer than AnswerWithin; it must
// not block. A repeat of a report that is still held is the same event. At the bound nothing is queued: false.
func (q *Queue) Receipt(r *Receipt, ack func()) bool {
	return q.deliver(receipts, key{kind: TypeReceipt, account: r.AccountID, msgID: r.SupplierMsgID, a: r.Dest, b: r.Stat}, r, ack)
}

// Uplink is Receipt for a message from a phone.
func (q *Queue) Uplink(u *Uplink, ack func()) bool {
	return q.deliver(uplinks, key{
		kind: TypeUplink, account: u.AccountID, msgID: u.SupplierMsgID, a: u.Phone, b: u.Dest, hash: hash(u.Content),
	}, u, ack)
}

// DeadLetter is Receipt for a DELIVER that cannot become any other event.
func (q *Queue) DeadLetter(d *DeadLetter, ack func()) bool {
	return q.deliver(receipts, key{kind: TypeDeadLetter, account: d.AccountID, hash: hash(d.Raw)}, d, ack)
}

func hash(b []byte) uint64 {
	h := fnv.New64a()
	_, _ = h.Write(b)
	return h.Sum64()
}

func (q *Queue) deliver(in int, k key, v any, f func()) bool {
	now := time.Now()
	l := q.lanes[in]
	a := ack{f: f, until: now.Add(AnswerWithin)}
	q.mu.Lock()
	if held := l.keys[k]; held != nil {
		safe := held.own != nil
		if !safe {
			held.acks = append(held.acks, a)
		}
		q.mu.Unlock()
		q.m.repeats.Inc()
		if safe {
			f()
		}
		return true
	}
	full := q.full()
	q.mu.Unlock()
	if full {
		q.m.full.Inc()
		return false
	}
	it := &item{kind: k.kind, key: k, acks: []ack{a}}
	if !q.encode(it, v) {
		return false
	}
	q.mu.Lock()
	defer q.mu.Unlock()
	if held := l.keys[k]; held != nil { // the same report on another link, between the two locks
		held.acks = append(held.acks, a)
		return true
	}
	l.keys[k] = it
	q.add(l, it)
	return true
}

// encode fills the payload. A type of this package always encodes.
func (q *Queue) encode(it *item, v any) bool {
	var err error
	if it.payload, err = json.Marshal(v); err != nil {
		q.o.Log.Error("event not encoded", slog.String("type", it.kind), slog.Any("error", err))
	}
	return err == nil
}

// stamp gives the event its id and encodes it.
func (it *item) stamp(id int64) {
	it.id = id
	b := make([]byte, 0, len(it.payload)+80)
	b = append(b, `{"eventId":"`...)
	b = strconv.AppendInt(b, id, 10)
	b = append(b, `","type":"`...)
	b = append(b, it.kind...)
	b = append(b, `","payload":`...)
	b = append(b, it.payload...)
	it.raw = append(b, '}')
	it.payload = nil
}

// size is what the event counts towards RetainBytes.
func (it *item) size() int { return max(len(it.payload), len(it.raw)) }

// add holds it. mu is held.
func (q *Queue) add(l *lane, it *item) {
	it.since = time.Now()
	if it.id != 0 {
		l.ids[it.id] = it
	}
	if l.held == 0 {
		l.moved = it.since
	}
	l.held++
	q.held++
	q.bytes += it.size()
	l.ready = append(l.ready, it)
	if n := len(l.ready); n == 1 || n >= q.o.Config.BatchTarget {
		poke(l.toSend)
	}
	l.fresh = append(l.fresh, it)
	if len(l.fresh) == 1 {
		poke(l.toCopy)
	}
}

// finish forgets an event that the core has accepted or stored, and returns who waits for that. mu is held.
func (q *Queue) finish(l *lane, it *item) []ack {
	it.done = true
	delete(l.ids, it.id)
	if it.key.kind != "" && l.keys[it.key] == it {
		delete(l.keys, it.key)
	}
	l.moved = time.Now()
	l.held--
	q.held--
	q.bytes -= it.size()
	if e := it.own; e != nil {
		l.release(e)
	}
	if s := it.adopted; s != nil {
		if s.left--; s.left == 0 {
			close(s.done)
		}
	}
	if q.held == 0 && q.empty != nil {
		close(q.empty)
		q.empty = nil
	}
	acks := it.acks
	it.acks = nil
	return acks
}

// release counts one event less on e; an entry without any is removed from the copy with the next write. mu is held.
func (l *lane) release(e *entry) {
	if e.left--; e.left > 0 {
		return
	}
	l.gone = append(l.gone, e.id)
	if len(l.gone) >= removeAtOnce {
		poke(l.toCopy)
	}
}

// stampAll gives ids to those of items that have none. It waits for the node's lease if need be.
func (q *Queue) stampAll(ctx context.Context, l *lane, items []*item) error {
	need := 0
	q.mu.Lock()
	for _, it := range items {
		if it.id == 0 {
			need++
		}
	}
	q.mu.Unlock()
	if need == 0 {
		return nil
	}
	ids, err := q.o.IDs.Take(ctx, need)
	if err != nil {
		return fmt.Errorf("event ids: %w", err)
	}
	q.mu.Lock()
	defer q.mu.Unlock()
	for _, it := range items {
		if it.id == 0 && !it.done {
			q.bytes -= it.size()
			it.stamp(ids[0])
			ids = ids[1:]
			q.bytes += it.size()
			l.ids[it.id] = it
		}
	}
	return nil
}

func (q *Queue) answer(acks []ack) {
	if len(acks) == 0 {
		return
	}
	now := time.Now()
	for _, a := range acks {
		if now.After(a.until) {
			q.m.late.Inc()
			continue
		}
		a.f()
	}
}

// Drain waits until the core has accepted everything.
func (q *Queue) Drain(ctx context.Context) error {
	for {
		q.mu.Lock()
		if q.held == 0 {
			q.mu.Unlock()
			return nil
		}
		if q.empty == nil {
			q.empty = make(chan struct{})
		}
		empty := q.empty
		q.mu.Unlock()
		select {
		case <-empty:
		case <-ctx.Done():
			return fmt.Errorf("%d events not accepted: %w", q.Held(), ctx.Err())
		}
	}
}

// Run copies and offers events until ctx is done; then it writes what is not copied yet, and closes its clients.
func (q *Queue) Run(ctx context.Context) error {
	var wg sync.WaitGroup
	for _, l := range q.lanes {
		wg.Go(func() { q.copier(ctx, l) })
		wg.Go(func() { q.sender(ctx, l) })
	}
	wg.Wait()
	last, cancel := context.WithTimeout(context.WithoutCancel(ctx), lastCopy)
	defer cancel()
	for _, l := range q.lanes {
		q.flush(last, l)
	}
	q.http.CloseIdleConnections()
	if err := q.rdb.Close(); err != nil {
		return fmt.Errorf("event queue: %w", err)
	}
	return nil
}

// live drops finished events.
func live(items []*item) []*item {
	return slices.DeleteFunc(items, func(it *item) bool { return it.done })
}

func poke(c chan<- struct{}) {
	select {
	case c <- struct{}{}:
	default:
	}
}
