// Package simclock is the one monotonic clock shared by the simulated
// customers, the simulated suppliers and whoever compares their records.
//
// It is a leaf of the standard library: no goroutine, no state that changes.
package simclock
