// Package event carries what the suppliers said to the core: the wire types of the callback, and the edge's queue of
// events that the core has not accepted yet.
//
// The memory of a [Queue] is the queue; a Redis stream per kind is its copy, read back only after a crash: at start by the
// same node number, or by the node that adopts a dead one. Entries are batches, written by a script that compares the epoch
// this process last saw, so that a Redis that lost or restored anything makes the queue write again whatever it still holds
// (data §1.2, §1.5). An event is offered until the core accepts it or refuses it for good; at the bounds of the queue
// dispatching stops and DELIVERs stay unanswered, nothing is dropped (architecture P5, P9, P10).
//
// It imports config only; ids come through an interface. callback imports it for the types in types.go. [Queue.Run] starts and
// waits for a copier and a sender per queue, and returns when its context ends and what was not copied yet is.
package event
