// Package cmpp turns CMPP 2.0, 2.1 and 3.0 frames into structs and structs into frames, and does nothing else.
//
// It knows the thirteen commands an SP and an ISMG exchange (CONNECT, TERMINATE, SUBMIT, DELIVER, QUERY, CANCEL,
// ACTIVE_TEST and their responses), the status report carried inside a DELIVER, the Msg_Id bit layout and the two login
// digests. The commands spoken between gateways (FWD, the routing family) are unknown commands here.
//
// # Rules of the codec
//
//   - Lengths are checked before anything is allocated: [Reader] refuses a frame by its Total_Length, a PDU refuses a
//     Msg_Length or DestUsr_tl larger than the octets that are left. Such a refusal inside a well-framed PDU is a
//     [*DecodeError] that carries the Result to answer with; the session may go on. A [*FrameError] ends the connection,
//     because the stream can no longer be cut into frames.
//   - Decoding is lenient where peers are known to differ: octets behind the last field are ignored, the last field of
//     SUBMIT, DELIVER and QUERY (LinkID, Reserve) may be short or missing, an ACTIVE_TEST_RESP may lack its octet, the
//     responses are accepted in the layout of the other version when their length is exactly that of the other layout.
//   - Encoding is strict: every field is padded with zero octets to its width, and a value that does not fit is an
//     [*EncodeError], never a cut value.
//   - A text field ends at its first zero octet or at its width; spaces around it are dropped.
//   - Whether a value makes sense (number of recipients, Msg_Fmt, content longer than 160 octets, the calendar in a
//     Msg_Id) is the business of the server above, not of the codec.
//
// The package imports the standard library only. It starts no goroutine, writes no log and keeps no state between calls
// apart from the buffer of a Reader. All functions may be called concurrently; a Reader and a PDU belong to one caller at
// a time.
//
// Source: CMPP 2.0 (2002-04) and CMPP 3.0.0 (QB-GF-028-2003) with the 3.0.1 revision list.
package cmpp
