package callback

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"

	"cmppgateway/gateway/internal/event"
)

// batchIDMax bounds what is echoed.
const batchIDMax = 200

// parse reads a batch whose envelope is in order; the events' payloads are judged one by one. Its error names the field,
// its value and what is wanted.
func parse(r io.Reader) (event.BatchRequest, error) {
	var req event.BatchRequest
	body, err := io.ReadAll(r)
	if err != nil {
		return req, err
	}
	if err := json.Unmarshal(body, &req); err != nil {
		if t, ok := errors.AsType[*json.UnmarshalTypeError](err); ok {
			return req, fmt.Errorf("%s: %s at offset %d: want %s", t.Field, t.Value, t.Offset, t.Type)
		}
		if text := badID(body); text != "" {
			return req, errors.New(text)
		}
		return req, fmt.Errorf("body: %w", err)
	}
	if n := len(req.BatchID); n < 1 || n > batchIDMax {
		return req, fmt.Errorf("batchId: %d octets: want 1..%d", n, batchIDMax)
	}
	if n := len(req.Events); n < 1 || n > event.MaxEvents {
		return req, fmt.Errorf("events: %d: want 1..%d", n, event.MaxEvents)
	}
	for i, e := range req.Events {
		if e.ID <= 0 {
			return req, fmt.Errorf("events[%d].eventId: %d: want above 0", i, e.ID)
		}
	}
	return req, nil
}

// parseSingle reads the body of a single-event endpoint: an Event, whose type the path says.
func parseSingle(r io.Reader, kind string) (event.Event, error) {
	var e event.Event
	body, err := io.ReadAll(r)
	if err != nil {
		return e, err
	}
	if err := json.Unmarshal(body, &e); err != nil {
		return e, fmt.Errorf("body: %w", err)
	}
	if e.ID <= 0 {
		return e, fmt.Errorf("eventId: %d: want above 0", e.ID)
	}
	if e.Type != "" && e.Type != kind {
		return e, fmt.Errorf("type: %q: want %s, or nothing", e.Type, kind)
	}
	e.Type = kind
	return e, nil
}

// badID names the event whose id cannot be read, which the decoder does not.
func badID(body []byte) string {
	var req struct {
		Events []struct {
			ID any `json:"eventId"`
		} `json:"events"`
	}
	if json.Unmarshal(body, &req) != nil {
		return ""
	}
	for i, e := range req.Events {
		text, ok := e.ID.(string)
		if _, err := strconv.ParseInt(text, 10, 64); !ok || err != nil {
			return fmt.Sprintf("events[%d].eventId: %v: want a number above 0 as a string", i, e.ID)
		}
	}
	return ""
}

// decode reads a payload into v; the error is of that event alone.
func decode(e event.Event, v any) error {
	if len(bytes.TrimSpace(e.Payload)) == 0 {
		return errors.New("payload: missing")
	}
	if err := json.Unmarshal(e.Payload, v); err != nil {
		return fmt.Errorf("payload: %w", err)
	}
	return nil
}

func parseResult(e event.Event) (r event.SubmitResult, err error) {
	if err := decode(e, &r); err != nil {
		return r, err
	}
	r.Src = clean(r.Src)
	switch {
	case r.SubmitID <= 0:
		return r, fmt.Errorf("submitId: %d: want above 0", r.SubmitID)
	case r.MessageID <= 0:
		return r, fmt.Errorf("messageId: %d: want above 0", r.MessageID)
	case r.State != event.Accepted && r.State != event.Rejected && r.State != event.Unknown:
		return r, fmt.Errorf("state: %q: want %s, %s or %s", r.State, event.Accepted, event.Rejected, event.Unknown)
	case r.State == event.Accepted && r.Result != 0:
		return r, fmt.Errorf("result: %d: want 0 of an accepted submit", r.Result)
	case r.State == event.Rejected && r.Result == 0:
		return r, errors.New("result: 0: want the supplier's code of a rejected submit")
	}
	return r, nil
}

func parseReceipt(e event.Event) (r event.Receipt, err error) {
	if err := decode(e, &r); err != nil {
		return r, err
	}
	if r.AccountID <= 0 {
		return r, fmt.Errorf("accountId: %d: want above 0", r.AccountID)
	}
	if r.At.IsZero() {
		return r, errors.New("at: missing")
	}
	r.Stat, r.SubmitTime, r.DoneTime, r.Src = clean(r.Stat), clean(r.SubmitTime), clean(r.DoneTime), clean(r.Src)
	return r, nil
}

func parseUplink(e event.Event) (u event.Uplink, err error) {
	if err := decode(e, &u); err != nil {
		return u, err
	}
	if u.AccountID <= 0 {
		return u, fmt.Errorf("accountId: %d: want above 0", u.AccountID)
	}
	if u.At.IsZero() {
		return u, errors.New("at: missing")
	}
	u.Phone, u.Dest = clean(u.Phone), clean(u.Dest)
	return u, nil
}

// clean makes text of what a supplier sent that PostgreSQL takes: no zero octets, which pad fields on the wire.
func clean(s string) string {
	if strings.IndexByte(s, 0) < 0 {
		return s
	}
	return strings.ReplaceAll(s, "\x00", "")
}
