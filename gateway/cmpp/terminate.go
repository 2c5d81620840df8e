package cmpp

// Terminate asks to end the session; either side may send it (CMPP 2.0 §7.4.2.1).
type Terminate struct{}

// Command returns CmdTerminate.
func (*Terminate) Command() Command { return CmdTerminate }

// Append implements [PDU].
func (*Terminate) Append(dst []byte, _ Version, seq uint32) ([]byte, error) {
	e := begin(dst, CmdTerminate, seq, 0)
	return e.finish()
}

// Decode implements [PDU]. It has no fields and accepts any octets.
func (*Terminate) Decode([]byte, Version) error { return nil }
