// Package seed fills an empty gateway from one strict YAML file: enterprises with their opening balances, applications with
// prices and routes, supplier accounts, channels, groups, texts, lists and limits. Its sections and fields are those of
// package manage, which also writes them: what the admin API refuses, a file is refused for. Applying the same file twice
// changes nothing.
//
// It starts no goroutine. Load reads and takes apart; Faults is what can be said without a database; Apply is one
// transaction plus one top-up per enterprise that is idempotent on its own.
package seed
