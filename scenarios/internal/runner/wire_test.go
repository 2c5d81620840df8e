package runner_test

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"

	"cmppgateway/scenarios/internal/runner"
)

type wireEvent struct {
	ID      int64           `json:"eventId,string"`
	Type    string          `json:"type"`
	Payload json.RawMessage `json:"payload"`
}

type wireResult struct {
	ID        int64  `json:"eventId,string"`
	Accepted  bool   `json:"accepted"`
	Retryable bool   `json:"retryable,omitempty"`
	Code      string `json:"errorCode,omitempty"`
}

// core is a core that accepts what it knows and refuses the rest for good, unless it is told to take offence at all of it.
type core struct {
	*httptest.Server

	mu       sync.Mutex
	whole    [][]wireEvent // batches that came with their body
	offended bool
}

func newCore(t *testing.T) *core {
	t.Helper()
	c := &core{}
	c.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		var b struct{ Events []wireEvent }
		body, err := io.ReadAll(r.Body)
		if err != nil || json.Unmarshal(body, &b) != nil {
			return
		}
		c.mu.Lock()
		defer c.mu.Unlock()
		c.whole = append(c.whole, b.Events)
		results := make([]wireResult, len(b.Events))
		for i, e := range b.Events {
			results[i] = wireResult{ID: e.ID, Accepted: e.Type == "uplink"}
			if !results[i].Accepted || c.offended {
				results[i].Accepted, results[i].Code = false, "BAD_EVENT"
			}
		}
		_ = json.NewEncoder(w).Encode(map[string]any{"results": results})
	}))
	t.Cleanup(c.Close)
	return c
}

func (c *core) batches() [][]wireEvent {
	c.mu.Lock()
	defer c.mu.Unlock()
	return append([][]wireEvent(nil), c.whole...)
}

// offer posts a batch of two events of a queue over the wire.
func offer(t *testing.T, w *runner.Wire, queue string) error {
	t.Helper()
	body := fmt.Sprintf(`{"batchId":"7-3-%s-1","events":[{"eventId":"4001","type":"uplink","payload":{}},{"eventId":"4002","type":"uplink","payload":{}}]}`, queue)
	req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, w.URL()+"/api/gateway/events/batch", strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	_, err = io.ReadAll(resp.Body)
	return err
}

func newWire(t *testing.T, c *core) *runner.Wire {
	t.Helper()
	w, err := runner.NewWire(t.Context(), strings.TrimPrefix(c.URL, "http://"))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = w.Close() })
	return w
}

// Every queue's requests are cut in turns: after the core's answer, and before the body is there.
func TestWireCuts(t *testing.T) {
	t.Parallel()
	c := newCore(t)
	w := newWire(t, c)
	if err := offer(t, w, "result"); err != nil {
		t.Fatalf("an uncut wire: %v", err)
	}
	w.SetCut(true)
	for i, want := range []int{2, 2, 3, 4} { // batches that reached the core in all
		if err := offer(t, w, []string{"result", "result", "receipt", "result"}[i]); err == nil {
			t.Errorf("request %d was answered", i)
		}
		if got := len(c.batches()); got != want {
			t.Errorf("%d batches reached the core after request %d, want %d", got, i, want)
		}
	}
	if got := w.Counts(); got != [4]int{1, 3, 0, 0} {
		t.Errorf("counts %v", got)
	}
	w.SetCut(false)
	if err := offer(t, w, "result"); err != nil {
		t.Errorf("a mended wire: %v", err)
	}
}

// Events are added before and behind the others of every nth batch, never with an id twice, and who suffers from them is
// named.
func TestWireSpoils(t *testing.T) {
	t.Parallel()
	c := newCore(t)
	w := newWire(t, c)
	w.Spoil(2)
	for range 4 {
		if err := offer(t, w, "receipt"); err != nil {
			t.Fatal(err)
		}
	}
	ids := map[int64]bool{}
	for i, b := range c.batches() {
		if i%2 == 0 {
			if len(b) != 2 {
				t.Errorf("batch %d has %d events", i, len(b))
			}
			continue
		}
		if len(b) != 4 || b[1].ID != 4001 || b[2].ID != 4002 {
			t.Fatalf("batch %d: %+v", i, b)
		}
		ids[b[0].ID], ids[b[3].ID] = true, true
	}
	if got := w.Counts(); got != [4]int{0, 0, 4, 4} || len(ids) != 4 || ids[4001] || len(w.Complaints()) > 0 {
		t.Errorf("counts %v, ids %v, complaints %q", got, ids, w.Complaints())
	}
	c.mu.Lock()
	c.offended = true
	c.mu.Unlock()
	for range 2 {
		if err := offer(t, w, "receipt"); err != nil {
			t.Fatal(err)
		}
	}
	if got := strings.Join(w.Complaints(), "\n"); !strings.Contains(got, "neighbour 4001 was refused with BAD_EVENT") || !strings.Contains(got, "neighbour 4002") {
		t.Errorf("complaints %q", got)
	}
	w.Spoil(0)
	if err := offer(t, w, "receipt"); err != nil || len(c.batches()[6]) != 2 {
		t.Errorf("%v, %v", err, c.batches()[6])
	}
}
