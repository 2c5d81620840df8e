// Package deadletter lists what the gateway could not use and did not throw away (table dead_letter), and offers it again
// once the cause is mended: refused events to the callback, reports to the search for their submit, receipts and uplinks to
// their customer. A replay is idempotent: what was applied before is not applied again.
package deadletter
