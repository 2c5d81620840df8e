// Package ismg simulates suppliers: accounts that take SUBMITs over CMPP 2.x
// or 3.0, answer them, and send status reports and uplinks, as a Profile says
// and with the faults a caller asks for. It keeps a Record of all it saw.
//
// # Fates
//
// What happens to a message is dealt from a shuffled deck, not diced: a Fate is
// a pure function of the seed, the recipient's number and the attempt. Every
// block of messages contains exactly the cards its DeckSpec counts. Delays are
// drawn from the seed and the number. Neither depends on connections, on the
// order of arrival or on the wall clock, so they survive reconnects and kills.
// An attempt is a SUBMIT of the same number and part, counted over all accounts.
//
// # What it does not do
//
// QUERY is answered with zero counters and CANCEL with a failure. Service_Id,
// fee fields, Valid_Time and At_Time are not judged. AuthenticatorISMG follows
// the account's layout. Nothing survives the process.
//
// # Imports, goroutines, stopping
//
// It imports simulator/internal/wire to read frames, simulator/simclock for
// time and gateway/cmpp to build frames and login digests; it never decodes
// with gateway/cmpp. Every connection has a reader and a writer; both end
// with Serve, which waits for them. Lock order: account.mu before Server.mu;
// Server.controlMu is taken with neither held. No lock is held during I/O.
package ismg
