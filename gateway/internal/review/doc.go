// Package review is the waiting place of messages that a keyword holds for a decision (table review_hold).
//
// A held message is checked, its money frozen, and it has no submit. Its owner is whoever decides through the admin API;
// its bound is config.Workflow.ReviewMax an enterprise (the workflow refuses more with KEYWORD); its end is
// config.Workflow.ReviewWait or the message's validity, whichever comes first.
//
//	approved  → a submit, as if the workflow had just let it pass: by the settings, routes and opt-outs of now
//	rejected  → refused with KEYWORD, released, a failed receipt
//	in time   → expired with EXPIRED, released, a failed receipt
//
// Lock order: review_hold → submit_outbox → message → delivery → daily_use → account. Run is one goroutine, of its caller.
// Imports config, ledger, message, outbox (commands), policy, routing, settings, store and wake.
package review
