package supplier

import (
	"bytes"
	"testing"

	"golang.org/x/text/encoding/simplifiedchinese"
	"golang.org/x/text/encoding/unicode"

	"cmppgateway/gateway/cmpp"
	"cmppgateway/gateway/internal/outbox"
	"cmppgateway/gateway/internal/settings"
	"cmppgateway/gateway/sms"
)

func TestSignatureIsTakenOffWhereTheSupplierAddsIt(t *testing.T) {
	t.Parallel()
	encode := map[string]func(string) ([]byte, sms.Fmt){
		"ucs2": func(s string) ([]byte, sms.Fmt) {
			o, _ := unicode.UTF16(unicode.BigEndian, unicode.IgnoreBOM).NewEncoder().Bytes([]byte(s))
			return o, sms.FmtUCS2
		},
		"gb18030": func(s string) ([]byte, sms.Fmt) {
			o, _ := simplifiedchinese.GB18030.NewEncoder().Bytes([]byte(s))
			return o, sms.FmtGB18030
		},
		"little-endian": func(s string) ([]byte, sms.Fmt) {
			o, _ := unicode.UTF16(unicode.LittleEndian, unicode.UseBOM).NewEncoder().Bytes([]byte(s))
			return o, sms.FmtUCS2
		},
	}
	header := []byte{5, 0, 3, 7, 2, 1}
	for name, enc := range encode {
		for _, c := range []struct {
			text, want  string
			udhi        uint8
			first, last bool
		}{
			{"【测试】您好 hi", "您好 hi", 0, true, true},
			{"您好 hi【测试】", "您好 hi", 0, true, true},
			{"【测试】您好", "您好", 1, true, false},
			{"您好【测试】", "您好", 1, false, true},
			{"【测试】您好", "【测试】您好", 1, false, true}, // the middle of a text
			{"您好【测试】", "您好【测试】", 1, true, false},
			{"您【好】测试", "您【好】测试", 0, true, true},
			{"您好", "您好", 0, true, true},
			{"【测试】", "【测试】", 0, true, true}, // nothing would be left
			{"【测试", "【测试", 0, true, true},
			{"测试】好", "测试】好", 0, true, true},
			{"𠮷𠮷a【𠮷】", "𠮷𠮷a", 0, true, true},
			{"【一二三四五六七八九十一二三四五六七八九十一二三四五六七八九十一二三四五】好", "【一二三四五六七八九十一二三四五六七八九十一二三四五六七八九十一二三四五】好", 0, true, true},
		} {
			text, format := enc(c.text)
			want, _ := enc(c.want)
			if c.udhi != 0 {
				text, want = append(bytes.Clone(header), text...), append(bytes.Clone(header), want...)
			}
			if got := unsigned(format, c.udhi, text, c.first, c.last); !bytes.Equal(got, want) {
				t.Errorf("%s %q: % x, want % x", name, c.text, got, want)
			}
		}
	}
	for _, odd := range [][]byte{nil, {5}, {200, 1}, {0x30}, []byte("plain")} {
		if got := unsigned(sms.FmtASCII, 1, odd, true, true); !bytes.Equal(got, odd) {
			t.Errorf("% x became % x", odd, got)
		}
		_ = unsigned(sms.FmtUCS2, 1, odd, true, true)
		_ = unsigned(sms.FmtGB18030, 1, odd, true, true)
	}
}

// What is particular about a channel is in the SUBMIT that goes out.
func TestSubmitIsWhatTheChannelWants(t *testing.T) {
	t.Parallel()
	snap := &settings.Snapshot{Applications: map[int32]*settings.Application{1: {AccessNumber: "1069"}}}
	acct := &settings.SupplierAccount{SPID: "900001"}
	text := []byte{0x30, 0x10, 0x4e, 0x00, 0x30, 0x11, 0x60, 0xa8}
	c := &outbox.Command{Phone: 13800138000, AppID: 1, Src: []byte("106977"), Service: []byte("CUST"), Content: text, Fmt: 8, Part: 1, Parts: 1, PkTotal: 1, PkNumber: 1}
	for _, x := range []struct {
		name string
		ch   settings.Channel
		want cmpp.Submit
	}{
		{"as it is", settings.Channel{AccessNumber: "10690000", FeeType: "01", FeeCode: "0", Particulars: settings.Particulars{FeeUserType: 2}}, cmpp.Submit{
			ServiceID: "CUST", FeeUserType: 2, MsgSrc: "900001", FeeType: "01", FeeCode: "0", SrcID: "10690000", MsgContent: text,
		}},
		{"particular", settings.Channel{
			AccessNumber: "10690000", AppendExtension: true, ServiceID: "SVC", MsgSrc: "700001", FeeType: "02", FeeCode: "5",
			Particulars: settings.Particulars{FeeUserType: 3, FeeTerminal: "13900139000", SignatureBy: settings.SignedBySupplier},
		}, cmpp.Submit{
			ServiceID: "SVC", FeeUserType: 3, FeeTerminalID: "13900139000", MsgSrc: "700001", FeeType: "02", FeeCode: "5", SrcID: "1069000077", MsgContent: text[6:],
		}},
	} {
		var got cmpp.Submit
		fill(&got, make([]string, 1), c, snap, &x.ch, acct)
		w := x.want
		if got.ServiceID != w.ServiceID || got.FeeUserType != w.FeeUserType || got.FeeTerminalID != w.FeeTerminalID || got.MsgSrc != w.MsgSrc ||
			got.FeeType != w.FeeType || got.FeeCode != w.FeeCode || got.SrcID != w.SrcID || !bytes.Equal(got.MsgContent, w.MsgContent) {
			t.Errorf("%s: %+v", x.name, got)
		}
		if got.RegisteredDelivery != 1 || got.DestTerminalID[0] != "13800138000" {
			t.Errorf("%s: %+v", x.name, got)
		}
	}
}

func TestReportsAreReadAsTheirSupplierWritesThem(t *testing.T) {
	t.Parallel()
	report := cmpp.Report{MsgID: 0x0102030405060708, Stat: "DELIVRD", SubmitTime: "2611301200", DoneTime: "2611301201", DestTerminalID: "13800138000", SMSCSequence: 7}
	narrow, err := report.Append(nil, cmpp.V20)
	if err != nil {
		t.Fatal(err)
	}
	wide, err := report.Append(nil, cmpp.V30)
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		name    string
		format  settings.ReportFormat
		reverse bool
		content []byte
		id      cmpp.MsgID
		number  string
		seq     uint32
	}{
		{"60 octets", settings.ReportByLength, false, narrow, report.MsgID, "13800138000", 7},
		{"71 octets", settings.ReportByLength, false, wide, report.MsgID, "13800138000", 7},
		{"60 octets and a filling", settings.ReportNarrow, false, append(bytes.Clone(narrow), make([]byte, 20)...), report.MsgID, "13800138000", 7},
		{"71 octets without the last ones", settings.ReportWide, false, wide[:67], report.MsgID, "13800138000", 0},
		{"reversed", settings.ReportByLength, true, narrow, 0x0807060504030201, "13800138000", 7},
	} {
		ch := &settings.Channel{Particulars: settings.Particulars{ReportFormat: c.format, ReversedMsgID: c.reverse}}
		r, err := readReport(ch, c.content)
		if err != nil || r.MsgID != c.id || r.DestTerminalID != c.number || r.SMSCSequence != c.seq || r.Stat != "DELIVRD" {
			t.Errorf("%s: %+v, %v", c.name, r, err)
		}
	}
	if _, err := readReport(&settings.Channel{Particulars: settings.Particulars{ReportFormat: settings.ReportWide}}, []byte("short")); err == nil {
		t.Error("five octets are a report")
	}
}
