// Package load plans what the simulated customers send: every message with its
// due time, its number and its place in the decks, before anything runs.
//
// The plan is a pure function of the scenario. Numbers are unique within a run,
// shared over the carriers' prefixes so that at every moment the shares hold to
// within one message; enterprises with even arrivals are shifted against each
// other, so that their messages do not fall on the same instant.
//
// It imports scenarios/internal/spec, simulator/{ismg,sp} and gateway/sms (to
// encode the text); it starts no goroutine and does no I/O.
package load
