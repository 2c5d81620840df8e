package cmpp

import (
	"fmt"
	"strconv"
)

// Results a [DecodeError] asks to be answered with (CMPP 2.0 §7.4.3.2, the Result field of SUBMIT_RESP).
const (
	resultStructure = 1 // a fixed field is missing
	resultCommand   = 2 // unknown command word
	resultLength    = 4 // Msg_Length or DestUsr_tl promises more than the frame holds
)

// DecodeError says why a whole, well-framed PDU could not be decoded. The stream is still in step, so the session may
// answer with Result and go on.
type DecodeError struct {
	Command Command
	Field   string // name in the specification, e.g. "Msg_Length"
	Detail  string
	Result  uint32 // CMPP Result to answer with: 1 structure, 2 command word, 4 message length
}

func (e *DecodeError) Error() string {
	return "cmpp: decode " + e.Command.String() + ": " + e.Field + ": " + e.Detail
}

// EncodeError says which value does not fit its field. Nothing of the frame was appended.
type EncodeError struct {
	Command Command
	Field   string // name in the specification, e.g. "Service_Id"
	Value   string // the value as text; for message content only its length
	Width   int    // octets the field has
}

func (e *EncodeError) Error() string {
	return "cmpp: encode " + e.Command.String() + ": " + e.Field + ": " + strconv.Quote(e.Value) +
		" does not fit " + strconv.Itoa(e.Width) + " octets"
}

// FrameError is a Total_Length that cannot be the length of a frame. The stream cannot be cut into frames any more: close
// the connection. Scanners that speak HTTP or TLS to the port end here, so it deserves a quiet log line.
type FrameError struct {
	Length uint32  // Total_Length as read
	Max    int     // largest length allowed; the smallest is HeaderLen
	Head   [4]byte // the four octets of Length, for recognising another protocol
}

func (e *FrameError) Error() string {
	return fmt.Sprintf("cmpp: frame length %d (octets %q) is outside %d..%d", e.Length, e.Head[:], HeaderLen, e.Max)
}
