// Package sms holds the rules of short-message content that are the same for every role of the gateway: the Msg_Fmt
// codecs, the user-data header of long messages, billing units and the normal form of telephone numbers.
//
// It is a leaf: it imports the standard library and golang.org/x/text only, does no I/O, keeps no state, starts no
// goroutine and never logs. Every function is pure and may be called from any number of goroutines.
//
// Sizes come from CMPP 3.0 §8.4.3 (Msg_Length at most 160 octets for Msg_Fmt 0, else 140) and 3GPP TS 23.040 §9.2.3.24
// (user-data header). An octet of Msg_Content is an octet of the frame: ASCII is not packed to seven bits.
package sms
