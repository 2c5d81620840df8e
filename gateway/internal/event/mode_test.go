package event_test

import (
	"net"
	"net/http"
	"net/http/httptest"
	"sync"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"cmppgateway/gateway/internal/event"
	"cmppgateway/gateway/internal/settings"
)

// mode is a mode that changes while the queue runs.
type mode struct {
	mu  sync.Mutex
	now settings.CallbackMode
}

func (m *mode) set(to settings.CallbackMode) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.now = to
}

func (m *mode) get(string) settings.CallbackMode {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.now
}

// Whatever the order of switches, every event is applied once and none comes both alone and in a batch that counts.
func TestModesAreSwitchedWithoutOfferingAnEventBothWays(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	var m mode
	stubborn := map[int64]bool{} // their first offers are refused for now; guarded by core.mu
	r.core.answer = func(e event.Event) event.Result {
		if e.ID%3 == 0 && !stubborn[e.ID] {
			stubborn[e.ID] = true
			return event.Result{Retryable: true, ErrorCode: "DB_BUSY"}
		}
		return event.Result{Accepted: true}
	}
	q, _ := r.start(t, func(o *event.Options) { o.Mode = m.get })
	const each = 60
	n := 0
	for _, now := range []settings.CallbackMode{settings.CallbackSingle, settings.CallbackShadow, settings.CallbackBatch, settings.CallbackSingle, settings.CallbackBatch} {
		m.set(now)
		for range each {
			n++
			q.Reserve(1)
			q.Result(result(int64(n)), true)
			q.Receipt(receipt(uint64(n)), func() {})
		}
		if now == settings.CallbackShadow {
			eventually(t, "all accepted before the next switch", func() bool { return q.Held() == 0 })
		}
	}
	eventually(t, "all accepted", func() bool { return q.Held() == 0 })
	r.core.mu.Lock()
	defer r.core.mu.Unlock()
	if len(r.core.applied) != 2*n {
		t.Errorf("%d events applied, want %d", len(r.core.applied), 2*n)
	}
	total := map[string]int{}
	for id, ways := range r.core.ways {
		if ways["batch"] > 0 && ways["single"] > 0 {
			t.Errorf("event %d came alone and in a batch: %v", id, ways)
		}
		if ways["shadow"] > 0 && ways["single"] == 0 {
			t.Errorf("event %d came as a shadow only: %v", id, ways)
		}
		for way := range ways {
			total[way]++
		}
	}
	for _, way := range []string{"batch", "single", "shadow"} {
		if total[way] == 0 {
			t.Errorf("no event came as %s: %v", way, total)
		}
	}
}

// A shadow that is answered otherwise is counted, and decides nothing.
func TestShadowIsComparedAndDecidesNothing(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	first := map[int64]bool{}
	r.core.answer = func(e event.Event) event.Result {
		if !first[e.ID] { // the shadow comes first
			first[e.ID] = true
			return event.Result{ErrorCode: "BAD_EVENT"}
		}
		return event.Result{Accepted: true}
	}
	reg := prometheus.NewRegistry()
	q, _ := r.start(t, func(o *event.Options) {
		o.Registerer = reg
		o.Mode = func(string) settings.CallbackMode { return settings.CallbackShadow }
	})
	q.Receipt(receipt(1), func() {})
	eventually(t, "accepted", func() bool { return q.Held() == 0 })
	if n := r.core.count(event.TypeReceipt); n != 1 {
		t.Errorf("%d receipts applied, want 1", n)
	}
	eventually(t, "the difference is counted", func() bool { return counter(t, reg, "cmppgw_event_shadow_total", "differs") == 1 })
}

// counter is the sum of the counters of that name with a label of that value.
func counter(t *testing.T, reg *prometheus.Registry, name, label string) (n float64) {
	t.Helper()
	families, err := reg.Gather()
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range families {
		if f.GetName() != name {
			continue
		}
		for _, m := range f.GetMetric() {
			for _, l := range m.GetLabel() {
				if l.GetValue() == label {
					n += m.GetCounter().GetValue()
				}
			}
		}
	}
	return n
}

// The client drops idle connections before the server does, so no request ever meets a connection that the server is
// closing: with a server that closes idle ones after a second, events with pauses between them need no second offer.
func TestIdleConnectionsEndAtTheClientFirst(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	closed := make(chan struct{}, 16)
	idle := httptest.NewUnstartedServer(http.HandlerFunc(r.core.serve))
	idle.Config.IdleTimeout = time.Second
	idle.Config.ConnState = func(_ net.Conn, s http.ConnState) {
		if s == http.StateClosed {
			closed <- struct{}{}
		}
	}
	idle.Start()
	t.Cleanup(idle.Close)
	reg := prometheus.NewRegistry()
	q, _ := r.start(t, func(o *event.Options) {
		o.URL, o.Registerer = idle.URL, reg
		o.Config.IdleTimeout = 300 * time.Millisecond
	})
	const events = 3
	for i := range events {
		q.Receipt(receipt(uint64(i+1)), func() {})
		eventually(t, "accepted", func() bool { return q.Held() == 0 })
		<-closed // the pause: until the idle connection is gone
	}
	r.core.mu.Lock()
	defer r.core.mu.Unlock()
	if r.core.offers != events || len(r.core.applied) != events {
		t.Errorf("%d offers and %d events applied, want %d of each", r.core.offers, len(r.core.applied), events)
	}
	if n := counter(t, reg, "cmppgw_event_retries_total", "receipt"); n != 0 {
		t.Errorf("%v second offers, want none", n)
	}
}
