package cmpp

// Query asks for the traffic counters of a day (CMPP 2.0 §7.4.4.1).
type Query struct {
	Time      string // 8, YYYYMMDD
	QueryType uint8  // 0 totals, 1 by service
	QueryCode string // 10, the Service_Id when QueryType is 1
	Reserve   string // 8
}

// Command returns CmdQuery.
func (*Query) Command() Command { return CmdQuery }

// Append implements [PDU]. The layout is the same in all versions.
func (p *Query) Append(dst []byte, _ Version, seq uint32) ([]byte, error) {
	e := begin(dst, CmdQuery, seq, 27)
	e.str("Time", p.Time, 8)
	e.u8(p.QueryType)
	e.str("Query_Code", p.QueryCode, 10)
	e.str("Reserve", p.Reserve, 8)
	return e.finish()
}

// Decode implements [PDU]. Reserve may be short or missing in the frame.
func (p *Query) Decode(body []byte, _ Version) error {
	d := decoder{cmd: CmdQuery, body: body, span: len(body)}
	p.Time = d.str("Time", 8)
	p.QueryType = d.u8("Query_Type")
	p.QueryCode = d.str("Query_Code", 10)
	p.Reserve = d.tail("Reserve", 8)
	return d.finish()
}
