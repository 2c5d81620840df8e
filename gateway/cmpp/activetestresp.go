package cmpp

// ActiveTestResp answers an ActiveTest (CMPP 2.0 §7.4.7.2).
type ActiveTestResp struct {
	Reserved byte // send 0, ignore on receipt
}

// Command returns CmdActiveTestResp.
func (*ActiveTestResp) Command() Command { return CmdActiveTestResp }

// Append implements [PDU].
func (p *ActiveTestResp) Append(dst []byte, _ Version, seq uint32) ([]byte, error) {
	e := begin(dst, CmdActiveTestResp, seq, 1)
	e.u8(p.Reserved)
	return e.finish()
}

// Decode implements [PDU]. The octet may be missing: the layout before 2.0 did not have it and such peers still run.
func (p *ActiveTestResp) Decode(body []byte, _ Version) error {
	p.Reserved = 0
	if len(body) > 0 {
		p.Reserved = body[0]
	}
	return nil
}
