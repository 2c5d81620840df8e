// Package policy decides whether a message may be sent (capacity-plan §2). It is pure: Evaluate looks at one message and
// the facts its caller loaded, the first rule that objects wins, and its reason is stored and reported to the customer.
//
// Rules are a list in order; a further rule is one more function in it. Balance is not among them: the freeze decides
// it, under the account's own CHECK (data §1.10).
//
// It imports cmpp, sms and message; it starts no goroutine.
package policy
