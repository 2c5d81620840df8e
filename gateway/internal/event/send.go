package event

import (
	"bytes"
	"context"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	mrand "math/rand/v2"
	"net/http"
	"os"
	"strconv"
	"time"

	"cmppgateway/gateway/internal/config"
	"cmppgateway/gateway/internal/settings"
)

// Path of the core's batch endpoint.
const Path = "/api/gateway/events/batch"

// SinglePath is the path of the core's endpoint for single events of a type.
func SinglePath(eventType string) string { return "/api/gateway/events/" + eventType }

const (
	envelope    = 512     // octets of a request beside its events
	responseMax = 1 << 20 // octets of a response that are read
)

// NewHTTPClient is the client that an edge reaches the core with. It keeps a connection for every request that may be under way at once.
func NewHTTPClient(c config.Event) (*http.Client, error) {
	secure, err := tlsConfig(c)
	if err != nil {
		return nil, err
	}
	conns := 3 * (1 + c.Singles)
	t := &http.Transport{
		MaxIdleConns: conns, MaxIdleConnsPerHost: conns, IdleConnTimeout: c.IdleTimeout, ResponseHeaderTimeout: c.Timeout, DisableCompression: true,
		TLSClientConfig: secure,
	}
	return &http.Client{Transport: t, Timeout: c.Timeout}, nil
}

func tlsConfig(c config.Event) (*tls.Config, error) {
	t := &tls.Config{MinVersion: tls.VersionTLS12}
	if c.TLSCA != "" {
		pem, err := os.ReadFile(c.TLSCA)
		if err != nil {
			return nil, fmt.Errorf("tls_ca: %w", err)
		}
		t.RootCAs = x509.NewCertPool()
		if !t.RootCAs.AppendCertsFromPEM(pem) {
			return nil, fmt.Errorf("tls_ca: no certificate in %s", c.TLSCA)
		}
	}
	if c.TLSCert != "" {
		cert, err := tls.LoadX509KeyPair(c.TLSCert, c.TLSKey)
		if err != nil {
			return nil, fmt.Errorf("tls_cert, tls_key: %w", err)
		}
		t.Certificates = []tls.Certificate{cert}
	}
	return t, nil
}

func randomText() string { return rand.Text() }

// statusError is an HTTP answer other than 200 to a whole batch.
type statusError int

func (e statusError) Error() string { return "callback answered " + strconv.Itoa(int(e)) }

// faulty says that the request itself was refused: one of its events is to blame, and the others must not wait for it.
func (e statusError) faulty() bool {
	switch int(e) {
	case http.StatusBadRequest, http.StatusRequestEntityTooLarge, http.StatusUnprocessableEntity:
		return true
	}
	return false
}

// sender offers the events of one lane, one batch at a time.
func (q *Queue) sender(ctx context.Context, l *lane) {
	limit := min(max(1, q.o.Config.BatchMax), MaxEvents)
	most, failures := limit, 0
	for number := 1; ; {
		batch, pause := q.next(l, most)
		if len(batch) == 0 {
			if !q.idle(ctx, l, pause) {
				return
			}
			continue
		}
		err := q.stampAll(ctx, l, batch)
		if err == nil {
			batch = q.cut(l, batch)
			err = q.offer(ctx, l, batch, number)
			number++
		}
		if err == nil {
			failures, most = 0, min(limit, most*2)
			continue
		}
		refused, _ := err.(statusError) //nolint:errorlint // offer returns it as it is
		alone := refused.faulty() && len(batch) == 1
		q.putBack(l, batch, alone)
		if ctx.Err() != nil {
			return
		}
		q.m.retries.WithLabelValues(l.name).Add(float64(len(batch)))
		q.o.Log.Warn("event batch not taken", slog.String("queue", l.name), slog.Int("events", len(batch)), slog.Any("error", err))
		if refused.faulty() {
			most = max(1, len(batch)/2)
			continue
		}
		if !wait(ctx, q.backOff(failures)) {
			return
		}
		failures++
	}
}

// idle waits for something to offer: for pause, or without end when that is 0.
func (q *Queue) idle(ctx context.Context, l *lane, pause time.Duration) bool {
	var timeout <-chan time.Time
	if pause > 0 {
		t := time.NewTimer(pause)
		defer t.Stop()
		timeout = t.C
	}
	select {
	case <-ctx.Done():
		return false
	case <-l.toSend:
	case <-timeout:
	}
	return true
}

// next is the batch to offer now, or how long to wait for one to be complete; 0 = until something is added.
func (q *Queue) next(l *lane, most int) (batch []*item, pause time.Duration) {
	now := time.Now()
	q.mu.Lock()
	defer q.mu.Unlock()
	l.readyAgain(now)
	l.ready = live(l.ready)
	if len(l.ready) == 0 {
		for _, it := range l.later {
			if d := max(time.Millisecond, it.due.Sub(now)); pause == 0 || d < pause {
				pause = d
			}
		}
		return nil, pause
	}
	if len(l.ready) < q.o.Config.BatchTarget {
		if left := q.o.Config.BatchWait - now.Sub(l.ready[0].since); left > 0 {
			return nil, left
		}
	}
	batch = q.sameWay(l, most)
	l.offering = batch
	return batch, 0
}

// sameWay takes the first of ready and those after it that travel in the same way, at most most. What was offered before goes
// as it went then, so that no event is under way in two ways at once (capacity-plan §6.5). mu is held.
func (q *Queue) sameWay(l *lane, most int) (batch []*item) {
	var left []*item
	for i, it := range l.ready {
		if len(batch) == most {
			left = append(left, l.ready[i:]...)
			break
		}
		if !it.offered {
			it.via = q.o.Mode(it.kind)
		}
		if len(batch) > 0 && it.via != batch[0].via {
			left = append(left, it)
			continue
		}
		it.offered = true
		batch = append(batch, it)
	}
	l.ready = left
	return batch
}

// readyAgain puts refused events whose time has come at the end of ready. Queue.mu is held.
func (l *lane) readyAgain(now time.Time) {
	waiting := l.later[:0]
	for _, it := range l.later {
		switch {
		case it.done:
		case now.Before(it.due):
			waiting = append(waiting, it)
		default:
			l.ready = append(l.ready, it)
		}
	}
	clear(l.later[len(waiting):])
	l.later = waiting
}

// cut puts back what does not fit into one request.
func (q *Queue) cut(l *lane, batch []*item) []*item {
	size := envelope
	for i, it := range batch {
		size += len(it.raw) + 1
		if size > min(q.o.Config.BytesMax, MaxBytes) && i > 0 {
			q.mu.Lock()
			l.ready = append(append([]*item(nil), batch[i:]...), l.ready...)
			l.offering = batch[:i]
			q.mu.Unlock()
			return batch[:i]
		}
	}
	return batch
}

// putBack returns a batch that was not taken: to the front, or, when its only event is to blame, behind all others.
func (q *Queue) putBack(l *lane, batch []*item, alone bool) {
	q.mu.Lock()
	defer q.mu.Unlock()
	l.offering = nil
	if alone {
		q.postpone(l, batch[0])
		return
	}
	l.ready = append(append([]*item(nil), batch...), l.ready...)
}

// postpone offers it again after its back-off. mu is held.
func (q *Queue) postpone(l *lane, it *item) {
	it.due = time.Now().Add(q.backOff(it.tries))
	it.tries++
	l.later = append(l.later, it)
}

// backOff doubles from RetryMin to RetryMax, give or take a quarter.
func (q *Queue) backOff(tries int) time.Duration {
	d := min(q.o.Config.RetryMin<<min(tries, 20), q.o.Config.RetryMax)
	return d*3/4 + mrand.N(d/2+1)
}

// offer posts one batch and applies the answers.
func (q *Queue) offer(ctx context.Context, l *lane, batch []*item, number int) error {
	answers, err := q.send(ctx, l, batch, number)
	outcome := "ok"
	if err != nil {
		outcome = "failed"
	}
	q.m.requests.WithLabelValues(l.name, outcome).Inc()
	if err != nil {
		return err
	}
	q.m.batch.Observe(float64(len(batch)))

	var acks []ack
	var refused []*item
	retries := 0
	q.mu.Lock()
	full := q.full()
	l.offering = nil
	for _, it := range batch {
		r, ok := answers[it.id]
		switch {
		case ok && r.Accepted:
			acks = append(acks, q.finish(l, it)...)
		case ok && !r.Retryable: // the core has stored it in dead_letter before it said so
			refused = append(refused, it)
			acks = append(acks, q.finish(l, it)...)
		default:
			retries++
			q.postpone(l, it)
		}
	}
	room := full && !q.full()
	q.mu.Unlock()

	q.answer(acks)
	if room {
		q.tellRoom()
	}
	q.m.retries.WithLabelValues(l.name).Add(float64(retries))
	for _, it := range refused {
		q.m.refused.WithLabelValues(it.kind).Inc()
		q.o.Log.Error("event refused for good, kept as a dead letter", slog.Int64("event_id", it.id), slog.String("type", it.kind),
			slog.String("code", answers[it.id].ErrorCode))
	}
	return nil
}

// send offers a batch in the way its events travel.
func (q *Queue) send(ctx context.Context, l *lane, batch []*item, number int) (map[int64]Result, error) {
	switch batch[0].via {
	case settings.CallbackSingle:
		return q.postSingles(ctx, batch)
	case settings.CallbackShadow:
		// The shadow first: after the real thing every event would be a repetition.
		shadow, err := q.post(ctx, l, batch, number, true)
		answers, realErr := q.postSingles(ctx, batch)
		q.compare(l, shadow, err, answers)
		return answers, realErr
	case settings.CallbackBatch:
	}
	return q.post(ctx, l, batch, number, false)
}

// post offers a batch as one request.
func (q *Queue) post(ctx context.Context, l *lane, batch []*item, number int, shadow bool) (map[int64]Result, error) {
	var r BatchResponse
	if err := q.exchange(ctx, Path, q.request(l, batch, number, shadow), &r); err != nil {
		return nil, err
	}
	answers := make(map[int64]Result, len(r.Results))
	for _, x := range r.Results {
		answers[x.EventID] = x
	}
	return answers, nil
}

// exchange posts a body and reads the answer.
func (q *Queue) exchange(ctx context.Context, path string, body []byte, to any) error {
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, q.o.URL+path, bytes.NewReader(body))
	if err != nil {
		return fmt.Errorf("callback: %w", err)
	}
	req.Header.Set("Content-Type", "application/json")
	if q.o.Token != "" {
		req.Header.Set("Authorization", "Bearer "+q.o.Token)
	}
	resp, err := q.http.Do(req)
	if err != nil {
		return fmt.Errorf("callback: %w", err)
	}
	defer func() { _ = resp.Body.Close() }()
	answer, err := io.ReadAll(io.LimitReader(resp.Body, responseMax))
	if resp.StatusCode != http.StatusOK {
		return statusError(resp.StatusCode)
	}
	if err != nil {
		return fmt.Errorf("callback: %w", err)
	}
	if err := json.Unmarshal(answer, to); err != nil {
		return fmt.Errorf("callback: answer: %w", err)
	}
	return nil
}

// request encodes a BatchRequest from events that are encoded already.
func (q *Queue) request(l *lane, batch []*item, number int, shadow bool) []byte {
	size := envelope
	for _, it := range batch {
		size += len(it.raw) + 1
	}
	b := make([]byte, 0, size)
	b = append(b, `{"batchId":"`...)
	b = strconv.AppendInt(b, int64(q.o.Node), 10)
	b = append(b, '-')
	b = strconv.AppendInt(b, q.o.NodeEpoch, 10)
	b = append(b, '-')
	b = append(b, l.name...)
	b = append(b, '-')
	b = strconv.AppendInt(b, int64(number), 10)
	b = append(b, `","gatewayInstanceId":`...)
	b = append(b, q.instance...)
	b = append(b, `,"createdAt":"`...)
	b = time.Now().UTC().AppendFormat(b, time.RFC3339Nano)
	b = append(b, '"')
	if shadow {
		b = append(b, `,"shadow":true`...)
	}
	b = append(b, `,"events":[`...)
	for i, it := range batch {
		if i > 0 {
			b = append(b, ',')
		}
		b = append(b, it.raw...)
	}
	return append(b, `]}`...)
}
