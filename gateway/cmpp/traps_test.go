package cmpp_test

import (
	"bytes"
	"errors"
	"reflect"
	"slices"
	"strings"
	"testing"

	"cmppgateway/gateway/cmpp"
)

// Offsets in the body of a SUBMIT or DELIVER, per layout.
type offsets struct {
	fee, submitCount, submitLength, deliverLength, submitTail, deliverTail int
}

var layouts = map[cmpp.Version]offsets{
	cmpp.V20: {fee: 23, submitCount: 116, submitLength: 117 + 21, deliverLength: 64, submitTail: 8, deliverTail: 8},
	cmpp.V30: {fee: 23, submitCount: 128, submitLength: 129 + 32 + 1, deliverLength: 76, submitTail: 20, deliverTail: 20},
}

func bodyOf(t *testing.T, p cmpp.PDU, v cmpp.Version) []byte {
	t.Helper()
	frame, err := p.Append(nil, v, 1)
	if err != nil {
		t.Fatalf("Append: %v", err)
	}
	return frame[cmpp.HeaderLen:]
}

func wantDecodeError(t *testing.T, err error, field string, result uint32) {
	t.Helper()
	e, ok := errors.AsType[*cmpp.DecodeError](err)
	if !ok {
		t.Fatalf("error %v, want a DecodeError in %s", err, field)
	}
	if e.Field != field || e.Result != result {
		t.Errorf("DecodeError %+v, want field %s and result %d", e, field, result)
	}
	if e.Detail == "" || !strings.Contains(e.Error(), field) || !strings.Contains(e.Error(), e.Command.String()) {
		t.Errorf("message %q", e)
	}
}

// TestVersionLayout: peers send version octets nobody specified; the major number decides.
func TestVersionLayout(t *testing.T) {
	t.Parallel()
	for v, wide := range map[cmpp.Version]bool{
		0x00: false, 0x01: false, 0x02: false, 0x12: false, cmpp.V20: false, cmpp.V21: false, 0x2F: false,
		cmpp.V30: true, 0x31: true, 0x7F: true, 0xFF: true,
	} {
		if v.Wide() != wide {
			t.Errorf("Version(%#x).Wide() = %v", uint8(v), v.Wide())
		}
	}
	if got := cmpp.V21.String(); got != "2.1" {
		t.Errorf("V21 prints %q", got)
	}
}

func TestCommand(t *testing.T) {
	t.Parallel()
	requests := map[cmpp.Command]string{
		cmpp.CmdConnect: "CONNECT", cmpp.CmdTerminate: "TERMINATE", cmpp.CmdSubmit: "SUBMIT", cmpp.CmdDeliver: "DELIVER",
		cmpp.CmdQuery: "QUERY", cmpp.CmdCancel: "CANCEL", cmpp.CmdActiveTest: "ACTIVE_TEST",
	}
	for c, name := range requests {
		resp := c.Response()
		if uint32(resp) != 0x80000000|uint32(c) || c.IsResponse() || !resp.IsResponse() || resp.Request() != c || c.Request() != c || resp.Response() != resp {
			t.Errorf("%v: response %v", c, resp)
		}
		if c.String() != name || resp.String() != name+"_RESP" {
			t.Errorf("%v and %v, want %s", c, resp, name)
		}
		for _, c := range []cmpp.Command{c, resp} {
			if p := cmpp.New(c); p == nil || p.Command() != c {
				t.Errorf("New(%v) = %T", c, p)
			}
		}
	}
	for _, c := range []cmpp.Command{0, 3, 9, 0x10, 0x80000000, 0x80000003, 0xFFFFFFFF} {
		if p := cmpp.New(c); p != nil {
			t.Errorf("New(%v) = %T", c, p)
		}
		p, err := cmpp.Decode(cmpp.Header{Command: c}, nil, cmpp.V30)
		if p != nil {
			t.Errorf("Decode of %v = %T", c, p)
		}
		wantDecodeError(t, err, "Command_Id", 2)
	}
	if !cmpp.Command(0x80000000).IsResponse() {
		t.Error("the top bit alone is not a response")
	}
	if got := cmpp.Command(0x80000009).String(); got != "0x80000009" {
		t.Errorf("unknown command prints %q", got)
	}
}

// TestTruncation cuts every message everywhere: only the tail may be missing.
func TestTruncation(t *testing.T) {
	t.Parallel()
	optional := map[cmpp.Command]map[cmpp.Version]int{ // octets at the end that may be missing
		cmpp.CmdSubmit:         {cmpp.V20: 8, cmpp.V30: 20},
		cmpp.CmdDeliver:        {cmpp.V20: 8, cmpp.V30: 20},
		cmpp.CmdQuery:          {cmpp.V20: 8, cmpp.V30: 8},
		cmpp.CmdActiveTestResp: {cmpp.V20: 1, cmpp.V30: 1},
	}
	otherLayout := map[cmpp.Command]int{ // shorter body that is whole in 2.x
		cmpp.CmdConnectResp: 18, cmpp.CmdSubmitResp: 9, cmpp.CmdDeliverResp: 9, cmpp.CmdCancelResp: 1,
	}
	for _, v := range bothVersions {
		for _, p := range []cmpp.PDU{
			&cmpp.Connect{}, &cmpp.ConnectResp{}, goldenSubmit(), &cmpp.SubmitResp{}, goldenDeliver(v), &cmpp.DeliverResp{},
			&cmpp.Query{}, &cmpp.QueryResp{}, &cmpp.Cancel{}, &cmpp.CancelResp{}, &cmpp.ActiveTestResp{},
		} {
			body := bodyOf(t, p, v)
			for n := range body {
				whole := n >= len(body)-optional[p.Command()][v]
				if other, ok := otherLayout[p.Command()]; ok {
					whole = n == other || p.Command() == cmpp.CmdConnectResp && n > other
				}
				got, err := cmpp.Decode(cmpp.Header{Command: p.Command()}, body[:n], v)
				if (err == nil) != whole {
					t.Errorf("%v %v cut to %d of %d octets: error %v", p.Command(), v, n, len(body), err)
				}
				if err != nil && got != nil {
					t.Errorf("%v %v cut to %d octets: error and a message", p.Command(), v, n)
				}
			}
		}
	}
}

// TestTrailingOctets: what follows the last field is ignored.
func TestTrailingOctets(t *testing.T) {
	t.Parallel()
	for _, g := range goldens {
		if g.pdu.Command() == cmpp.CmdConnectResp && !g.version.Wide() {
			continue // three octets more are the other layout
		}
		body := append(g.frame()[cmpp.HeaderLen:], "junk!"...)
		got, err := cmpp.Decode(cmpp.Header{Command: g.pdu.Command()}, body, g.version)
		if err != nil {
			t.Errorf("%s: %v", g.name, err)
			continue
		}
		want := g.pdu
		if g.pdu.Command() == cmpp.CmdActiveTestResp {
			want = &cmpp.ActiveTestResp{}
		}
		if !reflect.DeepEqual(got, want) {
			t.Errorf("%s: %+v, want %+v", g.name, got, want)
		}
	}
}

// TestLyingLengths: an inner length beyond the frame is answered, not followed.
func TestLyingLengths(t *testing.T) {
	t.Parallel()
	for v, at := range layouts {
		deliver := &cmpp.Deliver{MsgContent: []byte("hello")}
		submit := goldenSubmit()
		tests := []struct {
			name  string
			pdu   cmpp.PDU
			at    int
			value byte
			field string
		}{
			{"content", submit, at.submitLength, 255, "Msg_Length"},
			{"content by one", submit, at.submitLength, byte(len(submit.MsgContent) + at.submitTail + 1), "Msg_Length"},
			{"recipients", submit, at.submitCount, 255, "DestUsr_tl"},
			{"recipients", submit, at.submitCount, 99, "DestUsr_tl"},
			{"content", deliver, at.deliverLength, 140, "Msg_Length"}, // 140 read as a signed octet would be negative
			{"content by one", deliver, at.deliverLength, byte(len(deliver.MsgContent) + at.deliverTail + 1), "Msg_Length"},
		}
		for _, tt := range tests {
			body := bodyOf(t, tt.pdu, v)
			body[tt.at] = tt.value
			_, err := cmpp.Decode(cmpp.Header{Command: tt.pdu.Command()}, body, v)
			wantDecodeError(t, err, tt.field, 4)
		}
		// One octet less than all that is left is taken at its word: the content then eats the tail.
		body := bodyOf(t, deliver, v)
		body[at.deliverLength] = byte(len(deliver.MsgContent) + at.deliverTail)
		var got cmpp.Deliver
		if err := got.Decode(body, v); err != nil || len(got.MsgContent) != 5+at.deliverTail || got.LinkID != "" {
			t.Errorf("%v: %+v, %v", v, got, err)
		}
	}
}

// TestContentOctets: the length octet is unsigned.
func TestContentOctets(t *testing.T) {
	t.Parallel()
	for _, v := range bothVersions {
		for _, n := range []int{0, 1, 127, 128, 140, 159, 160, 255} {
			content := bytes.Repeat([]byte{0xA5}, n)
			var d cmpp.Deliver
			if err := d.Decode(bodyOf(t, &cmpp.Deliver{MsgContent: content, LinkID: "x"}, v), v); err != nil || !bytes.Equal(d.MsgContent, content) || d.LinkID != "x" {
				t.Errorf("deliver %v with %d octets: %d octets, %v", v, n, len(d.MsgContent), err)
			}
			var s cmpp.Submit
			if err := s.Decode(bodyOf(t, &cmpp.Submit{MsgContent: content, LinkID: "x"}, v), v); err != nil || !bytes.Equal(s.MsgContent, content) || s.LinkID != "x" {
				t.Errorf("submit %v with %d octets: %d octets, %v", v, n, len(s.MsgContent), err)
			}
		}
	}
}

// TestRecipients: the codec carries what the frame holds; the server judges the number.
func TestRecipients(t *testing.T) {
	t.Parallel()
	for _, v := range bothVersions {
		for _, n := range []int{0, 1, 2, 95, 99, 100, 117} {
			want := submitOf(n, 4)
			want.DestTerminalType = 1
			var got cmpp.Submit
			if err := got.Decode(bodyOf(t, want, v), v); err != nil {
				t.Errorf("%v n=%d: %v", v, n, err)
			}
			if !slices.Equal(got.DestTerminalID, want.DestTerminalID) || !bytes.Equal(got.MsgContent, want.MsgContent) {
				t.Errorf("%v n=%d: %d recipients, %d octets", v, n, len(got.DestTerminalID), len(got.MsgContent))
			}
			if v.Wide() != (got.DestTerminalType == 1) {
				t.Errorf("%v n=%d: Dest_terminal_type %d", v, n, got.DestTerminalType)
			}
		}
		// 255 recipients make a frame no Reader accepts by default, yet the body decodes.
		body := slices.Insert(bodyOf(t, submitOf(0, 0), v), layouts[v].submitCount+1, make([]byte, 255*32)...)
		body[layouts[v].submitCount] = 255
		var got cmpp.Submit
		if err := got.Decode(body, v); err != nil || len(got.DestTerminalID) != 255 {
			t.Errorf("%v n=255: %d recipients, %v", v, len(got.DestTerminalID), err)
		}
	}
}

// TestTail: LinkID and Reserve are what is there.
func TestTail(t *testing.T) {
	t.Parallel()
	for _, v := range bothVersions {
		for _, tail := range []int{0, 1, 8, 9, 20, 28} {
			text := strings.Repeat("L", tail)
			want := text[:min(tail, layouts[v].submitTail)]
			for _, c := range []cmpp.Command{cmpp.CmdSubmit, cmpp.CmdDeliver} {
				body := bodyOf(t, cmpp.New(c), v)
				body = append(body[:len(body)-layouts[v].submitTail], text...)
				p, err := cmpp.Decode(cmpp.Header{Command: c}, body, v)
				if err != nil {
					t.Errorf("%v %v with a tail of %d: %v", c, v, tail, err)
					continue
				}
				var got string
				switch p := p.(type) {
				case *cmpp.Submit:
					got = p.LinkID
				case *cmpp.Deliver:
					got = p.LinkID
				}
				if got != want {
					t.Errorf("%v %v with a tail of %d: %q, want %q", c, v, tail, got, want)
				}
			}
		}
	}
}

// TestTextFields: a field ends at its first zero octet or its width, spaces around it go.
func TestTextFields(t *testing.T) {
	t.Parallel()
	tests := map[string]string{ // the ten octets of Service_Id
		"TEST\x00\x00\x00\x00\x00\x00":    "TEST",
		"TENCHARS10":                      "TENCHARS10",
		"TEST      ":                      "TEST",
		"  TEST    ":                      "TEST",
		"TEST \x00   \x00x":               "TEST",
		"TEST\x00junk!":                   "TEST",
		"A B\x00\x00\x00\x00\x00\x00\x00": "A B",
		"\x00EST      ":                   "",
		"          ":                      "",
		"0000000000":                      "0000000000",
		"\xb2\xe2\xca\xd4\x00\x00\x00\x00\x00\x00": "\xb2\xe2\xca\xd4", // GBK passes untouched
	}
	for raw, want := range tests {
		for _, v := range bothVersions {
			for c, at := range map[cmpp.Command]int{cmpp.CmdSubmit: 12, cmpp.CmdDeliver: 29} {
				body := bodyOf(t, cmpp.New(c), v)
				copy(body[at:at+10], raw)
				p, err := cmpp.Decode(cmpp.Header{Command: c}, body, v)
				if err != nil {
					t.Fatal(err)
				}
				var got string
				switch p := p.(type) {
				case *cmpp.Submit:
					got = p.ServiceID
				case *cmpp.Deliver:
					got = p.ServiceID
				}
				if got != want {
					t.Errorf("%v %v %q: %q, want %q", c, v, raw, got, want)
				}
			}
		}
	}
}

// TestFeeTerminalZeros: some clients fill the unused number with ASCII zeros.
func TestFeeTerminalZeros(t *testing.T) {
	t.Parallel()
	for _, v := range bothVersions {
		for raw, want := range map[string]string{
			strings.Repeat("0", 21): "", "0": "", "000 ": "", "013800138000": "013800138000", "13800138000": "13800138000",
		} {
			var got cmpp.Submit
			if err := got.Decode(bodyOf(t, &cmpp.Submit{FeeTerminalID: raw}, v), v); err != nil || got.FeeTerminalID != want {
				t.Errorf("%v %q: %q, %v", v, raw, got.FeeTerminalID, err)
			}
		}
	}
}

// TestPkZero: 0/0 is sent for "not a long message" and means 1/1.
func TestPkZero(t *testing.T) {
	t.Parallel()
	for _, v := range bothVersions {
		for _, tt := range [][4]uint8{{0, 0, 1, 1}, {0, 2, 1, 2}, {3, 0, 3, 1}, {1, 1, 1, 1}, {255, 255, 255, 255}} {
			var got cmpp.Submit
			err := got.Decode(bodyOf(t, &cmpp.Submit{PkTotal: tt[0], PkNumber: tt[1]}, v), v)
			if err != nil || got.PkTotal != tt[2] || got.PkNumber != tt[3] {
				t.Errorf("%v %d/%d: %d/%d, %v", v, tt[0], tt[1], got.PkTotal, got.PkNumber, err)
			}
		}
	}
}

// TestPaddingHoldsTheRest: a short or full field never moves the ones behind it.
func TestPaddingHoldsTheRest(t *testing.T) {
	t.Parallel()
	for _, v := range bothVersions {
		for _, service := range []string{"", "A", "TENCHARS10"} {
			want := goldenSubmit()
			want.ServiceID = service
			var got cmpp.Submit
			if err := got.Decode(bodyOf(t, want, v), v); err != nil || !reflect.DeepEqual(&got, want) {
				t.Errorf("%v %q: %+v, %v", v, service, got, err)
			}
		}
	}
}

// TestResponsesOfTheOtherVersion: the layout follows the length when it is exactly the other layout's.
func TestResponsesOfTheOtherVersion(t *testing.T) {
	t.Parallel()
	responses := []cmpp.PDU{
		&cmpp.ConnectResp{Status: 56, AuthenticatorISMG: digest("30379ada95177b628ad0bc5ddeac0ddd"), Version: cmpp.V20},
		&cmpp.SubmitResp{MsgID: submitID, Result: 8},
		&cmpp.DeliverResp{MsgID: submitID, Result: 9},
		&cmpp.CancelResp{SuccessID: 1},
	}
	for _, want := range responses {
		for _, written := range bothVersions {
			for _, read := range bothVersions {
				got, err := cmpp.Decode(cmpp.Header{Command: want.Command()}, bodyOf(t, want, written), read)
				if err != nil || !reflect.DeepEqual(got, want) {
					t.Errorf("%v written as %v, read as %v: %+v, %v", want.Command(), written, read, got, err)
				}
			}
		}
	}
	// Any other length is the layout of the link with octets to spare.
	var r cmpp.SubmitResp
	if err := r.Decode(unhex("110c414003e90001"+"08"+"ffff"), cmpp.V20); err != nil || r.Result != 8 {
		t.Errorf("eleven octets in 2.0: %+v, %v", r, err)
	}
	if err := r.Decode(unhex("110c414003e90001"+"0000"), cmpp.V30); err == nil {
		t.Errorf("ten octets in 3.0: %+v", r)
	}
}

// TestConnectRespStatus: vendor codes arrive as they are.
func TestConnectRespStatus(t *testing.T) {
	t.Parallel()
	var r cmpp.ConnectResp
	if err := r.Decode(append([]byte{56}, make([]byte, 17)...), cmpp.V30); err != nil || r.Status != 56 {
		t.Errorf("2.x: %+v, %v", r, err)
	}
	if err := r.Decode(append([]byte{0, 0, 1, 0}, make([]byte, 17)...), cmpp.V20); err != nil || r.Status != 256 {
		t.Errorf("3.0: %+v, %v", r, err)
	}
}

func TestActiveTestResp(t *testing.T) {
	t.Parallel()
	for body, want := range map[string]byte{"": 0, "\x00": 0, "\x07": 7, "\x07\x08\x09": 7} {
		got := cmpp.ActiveTestResp{Reserved: 99}
		if err := got.Decode([]byte(body), cmpp.V20); err != nil || got.Reserved != want {
			t.Errorf("%q: %+v, %v", body, got, err)
		}
	}
}

// TestMsgIDIsOpaque: ids that are no date pass unchanged.
func TestMsgIDIsOpaque(t *testing.T) {
	t.Parallel()
	for _, id := range []cmpp.MsgID{0, 1, 1<<63 | 1, 0xFFFFFFFFFFFFFFFF, 0x812FC7470000001B} {
		var got cmpp.SubmitResp
		if err := got.Decode(bodyOf(t, &cmpp.SubmitResp{MsgID: id}, cmpp.V20), cmpp.V20); err != nil || got.MsgID != id {
			t.Errorf("%d: %d, %v", id, got.MsgID, err)
		}
	}
}

// TestParseReport: the length decides the layout, and no field can spoil the others.
func TestParseReport(t *testing.T) {
	t.Parallel()
	full := goldenReport()
	content := func(v cmpp.Version, edit func(*cmpp.Report)) []byte {
		r := full
		if edit != nil {
			edit(&r)
		}
		b, err := r.Append(nil, v)
		if err != nil {
			t.Fatal(err)
		}
		return b
	}
	narrow, wide := content(cmpp.V20, nil), content(cmpp.V30, nil)
	with := func(edit func(*cmpp.Report)) cmpp.Report {
		r := full
		edit(&r)
		return r
	}
	noSequence := with(func(r *cmpp.Report) { r.SMSCSequence = 0 })
	tests := map[string]struct {
		content []byte
		want    cmpp.Report
	}{
		"2.0":                      {narrow, full},
		"3.0":                      {wide, full},
		"2.0 and one octet":        {append(slices.Clone(narrow), 9), full},
		"3.0 and more":             {append(slices.Clone(wide), "more"...), full},
		"3.0 without the sequence": {wide[:67], noSequence},
		"2.0 without the sequence": {narrow[:56], noSequence},
		"number not padded":        {narrow[:46], noSequence},
		"number cut":               {narrow[:40], with(func(r *cmpp.Report) { r.DestTerminalID, r.SMSCSequence = "13800", 0 })},
		"times only":               {narrow[:35], with(func(r *cmpp.Report) { r.DestTerminalID, r.SMSCSequence = "", 0 })},
		"nonsense times and state": {
			content(cmpp.V20, func(r *cmpp.Report) { r.Stat, r.SubmitTime, r.DoneTime = "AF:4\x00\x00\x00", "0001010000", "" }),
			with(func(r *cmpp.Report) { r.Stat, r.SubmitTime, r.DoneTime = "AF:4", "0001010000", "" }),
		},
		"lower case, seven octets": {
			content(cmpp.V30, func(r *cmpp.Report) { r.Stat = "mk:0012" }),
			with(func(r *cmpp.Report) { r.Stat = "mk:0012" }),
		},
		"spaces for padding": {
			content(cmpp.V20, func(r *cmpp.Report) { r.DestTerminalID = "13800138000          " }),
			full,
		},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got, err := cmpp.ParseReport(tt.content)
			if err != nil || got != tt.want {
				t.Errorf("%+v, %v; want %+v", got, err, tt.want)
			}
		})
	}
	for n := range 35 {
		_, err := cmpp.ParseReport(wide[:n])
		wantDecodeError(t, err, "Msg_Content", 4)
	}
}

// TestReuse: nothing of an earlier message shines through.
func TestReuse(t *testing.T) {
	t.Parallel()
	for _, v := range bothVersions {
		full := goldenSubmit()
		full.FeeTerminalID, full.LinkID, full.DestTerminalID = "13900139000", "LINK", []string{"1", "2", "3"}
		var s cmpp.Submit
		s.FeeTerminalType, s.DestTerminalType = 1, 1
		for _, want := range []*cmpp.Submit{full, goldenSubmit()} {
			if err := s.Decode(bodyOf(t, want, v), v); err != nil || !reflect.DeepEqual(&s, want) {
				t.Errorf("%v: %+v, %v; want %+v", v, s, err, want)
			}
		}
		d := cmpp.Deliver{SrcTerminalType: 1, LinkID: "LINK"}
		if err := d.Decode(bodyOf(t, goldenDeliver(v), v), v); err != nil || !reflect.DeepEqual(&d, goldenDeliver(v)) {
			t.Errorf("%v: %+v, %v", v, d, err)
		}
	}
}

// TestAliasing: text is copied, content is not and cannot grow into what follows it.
func TestAliasing(t *testing.T) {
	t.Parallel()
	for _, v := range bothVersions {
		body := bodyOf(t, goldenSubmit(), v)
		var s cmpp.Submit
		if err := s.Decode(body, v); err != nil {
			t.Fatal(err)
		}
		if len(s.MsgContent) != cap(s.MsgContent) {
			t.Errorf("%v: content has room for %d more octets of the frame", v, cap(s.MsgContent)-len(s.MsgContent))
		}
		clear(body)
		if s.ServiceID != "TEST" || s.DestTerminalID[0] != "13800138000" {
			t.Errorf("%v: text changed with the frame: %+v", v, s)
		}
		if !bytes.Equal(s.MsgContent, make([]byte, 12)) {
			t.Errorf("%v: content was copied", v)
		}
	}
}
