// Package serve runs a profile: suppliers, customers if there are any, and an
// HTTP view of what they recorded, with orders for both (POST /control).
//
// It imports the simulator's own packages and the standard library. Run starts
// everything, owns all goroutines and returns when they have ended.
package serve
