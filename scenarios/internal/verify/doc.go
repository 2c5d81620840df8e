// Package verify decides whether the books of a run balance and whether every
// message, submit and receipt is accounted for.
//
// It compares independent witnesses: C what the customers recorded, S what the
// suppliers recorded, D the database in one REPEATABLE READ snapshot read with
// SQL of its own, R Redis, M the gateway's metrics. It never asks the gateway
// what the gateway says. Every check is a pure function of the Witness, so a
// stored run is checked again from its history file, and a planted fault in any
// witness must make its check fail.
//
// The three witnesses of money form a chain, each link checked by one name:
// account row = entries (conservation), entries = messages (billed_once),
// messages = what the suppliers accepted (charged_amount, released_amount,
// refunded_amount). Amounts are integers in 1/10,000 yuan.
//
// A recorded fault excuses exactly what it can have caused: a SUBMIT without an
// answer may be stored or not, and a receipt may come again whose acknowledgement
// was lost. Everything indeterminate must have ended in one fate (resolved), and
// only what was on its way at a kill may have become unknown (after_kill).
//
// It imports simulator/{ismg,sp} and reports/result for their records, and pgx
// for the snapshot; it starts no goroutine.
package verify
