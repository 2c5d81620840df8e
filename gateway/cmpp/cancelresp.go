package cmpp

// CancelResp answers a Cancel (CMPP 2.0 §7.4.6.2).
type CancelResp struct {
	SuccessID uint32 // 0 cancelled, 1 failed; one octet in the 2.x layout
}

// Octets of a CANCEL_RESP body.
const (
	cancelRespNarrow = 1
	cancelRespWide   = 4
)

// Command returns CmdCancelResp.
func (*CancelResp) Command() Command { return CmdCancelResp }

// Append implements [PDU].
func (p *CancelResp) Append(dst []byte, v Version, seq uint32) ([]byte, error) {
	e := begin(dst, CmdCancelResp, seq, cancelRespWide)
	e.status("Success_Id", p.SuccessID, v.Wide())
	return e.finish()
}

// Decode implements [PDU]. A body of exactly the other layout's length (1 octet in 2.x, 4 in 3.0) is read in that layout
// whatever v says, because some servers answer in a fixed version.
func (p *CancelResp) Decode(body []byte, v Version) error {
	d := decoder{cmd: CmdCancelResp, body: body}
	p.SuccessID = d.status("Success_Id", wideBody(v, len(body), cancelRespNarrow, cancelRespWide))
	return d.finish()
}
