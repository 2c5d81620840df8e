package cmpp

// ActiveTest asks the peer for a sign of life; either side may send it (CMPP 2.0 §7.4.7.1).
type ActiveTest struct{}

// Command returns CmdActiveTest.
func (*ActiveTest) Command() Command { return CmdActiveTest }

// Append implements [PDU].
func (*ActiveTest) Append(dst []byte, _ Version, seq uint32) ([]byte, error) {
	e := begin(dst, CmdActiveTest, seq, 0)
	return e.finish()
}

// Decode implements [PDU]. It has no fields and accepts any octets.
func (*ActiveTest) Decode([]byte, Version) error { return nil }
