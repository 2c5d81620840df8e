// Package ledger moves and proves money (architecture §4, data §1.8 and §2.1).
//
// Amounts are int64 in 1/10,000 yuan. An account is written by top-up, freeze, release and refund only, always as the
// last statement of its transaction and, where several accounts are concerned, in ascending id. A charge adds an entry
// and leaves the account alone. One entry covers one batch of messages of one account; each message points at its
// freeze, settle and refund entry, so that three independent writes of one transaction can be compared: the running
// balance, the entries, and the messages.
//
// The package queues statements on the caller's batch or reads; it starts no goroutine.
package ledger
