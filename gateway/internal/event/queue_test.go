package event_test

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"path"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/redis/go-redis/v9"

	"cmppgateway/gateway/internal/config"
	"cmppgateway/gateway/internal/event"
	"cmppgateway/gateway/internal/message"
	"cmppgateway/testenv"
)

func TestMain(m *testing.M) { testenv.Main(m) }

// core is the callback: it applies an event once, however often it is offered.
type core struct {
	*httptest.Server

	down   atomic.Bool
	answer func(e event.Event) event.Result // nil accepts everything
	status func(r *event.BatchRequest) int  // nil or 200 answers event by event

	mu      sync.Mutex
	applied map[int64]event.Event
	offers  int
	order   []int64
	ways    map[int64]map[string]int // how often each event came by which way
}

func newCore(t *testing.T) *core {
	t.Helper()
	c := &core{applied: make(map[int64]event.Event), ways: make(map[int64]map[string]int)}
	c.Server = httptest.NewServer(http.HandlerFunc(c.serve))
	t.Cleanup(c.Close)
	return c
}

func (c *core) serve(w http.ResponseWriter, r *http.Request) {
	if c.down.Load() || r.Header.Get("Authorization") != "Bearer secret" {
		w.WriteHeader(http.StatusServiceUnavailable)
		return
	}
	body, err := io.ReadAll(r.Body)
	var b event.BatchRequest
	way := "batch"
	if kind := path.Base(r.URL.Path); kind != "batch" {
		way = "single"
		var e event.Event
		if err == nil {
			err = json.Unmarshal(body, &e)
		}
		if e.Type != kind {
			w.WriteHeader(http.StatusBadRequest)
			return
		}
		b.Events = []event.Event{e}
	} else if err == nil {
		err = json.Unmarshal(body, &b)
	}
	if b.Shadow {
		way = "shadow"
	}
	if err != nil || len(b.Events) == 0 || len(b.Events) > event.MaxEvents || len(body) > event.MaxBytes {
		w.WriteHeader(http.StatusBadRequest)
		return
	}
	if c.status != nil {
		if s := c.status(&b); s != http.StatusOK {
			w.WriteHeader(s)
			return
		}
	}
	c.mu.Lock()
	answer := event.BatchResponse{BatchID: b.BatchID}
	for _, e := range b.Events {
		c.offers++
		if c.ways[e.ID] == nil {
			c.ways[e.ID] = make(map[string]int)
		}
		c.ways[e.ID][way]++
		res := event.Result{EventID: e.ID, Accepted: true}
		if c.answer != nil {
			res = c.answer(e)
			res.EventID = e.ID
		}
		if _, known := c.applied[e.ID]; res.Accepted && !known && !b.Shadow {
			c.applied[e.ID] = e
			c.order = append(c.order, e.ID)
		}
		answer.Results = append(answer.Results, res)
	}
	c.mu.Unlock()
	if way == "single" {
		_ = json.NewEncoder(w).Encode(answer.Results[0])
		return
	}
	_ = json.NewEncoder(w).Encode(answer)
}

func (c *core) count(kind string) (n int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, e := range c.applied {
		if e.Type == kind {
			n++
		}
	}
	return n
}

type rig struct {
	core *core
	rdb  *redis.Client
	opts event.Options
}

func newRig(t *testing.T) *rig {
	t.Helper()
	addr, db := testenv.Redis(t)
	return rigOn(t, &redis.Options{Addr: addr, DB: db})
}

func rigOn(t *testing.T, o *redis.Options) *rig {
	t.Helper()
	o.DialTimeout, o.ReadTimeout, o.WriteTimeout = time.Second, time.Second, time.Second
	r := &rig{core: newCore(t), rdb: redis.NewClient(o)}
	t.Cleanup(func() { _ = r.rdb.Close() })
	cfg := config.Default().Event
	cfg.RetryMin, cfg.RetryMax = 5*time.Millisecond, 50*time.Millisecond
	r.opts = event.Options{
		Config: cfg, Node: 7, NodeEpoch: 3, Instance: "test", Redis: r.rdb, URL: r.core.URL, Token: "secret",
		IDs: message.NewIDs(7, time.Now().Add(-time.Second), time.Now().Add(time.Hour), time.Now),
		Log: slog.New(slog.NewTextHandler(t.Output(), nil)),
	}
	return r
}

// start is one life of the process; stop ends it as a kill would, after the queue has done what it can at the end.
func (r *rig) start(t *testing.T, change ...func(o *event.Options)) (q *event.Queue, stop func()) {
	t.Helper()
	o := r.opts
	o.Registerer = prometheus.NewRegistry()
	for _, f := range change {
		f(&o)
	}
	q, err := event.New(o)
	if err != nil {
		t.Fatal(err)
	}
	if err := q.Load(t.Context()); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- q.Run(ctx) }()
	stop = sync.OnceFunc(func() {
		cancel()
		if err := <-done; err != nil {
			t.Error(err)
		}
	})
	t.Cleanup(stop)
	return q, stop
}

func eventually(t *testing.T, what string, f func() bool) {
	t.Helper()
	deadline := time.Now().Add(15 * time.Second)
	tick := time.NewTicker(2 * time.Millisecond)
	defer tick.Stop()
	for !f() {
		if time.Now().After(deadline) {
			t.Fatalf("not within 15 s: %s", what)
		}
		<-tick.C
	}
}

func result(id int64) *event.SubmitResult {
	return &event.SubmitResult{SubmitID: id, MessageID: id + 1, State: event.Accepted, SupplierMsgID: uint64(id) << 8, Parts: 1, DispatchedAt: time.Now(), RespAt: time.Now()}
}

func receipt(id uint64) *event.Receipt {
	return &event.Receipt{AccountID: 1, ChannelID: 2, SupplierMsgID: id, Phone: 13800000000, Dest: "13800000000", Stat: "DELIVRD", At: time.Now()}
}

// copies is how many events the streams of node hold.
func (r *rig) copies(t *testing.T, node int) (n int) {
	t.Helper()
	for _, name := range []string{"result", "receipt", "uplink"} {
		entries, err := r.rdb.XRange(t.Context(), fmt.Sprintf("{ev:%d}:%s", node, name), "-", "+").Result()
		if err != nil {
			t.Fatal(err)
		}
		for _, e := range entries {
			var list []event.Event
			if err := json.Unmarshal([]byte(e.Values["d"].(string)), &list); err != nil {
				t.Fatal(err)
			}
			n += len(list)
		}
	}
	return n
}

func TestEventsReachTheCoreOnceAndLeaveNoCopy(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	q, _ := r.start(t)
	const n = 500
	if got := q.Reserve(n); got != n {
		t.Fatalf("reserved %d of %d", got, n)
	}
	var acks atomic.Int64
	for i := range int64(n) {
		q.Result(result(i<<20), true)
		q.Receipt(receipt(uint64(i)), func() { acks.Add(1) })
		q.Uplink(&event.Uplink{AccountID: 1, SupplierMsgID: uint64(i), Phone: "13800000000", Content: []byte{0xff, byte(i)}}, func() { acks.Add(1) })
	}
	if err := q.Drain(t.Context()); err != nil {
		t.Fatal(err)
	}
	for _, kind := range []string{event.TypeSubmitResult, event.TypeReceipt, event.TypeUplink} {
		if got := r.core.count(kind); got != n {
			t.Errorf("%d of %d %s applied", got, n, kind)
		}
	}
	eventually(t, "every DELIVER answered", func() bool { return acks.Load() == 2*n })
	eventually(t, "the copy is empty", func() bool { return r.copies(t, 7) == 0 })
	if got := q.Reserve(1 << 30); got != r.opts.Config.RetainMax {
		t.Errorf("%d places free at the end, want all %d", got, r.opts.Config.RetainMax)
	}
}

func TestPartsOfALongMessageAreSegmentResults(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	q, _ := r.start(t)
	one := result(1)
	one.Parts, one.Part = 3, 2
	q.Result(one, false)
	eventually(t, "the segment's result", func() bool { return r.core.count(event.TypeSubmitSegmentResult) == 1 })
}

func TestDeliverIsAnsweredFromRedisWhileTheCoreIsDown(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	r.core.down.Store(true)
	q, _ := r.start(t)
	acked := make(chan struct{})
	q.Receipt(receipt(1), func() { close(acked) })
	<-acked
	if n := r.copies(t, 7); n != 1 {
		t.Fatalf("answered with %d copies in Redis", n)
	}
	again := make(chan struct{})
	q.Receipt(receipt(1), func() { close(again) })
	<-again
	if q.Held() != 1 {
		t.Fatalf("%d events held for a report and its repeat", q.Held())
	}
}

func TestDeliverIsAnsweredByTheCoreWhileRedisIsAway(t *testing.T) {
	t.Parallel()
	r := rigOn(t, &redis.Options{Addr: "127.0.0.1:1"})
	q, _ := r.start(t)
	acked := make(chan struct{})
	q.Receipt(receipt(1), func() { close(acked) })
	<-acked
	if r.core.count(event.TypeReceipt) != 1 {
		t.Fatal("answered before the core accepted")
	}
}

func TestNothingIsAnsweredWithoutCoreAndRedis(t *testing.T) {
	t.Parallel()
	r := rigOn(t, &redis.Options{Addr: "127.0.0.1:1"})
	r.core.down.Store(true)
	q, _ := r.start(t)
	var answered atomic.Bool
	q.Receipt(receipt(1), func() { answered.Store(true) })
	q.Receipt(receipt(1), func() { answered.Store(true) }) // its repeat
	tries := make(chan struct{})
	r.core.status = func(*event.BatchRequest) int { return http.StatusServiceUnavailable }
	go func() {
		defer close(tries)
		for r.opts.Config.RetainMax > 0 && q.Held() == 1 && !answered.Load() {
			if err := r.rdb.Ping(context.Background()).Err(); err != nil {
				return
			}
		}
	}()
	<-tries
	if answered.Load() || q.Held() != 1 {
		t.Fatalf("answered %t, held %d", answered.Load(), q.Held())
	}
	r.core.status = nil
	r.core.down.Store(false)
	eventually(t, "the answer once the core is back", answered.Load)
}

func TestRedisFlushedInTheMiddleIsFilledAgain(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	r.core.down.Store(true)
	q, _ := r.start(t)
	const n = 250
	for i := range int64(n) {
		q.Result(result(i<<20), false)
	}
	eventually(t, "all copied", func() bool { return r.copies(t, 7) == n })
	if err := r.rdb.FlushDB(t.Context()).Err(); err != nil {
		t.Fatal(err)
	}
	eventually(t, "all copied again, with nothing new to write", func() bool { return r.copies(t, 7) == n })
	r.core.down.Store(false)
	if err := q.Drain(t.Context()); err != nil {
		t.Fatal(err)
	}
	eventually(t, "the copy is empty", func() bool { return r.copies(t, 7) == 0 })
	if got := r.core.count(event.TypeSubmitResult); got != n {
		t.Fatalf("%d of %d applied", got, n)
	}
}

func TestRestartedRedisThatLostItsTailIsFilledAgain(t *testing.T) {
	t.Parallel()
	p := testenv.RedisServer(t)
	r := rigOn(t, &redis.Options{Addr: p.Addr()})
	r.core.down.Store(true)
	q, _ := r.start(t)
	for i := range int64(20) {
		q.Result(result(i<<20), false)
	}
	eventually(t, "all copied", func() bool { return r.copies(t, 7) == 20 })
	// As a restored older dump would: the epoch is there, the tail is not.
	if err := r.rdb.Del(t.Context(), "{ev:7}:result").Err(); err != nil {
		t.Fatal(err)
	}
	if err := p.Restart(t.Context()); err != nil {
		t.Fatal(err)
	}
	eventually(t, "all copied again", func() bool {
		return r.rdb.Ping(t.Context()).Err() == nil && r.copies(t, 7) == 20
	})
}

func TestCoreDownThenUpLosesNothingAndAppliesOnce(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	q, _ := r.start(t)
	const n = 2000
	for i := range int64(n) {
		switch i {
		case 300, 1200:
			r.core.down.Store(true)
		case 900, 1700:
			r.core.down.Store(false)
		}
		q.Result(result(i<<20), false)
		q.Result(result(i<<20), false) // a repeated fact is one event
	}
	if err := q.Drain(t.Context()); err != nil {
		t.Fatal(err)
	}
	if got := r.core.count(event.TypeSubmitResult); got != n {
		t.Fatalf("%d of %d applied", got, n)
	}
}

// A queue is stuck while it holds what the core does not take, by itself, and no longer.
func TestStuckQueuesAreNamed(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	r.core.answer = func(e event.Event) event.Result {
		var p event.Receipt
		ok := json.Unmarshal(e.Payload, &p) == nil && (e.Type != event.TypeReceipt || p.SupplierMsgID > 1)
		return event.Result{EventID: e.ID, Accepted: ok, Retryable: !ok, ErrorCode: "DB_BUSY"}
	}
	q, _ := r.start(t)
	begin := time.Now()
	if names := q.Stuck(begin); len(names) > 0 {
		t.Errorf("%v are stuck, and empty", names)
	}
	q.Result(result(1), false)
	q.Receipt(receipt(1), func() {})
	eventually(t, "the result is taken and the receipt is not", func() bool { return q.Held() == 1 && slices.Equal(q.Stuck(time.Now()), []string{"receipt"}) })
	if names := q.Stuck(begin); len(names) > 0 {
		t.Errorf("%v are stuck since before they held anything", names)
	}
	// What is taken from a queue begins its time anew, and what is taken from others does not.
	before := time.Now()
	q.Result(result(2), false)
	eventually(t, "another result is taken", func() bool { return r.core.count(event.TypeSubmitResult) == 2 && q.Held() == 1 })
	if names := q.Stuck(before); !slices.Equal(names, []string{"receipt"}) {
		t.Errorf("%v are stuck", names)
	}
	q.Receipt(receipt(2), func() {})
	eventually(t, "another receipt is taken", func() bool { return r.core.count(event.TypeReceipt) == 1 && q.Held() == 1 })
	if names := q.Stuck(before); len(names) > 0 {
		t.Errorf("%v are stuck, and the core has just taken a receipt", names)
	}
}

func TestBadEventsDoNotHoldTheirNeighbours(t *testing.T) {
	t.Parallel()
	const refused, postponed, n = 17 << 20, 23 << 20, 60
	bad := event.ResultID(refused, event.Accepted, refused<<8)
	slow := event.ResultID(postponed, event.Accepted, postponed<<8)
	t.Run("one by one", func(t *testing.T) {
		t.Parallel()
		r := newRig(t)
		var healed atomic.Bool
		r.core.answer = func(e event.Event) event.Result {
			switch {
			case e.ID == bad:
				return event.Result{ErrorCode: "BAD_PAYLOAD"}
			case e.ID == slow && !healed.Load():
				return event.Result{Retryable: true, ErrorCode: "DB_BUSY"}
			}
			return event.Result{Accepted: true}
		}
		q, _ := r.start(t)
		for i := range int64(n) {
			q.Result(result(i<<20), false)
		}
		eventually(t, "the neighbours, and only the postponed one held", func() bool {
			return r.core.count(event.TypeSubmitResult) == n-2 && q.Held() == 1
		})
		healed.Store(true)
		if err := q.Drain(t.Context()); err != nil {
			t.Fatal(err)
		}
		if got := r.core.count(event.TypeSubmitResult); got != n-1 {
			t.Fatalf("%d applied, want all but the refused one", got)
		}
	})
	t.Run("as a whole", func(t *testing.T) {
		t.Parallel()
		r := newRig(t)
		r.core.status = func(b *event.BatchRequest) int {
			for _, e := range b.Events {
				if e.ID == bad {
					return http.StatusBadRequest
				}
			}
			return http.StatusOK
		}
		q, _ := r.start(t)
		for i := range int64(n) {
			q.Result(result(i<<20), false)
		}
		eventually(t, "the neighbours, and the faulty one kept", func() bool {
			return r.core.count(event.TypeSubmitResult) == n-1 && q.Held() == 1
		})
	})
}

func TestNextLifeOffersWhatTheLastOneLeft(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	r.core.down.Store(true)
	q, stop := r.start(t)
	acked := make(chan struct{})
	q.Receipt(receipt(9), func() { close(acked) })
	for i := range int64(150) {
		q.Result(result(i<<20), false)
	}
	<-acked
	stop()
	q, _ = r.start(t, func(o *event.Options) { o.NodeEpoch++ })
	if q.Held() != 151 {
		t.Fatalf("%d of 151 events loaded", q.Held())
	}
	repeat := make(chan struct{})
	q.Receipt(receipt(9), func() { close(repeat) })
	<-repeat
	if q.Held() != 151 {
		t.Fatal("a repeat of a loaded report is another event")
	}
	r.core.down.Store(false)
	if err := q.Drain(t.Context()); err != nil {
		t.Fatal(err)
	}
	if got := r.core.count(event.TypeSubmitResult) + r.core.count(event.TypeReceipt); got != 151 {
		t.Fatalf("%d of 151 applied", got)
	}
	eventually(t, "the copy is empty", func() bool { return r.copies(t, 7) == 0 })
}

func TestAdoptedShardIsOfferedThenRemovedAndItsOldOwnerKeptOut(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	r.core.down.Store(true)
	old, _ := r.start(t)
	for i := range int64(150) {
		old.Result(result(i<<20), false)
	}
	eventually(t, "all copied", func() bool { return r.copies(t, 7) == 150 })

	other, _ := r.start(t, func(o *event.Options) { o.Node, o.NodeEpoch = 8, 1; o.URL = r.core.URL })
	adopted := make(chan error, 1)
	go func() { adopted <- other.Adopt(context.Background(), 7, 4) }()
	eventually(t, "the shard in the adopter's memory", func() bool { return other.Held() == 150 })
	select {
	case err := <-adopted:
		t.Fatalf("adopted before the core accepted anything: %v", err)
	default:
	}
	before := r.copies(t, 7)
	old.Receipt(receipt(1), func() {}) // a process that should be dead
	r.core.down.Store(false)
	if err := <-adopted; err != nil {
		t.Fatal(err)
	}
	if n, err := r.rdb.Exists(t.Context(), "{ev:7}:result").Result(); err != nil || n != 0 || before != 150 {
		t.Fatalf("%d keys of the shard left (%v), %d copies before", n, err, before)
	}
	old.Uplink(&event.Uplink{SupplierMsgID: 1}, func() {})
	if err := old.Drain(t.Context()); err != nil { // it may still offer what it holds …
		t.Fatal(err)
	}
	if n := r.copies(t, 7); n != 0 { // … but keeps no copy that nobody would look for
		t.Fatalf("%d events in a shard that was taken over", n)
	}
	next, stop := r.start(t, func(o *event.Options) { o.NodeEpoch = 5 }) // the number is leased anew
	defer stop()
	acked := make(chan struct{})
	r.core.down.Store(true)
	next.Receipt(receipt(2), func() { close(acked) })
	<-acked
	if got := r.core.count(event.TypeSubmitResult); got != 150 {
		t.Fatalf("%d of 150 applied", got)
	}
}

func TestAtTheBoundNothingIsTakenInAndNothingDropped(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	r.core.down.Store(true)
	o := r.opts
	o.Config.RetainMax, o.Registerer = 10, prometheus.NewRegistry()
	q, err := event.New(o)
	if err != nil {
		t.Fatal(err)
	}
	room := make(chan struct{}, 1)
	q.OnRoom(func() {
		select {
		case room <- struct{}{}:
		default:
		}
	})
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- q.Run(ctx) }()
	t.Cleanup(func() {
		cancel()
		<-done
	})
	if got := q.Reserve(100); got != 10 {
		t.Fatalf("reserved %d, bound 10", got)
	}
	if q.Receipt(receipt(1), func() {}) {
		t.Fatal("a report was taken in at the bound")
	}
	for i := range int64(10) {
		q.Result(result(i<<20), true)
	}
	if got := q.Reserve(1); got != 0 {
		t.Fatal("a place was given at the bound")
	}
	q.Result(result(11<<20), false) // a late answer is never dropped
	if q.Held() != 11 {
		t.Fatalf("%d held", q.Held())
	}
	r.core.down.Store(false)
	<-room
	if err := q.Drain(t.Context()); err != nil {
		t.Fatal(err)
	}
	if got := r.core.count(event.TypeSubmitResult); got != 11 {
		t.Fatalf("%d of 11 applied", got)
	}
}

func TestResultIDTellsFactsApart(t *testing.T) {
	t.Parallel()
	seen := map[int64]string{}
	for _, submit := range []int64{1, 2, 1 << 40} {
		for _, state := range []string{event.Accepted, event.Rejected, event.Unknown} {
			for _, id := range []uint64{0, 1, 1 << 63} {
				key := fmt.Sprint(submit, state, id)
				got := event.ResultID(submit, state, id)
				if got <= 0 {
					t.Errorf("%s: id %d", key, got)
				}
				if other, twice := seen[got]; twice {
					t.Errorf("%s and %s have one id", key, other)
				}
				if got != event.ResultID(submit, state, id) {
					t.Errorf("%s: not stable", key)
				}
				seen[got] = key
			}
		}
	}
}
