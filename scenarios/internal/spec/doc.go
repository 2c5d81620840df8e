// Package spec reads the catalogue of scenarios, refuses what cannot be, and
// computes what a run must come to.
//
// A catalogue has a `defaults` section and `scenarios` by name. A section that a
// scenario gives replaces the one of the defaults as a whole. Every fault of a
// file is reported, each with its line and column: unknown and repeated keys,
// durations without a unit, numbers with leading zeros, values out of range.
//
// Expect deals the same decks as the simulated suppliers and applies the outcome
// table (architecture §4), so the expected messages, fates and sums of money are
// known before anything runs. Money is an integer count of 1/10,000 yuan.
//
// It imports simulator/ismg for the decks and the YAML parser; it starts no
// goroutine and does no I/O besides reading the files it is given.
package spec
