// Package serve runs a profile: suppliers, customers if there are any, and a
// read-only HTTP view of what they recorded.
//
// It imports the simulator's own packages and the standard library. Run starts
// everything, owns all goroutines and returns when they have ended.
package serve
