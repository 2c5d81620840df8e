// Package seed fills an empty gateway from one strict YAML file: enterprises with their opening balances (top-ups through
// the ledger), applications with prices and routes, supplier accounts, channels and groups. Applying the same file
// twice changes nothing. The admin API builds on the same tables.
//
// It starts no goroutine. Load collects every fault with its line; Apply is one transaction plus one top-up per
// enterprise that is idempotent on its own.
package seed
