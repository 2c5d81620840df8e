// Package segment decides which segments of long messages belong together. It is pure: it knows rows, not tables, and its
// caller gives it the time.
//
// Segments are of one set when their Key is equal: application, recipients, Src_Id, reference (8 and 16 bits apart) and total.
// References come again: after 256 messages, or at once, for some peers always use the same one. Time and content decide
// what a segment is then:
//
//   - The same content for a place that is taken is a repetition. It waits with its set and gets the message's receipt.
//   - Another content for a place that is taken begins another set. A segment that fits several sets goes to the one whose
//     Sequence_Ids it continues, else to the one that grew last.
//   - A segment that a message sent within Window had in the same place is doubtful: a late repetition, or another text
//     that reads the same there. It waits; the clean segment of its place, when it comes, pushes it out. A complete set in
//     which some segments are doubtful waits Doubt for that, and is sent then. One that is doubtful throughout and was sent
//     as it is within Window is a repetition: it is not sent again, and gets the receipts of the first.
//
// A set that is not complete Expiry after its first segment expires.
//
// It imports sms; it starts no goroutine.
package segment
