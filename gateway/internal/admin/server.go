package admin

import (
	"bytes"
	"context"
	"crypto/subtle"
	"encoding/json"
	"errors"
	"io"
	"log/slog"
	"mime"
	"net"
	"net/http"
	"slices"
	"strings"
	"time"

	"cmppgateway/gateway/internal/manage"
	"cmppgateway/gateway/internal/review"
)

const (
	bodyMax   = 1 << 20
	importMax = 16 << 20
	keyMax    = 200
	// requestLimit bounds a request; an import of the longest list takes some seconds.
	requestLimit = 30 * time.Second
)

// server answers the API. It is immutable.
type server struct {
	manager *manage.Manager
	review  *review.Review // nil in a process without the core role
	publish func(topic string)
	token   string // configured: role admin
	log     *slog.Logger
	mux     *http.ServeMux
}

// call is one request of a route.
type call struct {
	*http.Request

	route   *route
	manager *manage.Manager
	review  *review.Review
	publish func(topic string)
	actor   manage.Actor
	body    manage.Doc
	raw     []byte
	etag    string // If-Match

	answer answer
	kept   bool   // the answer is stored for its idempotency key elsewhere
	after  func() // after COMMIT
}

// answer is what the caller gets.
type answer struct {
	status   int
	etag     string
	location string
	body     any // nil = none
	stored   any // what a repetition gets; nil = body. Secrets are shown once
}

func newServer(s *server) *server {
	s.mux = http.NewServeMux()
	for _, r := range routes() {
		s.mux.Handle(r.pattern(), s.handle(&r))
	}
	document := openAPI()
	s.mux.HandleFunc("GET /openapi.json", func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		_, _ = w.Write(document) // the caller is gone
	})
	s.mux.HandleFunc("/", s.unrouted)
	return s
}

// unrouted tells a wrong method from a wrong path.
func (s *server) unrouted(w http.ResponseWriter, r *http.Request) {
	var allowed []string
	for _, m := range []string{"GET", "POST", "PATCH", "DELETE"} {
		other := r.Clone(r.Context())
		other.Method = m
		if _, pattern := s.mux.Handler(other); pattern != "/" {
			allowed = append(allowed, m)
		}
	}
	if len(allowed) > 0 {
		w.Header().Set("Allow", strings.Join(allowed, ", "))
		s.refuse(w, r, problem{status: http.StatusMethodNotAllowed, code: "method", detail: "allowed are " + strings.Join(allowed, ", ")})
		return
	}
	s.refuse(w, r, problem{status: http.StatusNotFound, code: "not-found", detail: "no such path; /openapi.json lists them"})
}

// authenticate finds who calls.
func (s *server) authenticate(r *http.Request) (manage.Actor, error) {
	missing := problem{status: http.StatusUnauthorized, code: "no-token", detail: "Authorization: Bearer with a token that holds; `gateway token create` makes one"}
	given, ok := strings.CutPrefix(r.Header.Get("Authorization"), "Bearer ")
	if !ok {
		return manage.Actor{}, missing
	}
	actor := manage.Actor{Name: "configured token", Role: manage.Admin}
	if s.token == "" || subtle.ConstantTimeCompare([]byte(given), []byte(s.token)) != 1 {
		var err error
		if actor, err = s.manager.Authenticate(r.Context(), given); errors.Is(err, manage.ErrToken) {
			return actor, missing
		} else if err != nil {
			return actor, err
		}
	}
	actor.Remote, _, _ = net.SplitHostPort(r.RemoteAddr) // for people; '' serves
	return actor, nil
}

func (s *server) handle(rt *route) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		ctx, cancel := context.WithTimeout(r.Context(), requestLimit)
		defer cancel()
		r = r.WithContext(ctx)
		c := &call{Request: r, route: rt, manager: s.manager, review: s.review, publish: s.publish}
		if err := s.serve(ctx, w, c); err != nil {
			s.refuse(w, r, err)
			return
		}
		h := w.Header()
		h.Set("Cache-Control", "no-store")
		if c.answer.etag != "" {
			h.Set("ETag", c.answer.etag)
		}
		if c.answer.location != "" {
			h.Set("Location", c.answer.location)
		}
		if c.answer.body == nil {
			w.WriteHeader(c.answer.status)
			return
		}
		h.Set("Content-Type", "application/json")
		w.WriteHeader(c.answer.status)
		e := json.NewEncoder(w)
		e.SetEscapeHTML(false)
		_ = e.Encode(c.answer.body) // the caller is gone
	}
}

func (s *server) serve(ctx context.Context, w http.ResponseWriter, c *call) (err error) {
	if c.actor, err = s.authenticate(c.Request); err != nil {
		return err
	}
	if c.actor.Role&c.route.roles == 0 {
		return problem{status: http.StatusForbidden, code: "role", detail: "role " + c.actor.Role.String() + " may not; allowed are " + c.route.roles.String()}
	}
	if c.route.read != nil {
		return c.route.read(ctx, c)
	}
	if err := c.take(w); err != nil {
		return err
	}
	err = s.manager.Do(ctx, c.actor, func(ch *manage.Change) error {
		c.answer, c.kept, c.after = answer{}, false, nil
		if c.actor.Idem == "" {
			return c.route.write(ctx, ch, c)
		}
		earlier, err := ch.Replay(ctx, c.fingerprint())
		if err != nil {
			return err
		}
		if earlier != nil {
			c.answer = answer{status: earlier.Status, etag: earlier.ETag}
			if !bytes.Equal(earlier.Body, []byte("null")) {
				c.answer.body = json.RawMessage(earlier.Body)
			}
			w.Header().Set("Idempotent-Replayed", "true")
			return nil
		}
		if err := c.route.write(ctx, ch, c); err != nil || c.kept {
			return err
		}
		return c.keep(ctx, ch)
	})
	if err == nil && c.after != nil {
		c.after()
	}
	return err
}

// keep stores the answer for the idempotency key.
func (c *call) keep(ctx context.Context, ch *manage.Change) error {
	c.kept = true
	if c.actor.Idem == "" {
		return nil
	}
	stored := c.answer.stored
	if stored == nil {
		stored = c.answer.body
	}
	raw, err := json.Marshal(stored)
	if err != nil {
		return err
	}
	return ch.Keep(ctx, manage.Answer{Status: c.answer.status, ETag: c.answer.etag, Body: raw})
}

// fingerprint is what makes a request with an idempotency key another one. The fields are compared as they were read,
// whatever their order.
func (c *call) fingerprint() []byte {
	body, _ := json.Marshal(c.body) // it came from JSON
	return slices.Concat([]byte(c.Method+" "+c.URL.RequestURI()+"\n"+c.etag+"\n"), body, []byte("\n"), c.raw)
}

// take reads the headers and the body of a change.
func (c *call) take(w http.ResponseWriter) error {
	c.actor.Idem = c.Header.Get("Idempotency-Key")
	if len(c.actor.Idem) > keyMax {
		return manage.FaultsError{{Field: "Idempotency-Key", Value: c.actor.Idem[:20] + "…", Allowed: "1..200 octets"}}
	}
	if c.route.moneyKey && c.actor.Idem == "" {
		return problem{status: http.StatusBadRequest, code: "key-required", detail: "Idempotency-Key: a new one for each top-up, the same one for its repetitions"}
	}
	c.etag = c.Header.Get("If-Match")
	if c.route.ifMatch && c.etag == "" {
		return problem{status: http.StatusPreconditionRequired, code: "version-required", detail: `If-Match: the ETag that was read, or * for whatever is there`}
	}
	limit := int64(bodyMax)
	if c.route.lines != "" {
		limit = importMax
	}
	var err error
	if c.raw, err = io.ReadAll(http.MaxBytesReader(w, c.Body, limit)); err != nil {
		return err
	}
	if c.route.lines != "" || c.route.in == nil {
		return nil
	}
	if kind := c.Header.Get("Content-Type"); kind != "" {
		if media, _, err := mime.ParseMediaType(kind); err != nil || media != "application/json" && media != "application/merge-patch+json" {
			return problem{status: http.StatusUnsupportedMediaType, code: "media-type", detail: "application/json is taken"}
		}
	}
	c.body = manage.Doc{}
	if len(bytes.TrimSpace(c.raw)) > 0 {
		if c.body, err = object(c.raw); err != nil {
			return problem{status: http.StatusBadRequest, code: "body", detail: "the body is no JSON object: " + err.Error()}
		}
	}
	c.raw = nil
	return nil
}

// object reads one JSON object; a name that comes twice is an error, since readers differ in which one they take.
func object(raw []byte) (manage.Doc, error) {
	d := json.NewDecoder(bytes.NewReader(raw))
	d.UseNumber()
	if err := once(json.NewDecoder(bytes.NewReader(raw))); err != nil {
		return nil, err
	}
	var doc manage.Doc
	if err := d.Decode(&doc); err != nil {
		return nil, err
	}
	if doc == nil {
		return nil, errors.New("it is null")
	}
	if _, err := d.Token(); !errors.Is(err, io.EOF) {
		return nil, errors.New("something follows it")
	}
	return doc, nil
}

// once fails for an object with the same name twice. Only the outermost names are fields.
func once(d *json.Decoder) error {
	t, err := d.Token()
	if err != nil {
		return err
	}
	if t != json.Delim('{') {
		return errors.New("it does not begin with {")
	}
	seen := map[string]bool{}
	for d.More() {
		t, err := d.Token()
		if err != nil {
			return err
		}
		name, _ := t.(string)
		if seen[name] {
			return errors.New("the name " + name + " comes twice")
		}
		seen[name] = true
		var skip json.RawMessage
		if err := d.Decode(&skip); err != nil {
			return err
		}
	}
	return nil
}
