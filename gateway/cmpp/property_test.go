package cmpp_test

import (
	"bytes"
	"reflect"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"cmppgateway/gateway/cmpp"
)

// drawText draws what a field of width octets can hold and give back: no zero octet, no space at either end.
func drawText(t *rapid.T, label string, width int) string {
	b := rapid.SliceOfN(rapid.ByteRange(1, 255), 0, width).Draw(t, label)
	return strings.Trim(string(b), " ")
}

func drawContent(t *rapid.T) []byte {
	b := rapid.SliceOfN(rapid.Byte(), 0, 255).Draw(t, "Msg_Content")
	if len(b) == 0 {
		return nil
	}
	return b
}

// drawStatus draws a result code as wide as the layout has it.
func drawStatus(t *rapid.T, v cmpp.Version) uint32 {
	if v.Wide() {
		return rapid.Uint32().Draw(t, "status")
	}
	return uint32(rapid.Uint8().Draw(t, "status"))
}

func drawID(t *rapid.T) cmpp.MsgID { return cmpp.MsgID(rapid.Uint64().Draw(t, "Msg_Id")) }

func drawDigest(t *rapid.T) (sum [16]byte) {
	copy(sum[:], rapid.SliceOfN(rapid.Byte(), 16, 16).Draw(t, "digest"))
	return sum
}

func drawSubmit(t *rapid.T, v cmpp.Version) *cmpp.Submit {
	number, link := 21, 8
	octet := func(label string) uint8 { return rapid.Uint8().Draw(t, label) }
	p := &cmpp.Submit{
		MsgID: drawID(t), PkTotal: max(octet("Pk_total"), 1), PkNumber: max(octet("Pk_number"), 1),
		RegisteredDelivery: octet("Registered_Delivery"), MsgLevel: octet("Msg_level"), ServiceID: drawText(t, "Service_Id", 10),
		FeeUserType: octet("Fee_UserType"), TPPID: octet("TP_pId"), TPUDHI: octet("TP_udhi"), MsgFmt: octet("Msg_Fmt"),
		MsgSrc: drawText(t, "Msg_src", 6), FeeType: drawText(t, "FeeType", 2), FeeCode: drawText(t, "FeeCode", 6),
		ValidTime: drawText(t, "ValId_Time", 17), AtTime: drawText(t, "At_Time", 17), SrcID: drawText(t, "Src_Id", 21),
		MsgContent: drawContent(t),
	}
	if v.Wide() {
		number, link = 32, 20
		p.FeeTerminalType, p.DestTerminalType = octet("Fee_terminal_type"), octet("Dest_terminal_type")
	}
	if p.FeeTerminalID = drawText(t, "Fee_terminal_Id", number); strings.Trim(p.FeeTerminalID, "0") == "" {
		p.FeeTerminalID = ""
	}
	for range rapid.IntRange(0, 110).Draw(t, "DestUsr_tl") {
		p.DestTerminalID = append(p.DestTerminalID, drawText(t, "Dest_terminal_Id", number))
	}
	p.LinkID = drawText(t, "LinkID", link)
	return p
}

func drawDeliver(t *rapid.T, v cmpp.Version) *cmpp.Deliver {
	p := &cmpp.Deliver{
		MsgID: drawID(t), DestID: drawText(t, "Dest_Id", 21), ServiceID: drawText(t, "Service_Id", 10),
		TPPID: rapid.Uint8().Draw(t, "TP_pid"), TPUDHI: rapid.Uint8().Draw(t, "TP_udhi"), MsgFmt: rapid.Uint8().Draw(t, "Msg_Fmt"),
		RegisteredDelivery: rapid.Uint8().Draw(t, "Registered_Delivery"), MsgContent: drawContent(t),
	}
	if v.Wide() {
		p.SrcTerminalType = rapid.Uint8().Draw(t, "Src_terminal_type")
		p.SrcTerminalID, p.LinkID = drawText(t, "Src_terminal_Id", 32), drawText(t, "LinkID", 20)
	} else {
		p.SrcTerminalID, p.LinkID = drawText(t, "Src_terminal_Id", 21), drawText(t, "Reserved", 8)
	}
	return p
}

func TestRoundTrip(t *testing.T) {
	t.Parallel()
	draws := map[string]func(*rapid.T, cmpp.Version) cmpp.PDU{
		"connect": func(t *rapid.T, _ cmpp.Version) cmpp.PDU {
			return &cmpp.Connect{
				SourceAddr: drawText(t, "Source_Addr", 6), AuthenticatorSource: drawDigest(t),
				Version: cmpp.Version(rapid.Uint8().Draw(t, "Version")), Timestamp: rapid.Uint32().Draw(t, "Timestamp"),
			}
		},
		"connect response": func(t *rapid.T, v cmpp.Version) cmpp.PDU {
			return &cmpp.ConnectResp{Status: drawStatus(t, v), AuthenticatorISMG: drawDigest(t), Version: cmpp.Version(rapid.Uint8().Draw(t, "Version"))}
		},
		"terminate":          func(*rapid.T, cmpp.Version) cmpp.PDU { return &cmpp.Terminate{} },
		"terminate response": func(*rapid.T, cmpp.Version) cmpp.PDU { return &cmpp.TerminateResp{} },
		"submit":             func(t *rapid.T, v cmpp.Version) cmpp.PDU { return drawSubmit(t, v) },
		"submit response": func(t *rapid.T, v cmpp.Version) cmpp.PDU {
			return &cmpp.SubmitResp{MsgID: drawID(t), Result: drawStatus(t, v)}
		},
		"deliver": func(t *rapid.T, v cmpp.Version) cmpp.PDU { return drawDeliver(t, v) },
		"deliver response": func(t *rapid.T, v cmpp.Version) cmpp.PDU {
			return &cmpp.DeliverResp{MsgID: drawID(t), Result: drawStatus(t, v)}
		},
		"query": func(t *rapid.T, _ cmpp.Version) cmpp.PDU {
			return &cmpp.Query{
				Time: drawText(t, "Time", 8), QueryType: rapid.Uint8().Draw(t, "Query_Type"),
				QueryCode: drawText(t, "Query_Code", 10), Reserve: drawText(t, "Reserve", 8),
			}
		},
		"query response": func(t *rapid.T, _ cmpp.Version) cmpp.PDU {
			n := rapid.SliceOfN(rapid.Uint32(), 8, 8).Draw(t, "counters")
			return &cmpp.QueryResp{
				Time: drawText(t, "Time", 8), QueryType: rapid.Uint8().Draw(t, "Query_Type"), QueryCode: drawText(t, "Query_Code", 10),
				MTTLMsg: n[0], MTTLUsr: n[1], MTScs: n[2], MTWT: n[3], MTFL: n[4], MOScs: n[5], MOWT: n[6], MOFL: n[7],
			}
		},
		"cancel": func(t *rapid.T, _ cmpp.Version) cmpp.PDU { return &cmpp.Cancel{MsgID: drawID(t)} },
		"cancel response": func(t *rapid.T, v cmpp.Version) cmpp.PDU {
			return &cmpp.CancelResp{SuccessID: drawStatus(t, v)}
		},
		"active test": func(*rapid.T, cmpp.Version) cmpp.PDU { return &cmpp.ActiveTest{} },
		"active test response": func(t *rapid.T, _ cmpp.Version) cmpp.PDU {
			return &cmpp.ActiveTestResp{Reserved: rapid.Byte().Draw(t, "Reserved")}
		},
	}
	for name, draw := range draws {
		for _, v := range bothVersions {
			t.Run(name+" "+v.String(), func(t *testing.T) {
				t.Parallel()
				rapid.Check(t, func(t *rapid.T) {
					want, seq := draw(t, v), rapid.Uint32().Draw(t, "Sequence_Id")
					frame, err := want.Append(nil, v, seq)
					if err != nil {
						t.Fatalf("Append: %v", err)
					}
					r := cmpp.NewReader(bytes.NewReader(frame), 0)
					h, body, err := r.Next()
					if err != nil || h.Command != want.Command() || h.Sequence != seq || r.InFrame() {
						t.Fatalf("Next: %+v, %v", h, err)
					}
					got, err := cmpp.Decode(h, body, v)
					if err != nil || !reflect.DeepEqual(got, want) {
						t.Fatalf("decoded %+v, %v\nwant    %+v", got, err, want)
					}
				})
			})
		}
	}
}

func TestReportRoundTrip(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		v := rapid.SampledFrom(bothVersions).Draw(t, "version")
		number := 21
		if v.Wide() {
			number = 32
		}
		want := cmpp.Report{
			MsgID: drawID(t), Stat: drawText(t, "Stat", 7), SubmitTime: drawText(t, "Submit_time", 10), DoneTime: drawText(t, "Done_time", 10),
			DestTerminalID: drawText(t, "Dest_terminal_Id", number), SMSCSequence: rapid.Uint32().Draw(t, "SMSC_sequence"),
		}
		content, err := want.Append(nil, v)
		if err != nil {
			t.Fatal(err)
		}
		if got, err := cmpp.ParseReport(content); err != nil || got != want {
			t.Fatalf("%+v, %v; want %+v", got, err, want)
		}
	})
}
