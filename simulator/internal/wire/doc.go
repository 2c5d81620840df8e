// Package wire is the simulator's own reader of CMPP 2.x and 3.0 octets.
//
// It is written apart from gateway/cmpp on purpose: what the simulated
// suppliers and customers record is a second, independent reading of what the
// gateway put on the wire, so a mistake in the gateway's codec cannot confirm
// itself. Offsets are written out from CMPP 2.0 §5.1 and CMPP 3.0 §8.4 rather
// than derived from shared tables.
//
// It may import the standard library only. It starts no goroutine, does no
// logging and no I/O besides reading from the io.Reader given to NewReader.
// Decoded values alias the octets they were decoded from.
package wire
