package runner

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"time"
)

// How long a request may take on the wire: longer than edge and core wait for each other.
const (
	wireLimit  = 60 * time.Second
	wireEvents = 100     // of a batch
	wireBytes  = 1 << 20 // of a request and its answer
)

// wire is what lies between an edge and its core: it passes requests on, cuts them, or
// adds events to batches. Safe for concurrent use.
type wire struct {
	listener net.Listener
	http     *http.Server
	client   *http.Client
	core     atomic.Pointer[string] // host:port

	mu    sync.Mutex
	cut   bool
	every int            // n: every nth batch gets events that the core refuses for good
	lanes map[string]int // requests of each queue since cutting began
	n     int            // batches since events are added
	seen  wireCounts
}

// wireCounts are what became of requests.
type wireCounts struct {
	before, after int   // cut before the body, and after the core's answer
	bad           int64 // events added, which are the ids from badFirst on
	neighbours    int   // events in those batches that the core accepted
	held          []string
}

// badFirst is the first id of the events added: ids of a day in 1970, which the gateway
// issues to nobody and has no partition for.
const badFirst = int64(1)

func newWire(ctx context.Context) (*wire, error) {
	var lc net.ListenConfig
	l, err := lc.Listen(ctx, "tcp4", "127.0.0.1:0")
	if err != nil {
		return nil, fmt.Errorf("wire to the core: %w", err)
	}
	w := &wire{listener: l, lanes: map[string]int{}, client: &http.Client{Timeout: wireLimit, Transport: &http.Transport{MaxIdleConnsPerHost: 64}}}
	w.http = &http.Server{Handler: w, ReadHeaderTimeout: wireLimit}
	go func() { _ = w.http.Serve(l) }() // until close
	return w, nil
}

// url is what edges are to post to.
func (w *wire) url() string { return "http://" + w.listener.Addr().String() }

func (w *wire) close() error {
	err := w.http.Close()
	w.client.CloseIdleConnections()
	return err
}

func (w *wire) counts() wireCounts {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.seen
}

// setCut cuts requests from now on, or no more.
func (w *wire) setCut(cut bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.cut = cut
	clear(w.lanes)
}

// spoil adds events to every nth batch from now on; 0 ends it.
func (w *wire) spoil(every int) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.every, w.n = every, 0
}

// ServeHTTP passes one request on, or does to it what is asked for.
func (w *wire) ServeHTTP(rw http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(io.LimitReader(r.Body, wireBytes+1))
	if err != nil {
		return // the edge has gone
	}
	before, after := w.fate(body)
	if before {
		w.announce(r, len(body))
		hangUp(rw)
		return
	}
	body, added := w.add(body)
	answer, status, err := w.pass(r, body)
	if err != nil {
		hangUp(rw)
		return
	}
	if after {
		w.mu.Lock()
		w.seen.after++
		w.mu.Unlock()
		hangUp(rw)
		return
	}
	w.judge(answer, added)
	rw.Header().Set("Content-Type", "application/json")
	rw.WriteHeader(status)
	_, _ = rw.Write(answer) //nolint:gosec // JSON between two programs; when the edge has gone it offers the batch again
}

// hangUp ends a connection without a word.
func hangUp(rw http.ResponseWriter) {
	conn, _, err := http.NewResponseController(rw).Hijack()
	if err == nil {
		_ = conn.Close()
	}
}

// fate says whether a request is cut before its body or after its answer: each queue's
// requests in turns, so that none meets only one of both.
func (w *wire) fate(body []byte) (before, after bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if !w.cut {
		return false, false
	}
	lane := laneOf(body)
	w.lanes[lane]++
	return w.lanes[lane]%2 == 0, w.lanes[lane]%2 == 1
}

// laneOf is the queue in a batch id (node-epoch-queue-number).
func laneOf(body []byte) string {
	var b struct {
		ID string `json:"batchId"`
	}
	if json.Unmarshal(body, &b) != nil {
		return ""
	}
	if parts := strings.Split(b.ID, "-"); len(parts) == 4 {
		return parts[2]
	}
	return b.ID
}

// announce sends the core the head of a request and goes away.
func (w *wire) announce(r *http.Request, size int) {
	var dialer net.Dialer
	conn, err := dialer.DialContext(r.Context(), "tcp", *w.core.Load())
	if err != nil {
		return
	}
	_, err = fmt.Fprintf(conn, "%s %s HTTP/1.1\r\nHost: core\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n", r.Method, r.URL.Path, size)
	if errors.Join(err, conn.Close()) == nil {
		w.mu.Lock()
		w.seen.before++
		w.mu.Unlock()
	}
}

// pass has the core answer a request. It is not ended when the edge goes: the core's answer
// is waited for.
func (w *wire) pass(r *http.Request, body []byte) (answer []byte, status int, err error) {
	req, err := http.NewRequestWithContext(context.WithoutCancel(r.Context()), r.Method, "http://"+*w.core.Load()+r.URL.Path, bytes.NewReader(body)) //nolint:gosec // the host is the run's own
	if err != nil {
		return nil, 0, err
	}
	req.Header = r.Header.Clone()
	resp, err := w.client.Do(req) //nolint:gosec // see above
	if err != nil {
		return nil, 0, err
	}
	defer resp.Body.Close()
	answer, err = io.ReadAll(io.LimitReader(resp.Body, wireBytes))
	return answer, resp.StatusCode, err
}

// rawEvent is an event on the wire.
type rawEvent struct {
	ID      int64           `json:"eventId,string"`
	Type    string          `json:"type"`
	Payload json.RawMessage `json:"payload"`
}

// add puts events into a batch, one before and one behind the others: of an unknown type,
// with a payload that cannot be read, and a receipt that the database itself refuses.
// It returns the ids added.
func (w *wire) add(body []byte) ([]byte, map[int64]bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.every == 0 {
		return body, nil
	}
	if w.n++; w.n%w.every > 0 {
		return body, nil
	}
	var batch map[string]json.RawMessage
	var events []json.RawMessage
	if json.Unmarshal(body, &batch) != nil || json.Unmarshal(batch["events"], &events) != nil || len(events)+2 > wireEvents {
		return body, nil
	}
	ids := map[int64]bool{}
	event := func(kind, payload string) json.RawMessage {
		id := badFirst + w.seen.bad + int64(len(ids))
		ids[id] = true
		raw, err := json.Marshal(rawEvent{id, kind, json.RawMessage(payload)})
		if err != nil {
			panic(err) // of constants
		}
		return raw
	}
	kind, payload := "no_such_type", "{}"
	if w.n%2 == 0 {
		kind, payload = "submit_result", `{"state":"perhaps"}`
	}
	first := event(kind, payload)
	last := event("receipt_intake", `{"accountId":1,"supplierMsgId":"1","phone":13800000000,"stat":"DELIVRD","at":"2026-01-01T00:00:00Z"}`)
	events = append(append([]json.RawMessage{first}, events...), last)
	raw, err := json.Marshal(events)
	if err != nil {
		return body, nil
	}
	batch["events"] = raw
	if raw, err = json.Marshal(batch); err != nil || len(raw) > wireBytes {
		return body, nil
	}
	w.seen.bad += int64(len(ids))
	return raw, ids
}

// judge looks at the core's answer to a batch that events were added to: those are refused
// for good, and their neighbours are not.
func (w *wire) judge(answer []byte, added map[int64]bool) {
	if len(added) == 0 {
		return
	}
	var a struct {
		Results []struct {
			ID        int64  `json:"eventId,string"`
			Accepted  bool   `json:"accepted"`
			Retryable bool   `json:"retryable"`
			Code      string `json:"errorCode"`
		} `json:"results"`
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	if err := json.Unmarshal(answer, &a); err != nil {
		w.seen.held = append(w.seen.held, fmt.Sprintf("a whole batch was refused: %.200s", answer))
		return
	}
	for _, x := range a.Results {
		switch {
		case !added[x.ID] && x.Accepted:
			w.seen.neighbours++
		case !added[x.ID] && !x.Retryable:
			w.seen.held = append(w.seen.held, fmt.Sprintf("neighbour %d was refused with %s", x.ID, x.Code))
		case added[x.ID] && (x.Accepted || x.Retryable):
			w.seen.held = append(w.seen.held, fmt.Sprintf("bad event %d was not refused for good: accepted %t, %s", x.ID, x.Accepted, x.Code))
		}
	}
}
