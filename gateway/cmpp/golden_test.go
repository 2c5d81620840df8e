package cmpp_test

import (
	"bytes"
	"encoding/hex"
	"reflect"
	"testing"

	"cmppgateway/gateway/cmpp"
)

// golden is a whole frame built independently of this package, and what it says.
type golden struct {
	name    string
	version cmpp.Version
	seq     uint32
	hex     string
	pdu     cmpp.PDU
}

func (g golden) frame() []byte { return unhex(g.hex) }

func unhex(s string) []byte {
	b, err := hex.DecodeString(s)
	if err != nil {
		panic(err)
	}
	return b
}

func digest(s string) [16]byte { return [16]byte(unhex(s)) }

const (
	submitID  cmpp.MsgID = 0x110c414003e90001 // 01-02 03:04:05, gateway 1001, sequence 1
	deliverID cmpp.MsgID = 0x110c414003e90002
)

func goldenSubmit() *cmpp.Submit {
	return &cmpp.Submit{
		PkTotal: 1, PkNumber: 1, RegisteredDelivery: 1, ServiceID: "TEST", FeeUserType: 2, MsgFmt: 8, MsgSrc: "901234",
		FeeType: "01", FeeCode: "0", SrcID: "10690001", DestTerminalID: []string{"13800138000"},
		MsgContent: unhex("30106d4b8bd5301100680069"), // 【测试】hi in UCS2
	}
}

func goldenReport() cmpp.Report {
	return cmpp.Report{
		MsgID: submitID, Stat: "DELIVRD", SubmitTime: "2401020304", DoneTime: "2401020305",
		DestTerminalID: "13800138000", SMSCSequence: 7,
	}
}

func goldenDeliver(v cmpp.Version) *cmpp.Deliver {
	report := goldenReport()
	content, err := report.Append(nil, v)
	if err != nil {
		panic(err)
	}
	return &cmpp.Deliver{
		MsgID: deliverID, DestID: "10690001", ServiceID: "TEST", SrcTerminalID: "13800138000",
		RegisteredDelivery: 1, MsgContent: content,
	}
}

var goldens = []golden{
	{
		name: "connect 2.0", version: cmpp.V20, seq: 1,
		hex: "000000270000000100000001393031323334e45edee925b9c275458dfcc54b2bebd8200614dc45",
		pdu: &cmpp.Connect{SourceAddr: "901234", AuthenticatorSource: digest("e45edee925b9c275458dfcc54b2bebd8"), Version: cmpp.V20, Timestamp: 102030405},
	},
	{
		name: "connect 3.0", version: cmpp.V30, seq: 1,
		hex: "000000270000000100000001393031323334e45edee925b9c275458dfcc54b2bebd8300614dc45",
		pdu: &cmpp.Connect{SourceAddr: "901234", AuthenticatorSource: digest("e45edee925b9c275458dfcc54b2bebd8"), Version: cmpp.V30, Timestamp: 102030405},
	},
	{
		name: "connect response 2.0", version: cmpp.V20, seq: 1,
		hex: "0000001e80000001000000010030379ada95177b628ad0bc5ddeac0ddd20",
		pdu: &cmpp.ConnectResp{AuthenticatorISMG: digest("30379ada95177b628ad0bc5ddeac0ddd"), Version: cmpp.V20},
	},
	{
		name: "connect response 3.0", version: cmpp.V30, seq: 1,
		hex: "00000021800000010000000100000000af8b00451a390b4990321de5bfca09c230",
		pdu: &cmpp.ConnectResp{AuthenticatorISMG: digest("af8b00451a390b4990321de5bfca09c2"), Version: cmpp.V30},
	},
	{
		name: "connect response 2.0 refused", version: cmpp.V20, seq: 1,
		hex: "0000001e8000000100000001030000000000000000000000000000000020",
		pdu: &cmpp.ConnectResp{Status: 3, Version: cmpp.V20},
	},
	{
		name: "submit 2.0", version: cmpp.V20, seq: 2,
		hex: "000000ab00000004000000020000000000000000010101005445535400000000000002000000000000000000000000000000" +
			"0000000000000000083930313233343031300000000000000000000000000000000000000000000000000000000000000000" +
			"0000000000000031303639303030310000000000000000000000000001313338303031333830303000000000000000000000" +
			"0c30106d4b8bd53011006800690000000000000000",
		pdu: goldenSubmit(),
	},
	{
		name: "submit 3.0", version: cmpp.V30, seq: 2,
		hex: "000000cf00000004000000020000000000000000010101005445535400000000000002000000000000000000000000000000" +
			"0000000000000000000000000000000000000000083930313233343031300000000000000000000000000000000000000000" +
			"0000000000000000000000000000000000000031303639303030310000000000000000000000000001313338303031333830" +
			"3030000000000000000000000000000000000000000000000c30106d4b8bd530110068006900000000000000000000000000" +
			"00000000000000",
		pdu: goldenSubmit(),
	},
	{
		name: "submit response 2.0", version: cmpp.V20, seq: 2,
		hex: "000000158000000400000002110c414003e9000100",
		pdu: &cmpp.SubmitResp{MsgID: submitID},
	},
	{
		name: "submit response 3.0", version: cmpp.V30, seq: 2,
		hex: "000000188000000400000002110c414003e9000100000000",
		pdu: &cmpp.SubmitResp{MsgID: submitID},
	},
	{
		name: "deliver report 2.0", version: cmpp.V20, seq: 9,
		hex: "000000910000000500000009110c414003e90002313036393030303100000000000000000000000000544553540000000000" +
			"00000000313338303031333830303000000000000000000000013c110c414003e9000144454c495652443234303130323033" +
			"303432343031303230333035313338303031333830303000000000000000000000000000070000000000000000",
		pdu: goldenDeliver(cmpp.V20),
	},
	{
		name: "deliver report 3.0", version: cmpp.V30, seq: 9,
		hex: "000000b40000000500000009110c414003e90002313036393030303100000000000000000000000000544553540000000000" +
			"000000003133383030313338303030000000000000000000000000000000000000000000000147110c414003e9000144454c" +
			"4956524432343031303230333034323430313032303330353133383030313338303030000000000000000000000000000000" +
			"000000000000000000070000000000000000000000000000000000000000",
		pdu: goldenDeliver(cmpp.V30),
	},
	{
		name: "active test", version: cmpp.V30, seq: 3,
		hex: "0000000c0000000800000003",
		pdu: &cmpp.ActiveTest{},
	},
	{
		name: "active test response", version: cmpp.V30, seq: 3,
		hex: "0000000d800000080000000300",
		pdu: &cmpp.ActiveTestResp{},
	},
	{
		name: "terminate", version: cmpp.V20, seq: 4,
		hex: "0000000c0000000200000004",
		pdu: &cmpp.Terminate{},
	},
	{
		name: "terminate response", version: cmpp.V20, seq: 4,
		hex: "0000000c8000000200000004",
		pdu: &cmpp.TerminateResp{},
	},
}

func TestGoldenFrames(t *testing.T) {
	t.Parallel()
	for _, g := range goldens {
		t.Run(g.name, func(t *testing.T) {
			t.Parallel()
			h, body, err := cmpp.NewReader(bytes.NewReader(g.frame()), 0).Next()
			if err != nil {
				t.Fatalf("Next: %v", err)
			}
			want := cmpp.Header{Length: uint32(len(g.frame())), Command: g.pdu.Command(), Sequence: g.seq}
			if h != want {
				t.Errorf("header %+v, want %+v", h, want)
			}
			got, err := cmpp.Decode(h, body, g.version)
			if err != nil {
				t.Fatalf("Decode: %v", err)
			}
			if !reflect.DeepEqual(got, g.pdu) {
				t.Errorf("decoded %+v\nwant    %+v", got, g.pdu)
			}
			frame, err := got.Append([]byte("before"), g.version, h.Sequence)
			if err != nil {
				t.Fatalf("Append: %v", err)
			}
			if want := append([]byte("before"), g.frame()...); !bytes.Equal(frame, want) {
				t.Errorf("encoded %x\nwant    %x", frame, want)
			}
		})
	}
}

func TestGoldenReports(t *testing.T) {
	t.Parallel()
	for _, g := range goldens {
		if g.pdu.Command() != cmpp.CmdDeliver {
			continue
		}
		_, body, err := cmpp.NewReader(bytes.NewReader(g.frame()), 0).Next()
		if err != nil {
			t.Fatal(err)
		}
		var d cmpp.Deliver
		if err := d.Decode(body, g.version); err != nil {
			t.Fatal(err)
		}
		got, err := cmpp.ParseReport(d.MsgContent)
		if err != nil {
			t.Fatalf("%s: ParseReport: %v", g.name, err)
		}
		if want := goldenReport(); got != want {
			t.Errorf("%s: report %+v, want %+v", g.name, got, want)
		}
	}
}
