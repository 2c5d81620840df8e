package event

import (
	"context"
	_ "embed" // script
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/redis/go-redis/v9/maintnotifications"

	"cmppgateway/gateway/internal/failpoint"
)

//go:embed copy.lua
var copySource string

var copyScript = redis.NewScript(copySource)

const (
	copyMax      = 100                    // events per entry
	copyCollect  = 2 * time.Millisecond   // wait for more when the last batch was neither 1 nor large (data §1.20)
	copyCheck    = time.Second            // while events are held, the epoch is looked at this often
	removeAtOnce = 64                     // accepted entries that are removed without waiting for the next write
	lastCopy     = 2 * time.Second        // for what is not copied when Run ends
	redisRetry   = 200 * time.Millisecond // between attempts at a Redis that fails
	rangePage    = 200                    // entries read at once
	epochReply   = "EPOCH"
)

// errAdopted says that the node number has changed hands and its shard with it: the process must stop.
var errAdopted = errors.New("event shard was adopted")

// epoch is the value this process last set in its shard: the epoch of its node lease, which keeps earlier owners of the number
// out; the Redis process, so that a restart shows; and a draw, so that a restored older value does.
type epoch struct {
	mu     sync.Mutex
	value  string
	loaded bool // what an earlier life left is in memory
}

// clientState is what the connections have seen.
type clientState struct {
	mu    sync.Mutex
	runID string
}

// newClient is a client of the queue's own, because it must see every connection being made: a Redis that was restarted may
// have lost its tail and still have the epoch.
func (q *Queue) newClient() *redis.Client {
	like := q.o.Redis.Options()
	o := redis.Options{
		Network: like.Network, Addr: like.Addr, Username: like.Username, Password: like.Password, DB: like.DB, TLSConfig: like.TLSConfig,
		DialTimeout: like.DialTimeout, ReadTimeout: like.ReadTimeout, WriteTimeout: like.WriteTimeout, PoolTimeout: like.PoolTimeout,
		ClientName: like.ClientName, DisableIdentity: like.DisableIdentity, ContextTimeoutEnabled: true, MaxRetries: -1, DialerRetries: 1,
		MaintNotificationsConfig: &maintnotifications.Config{Mode: maintnotifications.ModeDisabled},
	}
	o.OnConnect = func(ctx context.Context, c *redis.Conn) error {
		info, err := c.Info(ctx, "server").Result()
		if err != nil {
			return fmt.Errorf("run id: %w", err)
		}
		q.sawRedis(runID(info))
		return nil
	}
	return redis.NewClient(&o)
}

func runID(info string) string {
	for line := range strings.Lines(info) {
		if id, ok := strings.CutPrefix(line, "run_id:"); ok {
			return strings.TrimSpace(id)
		}
	}
	return ""
}

func (q *Queue) sawRedis(id string) {
	q.client.mu.Lock()
	changed := q.client.runID != "" && q.client.runID != id
	q.client.runID = id
	q.client.mu.Unlock()
	if changed {
		q.o.Log.Info("redis was restarted, events are written again")
		q.distrust()
	}
}

// distrust has everything held written again: the copy may have lost anything.
func (q *Queue) distrust() {
	q.mu.Lock()
	defer q.mu.Unlock()
	for _, l := range q.lanes {
		l.resync = true
		poke(l.toCopy)
	}
}

// copier writes fresh events of one lane to Redis.
func (q *Queue) copier(ctx context.Context, l *lane) {
	last := 1
	failing := false
	tick := time.NewTicker(copyCheck)
	defer tick.Stop()
	for {
		checked := false
		select {
		case <-ctx.Done():
			return
		case <-l.toCopy:
		case <-tick.C:
			checked = true
		}
		if last > 1 && last <= copyMax/4 && !wait(ctx, copyCollect) {
			return
		}
		n, err := q.copyAll(ctx, l, checked)
		if err != nil {
			q.distrust()
		}
		if ctx.Err() != nil {
			return
		}
		if failed := err != nil; failed != failing {
			failing = failed
			q.o.Log.Warn("event copy in redis", slog.String("queue", l.name), slog.Bool("working", !failed), slog.Any("error", err))
		}
		last = n
		if err != nil {
			q.m.copies.WithLabelValues("failed").Inc()
			if !wait(ctx, redisRetry) {
				return
			}
			poke(l.toCopy)
		}
	}
}

// copyAll writes everything fresh and returns the size of the last batch. check looks at the epoch also when there is
// nothing to write.
func (q *Queue) copyAll(ctx context.Context, l *lane, check bool) (n int, err error) {
	trim, first := false, ""
	for {
		q.mu.Lock()
		if l.resync {
			l.resync = false
			trim, first = true, ""
			l.gone = nil
			l.fresh = l.fresh[:0]
			for _, it := range l.allHeld() {
				it.own = nil
				l.fresh = append(l.fresh, it)
			}
		}
		l.fresh = live(l.fresh)
		batch := l.fresh[:min(len(l.fresh), copyMax)]
		batch = append([]*item(nil), batch...)
		l.fresh = l.fresh[len(batch):]
		gone := l.gone
		l.gone = nil
		idle := len(batch) == 0 && len(gone) == 0 && (!check || l.held == 0)
		q.mu.Unlock()
		if idle {
			break
		}
		check = false
		id, err := q.copyBatch(ctx, l, batch, gone)
		if err != nil {
			return n, err
		}
		if id == "" {
			continue
		}
		if first == "" {
			first = id
		}
		n = len(batch)
		q.m.copies.WithLabelValues("written").Inc()
		q.copied(l, batch, id)
	}
	if trim {
		if err := q.trim(ctx, l, first); err != nil {
			return n, err
		}
	}
	return n, nil
}

// allHeld lists everything held, in order of offering. mu is held.
func (l *lane) allHeld() []*item {
	all := make([]*item, 0, l.held)
	for _, list := range [][]*item{l.offering, l.ready, l.later} {
		for _, it := range list {
			if !it.done {
				all = append(all, it)
			}
		}
	}
	return all
}

// copyBatch writes batch as one entry and removes the entries gone. The id is empty when nothing was written: without a
// batch, or when the epoch had to be renewed and everything held is fresh again.
func (q *Queue) copyBatch(ctx context.Context, l *lane, batch []*item, gone []string) (id string, err error) {
	if err := q.stampAll(ctx, l, batch); err != nil {
		return "", err
	}
	var body []byte
	for _, it := range batch {
		body = append(body, "[,"[min(len(body), 1)])
		body = append(body, it.raw...)
	}
	if len(body) > 0 {
		body = append(body, ']')
	}
	seen := q.epochNow()
	args := make([]any, 0, 2+len(gone))
	args = append(args, seen, body)
	for _, id := range gone {
		args = append(args, id)
	}
	id, err = copyScript.Run(ctx, q.rdb, []string{shardKey(q.o.Node, "epoch"), l.stream}, args...).Text()
	if err != nil {
		return "", fmt.Errorf("copy %d events: %w", len(batch), err)
	}
	if id != epochReply {
		return id, nil
	}
	return "", q.renewEpoch(ctx, seen)
}

// copied notes the entry and answers the DELIVERs of the batch: they are in memory and in Redis now.
func (q *Queue) copied(l *lane, batch []*item, id string) {
	var acks []ack
	e := &entry{id: id}
	q.mu.Lock()
	for _, it := range batch {
		if it.done {
			continue
		}
		e.left++
		it.own = e
		acks = append(acks, it.acks...)
		it.acks = nil
	}
	if e.left == 0 {
		e.left = 1
		l.release(e)
	}
	q.mu.Unlock()
	if l.name == "receipt" {
		failpoint.Hit(failpoint.AfterReceiptCopy)
	}
	q.answer(acks)
}

// trim removes what stood before the first entry written anew.
func (q *Queue) trim(ctx context.Context, l *lane, first string) error {
	var err error
	if first == "" {
		err = q.rdb.Del(ctx, l.stream).Err()
	} else {
		err = q.rdb.XTrimMinID(ctx, l.stream, first).Err()
	}
	if err != nil {
		return fmt.Errorf("trim the copy: %w", err)
	}
	return nil
}

func (q *Queue) epochNow() string {
	q.epoch.mu.Lock()
	defer q.epoch.mu.Unlock()
	return q.epoch.value
}

// renewEpoch sets a new epoch if seen is still this process's, and has all queues written again. What an earlier life of
// the node left is taken into memory first.
func (q *Queue) renewEpoch(ctx context.Context, seen string) error {
	q.epoch.mu.Lock()
	defer q.epoch.mu.Unlock()
	if q.epoch.value != seen {
		return nil // by another queue, just now
	}
	name := shardKey(q.o.Node, "epoch")
	was, err := q.rdb.Get(ctx, name).Result()
	if err != nil && !errors.Is(err, redis.Nil) {
		return fmt.Errorf("read the epoch: %w", err)
	}
	owner, _, _ := strings.Cut(was, ":")
	if e, err := strconv.ParseInt(owner, 10, 64); err == nil && e > q.o.NodeEpoch {
		return errAdopted
	}
	if !q.epoch.loaded {
		if _, err := q.read(ctx, q.o.Node, nil); err != nil {
			return err
		}
		q.epoch.loaded = true
	}
	q.client.mu.Lock()
	value := epochOf(q.o.NodeEpoch, q.client.runID+":"+randomText())
	q.client.mu.Unlock()
	if err := q.rdb.Set(ctx, name, value, 0).Err(); err != nil {
		return fmt.Errorf("set the epoch: %w", err)
	}
	q.epoch.value = value
	q.distrust()
	return nil
}

func epochOf(node int64, rest string) string { return strconv.FormatInt(node, 10) + ":" + rest }

// flush is the last attempt to copy, when everything else has stopped.
func (q *Queue) flush(ctx context.Context, l *lane) {
	for range 2 { // the first may only renew the epoch
		if _, err := q.copyAll(ctx, l, false); err != nil {
			q.o.Log.Warn("events not copied at the end", slog.String("queue", l.name), slog.Any("error", err))
			return
		}
	}
}

// Load takes what an earlier life of this node left into memory, before any supplier link opens. A node number is handed
// out only when its shard was empty, so without Redis the start goes on, and the shard is read when Redis comes.
func (q *Queue) Load(ctx context.Context) error {
	err := q.renewEpoch(ctx, q.epochNow())
	if err != nil {
		if ctx.Err() != nil || errors.Is(err, errAdopted) {
			return fmt.Errorf("load events: %w", err)
		}
		q.o.Log.Warn("own event shard not read yet", slog.Any("error", err))
		return nil
	}
	if n := q.Held(); n > 0 {
		q.o.Log.Info("events of an earlier life loaded", slog.Int("events", n))
	}
	return nil
}

// Adopt takes the shard of a dead node into memory and returns when the core has accepted all of it; the shard is then
// removed. nodeEpoch is the epoch the adopter gave the node: the old process, should it live, can write there no more.
func (q *Queue) Adopt(ctx context.Context, node int16, nodeEpoch int64) error {
	if err := q.rdb.Set(ctx, shardKey(node, "epoch"), epochOf(nodeEpoch, "adopted"), 0).Err(); err != nil {
		return fmt.Errorf("adopt node %d: %w", node, err)
	}
	s := &shard{left: 1, done: make(chan struct{})}
	n, err := q.read(ctx, node, s)
	q.mu.Lock()
	if s.left--; s.left == 0 {
		close(s.done)
	}
	q.mu.Unlock()
	if err != nil {
		return fmt.Errorf("adopt node %d: %w", node, err)
	}
	if n > 0 {
		q.o.Log.Info("events of a dead node loaded", slog.Int("node", int(node)), slog.Int("events", n))
	}
	select {
	case <-s.done:
	case <-ctx.Done():
		return fmt.Errorf("adopt node %d: %w", node, ctx.Err())
	}
	names := make([]string, 0, len(q.lanes))
	for _, l := range q.lanes {
		names = append(names, streamKey(node, l.name))
	}
	if err := q.rdb.Del(ctx, names...).Err(); err != nil {
		return fmt.Errorf("adopt node %d: %w", node, err)
	}
	return nil
}

// read takes the events of a shard into memory, those held already excepted.
func (q *Queue) read(ctx context.Context, node int16, from *shard) (n int, err error) {
	for _, l := range q.lanes {
		start := "-"
		for {
			entries, err := q.rdb.XRangeN(ctx, streamKey(node, l.name), start, "+", rangePage).Result()
			if err != nil {
				return n, fmt.Errorf("read %s: %w", l.name, err)
			}
			for _, e := range entries {
				n += q.loadEntry(l, e, from)
			}
			if len(entries) < rangePage {
				break
			}
			start = "(" + entries[len(entries)-1].ID
		}
	}
	return n, nil
}

func (q *Queue) loadEntry(l *lane, e redis.XMessage, from *shard) (n int) {
	body, _ := e.Values["d"].(string)
	var events []Event
	if err := json.Unmarshal([]byte(body), &events); err != nil {
		q.o.Log.Error("event entry not understood", slog.String("queue", l.name), slog.String("entry", e.ID), slog.Any("error", err))
		return 0
	}
	q.mu.Lock()
	defer q.mu.Unlock()
	for _, ev := range events {
		if l.ids[ev.ID] != nil {
			continue
		}
		it := &item{kind: ev.Type, payload: ev.Payload, key: keyOf(ev), adopted: from}
		it.stamp(ev.ID)
		if it.key.kind != "" && l.keys[it.key] == nil {
			l.keys[it.key] = it
		}
		if from != nil {
			from.left++
		}
		q.add(l, it)
		n++
	}
	return n
}

// keyOf is the business key of a loaded event; its kind is empty when the event has none.
func keyOf(ev Event) key {
	switch ev.Type {
	case TypeReceipt:
		var r Receipt
		if json.Unmarshal(ev.Payload, &r) == nil {
			return key{kind: TypeReceipt, account: r.AccountID, msgID: r.SupplierMsgID, a: r.Dest, b: r.Stat}
		}
	case TypeUplink:
		var u Uplink
		if json.Unmarshal(ev.Payload, &u) == nil {
			return key{kind: TypeUplink, account: u.AccountID, msgID: u.SupplierMsgID, a: u.Phone, b: u.Dest, hash: hash(u.Content)}
		}
	}
	return key{}
}

// wait is a pause that ends early, with false, when ctx is done.
func wait(ctx context.Context, d time.Duration) bool {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-ctx.Done():
		return false
	case <-t.C:
		return true
	}
}
