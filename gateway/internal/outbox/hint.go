package outbox

import (
	"context"
	_ "embed" // scripts
	"encoding/json"
	"log/slog"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/redis/go-redis/v9"

	"cmppgateway/gateway/internal/config"
)

// Hinter offers committed commands of one channel to its edge. It is best effort and takes a bounded time; a hint that is
// not given costs the message at most the pull interval.
type Hinter interface {
	Hint(ctx context.Context, channel int32, cmds []Command)
}

// Waker nudges the processes that wait for a topic; it never blocks.
type Waker interface {
	Publish(topic string)
}

//go:embed hint.lua
var hintSource string

var hintScript = redis.NewScript(hintSource)

// hintPause is how long no hint is tried after Redis failed: a batch of the core must not wait for a dead Redis each time.
const hintPause = time.Second

// RedisHinter writes hints to the channels' streams. Safe for concurrent use.
type RedisHinter struct {
	rdb    *redis.Client
	wake   Waker
	cfg    config.Outbox
	log    *slog.Logger
	start  time.Time
	paused atomic.Int64 // no hint before this time since start

	hints *prometheus.CounterVec
}

// NewHinter writes to rdb and nudges through wake.
func NewHinter(rdb *redis.Client, wake Waker, cfg config.Outbox, log *slog.Logger, reg prometheus.Registerer) *RedisHinter {
	h := &RedisHinter{
		rdb: rdb, wake: wake, cfg: cfg, log: log, start: time.Now(),
		hints: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "cmppgw_outbox_hints_total", Help: "Commands offered to the edges by hint, by what became of it.",
		}, []string{"outcome"}),
	}
	reg.MustRegister(h.hints)
	return h
}

// Hint implements [Hinter] within config.Outbox.RedisSlow. At the bound of the stream, and for a second after Redis failed,
// nothing is written: the edge pulls.
func (h *RedisHinter) Hint(ctx context.Context, channel int32, cmds []Command) {
	if len(cmds) == 0 {
		return
	}
	if time.Since(h.start) < time.Duration(h.paused.Load()) {
		h.count("skipped", cmds)
		return
	}
	batch, err := json.Marshal(cmds)
	if err != nil {
		h.log.Error("hint not encoded", slog.Any("error", err))
		return
	}
	limited, cancel := context.WithTimeout(ctx, h.cfg.RedisSlow)
	defer cancel()
	added, err := hintScript.Run(limited, h.rdb, []string{stream(channel)}, h.cfg.HintEntriesMax, batch).Int()
	switch {
	case err != nil:
		h.paused.Store(int64(time.Since(h.start) + hintPause))
		h.log.Warn("hint not written, the edges pull", slog.Int("channel", int(channel)), slog.Any("error", err))
		h.count("failed", cmds)
	case added == 0:
		h.count("full", cmds)
		h.wake.Publish(Topic(channel)) // the edge learns that there is more than the stream holds
	default:
		h.count("written", cmds)
		h.wake.Publish(Topic(channel))
	}
}

func (h *RedisHinter) count(outcome string, cmds []Command) {
	h.hints.WithLabelValues(outcome).Add(float64(len(cmds)))
}
