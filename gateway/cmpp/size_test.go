package cmpp_test

import (
	"encoding/binary"
	"errors"
	"strings"
	"testing"

	"cmppgateway/gateway/cmpp"
)

var bothVersions = []cmpp.Version{cmpp.V20, cmpp.V30}

func submitOf(recipients, octets int) *cmpp.Submit {
	p := &cmpp.Submit{MsgContent: make([]byte, octets)}
	for range recipients {
		p.DestTerminalID = append(p.DestTerminalID, "13800138000")
	}
	return p
}

// TestFrameSizes is the size table of the two specifications.
func TestFrameSizes(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name         string
		pdu          cmpp.PDU
		narrow, wide int
	}{
		{"connect", &cmpp.Connect{}, 39, 39},
		{"connect response", &cmpp.ConnectResp{}, 30, 33},
		{"terminate", &cmpp.Terminate{}, 12, 12},
		{"terminate response", &cmpp.TerminateResp{}, 12, 12},
		{"active test", &cmpp.ActiveTest{}, 12, 12},
		{"active test response", &cmpp.ActiveTestResp{}, 13, 13},
		{"submit n=0 L=0", submitOf(0, 0), 138, 163},
		{"submit n=1 L=0", submitOf(1, 0), 159, 195},
		{"submit n=1 L=140", submitOf(1, 140), 299, 335},
		{"submit n=1 L=159", submitOf(1, 159), 318, 354},
		{"submit n=1 L=160", submitOf(1, 160), 319, 355},
		{"submit n=1 L=255", submitOf(1, 255), 414, 450},
		{"submit n=99 L=0", submitOf(99, 0), 2217, 3331},
		{"submit n=99 L=140", submitOf(99, 140), 2357, 3471},
		{"submit n=99 L=159", submitOf(99, 159), 2376, 3490},
		{"submit n=99 L=160", submitOf(99, 160), 2377, 3491},
		{"submit n=100 L=140", submitOf(100, 140), 2378, 3503},
		{"submit response", &cmpp.SubmitResp{}, 21, 24},
		{"deliver L=0", &cmpp.Deliver{}, 85, 109},
		{"deliver L=140", &cmpp.Deliver{MsgContent: make([]byte, 140)}, 225, 249},
		{"deliver response", &cmpp.DeliverResp{}, 21, 24},
		{"query", &cmpp.Query{}, 39, 39},
		{"query response", &cmpp.QueryResp{}, 63, 63},
		{"cancel", &cmpp.Cancel{}, 20, 20},
		{"cancel response", &cmpp.CancelResp{}, 13, 16},
	}
	for _, tt := range tests {
		for v, want := range map[cmpp.Version]int{cmpp.V20: tt.narrow, cmpp.V21: tt.narrow, cmpp.V30: tt.wide} {
			frame, err := tt.pdu.Append(nil, v, 1)
			if err != nil {
				t.Errorf("%s %v: %v", tt.name, v, err)
				continue
			}
			if len(frame) != want || int(binary.BigEndian.Uint32(frame)) != want {
				t.Errorf("%s %v: %d octets, Total_Length %d; want %d", tt.name, v, len(frame), binary.BigEndian.Uint32(frame), want)
			}
			h := cmpp.Header{Command: tt.pdu.Command()}
			if _, err := cmpp.Decode(h, frame[cmpp.HeaderLen:], v); err != nil {
				t.Errorf("%s %v: decoding it again: %v", tt.name, v, err)
			}
		}
	}
}

func TestReportSizes(t *testing.T) {
	t.Parallel()
	report := goldenReport()
	for v, want := range map[cmpp.Version]int{cmpp.V20: 60, cmpp.V21: 60, cmpp.V30: 71} {
		content, err := report.Append(nil, v)
		if err != nil || len(content) != want {
			t.Errorf("%v: %d octets, %v; want %d", v, len(content), err, want)
		}
	}
}

// TestOverflow checks that no value is cut and that the error says which one did not fit where.
func TestOverflow(t *testing.T) {
	t.Parallel()
	long := func(n int) string { return strings.Repeat("7", n) }
	tests := []struct {
		pdu          cmpp.PDU
		field, value string
		narrow, wide int // width of the field; 0 where the value fits
	}{
		{&cmpp.Connect{SourceAddr: long(7)}, "Source_Addr", long(7), 6, 6},
		{&cmpp.ConnectResp{Status: 256}, "Status", "256", 1, 0},
		{&cmpp.Submit{ServiceID: long(11)}, "Service_Id", long(11), 10, 10},
		{&cmpp.Submit{FeeTerminalID: long(22)}, "Fee_terminal_Id", long(22), 21, 0},
		{&cmpp.Submit{FeeTerminalID: long(33)}, "Fee_terminal_Id", long(33), 21, 32},
		{&cmpp.Submit{MsgSrc: long(7)}, "Msg_src", long(7), 6, 6},
		{&cmpp.Submit{FeeType: long(3)}, "FeeType", long(3), 2, 2},
		{&cmpp.Submit{FeeCode: long(7)}, "FeeCode", long(7), 6, 6},
		{&cmpp.Submit{ValidTime: long(18)}, "ValId_Time", long(18), 17, 17},
		{&cmpp.Submit{AtTime: long(18)}, "At_Time", long(18), 17, 17},
		{&cmpp.Submit{SrcID: long(22)}, "Src_Id", long(22), 21, 21},
		{&cmpp.Submit{DestTerminalID: []string{"1", long(22)}}, "Dest_terminal_Id", long(22), 21, 0},
		{&cmpp.Submit{DestTerminalID: []string{"1", long(33)}}, "Dest_terminal_Id", long(33), 21, 32},
		{&cmpp.Submit{DestTerminalID: make([]string, 256)}, "DestUsr_tl", "256 recipients", 1, 1},
		{&cmpp.Submit{MsgContent: make([]byte, 256)}, "Msg_Length", "256 octets", 1, 1},
		{&cmpp.Submit{LinkID: long(9)}, "Reserve", long(9), 8, 0},
		{&cmpp.SubmitResp{Result: 256}, "Result", "256", 1, 0},
		{&cmpp.Deliver{DestID: long(22)}, "Dest_Id", long(22), 21, 21},
		{&cmpp.Deliver{ServiceID: long(11)}, "Service_Id", long(11), 10, 10},
		{&cmpp.Deliver{SrcTerminalID: long(22)}, "Src_terminal_Id", long(22), 21, 0},
		{&cmpp.Deliver{SrcTerminalID: long(33)}, "Src_terminal_Id", long(33), 21, 32},
		{&cmpp.Deliver{MsgContent: make([]byte, 256)}, "Msg_Length", "256 octets", 1, 1},
		{&cmpp.Deliver{LinkID: long(9)}, "Reserved", long(9), 8, 0},
		{&cmpp.DeliverResp{Result: 256}, "Result", "256", 1, 0},
		{&cmpp.Query{Time: long(9)}, "Time", long(9), 8, 8},
		{&cmpp.Query{QueryCode: long(11)}, "Query_Code", long(11), 10, 10},
		{&cmpp.Query{Reserve: long(9)}, "Reserve", long(9), 8, 8},
		{&cmpp.QueryResp{Time: long(9)}, "Time", long(9), 8, 8},
		{&cmpp.QueryResp{QueryCode: long(11)}, "Query_Code", long(11), 10, 10},
		{&cmpp.CancelResp{SuccessID: 256}, "Success_Id", "256", 1, 0},
	}
	for _, tt := range tests {
		for v, width := range map[cmpp.Version]int{cmpp.V20: tt.narrow, cmpp.V30: tt.wide} {
			got, err := tt.pdu.Append([]byte("before"), v, 1)
			if width == 0 {
				if err != nil {
					t.Errorf("%v %s of %d characters: %v", v, tt.field, len(tt.value), err)
				}
				continue
			}
			e, ok := errors.AsType[*cmpp.EncodeError](err)
			if !ok {
				t.Errorf("%v %s of %d characters: error %v, want an EncodeError", v, tt.field, len(tt.value), err)
				continue
			}
			want := cmpp.EncodeError{Command: tt.pdu.Command(), Field: tt.field, Value: tt.value, Width: width}
			if *e != want {
				t.Errorf("%v: %+v, want %+v", v, *e, want)
			}
			if string(got) != "before" {
				t.Errorf("%v %s: Append left %q behind", v, tt.field, got)
			}
			for _, part := range []string{tt.field, tt.value, tt.pdu.Command().String()} {
				if !strings.Contains(e.Error(), part) {
					t.Errorf("%q does not name %q", e, part)
				}
			}
		}
	}
}

// TestFrameTooLong: the fields can express frames that no reader takes by default.
func TestFrameTooLong(t *testing.T) {
	t.Parallel()
	for v, n := range map[cmpp.Version]int{cmpp.V20: 188, cmpp.V30: 122} {
		frame, err := submitOf(n, 0).Append(nil, v, 1)
		if err != nil || len(frame) > cmpp.MaxFrame {
			t.Errorf("%v with %d recipients: %d octets, %v", v, n, len(frame), err)
		}
		frame, err = submitOf(n+1, 0).Append(nil, v, 1)
		if e, ok := errors.AsType[*cmpp.EncodeError](err); !ok || e.Field != "Total_Length" || e.Width != cmpp.MaxFrame || len(frame) != 0 {
			t.Errorf("%v with %d recipients: %d octets, %v", v, n+1, len(frame), err)
		}
	}
}

func TestLinkIDOverflowIn30(t *testing.T) {
	t.Parallel()
	for _, p := range []cmpp.PDU{&cmpp.Submit{LinkID: strings.Repeat("L", 21)}, &cmpp.Deliver{LinkID: strings.Repeat("L", 21)}} {
		_, err := p.Append(nil, cmpp.V30, 1)
		if e, ok := errors.AsType[*cmpp.EncodeError](err); !ok || e.Field != "LinkID" || e.Width != 20 {
			t.Errorf("%T: %v", p, err)
		}
	}
}

func TestReportOverflow(t *testing.T) {
	t.Parallel()
	tests := map[string]cmpp.Report{
		"Stat":             {Stat: "UNDELIVRD"},
		"Submit_time":      {SubmitTime: "24010203040"},
		"Done_time":        {DoneTime: "24010203040"},
		"Dest_terminal_Id": {DestTerminalID: strings.Repeat("1", 33)},
	}
	for field, r := range tests {
		for _, v := range bothVersions {
			got, err := r.Append([]byte("before"), v)
			if e, ok := errors.AsType[*cmpp.EncodeError](err); !ok || e.Field != field || string(got) != "before" {
				t.Errorf("%v %s: %q, %v", v, field, got, err)
			}
		}
	}
}
