package cmpp

import (
	"encoding/binary"
	"fmt"
	"slices"
)

// Report is the status report inside the MsgContent of a Deliver with RegisteredDelivery 1 (CMPP 2.0 §7.4.5.1).
// Times and Stat are text as sent; peers put nonsense in them, so nothing is parsed here.
type Report struct {
	MsgID          MsgID  // of the Submit, from its SubmitResp
	Stat           string // 7, e.g. "DELIVRD"
	SubmitTime     string // 10, YYMMDDHHMM in Asia/Shanghai
	DoneTime       string // 10, YYMMDDHHMM in Asia/Shanghai
	DestTerminalID string // 21 / 32
	SMSCSequence   uint32
}

// Octets of a report: what all layouts share, and the whole in each.
const (
	reportHead   = 8 + 7 + 10 + 10
	reportNarrow = reportHead + 21 + 4
	reportWide   = reportHead + 32 + 4
)

// Append appends the report in the layout of v, 60 or 71 octets, to dst. A value that does not fit its field is an
// [*EncodeError]; dst is then returned as it was.
func (r *Report) Append(dst []byte, v Version) ([]byte, error) {
	e := encoder{cmd: CmdDeliver, start: len(dst), dst: slices.Grow(dst, reportWide)}
	e.msgID(r.MsgID)
	e.str("Stat", r.Stat, 7)
	e.str("Submit_time", r.SubmitTime, 10)
	e.str("Done_time", r.DoneTime, 10)
	e.str("Dest_terminal_Id", r.DestTerminalID, v.pick(21, 32))
	e.u32(r.SMSCSequence)
	if e.err != nil {
		return dst, e.err
	}
	return e.dst, nil
}

// ParseReport reads the content of a report. The layout is taken from the length, never from the version of the link:
// 71 octets or more are the 3.0 layout, 60 to 70 the 2.x one, the rest ignored. With 35 to 59 octets the id, the state and
// the times are taken, what follows them is taken for the number, and SMSCSequence is 0. Less is a [*DecodeError].
func ParseReport(content []byte) (Report, error) {
	if len(content) < reportHead {
		return Report{}, &DecodeError{
			Command: CmdDeliver, Field: "Msg_Content",
			Detail: fmt.Sprintf("a status report of %d octets, at least %d needed", len(content), reportHead),
			Result: resultLength,
		}
	}
	all := string(content)
	cut := func(at, width int) string { return clean(all[at : at+width]) }
	r := Report{
		MsgID:      MsgID(binary.BigEndian.Uint64(content)),
		Stat:       cut(8, 7),
		SubmitTime: cut(15, 10),
		DoneTime:   cut(25, 10),
	}
	switch n := len(content); {
	case n >= reportWide:
		r.DestTerminalID = cut(reportHead, 32)
		r.SMSCSequence = binary.BigEndian.Uint32(content[reportHead+32:])
	case n >= reportNarrow:
		r.DestTerminalID = cut(reportHead, 21)
		r.SMSCSequence = binary.BigEndian.Uint32(content[reportHead+21:])
	default:
		r.DestTerminalID = cut(reportHead, min(n-reportHead, 21))
	}
	return r, nil
}
