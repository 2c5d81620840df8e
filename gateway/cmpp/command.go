package cmpp

import "fmt"

// Command is the Command_Id of a header. A response has the id of its request with the top bit set.
type Command uint32

const responseBit = 0x80000000

// Commands exchanged between an SP and an ISMG (CMPP 3.0 §8.3).
const (
	CmdConnect    Command = 0x00000001
	CmdTerminate  Command = 0x00000002
	CmdSubmit     Command = 0x00000004
	CmdDeliver    Command = 0x00000005
	CmdQuery      Command = 0x00000006
	CmdCancel     Command = 0x00000007
	CmdActiveTest Command = 0x00000008

	CmdConnectResp    = responseBit | CmdConnect
	CmdTerminateResp  = responseBit | CmdTerminate
	CmdSubmitResp     = responseBit | CmdSubmit
	CmdDeliverResp    = responseBit | CmdDeliver
	CmdQueryResp      = responseBit | CmdQuery
	CmdCancelResp     = responseBit | CmdCancel
	CmdActiveTestResp = responseBit | CmdActiveTest
)

// IsResponse reports whether c answers a request.
func (c Command) IsResponse() bool { return c&responseBit != 0 }

// Response returns the command that answers c; a response is returned unchanged.
func (c Command) Response() Command { return c | responseBit }

// Request returns the command that c answers; a request is returned unchanged.
func (c Command) Request() Command { return c &^ responseBit }

// String returns the name in the specification without its CMPP_ prefix, or eight hex digits for an unknown command.
func (c Command) String() string {
	switch c {
	case CmdConnect:
		return "CONNECT"
	case CmdTerminate:
		return "TERMINATE"
	case CmdSubmit:
		return "SUBMIT"
	case CmdDeliver:
		return "DELIVER"
	case CmdQuery:
		return "QUERY"
	case CmdCancel:
		return "CANCEL"
	case CmdActiveTest:
		return "ACTIVE_TEST"
	case CmdConnectResp:
		return "CONNECT_RESP"
	case CmdTerminateResp:
		return "TERMINATE_RESP"
	case CmdSubmitResp:
		return "SUBMIT_RESP"
	case CmdDeliverResp:
		return "DELIVER_RESP"
	case CmdQueryResp:
		return "QUERY_RESP"
	case CmdCancelResp:
		return "CANCEL_RESP"
	case CmdActiveTestResp:
		return "ACTIVE_TEST_RESP"
	}
	return fmt.Sprintf("0x%08x", uint32(c))
}
