package wake

import (
	"context"
	"crypto/rand"
	"log/slog"
	"strings"
	"sync"
	"time"

	"github.com/redis/go-redis/v9"
)

const (
	// channel carries the nudges of all topics, as "<sender> <topic>".
	channel = "cmppgw:wake"
	// gap is the least time between two rounds to Redis: a topic nudged often costs at most this many messages.
	gap = 2 * time.Millisecond
	// topicsMax bounds the topics that wait for a round; they are few, and more would be a fault of the caller.
	topicsMax = 4096
)

// Bus is safe for concurrent use.
type Bus struct {
	rdb  *redis.Client
	log  *slog.Logger
	self string

	mu      sync.Mutex
	subs    map[string][]chan struct{}
	pending map[string]struct{}
	due     chan struct{}
}

// New makes a bus. rdb may be nil: then nudges stay within the process.
func New(rdb *redis.Client, log *slog.Logger) *Bus {
	return &Bus{
		rdb: rdb, log: log, self: rand.Text(), subs: make(map[string][]chan struct{}), pending: make(map[string]struct{}),
		due: make(chan struct{}, 1),
	}
}

// Publish nudges the subscribers of topic, here at once, in other processes soon. It never blocks.
func (b *Bus) Publish(topic string) {
	b.mu.Lock()
	nudge(b.subs[topic])
	if b.rdb != nil && len(b.pending) < topicsMax {
		b.pending[topic] = struct{}{}
	}
	b.mu.Unlock()
	select {
	case b.due <- struct{}{}:
	default:
	}
}

// Subscribe is a channel that holds one nudge at most. A subscription lasts as long as the bus.
func (b *Bus) Subscribe(topic string) <-chan struct{} {
	c := make(chan struct{}, 1)
	b.mu.Lock()
	b.subs[topic] = append(b.subs[topic], c)
	b.mu.Unlock()
	return c
}

func nudge(subs []chan struct{}) {
	for _, c := range subs {
		select {
		case c <- struct{}{}:
		default:
		}
	}
}

// Run carries nudges to and from Redis until ctx is done, which is no error. Without Redis it drops them.
func (b *Bus) Run(ctx context.Context) error {
	if b.rdb == nil {
		<-ctx.Done()
		return nil
	}
	var wg sync.WaitGroup
	wg.Go(func() { b.receive(ctx) })
	wg.Go(func() { b.send(ctx) })
	wg.Wait()
	return nil
}

func (b *Bus) send(ctx context.Context) {
	pause := time.NewTimer(0)
	defer pause.Stop()
	failing := false
	for {
		select {
		case <-ctx.Done():
			return
		case <-pause.C:
		}
		select {
		case <-ctx.Done():
			return
		case <-b.due:
		}
		b.mu.Lock()
		topics := b.pending
		b.pending = make(map[string]struct{})
		b.mu.Unlock()
		if len(topics) > 0 {
			_, err := b.rdb.Pipelined(ctx, func(p redis.Pipeliner) error {
				for topic := range topics {
					p.Publish(ctx, channel, b.self+" "+topic)
				}
				return nil
			})
			if failed := err != nil && ctx.Err() == nil; failed != failing {
				failing = failed
				b.log.Info("wake over redis", slog.Bool("working", !failed), slog.Any("error", err))
			}
		}
		pause.Reset(gap)
	}
}

func (b *Bus) receive(ctx context.Context) {
	sub := b.rdb.Subscribe(ctx, channel)
	closed := context.AfterFunc(ctx, func() {
		_ = sub.Close() // it ends the loop below; the connection is gone either way
	})
	defer closed()
	for m := range sub.ChannelWithSubscriptions() {
		b.mu.Lock()
		switch m := m.(type) {
		case *redis.Message:
			if from, topic, ok := strings.Cut(m.Payload, " "); ok && from != b.self {
				nudge(b.subs[topic])
			}
		case *redis.Subscription: // connected (again): nudges may have been missed
			for _, subs := range b.subs {
				nudge(subs)
			}
		}
		b.mu.Unlock()
	}
}
