package cmpp

// Connect asks to log in (CMPP 2.0 §7.4.1.1).
type Connect struct {
	SourceAddr          string   // account id, at most 6 octets
	AuthenticatorSource [16]byte // see AuthSource
	Version             Version
	Timestamp           uint32 // MMDDHHMMSS as a number: a January date has nine digits
}

// Command returns CmdConnect.
func (*Connect) Command() Command { return CmdConnect }

// Append implements [PDU]. The layout is the same in all versions.
func (p *Connect) Append(dst []byte, _ Version, seq uint32) ([]byte, error) {
	e := begin(dst, CmdConnect, seq, 27)
	e.str("Source_Addr", p.SourceAddr, 6)
	e.octets(p.AuthenticatorSource[:])
	e.u8(uint8(p.Version))
	e.u32(p.Timestamp)
	return e.finish()
}

// Decode implements [PDU].
func (p *Connect) Decode(body []byte, _ Version) error {
	d := decoder{cmd: CmdConnect, body: body, span: len(body)}
	p.SourceAddr = d.str("Source_Addr", 6)
	p.AuthenticatorSource = d.digest("AuthenticatorSource")
	p.Version = Version(d.u8("Version"))
	p.Timestamp = d.u32("Timestamp")
	return d.finish()
}
