// Package sp simulates customers: accounts that log in over CMPP 2.x or 3.0
// with several connections, submit messages at the times they are due, take
// status reports and uplinks, acknowledge them, and keep a Record of it all.
//
// # Load
//
// Arrivals are an open model. A message is fired when it is due, whatever
// happened to the ones before it; when every window is full it waits, and the
// wait is part of its latency. Nothing is dropped silently: a message that
// could not be fired or sent is on record as NotSent. A message whose
// connection was lost after its octets may have left is Unanswered and is not
// sent again, since the peer may have taken it.
//
// # Imports, goroutines, stopping
//
// It imports simulator/internal/wire to read frames, simulator/simclock for
// time and gateway/cmpp to build frames and login digests. Client.Run owns one
// goroutine per connection, which owns a writer; all end with Run. Client.Send
// paces in its caller's goroutine. One mutex per Client guards its state and is
// not held during I/O.
package sp
