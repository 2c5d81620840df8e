package cmpp

import "strings"

// Submit hands a message to the gateway (CMPP 2.0 §7.4.3.1, CMPP 3.0 §8.5.3). Widths are given as octets in 2.x / 3.0
// where they differ. The octet fields are taken as they come.
type Submit struct {
	MsgID              MsgID // left empty by the SP
	PkTotal            uint8 // segments of the long message; 0 on the wire is decoded as 1
	PkNumber           uint8 // index of this one from 1; 0 on the wire is decoded as 1
	RegisteredDelivery uint8 // 0 no report, 1 report, 2 charging record only (2.x)
	MsgLevel           uint8
	ServiceID          string // 10
	FeeUserType        uint8  // 0 destination, 1 source, 2 SP, 3 FeeTerminalID
	FeeTerminalID      string // 21 / 32; a filling of ASCII zeros is decoded as empty
	FeeTerminalType    uint8  // 3.0 only: 0 number, 1 pseudo code
	TPPID              uint8
	TPUDHI             uint8
	MsgFmt             uint8
	MsgSrc             string   // 6
	FeeType            string   // 2
	FeeCode            string   // 6
	ValidTime          string   // 17, SMPP 3.3 time or empty
	AtTime             string   // 17, SMPP 3.3 time or empty
	SrcID              string   // 21
	DestTerminalID     []string // 21 / 32 each; the codec carries 0 to 255, the specification allows 1 to 99
	DestTerminalType   uint8    // 3.0 only, one for the whole list
	MsgContent         []byte   // at most 255 octets, user-data header included
	LinkID             string   // 20 in 3.0; the 8 octets of Reserve in 2.x
}

// Command returns CmdSubmit.
func (*Submit) Command() Command { return CmdSubmit }

// Append implements [PDU].
func (p *Submit) Append(dst []byte, v Version, seq uint32) ([]byte, error) {
	wide, number := v.Wide(), v.pick(21, 32)
	e := begin(dst, CmdSubmit, seq, v.pick(126, 151)+number*len(p.DestTerminalID)+len(p.MsgContent))
	e.msgID(p.MsgID)
	e.u8(p.PkTotal)
	e.u8(p.PkNumber)
	e.u8(p.RegisteredDelivery)
	e.u8(p.MsgLevel)
	e.str("Service_Id", p.ServiceID, 10)
	e.u8(p.FeeUserType)
	e.str("Fee_terminal_Id", p.FeeTerminalID, number)
	if wide {
		e.u8(p.FeeTerminalType)
	}
	e.u8(p.TPPID)
	e.u8(p.TPUDHI)
	e.u8(p.MsgFmt)
	e.str("Msg_src", p.MsgSrc, 6)
	e.str("FeeType", p.FeeType, 2)
	e.str("FeeCode", p.FeeCode, 6)
	e.str("ValId_Time", p.ValidTime, 17)
	e.str("At_Time", p.AtTime, 17)
	e.str("Src_Id", p.SrcID, 21)
	e.count("DestUsr_tl", len(p.DestTerminalID), " recipients")
	for _, id := range p.DestTerminalID {
		e.str("Dest_terminal_Id", id, number)
	}
	if wide {
		e.u8(p.DestTerminalType)
	}
	e.content(p.MsgContent)
	e.str(tailName(v, "Reserve"), p.LinkID, v.pick(8, 20))
	return e.finish()
}

// Decode implements [PDU]. It reuses the array behind DestTerminalID, so that decoding into the same Submit again costs
// one allocation; who keeps the list must decode into a fresh Submit. LinkID may be short or missing in the frame.
func (p *Submit) Decode(body []byte, v Version) error {
	wide, number := v.Wide(), v.pick(21, 32)
	d := decoder{cmd: CmdSubmit, body: body, span: submitTexts(body, v)}
	p.MsgID = d.msgID()
	p.PkTotal = max(d.u8("Pk_total"), 1)
	p.PkNumber = max(d.u8("Pk_number"), 1)
	p.RegisteredDelivery = d.u8("Registered_Delivery")
	p.MsgLevel = d.u8("Msg_level")
	p.ServiceID = d.str("Service_Id", 10)
	p.FeeUserType = d.u8("Fee_UserType")
	p.FeeTerminalID = d.str("Fee_terminal_Id", number)
	p.FeeTerminalType = 0
	if wide {
		p.FeeTerminalType = d.u8("Fee_terminal_type")
	}
	p.TPPID = d.u8("TP_pId")
	p.TPUDHI = d.u8("TP_udhi")
	p.MsgFmt = d.u8("Msg_Fmt")
	p.MsgSrc = d.str("Msg_src", 6)
	p.FeeType = d.str("FeeType", 2)
	p.FeeCode = d.str("FeeCode", 6)
	p.ValidTime = d.str("ValId_Time", 17)
	p.AtTime = d.str("At_Time", 17)
	p.SrcID = d.str("Src_Id", 21)
	p.DestTerminalID = d.strs("DestUsr_tl", number, p.DestTerminalID)
	p.DestTerminalType = 0
	if wide {
		p.DestTerminalType = d.u8("Dest_terminal_type")
	}
	p.MsgContent = d.content()
	p.LinkID = d.tail(tailName(v, "Reserve"), v.pick(8, 20))
	if p.FeeTerminalID != "" && strings.Trim(p.FeeTerminalID, "0") == "" {
		p.FeeTerminalID = ""
	}
	return d.finish()
}

// submitTexts is how many octets of a body hold its texts: without LinkID the content behind the recipients need not be
// copied with them.
func submitTexts(body []byte, v Version) int {
	at := v.pick(116, 128) // DestUsr_tl
	if at >= len(body) {
		return len(body)
	}
	end := at + 1 + v.pick(21, 32)*int(body[at])
	length := end + v.pick(0, 1) // Msg_Length, behind Dest_terminal_type
	if length >= len(body) {
		return len(body)
	}
	if tail := length + 1 + int(body[length]); tail < len(body) && body[tail] != 0 {
		return len(body)
	}
	return end
}

// tailName is the name of the last field of SUBMIT and DELIVER: LinkID in the 3.0 layout, narrow before it.
func tailName(v Version, narrow string) string {
	if v.Wide() {
		return "LinkID"
	}
	return narrow
}
