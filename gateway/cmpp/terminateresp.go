package cmpp

// TerminateResp answers a Terminate (CMPP 2.0 §7.4.2.2).
type TerminateResp struct{}

// Command returns CmdTerminateResp.
func (*TerminateResp) Command() Command { return CmdTerminateResp }

// Append implements [PDU].
func (*TerminateResp) Append(dst []byte, _ Version, seq uint32) ([]byte, error) {
	e := begin(dst, CmdTerminateResp, seq, 0)
	return e.finish()
}

// Decode implements [PDU]. It has no fields and accepts any octets.
func (*TerminateResp) Decode([]byte, Version) error { return nil }
