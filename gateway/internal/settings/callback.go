package settings

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"cmppgateway/gateway/internal/store"
)

// CallbackMode is how events of a type travel to the core (capacity-plan §6.5).
type CallbackMode int16

// Callback modes. In each of them an event is applied once.
const (
	CallbackBatch  CallbackMode = iota // many events a request
	CallbackShadow                     // an event a request; the batch is sent too, judged and taken back, and the answers are compared
	CallbackSingle                     // an event a request
)

var callbackModes = []string{"batch", "shadow", "single"}

// String is the word ParseCallbackMode reads.
func (m CallbackMode) String() string {
	if m < 0 || int(m) >= len(callbackModes) {
		return fmt.Sprintf("mode(%d)", int16(m))
	}
	return callbackModes[m]
}

// ParseCallbackMode reads "batch", "shadow" or "single".
func ParseCallbackMode(s string) (CallbackMode, error) {
	if i := slices.Index(callbackModes, s); i >= 0 {
		return CallbackMode(i), nil
	}
	return 0, fmt.Errorf("callback mode %q: want %s", s, strings.Join(callbackModes, ", "))
}

// EventTypes are the five types of the callback protocol.
var EventTypes = []string{"submit_segment_result", "submit_result", "receipt_intake", "uplink", "dead_letter"}

// CallbackMode is how events of that type travel.
func (s *Snapshot) CallbackMode(eventType string) CallbackMode { return s.callback[eventType] }

func loadCallbackModes(ctx context.Context, tx pgx.Tx) (map[string]CallbackMode, error) {
	list, err := rows[struct {
		Type string
		Mode CallbackMode
	}](ctx, tx, "callback modes", store.SettingsCallback)
	if err != nil {
		return nil, err
	}
	modes := make(map[string]CallbackMode, len(list))
	for _, m := range list {
		modes[m.Type] = m.Mode
	}
	return modes, nil
}

// SetCallbackMode changes how events of a type travel. Every edge takes it up with its next look at the settings: events it
// has offered before are finished in the way they began.
func SetCallbackMode(ctx context.Context, pool *pgxpool.Pool, eventType string, mode CallbackMode) error {
	var faults []error
	if !slices.Contains(EventTypes, eventType) {
		faults = append(faults, fmt.Errorf("event type %q: want %s", eventType, strings.Join(EventTypes, ", ")))
	}
	if mode < CallbackBatch || mode > CallbackSingle {
		faults = append(faults, fmt.Errorf("callback mode %d: want 0..2", mode))
	}
	if len(faults) > 0 {
		return errors.Join(faults...)
	}
	err := store.InTx(ctx, pool, func(tx pgx.Tx) error {
		_, err := tx.Exec(ctx, store.SettingsCallbackSet, eventType, mode)
		return err
	})
	if err != nil {
		return fmt.Errorf("set callback mode: %w", err)
	}
	return nil
}
