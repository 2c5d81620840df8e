// Package outbox brings the commands of submit_outbox to the edge that owns their channel.
//
// The row decides, never the stream (data §1.1, §1.2). After its COMMIT the core offers a hint: one entry per batch on the
// channel's Redis stream, and a nudge. The edge's [Source] takes whatever hints there are, and pulls pending rows from
// PostgreSQL whenever hints may be missing: when they were refused or dropped, when Redis errs or is slow, and once a second
// in any case. A command seen twice meets the dispatch barrier; a hint lost costs a second.
//
// A Source keeps at most two windows of commands per lane and offers them by lane, then in turn between enterprises, then by
// age. What does not fit stays in PostgreSQL, where it can still be withdrawn. Commands that waited longer than their class of
// traffic allows, whose validity has passed or that are stopped are not offered; the core ends them.
//
// It imports config, message and store. [Source.Run] is one goroutine of its caller and stops with its context;
// [RedisHinter] has none.
package outbox
