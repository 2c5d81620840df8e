package cmpp

// ConnectResp answers a Connect (CMPP 2.0 §7.4.1.2). Every Status but zero is a refusal: 1 structure, 2 unknown id,
// 3 authentication, 4 version too high, anything else is the peer's own.
type ConnectResp struct {
	Status            uint32   // one octet in the 2.x layout
	AuthenticatorISMG [16]byte // see AuthISMG; zeros when the login was refused
	Version           Version  // highest version the server supports
}

// Octets of a CONNECT_RESP body.
const (
	connectRespNarrow = 18
	connectRespWide   = 21
)

// Command returns CmdConnectResp.
func (*ConnectResp) Command() Command { return CmdConnectResp }

// Append implements [PDU].
func (p *ConnectResp) Append(dst []byte, v Version, seq uint32) ([]byte, error) {
	e := begin(dst, CmdConnectResp, seq, connectRespWide)
	e.status("Status", p.Status, v.Wide())
	e.octets(p.AuthenticatorISMG[:])
	e.u8(uint8(p.Version))
	return e.finish()
}

// Decode implements [PDU]. The layout is taken from the length of body, whatever v says: servers exist that answer every
// client in their own version. 21 octets or more are the 3.0 layout, 18 to 20 the 2.x one.
func (p *ConnectResp) Decode(body []byte, _ Version) error {
	d := decoder{cmd: CmdConnectResp, body: body}
	p.Status = d.status("Status", len(body) >= connectRespWide)
	p.AuthenticatorISMG = d.digest("AuthenticatorISMG")
	p.Version = Version(d.u8("Version"))
	return d.finish()
}
