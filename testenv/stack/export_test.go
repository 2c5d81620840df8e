package stack

// ByVersion, ErrNoContainers and FreePort are here for the tests.
var (
	ByVersion       = byVersion
	ErrNoContainers = errNoContainers
	FreePort        = freePort
	EphemeralLow    = ephemeralLow
	ProcessesIn     = processesIn
)

// HideFolders leaves PATH as the only place programs are looked for in.
func HideFolders() { folders = nil }
