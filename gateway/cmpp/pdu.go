package cmpp

// PDU is one CMPP message.
type PDU interface {
	// Command returns the Command_Id of the message.
	Command() Command

	// Append appends the whole frame, header included, to dst and returns the longer slice. A value that does not fit
	// its field is an [*EncodeError] and a frame beyond [MaxFrame] octets as well; dst is then returned as it was.
	// Fields that the layout of v does not have are left out.
	Append(dst []byte, v Version, seq uint32) ([]byte, error)

	// Decode fills the message from body, a frame without its header, in the layout of v. Every field is overwritten.
	// Text is copied in one allocation, shared by all text fields of the message; octet content aliases body.
	// An error is a [*DecodeError] and leaves the message in an unspecified state.
	Decode(body []byte, v Version) error
}

// New returns an empty message for c, or nil when c is unknown.
func New(c Command) PDU {
	switch c {
	case CmdConnect:
		return new(Connect)
	case CmdConnectResp:
		return new(ConnectResp)
	case CmdTerminate:
		return new(Terminate)
	case CmdTerminateResp:
		return new(TerminateResp)
	case CmdSubmit:
		return new(Submit)
	case CmdSubmitResp:
		return new(SubmitResp)
	case CmdDeliver:
		return new(Deliver)
	case CmdDeliverResp:
		return new(DeliverResp)
	case CmdQuery:
		return new(Query)
	case CmdQueryResp:
		return new(QueryResp)
	case CmdCancel:
		return new(Cancel)
	case CmdCancelResp:
		return new(CancelResp)
	case CmdActiveTest:
		return new(ActiveTest)
	case CmdActiveTestResp:
		return new(ActiveTestResp)
	}
	return nil
}

// Decode decodes body into a fresh message of the command in h. Any error is a [*DecodeError], also for a command that is
// unknown, and the message is then nil. See [PDU] for what of body the message keeps.
func Decode(h Header, body []byte, v Version) (PDU, error) {
	p := New(h.Command)
	if p == nil {
		return nil, &DecodeError{Command: h.Command, Field: "Command_Id", Detail: "unknown command", Result: resultCommand}
	}
	if err := p.Decode(body, v); err != nil {
		return nil, err
	}
	return p, nil
}
