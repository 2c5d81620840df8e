package observe

import (
	"context"
	"encoding/json"
	"net/http"
	"sync"
	"sync/atomic"
	"time"
)

// Check is one condition that promises of the gateway rest on (architecture §2).
type Check struct {
	Name     string
	Promises []string // kept no longer while Probe fails, as "P1"
	Degraded bool     // the gateway goes on, slower: stays ready
	Probe    func(ctx context.Context) error
}

// Stage is how far the process is in its life.
type Stage int32

// Stages. Only a Serving process can be ready.
const (
	Starting Stage = iota
	Serving
	Stopping
)

// String is the word shown to people.
func (s Stage) String() string { return [...]string{"starting", "serving", "stopping"}[s] }

// Health answers /readyz. Safe for concurrent use.
type Health struct {
	stage  atomic.Int32
	mu     sync.Mutex
	checks []Check
}

// Enter begins a stage.
func (h *Health) Enter(s Stage) { h.stage.Store(int32(s)) }

// Add adds a check.
func (h *Health) Add(c Check) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.checks = append(h.checks, c)
}

// probeTimeout bounds one check: an outage must not make the answer itself late.
const probeTimeout = time.Second

// Broken is one check that fails.
type Broken struct {
	Check    string   `json:"check"`
	Promises []string `json:"promises"`
	Degraded bool     `json:"degraded"`
	Why      string   `json:"why"`
}

// State is the answer of /readyz.
type State struct {
	Ready  bool     `json:"ready"`
	Stage  string   `json:"stage"`
	Broken []Broken `json:"broken"`
}

// State runs all checks at the same time.
func (h *Health) State(ctx context.Context) State {
	ctx, cancel := context.WithTimeout(ctx, probeTimeout)
	defer cancel()
	h.mu.Lock()
	checks := h.checks
	h.mu.Unlock()
	errs := make([]error, len(checks))
	var wg sync.WaitGroup
	for i := range checks {
		wg.Go(func() { errs[i] = checks[i].Probe(ctx) })
	}
	wg.Wait()
	stage := Stage(h.stage.Load())
	s := State{Ready: stage == Serving, Stage: stage.String(), Broken: []Broken{}}
	for i, c := range checks {
		if errs[i] != nil {
			s.Broken = append(s.Broken, Broken{c.Name, c.Promises, c.Degraded, errs[i].Error()})
			s.Ready = s.Ready && c.Degraded
		}
	}
	return s
}

func (h *Health) serveHTTP(w http.ResponseWriter, r *http.Request) {
	s := h.State(r.Context())
	w.Header().Set("Content-Type", "application/json")
	if !s.Ready {
		w.WriteHeader(http.StatusServiceUnavailable)
	}
	_ = json.NewEncoder(w).Encode(s) // the caller is gone
}
