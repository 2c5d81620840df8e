package cmpp

// QueryResp answers a Query with counters of the asked day (CMPP 2.0 §7.4.4.2). MT counts towards phones, MO from them.
type QueryResp struct {
	Time      string // 8, YYYYMMDD
	QueryType uint8
	QueryCode string // 10
	MTTLMsg   uint32 // messages received from the SP
	MTTLUsr   uint32 // recipients in them
	MTScs     uint32 // sent on successfully
	MTWT      uint32 // waiting
	MTFL      uint32 // failed
	MOScs     uint32 // delivered to the SP
	MOWT      uint32 // waiting
	MOFL      uint32 // failed
}

// Command returns CmdQueryResp.
func (*QueryResp) Command() Command { return CmdQueryResp }

// Append implements [PDU]. The layout is the same in all versions.
func (p *QueryResp) Append(dst []byte, _ Version, seq uint32) ([]byte, error) {
	e := begin(dst, CmdQueryResp, seq, 51)
	e.str("Time", p.Time, 8)
	e.u8(p.QueryType)
	e.str("Query_Code", p.QueryCode, 10)
	e.u32(p.MTTLMsg)
	e.u32(p.MTTLUsr)
	e.u32(p.MTScs)
	e.u32(p.MTWT)
	e.u32(p.MTFL)
	e.u32(p.MOScs)
	e.u32(p.MOWT)
	e.u32(p.MOFL)
	return e.finish()
}

// Decode implements [PDU].
func (p *QueryResp) Decode(body []byte, _ Version) error {
	d := decoder{cmd: CmdQueryResp, body: body, span: len(body)}
	p.Time = d.str("Time", 8)
	p.QueryType = d.u8("Query_Type")
	p.QueryCode = d.str("Query_Code", 10)
	p.MTTLMsg = d.u32("MT_TLMsg")
	p.MTTLUsr = d.u32("MT_Tlusr")
	p.MTScs = d.u32("MT_Scs")
	p.MTWT = d.u32("MT_WT")
	p.MTFL = d.u32("MT_FL")
	p.MOScs = d.u32("MO_Scs")
	p.MOWT = d.u32("MO_WT")
	p.MOFL = d.u32("MO_FL")
	return d.finish()
}
