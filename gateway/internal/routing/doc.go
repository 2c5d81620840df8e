// Package routing answers two questions of the workflow: which carrier a number belongs to, and which channel of a group
// a message goes to next.
//
// It imports the standard library only, does no I/O, starts no goroutine and never logs. A Table and a Group are made
// from configuration, never changed afterwards, and may be read by any number of goroutines; new configuration is a new
// Table and new Groups.
//
// A prefix gives the carrier that a number was allocated to. A number that was ported keeps its prefix, so the answer is
// a first choice: temporary rules come before the table, and a supplier's "ported" answer reroutes the message.
package routing
