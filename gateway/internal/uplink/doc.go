// Package uplink brings messages from phones to the customers whose numbers they were sent to (architecture P4, data §1.15,
// capacity-plan §2).
//
// The callback stores an uplink once, however often its supplier repeats it, and gives it a place in uplink_queue in the
// same statement. From there it leaves in one transaction, which finds its application, waits for the other segments of
// a long one, writes deliveries (package delivery sends them) and opt-outs, and notes the outcome on its row. One
// transaction at a time does so in all processes; killed at any point, it is done anew or was done.
//
//	queue ──▶ to its customer (1)
//	  │  └──▶ uplink_segment ──all came──▶ to its customer, whole (2); repeated segments (4)
//	  │              └──SegmentExpiry──▶ to its customer, what came, with [缺2/3] where a segment is missing (3)
//	  └──▶ uplink_unmatched: nobody's (5) ──operator──▶ queue again, or put aside (6)
//
// # Whose it is
//
// The application with the longest access number that the uplink's number begins with. Access numbers no longer than the
// channel's do not tell customers apart: then all applications whose routes use the channel are candidates, those with the
// channel's very number first. Several candidates: the one that last wrote to the phone from that number. None of them
// did: nobody's. The customer gets the number as it writes it itself (Src_Id), with the digits the phone added.
//
// # Opt-outs
//
// A whole text that, in the normal form of package policy (no width, case, spaces, punctuation), is one of opt_out_word
// blocks marketing to the phone for the application's enterprise and the signature of the last message to the phone from
// that number; without such a message, or a signature in it, for every signature of the enterprise. The row names the uplink. One
// that is in force already stays as it is; one that was reversed is asked for anew. The customer gets the uplink like any other.
//
// # Bounds
//
//	one transaction    BatchMax uplinks, BatchMax sets of segments
//	waiting segments   SegmentsMax; beyond it segments go to the customer one by one, as they came
//	uplink_unmatched   UnmatchedMax rows, UnmatchedKeep old; the oldest leave
//	uplink             Keep; uplink_key KeyKeep
//
// Lock order: advisory lock → uplink_queue → uplink → uplink_segment → uplink_unmatched → delivery → opt_out. What fails for
// good is found by working on each alone, and goes to uplink_unmatched with reason 3.
//
// Run is one goroutine, of its caller. Imports config, message, policy, segment, settings, store, supplier (how Src_Ids are
// made) and wake.
package uplink
