// Package profile reads the file of `simulator serve`: which suppliers to
// simulate, and optionally which customers to drive against them.
//
// Reading is strict. Unknown keys, durations without a unit, numbers with a
// leading zero (YAML would read them as octal) and impossible values are all
// reported together, each with its line and column.
//
// It imports simulator/ismg for the supplier part and go.yaml.in/yaml/v4. It
// starts no goroutine and does no I/O.
package profile
