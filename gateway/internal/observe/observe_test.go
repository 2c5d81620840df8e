package observe_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"log/slog"
	"net/http"
	"reflect"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"

	"cmppgateway/gateway/internal/config"
	"cmppgateway/gateway/internal/observe"
	"cmppgateway/gateway/internal/store"
	"cmppgateway/testenv"
)

func TestMain(m *testing.M) {
	testenv.Migrated(store.Migrate)
	testenv.Main(m)
}

func TestLogger(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		config config.Log
		want   string
	}{
		{config.Log{Level: "info", Format: "text"}, "level=INFO msg=b x=1\n"},
		{config.Log{Level: "debug", Format: "text"}, "level=DEBUG msg=a x=1\nlevel=INFO msg=b x=1\n"},
		{config.Log{Level: "error", Format: "text"}, ""},
		{config.Log{Level: "info", Format: "json"}, `"level":"INFO","msg":"b","x":1}` + "\n"},
	} {
		var b bytes.Buffer
		log := observe.Logger(&b, c.config)
		log.Debug("a", slog.Int("x", 1))
		log.Info("b", slog.Int("x", 1))
		var lines strings.Builder
		for line := range strings.Lines(b.String()) {
			at, after, ok := strings.Cut(line, " ")
			if !ok {
				at, after, _ = strings.Cut(line, `",`) // JSON: behind the time
			}
			if !strings.HasSuffix(at, "Z") {
				t.Errorf("time %s is not UTC", at)
			}
			lines.WriteString(after)
		}
		if lines.String() != c.want {
			t.Errorf("%+v: %q, want %q", c.config, lines.String(), c.want)
		}
	}
}

func serve(t *testing.T, c config.Admin, h *observe.Health) (*observe.Server, string) {
	t.Helper()
	c.Listen = "127.0.0.1:0"
	s, err := observe.New(t.Context(), observe.Options{Config: c, Registry: observe.Registry(), Health: h, Log: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background()) // until the cleanup
	done := make(chan error, 1)
	go func() { done <- s.Run(ctx) }()
	t.Cleanup(func() {
		cancel()
		if err := <-done; err != nil {
			t.Error(err)
		}
		http.DefaultClient.CloseIdleConnections()
	})
	return s, "http://" + s.Addr().String()
}

func get(t *testing.T, url, token string) (int, string) {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, url, nil)
	if err != nil {
		t.Fatal(err)
	}
	if token != "" {
		r.Header.Set("Authorization", "Bearer "+token)
	}
	resp, err := http.DefaultClient.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close() // read below
	body, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	return resp.StatusCode, string(body)
}

func TestReadiness(t *testing.T) {
	t.Parallel()
	var pg, redis error
	h := new(observe.Health)
	h.Add(observe.Check{Name: "postgres", Promises: []string{"P1", "P6"}, Probe: func(context.Context) error { return pg }})
	h.Add(observe.Check{Name: "redis", Promises: []string{"P4"}, Degraded: true, Probe: func(context.Context) error { return redis }})
	_, url := serve(t, config.Admin{}, h)
	down := errors.New("refused")
	brokenPG := observe.Broken{Check: "postgres", Promises: []string{"P1", "P6"}, Why: "refused"}
	brokenRedis := observe.Broken{Check: "redis", Promises: []string{"P4"}, Degraded: true, Why: "refused"}
	for _, c := range []struct {
		name      string
		stage     observe.Stage
		pg, redis error
		status    int
		want      observe.State
	}{
		{"starting", observe.Starting, nil, nil, 503, observe.State{Stage: "starting", Broken: []observe.Broken{}}},
		{"serving", observe.Serving, nil, nil, 200, observe.State{Ready: true, Stage: "serving", Broken: []observe.Broken{}}},
		{"redis away", observe.Serving, nil, down, 200, observe.State{Ready: true, Stage: "serving", Broken: []observe.Broken{brokenRedis}}},
		{"postgres away", observe.Serving, down, nil, 503, observe.State{Stage: "serving", Broken: []observe.Broken{brokenPG}}},
		{"both away", observe.Serving, down, down, 503, observe.State{Stage: "serving", Broken: []observe.Broken{brokenPG, brokenRedis}}},
		{"stopping", observe.Stopping, nil, nil, 503, observe.State{Stage: "stopping", Broken: []observe.Broken{}}},
	} {
		pg, redis = c.pg, c.redis
		h.Enter(c.stage)
		status, body := get(t, url+"/readyz", "")
		var got observe.State
		if err := json.Unmarshal([]byte(body), &got); err != nil {
			t.Fatal(err)
		}
		if status != c.status || !reflect.DeepEqual(got, c.want) {
			t.Errorf("%s: %d %+v, want %d %+v", c.name, status, got, c.status, c.want)
		}
		if status, _ := get(t, url+"/healthz", ""); status != 200 {
			t.Errorf("%s: /healthz %d; the process lives", c.name, status)
		}
	}
}

func TestReadinessDoesNotHangWithWhatItAsks(t *testing.T) {
	t.Parallel()
	h := new(observe.Health)
	h.Enter(observe.Serving)
	h.Add(observe.Check{Name: "frozen", Promises: []string{"P1"}, Probe: func(ctx context.Context) error {
		<-ctx.Done()
		return ctx.Err()
	}})
	if s := h.State(t.Context()); s.Ready || len(s.Broken) != 1 {
		t.Errorf("state %+v", s)
	}
}

func TestToken(t *testing.T) {
	t.Parallel()
	s, url := serve(t, config.Admin{Token: "open sesame"}, new(observe.Health))
	if status, _ := get(t, url+"/api/admin/effective", ""); status != http.StatusServiceUnavailable {
		t.Errorf("before the start is done: %d", status)
	}
	s.Admin(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, "inside") }))
	for _, c := range []struct {
		path, token string
		want        int
	}{
		{"/api/admin/effective", "", 200}, // the handler has tokens of its own
		{"/openapi.json", "", 200},
		{"/debug/pprof/", "", 401},
		{"/debug/pprof/", "open sesame", 200},
		{"/metrics", "", 200},
		{"/healthz", "", 200},
		{"/nothing", "open sesame", 404},
	} {
		if status, _ := get(t, url+c.path, c.token); status != c.want {
			t.Errorf("%s with token %q: %d, want %d", c.path, c.token, status, c.want)
		}
	}
}

func TestOccupiedPort(t *testing.T) {
	t.Parallel()
	s, _ := serve(t, config.Admin{}, new(observe.Health))
	_, err := observe.New(t.Context(), observe.Options{Config: config.Admin{Listen: s.Addr().String()}, Registry: observe.Registry(), Health: new(observe.Health), Log: slog.New(slog.DiscardHandler)})
	if err == nil || !strings.Contains(err.Error(), "admin.listen") {
		t.Errorf("error %v, want one that names the setting", err)
	}
}

func TestPoolGauges(t *testing.T) {
	t.Parallel()
	c := config.Default().Postgres
	c.URL, c.Pools.Inbox = testenv.DB(t), 1
	p, err := store.Open(t.Context(), c, time.Second)
	if err != nil {
		t.Fatal(err)
	}
	defer p.Close()
	r := observe.Registry()
	r.MustRegister(observe.Pools(p))
	conn, err := p.Inbox.Acquire(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	families, err := r.Gather()
	if err != nil {
		t.Fatal(err)
	}
	got := make(map[string]float64)
	for _, f := range families {
		for _, m := range f.GetMetric() {
			if l := m.GetLabel(); len(l) == 1 && l[0].GetValue() == "inbox" {
				got[f.GetName()] = m.GetGauge().GetValue() + m.GetCounter().GetValue()
			}
		}
	}
	if got["cmppgw_pg_pool_in_use"] != 1 || got["cmppgw_pg_pool_max"] != 1 {
		t.Errorf("gauges %v", got)
	}
	if _, ok := got["cmppgw_pg_pool_wait_seconds_total"]; !ok {
		t.Errorf("no waiting time in %v", got)
	}
	conn.Release()
	if problems, err := testutil.GatherAndLint(r, "cmppgw_pg_pool_in_use", "cmppgw_pg_pool_wait_seconds_total"); err != nil || len(problems) > 0 {
		t.Errorf("lint: %v, %v", problems, err)
	}
}

func TestClocks(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		away := errors.New("away")
		clocks := []observe.Clock{
			{Name: "ahead", Now: func(context.Context) (time.Time, error) {
				at := time.Now().Add(time.Second + 700*time.Millisecond)
				time.Sleep(time.Second / 2) // read at once, answered late
				return at, nil
			}},
			{Name: "away", Now: func(context.Context) (time.Time, error) { return time.Time{}, away }},
		}
		if ahead, margin, err := clocks[0].Apart(t.Context()); err != nil || (ahead-1700*time.Millisecond).Abs() > margin || margin != 250*time.Millisecond {
			t.Errorf("ahead %s ± %s, %v", ahead, margin, err)
		}
		if _, _, err := clocks[1].Apart(t.Context()); !errors.Is(err, away) {
			t.Errorf("error %v", err)
		}
		r := prometheus.NewRegistry()
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan error, 1)
		go func() { done <- observe.KeepClocks(ctx, r, clocks...) }()
		time.Sleep(time.Second)
		want := "# HELP cmppgw_clock_ahead_seconds How far the server's clock is ahead of this process's.\n# TYPE cmppgw_clock_ahead_seconds gauge\ncmppgw_clock_ahead_seconds{server=\"ahead\"} 1.45\n"
		if err := testutil.GatherAndCompare(r, strings.NewReader(want)); err != nil {
			t.Error(err)
		}
		cancel()
		if err := <-done; err != nil {
			t.Error(err)
		}
	})
}
