// Package message holds the nouns of the gateway: ids, states and their transition tables, refusal reasons and result
// classes. It imports only cmpp and sms, starts no goroutine and does no I/O.
//
// States (architecture §3; the database repeats each rule as a CHECK and as the WHERE of a guarded UPDATE):
//
//	message  checked → submitted → delivered | failed
//	         checked → expired | cancelled | failed
//	         checked | submitted → unknown → checked | submitted | delivered | failed
//	         rejected is a first state: a message refused by policy is inserted final
//	submit   pending → dispatched → accepted | rejected | unknown
//	         dispatched → pending (only the process life that ran the barrier, surely not written)
//	         pending → withdrawn (row deleted), unknown → accepted | rejected
//	billing  none, frozen → charged → refunded, frozen → released
package message
