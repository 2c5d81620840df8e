// Package restore notices a database that went back in time (restored from a backup, or an asynchronous standby promoted): it
// has forgotten what was sent, charged and delivered since, and sending its pending commands would send them twice. Three
// witnesses are compared at the start of every process and every second after: the cluster's system identifier, its
// timeline, and a counter ("beat") that every process raises in PostgreSQL and then tells Redis. A difference puts the
// installation into quarantine: processes end or wait, nothing is sent, no customer is let in, until an operator has looked
// and [Recover] has turned everything that may have been sent into unknown.
//
// What no witness sees: a restore of a copy younger than a second into the same cluster, or one together with the loss of
// Redis and without a new timeline.
package restore
