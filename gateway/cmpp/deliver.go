package cmpp

// Deliver brings an SP a message from a phone or, with RegisteredDelivery 1, a status report whose [Report] is MsgContent
// (CMPP 2.0 §7.4.5.1, CMPP 3.0 §8.5.5). Widths are given as octets in 2.x / 3.0 where they differ.
type Deliver struct {
	MsgID              MsgID  // of this Deliver; DeliverResp repeats it
	DestID             string // 21, the SP's number with extension digits
	ServiceID          string // 10
	TPPID              uint8
	TPUDHI             uint8 // peers send 0x01 or 0x40 for "has a header"
	MsgFmt             uint8
	SrcTerminalID      string // 21 / 32; in a report the recipient of the original message
	SrcTerminalType    uint8  // 3.0 only: 0 number, 1 pseudo code
	RegisteredDelivery uint8  // 0 message, 1 status report
	MsgContent         []byte // at most 255 octets
	LinkID             string // 20 in 3.0; the 8 octets of Reserved in 2.x
}

// Command returns CmdDeliver.
func (*Deliver) Command() Command { return CmdDeliver }

// Append implements [PDU].
func (p *Deliver) Append(dst []byte, v Version, seq uint32) ([]byte, error) {
	e := begin(dst, CmdDeliver, seq, v.pick(73, 97)+len(p.MsgContent))
	e.msgID(p.MsgID)
	e.str("Dest_Id", p.DestID, 21)
	e.str("Service_Id", p.ServiceID, 10)
	e.u8(p.TPPID)
	e.u8(p.TPUDHI)
	e.u8(p.MsgFmt)
	e.str("Src_terminal_Id", p.SrcTerminalID, v.pick(21, 32))
	if v.Wide() {
		e.u8(p.SrcTerminalType)
	}
	e.u8(p.RegisteredDelivery)
	e.content(p.MsgContent)
	e.str(tailName(v, "Reserved"), p.LinkID, v.pick(8, 20))
	return e.finish()
}

// Decode implements [PDU]. LinkID may be short or missing in the frame.
func (p *Deliver) Decode(body []byte, v Version) error {
	d := decoder{cmd: CmdDeliver, body: body, span: len(body)}
	p.MsgID = d.msgID()
	p.DestID = d.str("Dest_Id", 21)
	p.ServiceID = d.str("Service_Id", 10)
	p.TPPID = d.u8("TP_pid")
	p.TPUDHI = d.u8("TP_udhi")
	p.MsgFmt = d.u8("Msg_Fmt")
	p.SrcTerminalID = d.str("Src_terminal_Id", v.pick(21, 32))
	p.SrcTerminalType = 0
	if v.Wide() {
		p.SrcTerminalType = d.u8("Src_terminal_type")
	}
	p.RegisteredDelivery = d.u8("Registered_Delivery")
	p.MsgContent = d.content()
	p.LinkID = d.tail(tailName(v, "Reserved"), v.pick(8, 20))
	return d.finish()
}
