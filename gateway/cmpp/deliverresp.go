package cmpp

// DeliverResp answers a Deliver (CMPP 2.0 §7.4.5.2). MsgID repeats that of the Deliver, not the one inside its report.
type DeliverResp struct {
	MsgID  MsgID
	Result uint32 // one octet in the 2.x layout
}

// Command returns CmdDeliverResp.
func (*DeliverResp) Command() Command { return CmdDeliverResp }

// Append implements [PDU].
func (p *DeliverResp) Append(dst []byte, v Version, seq uint32) ([]byte, error) {
	e := begin(dst, CmdDeliverResp, seq, resultRespWide)
	e.msgID(p.MsgID)
	e.status("Result", p.Result, v.Wide())
	return e.finish()
}

// Decode implements [PDU]. A body of exactly the other layout's length (9 octets in 2.x, 12 in 3.0) is read in that
// layout whatever v says, because some servers answer in a fixed version.
func (p *DeliverResp) Decode(body []byte, v Version) error {
	d := decoder{cmd: CmdDeliverResp, body: body}
	p.MsgID = d.msgID()
	p.Result = d.status("Result", wideBody(v, len(body), resultRespNarrow, resultRespWide))
	return d.finish()
}
