package cmpp

// SubmitResp answers a Submit (CMPP 2.0 §7.4.3.2). MsgID stands for MsgID … MsgID+n−1, in list order, when n recipients
// were named. Results 9 to 13 have a meaning of their own from 2.1 on and are "other" in 2.0.
type SubmitResp struct {
	MsgID  MsgID
	Result uint32 // one octet in the 2.x layout
}

// Command returns CmdSubmitResp.
func (*SubmitResp) Command() Command { return CmdSubmitResp }

// Append implements [PDU].
func (p *SubmitResp) Append(dst []byte, v Version, seq uint32) ([]byte, error) {
	e := begin(dst, CmdSubmitResp, seq, resultRespWide)
	e.msgID(p.MsgID)
	e.status("Result", p.Result, v.Wide())
	return e.finish()
}

// Decode implements [PDU]. A body of exactly the other layout's length (9 octets in 2.x, 12 in 3.0) is read in that
// layout whatever v says, because some servers answer in a fixed version.
func (p *SubmitResp) Decode(body []byte, v Version) error {
	d := decoder{cmd: CmdSubmitResp, body: body}
	p.MsgID = d.msgID()
	p.Result = d.status("Result", wideBody(v, len(body), resultRespNarrow, resultRespWide))
	return d.finish()
}

// Octets of a SUBMIT_RESP or DELIVER_RESP body.
const (
	resultRespNarrow = 9
	resultRespWide   = 12
)

// wideBody decides the layout of a response body: that of v, unless size is exactly that of the other one.
func wideBody(v Version, size, narrow, wide int) bool {
	if v.Wide() {
		return size != narrow
	}
	return size == wide
}
