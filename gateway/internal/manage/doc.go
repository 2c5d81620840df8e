// Package manage is what people administer: each kind of rows declared once, with its fields, their ranges, who may read
// and change them. The admin API, its OpenAPI document and the seed file are three readers of the same declarations, and
// write through the same functions.
//
// A Change is one transaction: its rows, the audit of each with before and after, the raised settings version, and the
// account's lock last. Changes of settings run one at a time. Secrets are taken and never given back, except once where
// they are made.
//
// It imports ledger, message, routing, sms and store, and starts no goroutine.
package manage
