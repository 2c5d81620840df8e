package cmpp

// Cancel asks to drop a message that has not been sent on yet (CMPP 2.0 §7.4.6.1).
type Cancel struct {
	MsgID MsgID
}

// Command returns CmdCancel.
func (*Cancel) Command() Command { return CmdCancel }

// Append implements [PDU]. The layout is the same in all versions.
func (p *Cancel) Append(dst []byte, _ Version, seq uint32) ([]byte, error) {
	e := begin(dst, CmdCancel, seq, 8)
	e.msgID(p.MsgID)
	return e.finish()
}

// Decode implements [PDU].
func (p *Cancel) Decode(body []byte, _ Version) error {
	d := decoder{cmd: CmdCancel, body: body}
	p.MsgID = d.msgID()
	return d.finish()
}
