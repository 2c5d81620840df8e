package admin

import (
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"net/http"

	"cmppgateway/gateway/internal/manage"
	"cmppgateway/gateway/internal/store"
)

// Problem is the body of every refusal (RFC 9457).
type Problem struct {
	Type   string             `json:"type"` // about:blank
	Title  string             `json:"title"`
	Status int                `json:"status"`
	Code   string             `json:"code"` // one of codes
	Detail string             `json:"detail"`
	Faults manage.FaultsError `json:"faults,omitempty"` // everything wrong, at once
}

// problem is a refusal with its status.
type problem struct {
	status int
	code   string
	detail string
	faults manage.FaultsError
}

func (p problem) Error() string { return p.code + ": " + p.detail }

// codes are the reasons of refusals, for programs.
var codes = []string{
	"invalid", "conflict", "not-found", "stale", "version-required", "key-required", "key-reused", "no-token", "role", "method", "body", "too-large", "media-type", "busy", "internal",
}

// explain is the refusal that an error stands for.
func explain(err error) problem {
	var p problem
	var faults manage.FaultsError
	var large *http.MaxBytesError
	switch {
	case errors.As(err, &p):
		return p
	case errors.As(err, &faults) && faults.Conflict():
		return problem{http.StatusConflict, "conflict", "something else has or uses it", faults}
	case errors.As(err, &faults):
		return problem{http.StatusUnprocessableEntity, "invalid", "nothing was changed", faults}
	case errors.Is(err, manage.ErrNotFound):
		return problem{status: http.StatusNotFound, code: "not-found", detail: "no such resource"}
	case errors.Is(err, manage.ErrStale):
		return problem{status: http.StatusPreconditionFailed, code: "stale", detail: "changed by somebody else meanwhile: read it again"}
	case errors.Is(err, manage.ErrKeyReused):
		return problem{status: http.StatusConflict, code: "key-reused", detail: "the idempotency key was used for another request"}
	case errors.As(err, &large):
		return problem{status: http.StatusRequestEntityTooLarge, code: "too-large", detail: "the body is too large"}
	case store.IsTransient(err), errors.Is(err, context.DeadlineExceeded):
		return problem{status: http.StatusServiceUnavailable, code: "busy", detail: "the database did not answer; with the same idempotency key the request can be repeated"}
	}
	return problem{status: http.StatusInternalServerError, code: "internal", detail: "see the log"}
}

// refuse answers with what is wrong. Errors of our own are logged, without what the caller sent.
func (s *server) refuse(w http.ResponseWriter, r *http.Request, err error) {
	p := explain(err)
	if p.status >= http.StatusInternalServerError && r.Context().Err() == nil {
		s.log.Error("admin request failed", slog.String("method", r.Method), slog.String("route", r.Pattern), slog.Any("error", err))
	}
	switch p.status {
	case http.StatusUnauthorized:
		w.Header().Set("WWW-Authenticate", "Bearer")
	case http.StatusServiceUnavailable:
		w.Header().Set("Retry-After", "1")
	}
	w.Header().Set("Content-Type", "application/problem+json")
	w.WriteHeader(p.status)
	_ = json.NewEncoder(w).Encode(Problem{ // the caller is gone
		Type: "about:blank", Title: http.StatusText(p.status), Status: p.status, Code: p.code, Detail: p.detail, Faults: p.faults,
	})
}
