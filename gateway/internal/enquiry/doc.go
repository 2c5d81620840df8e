// Package enquiry answers what customers ask about their SUBMITs: CANCEL and QUERY (CMPP 3.0 §8.4.4, §8.4.5).
//
// # CANCEL
//
// A SUBMIT can be taken back as long as nothing of it was given to a supplier connection, wherever it waits: inbox, for its
// time, for the other segments of its message, held for review, or in the queue of its channel. It ends as a whole: all
// recipients of a group, all segments of a long message, whichever of them the Msg_Id names; or not at all. Its money is
// released, and receipts that were asked for say DELETED. What waits before the workflow is marked and given back to the
// inbox; the workflow ends it. A CANCEL that is repeated gets the same answer.
//
// # QUERY
//
// Counts of one day of Asia/Shanghai, of one application, over all Service_Ids or one. Recipients count, except in
// MT_TLMsg, which counts SUBMITs; MT_Tlusr = MT_Scs + MT_WT + MT_FL. A count is kept for a while, for it reads all messages of
// the day.
//
// The enterprise's lock keeps the workflow off meanwhile. Lock order: enterprise → inbox → scheduled → segment_wait →
// review_hold → submit_outbox → message → … as everywhere.
package enquiry
