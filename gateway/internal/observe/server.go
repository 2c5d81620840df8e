package observe

import (
	"context"
	"crypto/subtle"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/pprof"
	"strings"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"

	"cmppgateway/gateway/internal/config"
)

// Options of New; all are needed.
type Options struct {
	Config   config.Admin
	Registry *prometheus.Registry
	Health   *Health
	Log      *slog.Logger
}

// Server is the HTTP server of people and machines that look after the gateway.
type Server struct {
	http     *http.Server
	listener net.Listener
	admin    atomic.Pointer[http.Handler]
	control  atomic.Pointer[http.Handler]
}

// New listens, so that an occupied port is known before anything else starts. With a token configured the profiler and
// the control entry ask for it; the admin API knows tokens and roles of its own; health and metrics are open.
func New(ctx context.Context, o Options) (*Server, error) {
	var lc net.ListenConfig
	l, err := lc.Listen(ctx, "tcp", o.Config.Listen)
	if err != nil {
		return nil, fmt.Errorf("admin.listen: %w", err)
	}
	if o.Config.TLSCert != "" {
		load := func(*tls.ClientHelloInfo) (*tls.Certificate, error) {
			pair, err := tls.LoadX509KeyPair(o.Config.TLSCert, o.Config.TLSKey)
			return &pair, err
		}
		if _, err := load(nil); err != nil {
			return nil, errors.Join(fmt.Errorf("admin.tls_cert: %w", err), l.Close())
		}
		l = tls.NewListener(l, &tls.Config{MinVersion: tls.VersionTLS12, GetCertificate: load})
	}
	s := &Server{listener: l}
	mux := http.NewServeMux()
	mux.HandleFunc("GET /healthz", func(w http.ResponseWriter, _ *http.Request) {
		_, _ = io.WriteString(w, "ok\n") // the caller is gone
	})
	mux.HandleFunc("GET /readyz", o.Health.serveHTTP)
	mux.Handle("GET /metrics", promhttp.HandlerFor(o.Registry, promhttp.HandlerOpts{Registry: o.Registry}))
	mux.HandleFunc("/api/admin/", late(&s.admin)) // it asks for tokens of its own
	mux.HandleFunc("/openapi.json", late(&s.admin))
	private := http.NewServeMux()
	private.HandleFunc("/api/control/", late(&s.control))
	private.HandleFunc("/debug/pprof/", pprof.Index)
	private.HandleFunc("/debug/pprof/cmdline", pprof.Cmdline)
	private.HandleFunc("/debug/pprof/profile", pprof.Profile)
	private.HandleFunc("/debug/pprof/symbol", pprof.Symbol)
	private.HandleFunc("/debug/pprof/trace", pprof.Trace)
	mux.Handle("/", guarded(o.Config.Token, private))
	s.http = &http.Server{
		Handler: mux, ReadHeaderTimeout: 5 * time.Second, IdleTimeout: time.Minute, MaxHeaderBytes: 16 << 10,
		ErrorLog: slog.NewLogLogger(o.Log.Handler(), slog.LevelDebug),
	}
	return s, nil
}

// Admin gives the handler of everything under /api/admin/ and of /openapi.json; until then the answer is 503.
func (s *Server) Admin(h http.Handler) { s.admin.Store(&h) }

// Control gives the handler of everything under /api/control/, which asks for no token of its own; until then the answer
// is 503, as in a process without the edge role.
func (s *Server) Control(h http.Handler) { s.control.Store(&h) }

// late serves what is given later.
func late(given *atomic.Pointer[http.Handler]) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		h := given.Load()
		if h == nil {
			http.Error(w, "not served here, or starting", http.StatusServiceUnavailable)
			return
		}
		(*h).ServeHTTP(w, r)
	}
}

// Addr is where the server listens.
func (s *Server) Addr() net.Addr { return s.listener.Addr() }

// Run serves until ctx is done, then gives requests a second to end.
func (s *Server) Run(ctx context.Context) error {
	done := make(chan error, 1)
	go func() { done <- s.http.Serve(s.listener) }()
	select {
	case err := <-done:
		return fmt.Errorf("admin server: %w", err)
	case <-ctx.Done():
	}
	end, cancel := context.WithTimeout(context.WithoutCancel(ctx), time.Second)
	defer cancel()
	err := s.http.Shutdown(end)
	if errors.Is(err, context.DeadlineExceeded) { // a profile still runs
		err = s.http.Close()
	}
	if served := <-done; !errors.Is(served, http.ErrServerClosed) {
		err = errors.Join(err, served)
	}
	return err
}

func guarded(token string, h http.Handler) http.Handler {
	if token == "" {
		return h
	}
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		got, ok := strings.CutPrefix(r.Header.Get("Authorization"), "Bearer ")
		if !ok || subtle.ConstantTimeCompare([]byte(got), []byte(token)) != 1 {
			w.Header().Set("WWW-Authenticate", "Bearer")
			http.Error(w, "token required", http.StatusUnauthorized)
			return
		}
		h.ServeHTTP(w, r)
	})
}
