package event

import (
	"context"
	"log/slog"
	"sync"
)

// postSingles offers each event in a request of its own, several at once; results of one submit one after the other. Events
// without an answer are missing in answers; an error means that there is no answer at all.
func (q *Queue) postSingles(ctx context.Context, batch []*item) (answers map[int64]Result, err error) {
	lines := make([][]*item, min(max(1, q.o.Config.Singles), len(batch)))
	for i, it := range batch {
		n := i % len(lines)
		if it.kind == TypeSubmitResult || it.kind == TypeSubmitSegmentResult {
			n = int(uint64(it.submit) % uint64(len(lines)))
		}
		lines[n] = append(lines[n], it)
	}
	var mu sync.Mutex
	var wg sync.WaitGroup
	answers = make(map[int64]Result, len(batch))
	for _, line := range lines {
		wg.Go(func() {
			for _, it := range line {
				var r Result
				e := q.exchange(ctx, SinglePath(it.kind), it.raw, &r)
				mu.Lock()
				if e == nil {
					answers[it.id] = r
				} else if err == nil {
					err = e
				}
				mu.Unlock()
				if refused, ok := e.(statusError); e != nil && (!ok || !refused.faulty()) { //nolint:errorlint // exchange returns it as it is
					return // the core is away: the others of the line would fare no better
				}
			}
		})
	}
	wg.Wait()
	if len(answers) > 0 {
		err = nil
	}
	return answers, err
}

// compare counts how a shadow batch would have been answered beside how its events were, and logs each that differs. An
// event without one of the answers is no evidence.
func (q *Queue) compare(l *lane, shadow map[int64]Result, err error, answers map[int64]Result) {
	if err != nil {
		q.m.shadows.WithLabelValues(l.name, "failed").Inc()
		q.o.Log.Warn("shadow batch not answered", slog.String("queue", l.name), slog.Any("error", err))
		return
	}
	for id, want := range answers {
		got, ok := shadow[id]
		switch {
		case !ok || got.Retryable || want.Retryable:
			q.m.shadows.WithLabelValues(l.name, "unanswered").Inc()
		case got != want:
			q.m.shadows.WithLabelValues(l.name, "differs").Inc()
			q.o.Log.Error("shadow batch answered otherwise", slog.String("queue", l.name), slog.Int64("event_id", id),
				slog.Any("batch", got), slog.Any("single", want))
		default:
			q.m.shadows.WithLabelValues(l.name, "same").Inc()
		}
	}
}
