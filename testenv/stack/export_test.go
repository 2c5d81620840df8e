package stack

import "context"

// For the tests.
var (
	ByVersion       = byVersion
	ErrNoContainers = errNoContainers
	EphemeralLow    = ephemeralLow
	ProcessesIn     = processesIn
)

// HideFolders leaves PATH as the only place programs are looked for in.
func HideFolders() { folders = nil }

// First starts a stopped server as if for the first time.
func (p *Process) First(ctx context.Context, pick func(context.Context) (int, error)) error {
	return p.first(ctx, pick)
}
