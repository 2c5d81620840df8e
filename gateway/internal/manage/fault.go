package manage

import (
	"errors"
	"fmt"
	"strings"
)

// Fault is one thing wrong with what was given.
type Fault struct {
	Field    string `json:"field"`
	Value    any    `json:"value"` // as given; secrets and long texts cut
	Allowed  string `json:"allowed"`
	Conflict bool   `json:"-"` // right in itself, but something else has or uses it
}

// String is one line.
func (f Fault) String() string {
	if f.Value == nil {
		return fmt.Sprintf("%s: missing, must be %s", f.Field, f.Allowed)
	}
	if s, ok := f.Value.(string); ok {
		return fmt.Sprintf("%s: %q, must be %s", f.Field, s, f.Allowed)
	}
	return fmt.Sprintf("%s: %v, must be %s", f.Field, f.Value, f.Allowed)
}

// FaultsError is everything wrong with one change; nothing was written.
type FaultsError []Fault

// Error is one line a fault.
func (f FaultsError) Error() string {
	lines := make([]string, len(f))
	for i := range f {
		lines[i] = f[i].String()
	}
	return strings.Join(lines, "\n")
}

// Conflict says that every fault is a conflict with something else.
func (f FaultsError) Conflict() bool {
	for i := range f {
		if !f[i].Conflict {
			return false
		}
	}
	return len(f) > 0
}

var (
	// ErrNotFound says that the row addressed does not exist.
	ErrNotFound = errors.New("no such resource")
	// ErrStale says that the row is no longer as its editor saw it.
	ErrStale = errors.New("changed by somebody else meanwhile")
	// ErrKeyReused says that an idempotency key came with another request before.
	ErrKeyReused = errors.New("the idempotency key was used for another request")
)

// cut is v for an error message.
func cut(v any) any {
	const most = 100
	if s, ok := v.(string); ok && len(s) > most {
		return strings.ToValidUTF8(s[:most], "") + "…"
	}
	return v
}
