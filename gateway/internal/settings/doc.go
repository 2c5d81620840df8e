// Package settings is the part of the configuration that changes while the gateway runs: enterprises, applications, supplier
// accounts, channels, groups, routes, prefix rules and result classes, as stored in PostgreSQL. A Snapshot is read whole in
// one transaction and never changed afterwards; the Watcher replaces it when settings_version was raised.
//
// Snapshots serve everything but money and status: those the workflow reads in its own transaction (data §1.17).
//
// It imports cmpp, message, routing, sms and store. The Watcher's goroutine is Run, owned by its caller, stopped by its
// context.
package settings
