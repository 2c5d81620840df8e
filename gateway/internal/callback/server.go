package callback

import (
	"bytes"
	"context"
	"crypto/sha256"
	"crypto/subtle"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"os"
	"strings"
	"sync"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/prometheus/client_golang/prometheus"

	"cmppgateway/gateway/internal/config"
	"cmppgateway/gateway/internal/event"
	"cmppgateway/gateway/internal/failpoint"
	"cmppgateway/gateway/internal/outbox"
	"cmppgateway/gateway/internal/settings"
	"cmppgateway/gateway/internal/settlement"
	"cmppgateway/gateway/internal/store"
)

// requestsMax bounds the requests in work, and with them the memory they hold; beyond, a request is answered 503.
const requestsMax = 64

// Settings gives the current settings.
type Settings interface {
	Current() *settings.Snapshot
}

// Options of a Server; all fields but Config.Token are required.
type Options struct {
	Config   config.Callback
	Pool     *pgxpool.Pool // role callback
	Node     *store.Node
	Settings Settings
	Wake     settlement.Waker
	Hints    outbox.Hinter
	Log      *slog.Logger
	Registry prometheus.Registerer
	Parking  Parking // nil = there is always room
}

// Parking says whether there is room for receipts whose submit is not known yet.
type Parking interface {
	Full(account int32) bool // of a supplier account
}

// Server takes events, in batches and alone. Create it with New, start it once with Run.
type Server struct {
	Options

	listener net.Listener
	http     *http.Server
	intake   *intake
	metrics  *metrics
	slots    chan struct{}
	token    [sha256.Size]byte
}

// New listens at Config.Listen; requests are taken once Run is called.
func New(ctx context.Context, o Options) (*Server, error) {
	secure, err := tlsConfig(o.Config)
	if err != nil {
		return nil, fmt.Errorf("callback: %w", err)
	}
	l, err := new(net.ListenConfig).Listen(ctx, "tcp", o.Config.Listen)
	if err != nil {
		return nil, fmt.Errorf("callback: %w", err)
	}
	if secure != nil {
		l = tls.NewListener(l, secure)
	}
	s := &Server{
		Options: o, listener: l, metrics: newMetrics(o.Registry), slots: make(chan struct{}, requestsMax), token: sha256.Sum256([]byte(o.Config.Token)),
		intake: newIntake(o.Pool, o.Node, o.Log),
	}
	mux := http.NewServeMux()
	mux.Handle(event.Path, s.endpoint(s.batch))
	for _, kind := range settings.EventTypes {
		mux.Handle(event.SinglePath(kind), s.endpoint(func(ctx context.Context, body io.Reader) (any, error) { return s.single(ctx, body, kind) }))
	}
	mux.HandleFunc("/", func(w http.ResponseWriter, r *http.Request) {
		refuse(w, http.StatusNotFound, "NOT_FOUND", fmt.Sprintf("path %q: want %s or %s", r.URL.Path, event.Path, event.SinglePath("TYPE")))
	})
	s.http = &http.Server{
		Handler: mux, ReadHeaderTimeout: o.Config.HeaderTimeout, IdleTimeout: o.Config.IdleTimeout, MaxHeaderBytes: 16 << 10,
		ErrorLog: slog.NewLogLogger(o.Log.Handler(), slog.LevelWarn),
	}
	return s, nil
}

// tlsConfig is nil for plain HTTP. With a client authority only edges that prove themselves get through the handshake.
func tlsConfig(c config.Callback) (*tls.Config, error) {
	if c.TLSCert == "" {
		return nil, nil //nolint:nilnil // plain HTTP
	}
	cert, err := tls.LoadX509KeyPair(c.TLSCert, c.TLSKey)
	if err != nil {
		return nil, fmt.Errorf("tls_cert, tls_key: %w", err)
	}
	t := &tls.Config{MinVersion: tls.VersionTLS12, Certificates: []tls.Certificate{cert}}
	if c.TLSClientCA == "" {
		return t, nil
	}
	pem, err := os.ReadFile(c.TLSClientCA)
	if err != nil {
		return nil, fmt.Errorf("tls_client_ca: %w", err)
	}
	t.ClientCAs, t.ClientAuth = x509.NewCertPool(), tls.RequireAndVerifyClientCert
	if !t.ClientCAs.AppendCertsFromPEM(pem) {
		return nil, fmt.Errorf("tls_client_ca: no certificate in %s", c.TLSClientCA)
	}
	return t, nil
}

// Addr is where the server listens.
func (s *Server) Addr() string { return s.listener.Addr().String() }

// Run serves until ctx is done, then answers the requests it has.
func (s *Server) Run(ctx context.Context) error {
	var wg sync.WaitGroup
	writing, stopWriting := context.WithCancel(context.WithoutCancel(ctx))
	defer stopWriting()
	wg.Go(func() { s.intake.run(writing) })
	served := make(chan error, 1)
	wg.Go(func() { served <- s.http.Serve(s.listener) })
	var err error
	select {
	case err = <-served:
	case <-ctx.Done():
		last, cancel := context.WithTimeout(context.WithoutCancel(ctx), s.Config.RequestDeadline)
		err = s.http.Shutdown(last)
		cancel()
		if err != nil {
			err = errors.Join(err, s.http.Close())
		}
	}
	stopWriting()
	wg.Wait()
	if errors.Is(err, http.ErrServerClosed) {
		err = nil
	}
	if err != nil {
		return fmt.Errorf("callback: %w", err)
	}
	return nil
}

// batch applies a batch, or says what it would do when it is a shadow.
func (s *Server) batch(ctx context.Context, body io.Reader) (any, error) {
	req, err := parse(body)
	if err != nil {
		return nil, err
	}
	w := &work{Server: s, shadow: req.Shadow}
	return event.BatchResponse{BatchID: req.BatchID, Results: w.apply(ctx, req.Events)}, nil
}

// single applies one event, with the same idempotency: whether an event comes alone or in a batch, or once each way, it is
// applied once (capacity-plan §6.5).
func (s *Server) single(ctx context.Context, body io.Reader, kind string) (any, error) {
	e, err := parseSingle(body, kind)
	if err != nil {
		return nil, err
	}
	w := &work{Server: s}
	return w.apply(ctx, []event.Event{e})[0], nil
}

// endpoint bounds, checks and times what all endpoints have in common. An error of f is the request's fault.
func (s *Server) endpoint(f func(context.Context, io.Reader) (any, error)) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		start := time.Now()
		select {
		case s.slots <- struct{}{}:
			defer func() { <-s.slots }()
		default:
			refuse(w, http.StatusServiceUnavailable, codeBusy, fmt.Sprintf("%d requests in work: no more than that", requestsMax))
			return
		}
		if r.Method != http.MethodPost {
			w.Header().Set("Allow", http.MethodPost)
			refuse(w, http.StatusMethodNotAllowed, "METHOD_NOT_ALLOWED", fmt.Sprintf("method %s: want POST", r.Method))
			return
		}
		if !s.allowed(r) {
			refuse(w, http.StatusUnauthorized, "UNAUTHORIZED", "Authorization: want the bearer token of callback.token")
			return
		}
		ctx, cancel := context.WithTimeout(r.Context(), s.Config.RequestDeadline) // r's is canceled when the client goes
		defer cancel()
		// A body that trickles in is as slow as a transaction that hangs.
		conn := http.NewResponseController(w)
		err := conn.SetReadDeadline(start.Add(s.Config.RequestDeadline))
		var body []byte
		if err == nil {
			body, err = io.ReadAll(http.MaxBytesReader(w, r.Body, event.MaxBytes))
		}
		if err == nil {
			err = conn.SetReadDeadline(time.Time{}) // from here on a read only tells that the client has gone
		}
		var resp any
		if err == nil {
			resp, err = f(ctx, bytes.NewReader(body))
		}
		if err != nil {
			status, code := http.StatusBadRequest, "BAD_REQUEST"
			if _, large := errors.AsType[*http.MaxBytesError](err); large {
				status, code = http.StatusRequestEntityTooLarge, "TOO_LARGE"
				err = fmt.Errorf("body: more than %d octets", event.MaxBytes)
			}
			refuse(w, status, code, err.Error())
			return
		}
		failpoint.Hit(failpoint.AfterCallbackCommit)
		s.metrics.request.Observe(time.Since(start).Seconds())
		answer(w, http.StatusOK, resp)
	})
}

func (s *Server) allowed(r *http.Request) bool {
	if s.Config.Token == "" {
		return true
	}
	scheme, token, _ := strings.Cut(r.Header.Get("Authorization"), " ")
	got := sha256.Sum256([]byte(strings.TrimSpace(token)))
	return strings.EqualFold(scheme, "Bearer") && subtle.ConstantTimeCompare(got[:], s.token[:]) == 1
}

// refusal is the answer to a request that is no batch.
type refusal struct {
	Code    string `json:"code"`
	Message string `json:"message"`
}

func refuse(w http.ResponseWriter, status int, code, text string) {
	answer(w, status, refusal{code, text})
}

func answer(w http.ResponseWriter, status int, v any) {
	body, err := json.Marshal(v)
	if err != nil { // of our own types: cannot be
		status, body = http.StatusInternalServerError, nil
	}
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_, _ = w.Write(body) // when the client has gone, it offers the batch again
}
