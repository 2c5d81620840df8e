// Package policy decides whether a message may be sent (capacity-plan §2, §12). It is pure: it looks at one message, at the
// lists of a Set and at the facts its caller loaded; the first rule that objects wins, and its reason is stored and reported
// to the customer.
//
//	Set     the lists at one version of the settings: limits, signatures, templates, keywords; compiled once, read-only
//	Check   what follows from the message alone: status, format, expiry, signature, template, keywords, quiet hours
//	Tally   what depends on what else was sent: opt-outs, duplicates, frequency, quotas; one per batch, in order
//
// The order of the rules is STATUS, FORMAT, EXPIRED, SIGNATURE, TEMPLATE, KEYWORD, RISK (quiet hours), BLACKLIST, RISK
// (duplicate, frequency), QUOTA; the caller adds ROUTE and BALANCE. Balance is decided by the freeze, under the account's own CHECK (data
// §1.10).
//
// It imports cmpp, sms and message; it starts no goroutine.
package policy
