package inbound_test

import (
	"bytes"
	"context"
	"errors"
	"strings"
	"sync"
	"testing"
	"time"

	"cmppgateway/gateway/cmpp"
	"cmppgateway/gateway/internal/inbound"
	"cmppgateway/gateway/internal/session"
	"cmppgateway/gateway/internal/wake"
)

func TestParseTime(t *testing.T) {
	t.Parallel()
	for s, want := range map[string]string{
		"261130123456732+":  "2026-11-30T04:34:56.7Z",
		"26113012345673+":   "",
		"261130123456732":   "",
		"2611301234567032+": "",
		"2611301234560032+": "",
		"261130123456732R":  "2053-01-30T22:37:16Z", // 26 years, 11 months, 30 days, 12:34:56 from now on
		"000000000000000R":  "2026-01-31T10:02:20Z",
		"000100000000000R":  "2026-03-03T10:02:20Z", // 31 February
		"000007000000000R":  "2026-02-07T10:02:20Z",
		"000000996099000R":  "2026-02-04T14:03:59Z",
		"00000000000000AR":  "",
		"000000000000000r":  "",
		"261130123456032+":  "2026-11-30T04:34:56Z",
		"261130123456500+":  "2026-11-30T12:34:56.5Z",
		"261130123456032-":  "2026-11-30T20:34:56Z",
		"151105131555101+":  "2015-11-05T13:00:55.1Z", // gocmpp's sample
		"260230123456032+":  "",
		"260100123456032+":  "",
		"261301123456032+":  "",
		"261130243456032+":  "",
		"261130126056032+":  "",
		"261130123460032+":  "",
		"261130123456049+":  "",
		"26113012345603 +":  "",
		"tomorrow":          "",
	} {
		at, ok := inbound.ParseTime(s, time.Date(2026, 1, 31, 18, 2, 20, 0, cmpp.Shanghai))
		if ok != (want != "") || ok && at.Format(time.RFC3339Nano) != want {
			t.Errorf("%q: %s, %t, want %q", s, at.Format(time.RFC3339Nano), ok, want)
		}
	}
}

// stamp is a SMPP time in China.
func stamp(at time.Time) string { return at.In(cmpp.Shanghai).Format("060102150405") + "032+" }

func TestSubmitResults(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.start(t)
	long := func(n int) []byte { return bytes.Repeat([]byte{'x'}, n) }
	links := map[cmpp.Version]*client{cmpp.V20: b.customer(t, cmpp.V20), cmpp.V21: b.customer(t, cmpp.V21), cmpp.V30: b.customer(t, cmpp.V30)}
	for _, c := range []struct {
		name          string
		change        func(*cmpp.Submit)
		v20, v21, v30 uint32
	}{
		{"good", func(*cmpp.Submit) {}, 0, 0, 0},
		{"Registered_Delivery 2", func(p *cmpp.Submit) { p.RegisteredDelivery = 2 }, 0, 0, 1},
		{"Registered_Delivery 3", func(p *cmpp.Submit) { p.RegisteredDelivery = 3 }, 1, 1, 1},
		{"no recipient", func(p *cmpp.Submit) { p.DestTerminalID = nil }, 1, 1, 1},
		{"99 recipients", func(p *cmpp.Submit) { p.DestTerminalID = numbers(99) }, 0, 0, 0},
		{"100 recipients", func(p *cmpp.Submit) { p.DestTerminalID = numbers(100) }, 1, 1, 1},
		{"one bad number", func(p *cmpp.Submit) { p.DestTerminalID = append(numbers(3), "12800000001") }, 9, 13, 13},
		{"country code", func(p *cmpp.Submit) { p.DestTerminalID = []string{"+8613800000001"} }, 0, 0, 0},
		{"pseudo code", func(p *cmpp.Submit) { p.DestTerminalID = []string{"PSEUDO1"} }, 9, 13, 13},
		{"Src_Id of another", func(p *cmpp.Submit) { p.SrcID = "10700" }, 9, 10, 10},
		{"Src_Id shorter than the access number", func(p *cmpp.Submit) { p.SrcID = "106" }, 9, 10, 10},
		{"Src_Id alone", func(p *cmpp.Submit) { p.SrcID = "1069" }, 0, 0, 0},
		{"Msg_src of another", func(p *cmpp.Submit) { p.MsgSrc = "100002" }, 9, 11, 11},
		{"160 octets of ASCII", func(p *cmpp.Submit) { p.MsgContent = long(160) }, 0, 0, 0},
		{"159 octets of ASCII", func(p *cmpp.Submit) { p.MsgContent = long(159) }, 0, 0, 0},
		{"69 characters of UCS-2", func(p *cmpp.Submit) { p.MsgContent, p.MsgFmt = long(138), 8 }, 0, 0, 0},
		{"71 characters of UCS-2", func(p *cmpp.Submit) { p.MsgContent, p.MsgFmt = long(142), 8 }, 6, 6, 6},
		{"139 octets of GBK", func(p *cmpp.Submit) { p.MsgContent, p.MsgFmt = long(139), 15 }, 0, 0, 0},
		{"141 octets of GBK", func(p *cmpp.Submit) { p.MsgContent, p.MsgFmt = long(141), 15 }, 6, 6, 6},
		{"161 octets of ASCII", func(p *cmpp.Submit) { p.MsgContent = long(161) }, 6, 6, 6},
		{"141 octets of ASCII with a header", func(p *cmpp.Submit) { p.MsgContent, p.TPUDHI = long(141), 0x40 }, 6, 6, 6},
		{"140 octets of UCS-2", func(p *cmpp.Submit) { p.MsgContent, p.MsgFmt = long(140), 8 }, 0, 0, 0},
		{"141 octets of UCS-2", func(p *cmpp.Submit) { p.MsgContent, p.MsgFmt = long(141), 8 }, 6, 6, 6},
		{"no content", func(p *cmpp.Submit) { p.MsgContent = nil }, 0, 0, 0},
		{"unknown format is policy's", func(p *cmpp.Submit) { p.MsgFmt = 77 }, 0, 0, 0},
		{"Pk 0 of 0", func(p *cmpp.Submit) { p.PkTotal, p.PkNumber = 0, 0 }, 0, 0, 0},
		{"ValId_Time tomorrow", func(p *cmpp.Submit) { p.ValidTime = stamp(time.Now().Add(24 * time.Hour)) }, 0, 0, 0},
		{"ValId_Time of 2015", func(p *cmpp.Submit) { p.ValidTime = "151105131555101+" }, 0, 0, 0},
		{"ValId_Time nonsense", func(p *cmpp.Submit) { p.ValidTime = "tomorrow" }, 1, 1, 1},
		{"At_Time passed", func(p *cmpp.Submit) { p.AtTime = stamp(time.Now().Add(-time.Minute)) }, 0, 0, 0},
		{"At_Time in the future", func(p *cmpp.Submit) { p.AtTime = stamp(time.Now().Add(time.Hour)) }, 0, 0, 0},
		{"At_Time in two days, relative", func(p *cmpp.Submit) { p.AtTime = "000002000000000R" }, 0, 0, 0},
		{"At_Time in eight days", func(p *cmpp.Submit) { p.AtTime = "000008000000000R" }, 1, 1, 1},
		{"ValId_Time relative", func(p *cmpp.Submit) { p.ValidTime = "000000010000000R" }, 0, 0, 0},
		{"At_Time nonsense", func(p *cmpp.Submit) { p.AtTime = "0" }, 1, 1, 1},
	} {
		for v, want := range map[cmpp.Version]uint32{cmpp.V20: c.v20, cmpp.V21: c.v21, cmpp.V30: c.v30} {
			p := sms()
			c.change(p)
			rows := b.count(t, "SELECT count(*) FROM inbox")
			link := links[v]
			seq := link.submit(p)
			got, resp := link.answer()
			if got != seq || resp.Result != want || (resp.MsgID != 0) != (want == 0) {
				t.Errorf("%s on %s: result %d, Msg_Id %d, want result %d", c.name, v, resp.Result, resp.MsgID, want)
			}
			stored := b.count(t, "SELECT count(*) FROM inbox") - rows
			if (stored == 1) != (want == 0) {
				t.Errorf("%s on %s: %d rows stored with result %d", c.name, v, stored, want)
			}
		}
	}
	if !strings.Contains(b.log.String(), "At_Time is more than 7 days ahead") {
		t.Error("the cause of the refused At_Time is not in the log")
	}
}

func TestRowsSayWhatTheCustomerSaid(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.start(t)
	c := b.customer(t, cmpp.V30)
	until := time.Now().Add(time.Hour).Truncate(time.Second)
	p := sms("13800000001", "+8613800000002", "86 13800000003")
	p.ValidTime, p.MsgFmt, p.TPUDHI, p.PkTotal, p.PkNumber, p.MsgContent = stamp(until), 8, 1, 3, 2, []byte{5, 0, 3, 1, 3, 2, 0x4F, 0x60}
	id := c.accepted(p)
	var row struct {
		enterprise, app, weight                       int
		node, registered, format, udhi, total, number int
		dest, src, service, content                   []byte
		seq, pos, msgID, rowID                        int64
		until, accepted                               time.Time
	}
	if err := b.QueryRow(t.Context(), `SELECT enterprise_id, app_id, weight, node, registered, fmt, udhi, pk_total, pk_number, dest, src, service, content, seq, pos, msg_id, id, valid_until, accepted_at FROM inbox`).Scan(
		&row.enterprise, &row.app, &row.weight, &row.node, &row.registered, &row.format, &row.udhi, &row.total, &row.number, &row.dest, &row.src,
		&row.service, &row.content, &row.seq, &row.pos, &row.msgID, &row.rowID, &row.until, &row.accepted); err != nil {
		t.Fatal(err)
	}
	if row.enterprise != 1 || row.app != 11 || row.weight != 3 || row.node != int(b.node.Number) || row.registered != 1 || row.format != 8 ||
		row.udhi != 1 || row.total != 3 || row.number != 2 || row.pos != row.rowID || row.seq != int64(c.seq) {
		t.Errorf("row %+v", row)
	}
	if string(row.dest) != "13800000001,+8613800000002,86 13800000003" || string(row.src) != "106912" || string(row.service) != "svc" || !bytes.Equal(row.content, p.MsgContent) {
		t.Errorf("text %q %q %q %q", row.dest, row.src, row.service, row.content)
	}
	if cmpp.MsgID(row.msgID) != id || !row.until.Equal(until) || time.Since(row.accepted).Abs() > time.Minute {
		t.Errorf("Msg_Id %d, valid until %s, accepted %s", row.msgID, row.until, row.accepted)
	}
	// A group send takes as many Msg_Ids as it has recipients.
	if next := c.accepted(sms()); next < id+3 {
		t.Errorf("Msg_Id %d after a group of three from %d", next, id)
	}
	if n := b.wake.n[wake.Inbox]; n != 2 {
		t.Errorf("%d nudges for two commits", n)
	}
}

func TestResendIsStoredOnce(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.start(t)
	c := b.customer(t, cmpp.V20)
	first := c.accepted(sms())
	c.send(c.seq, sms()) // the same number and content
	if seq, resp := c.answer(); seq != c.seq || resp.Result != 0 || resp.MsgID != first {
		t.Errorf("resend: result %d, Msg_Id %d, want %d", resp.Result, resp.MsgID, first)
	}
	other := sms()
	other.MsgContent = []byte("another text")
	c.send(c.seq, other) // numbers come again
	if _, resp := c.answer(); resp.Result != 0 || resp.MsgID == first {
		t.Errorf("another content with the same number: result %d, Msg_Id %d", resp.Result, resp.MsgID)
	}
	c.accepted(sms()) // the same content under another number
	if n := b.count(t, "SELECT count(*) FROM inbox"); n != 3 {
		t.Errorf("%d rows, want 3", n)
	}
	// While the first is not committed, one answer serves both.
	unlock := b.lock(t)
	c.seq++
	c.send(c.seq, sms())
	c.send(c.seq, sms())
	c.silent(50 * time.Millisecond)
	unlock()
	if seq, resp := c.answer(); seq != c.seq || resp.Result != 0 {
		t.Errorf("sequence %d, result %d", seq, resp.Result)
	}
	c.accepted(sms())
	if n := b.count(t, "SELECT count(*) FROM inbox"); n != 5 {
		t.Errorf("%d rows, want 5", n)
	}
}

// enquirer takes the SUBMIT with Msg_Id 8 back and no other, and has seen 5 SUBMITs on every day. It fails once for each
// Msg_Id from 100 on.
type enquirer struct{ failed *sync.Map }

func (e enquirer) Cancel(_ context.Context, enterprise, app int32, id cmpp.MsgID) (bool, error) {
	if id >= 100 && e.failed != nil {
		if _, again := e.failed.LoadOrStore(id, true); !again {
			return false, errors.New("the connection broke")
		}
	}
	return enterprise == 1 && app == 11 && id%100 == 8, nil
}

func (e enquirer) Query(_ context.Context, app int32, q *cmpp.Query) (*cmpp.QueryResp, error) {
	return &cmpp.QueryResp{Time: q.Time, QueryType: q.QueryType, QueryCode: q.QueryCode, MTTLMsg: 5, MTWT: uint32(app)}, nil
}

func TestQueryCancelAndBrokenRequests(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.start(t)
	for _, v := range []cmpp.Version{cmpp.V20, cmpp.V30} {
		c := b.customer(t, v)
		c.send(2, &cmpp.Query{Time: "20261130", QueryType: 1, QueryCode: "svc"})
		if _, p := c.receive(); *p.(*cmpp.QueryResp) != (cmpp.QueryResp{Time: "20261130", QueryType: 1, QueryCode: "svc", MTTLMsg: 5, MTWT: 11}) {
			t.Errorf("QUERY answered %+v", p)
		}
		for id, want := range map[cmpp.MsgID]uint32{7: 1, 8: 0, 107: 1, 108: 0} {
			c.send(3, &cmpp.Cancel{MsgID: id})
			if _, p := c.receive(); p.(*cmpp.CancelResp).SuccessID != want {
				t.Errorf("CANCEL of %d answered %+v, want %d", id, p, want)
			}
		}
		// Msg_Length promises more than the frame holds: answered, and the session lives on.
		octets, err := sms().Append(nil, v, 4)
		if err != nil {
			t.Fatal(err)
		}
		octets[len(octets)-len("hello")-map[cmpp.Version]int{cmpp.V20: 8, cmpp.V30: 20}[v]-1] = 200
		c.raw(octets)
		if seq, resp := c.answer(); seq != 4 || resp.Result != 4 {
			t.Errorf("result %d for a content length that lies, want 4", resp.Result)
		}
		c.seq = 4
		c.accepted(sms())
	}
}

// lateAnswer is a token of a call.
type lateAnswer chan cmpp.PDU

func (l lateAnswer) OnLate(p cmpp.PDU) { l <- p }

func TestLateAnswersReachTheirCall(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.cfg.ResponseTimeout = 200 * time.Millisecond
	b.start(t)
	c := b.customer(t, cmpp.V30)
	var link *session.Session
	eventually(t, "connection of the application", func() bool {
		b.server.Sessions().Each(func(app int32, links []*session.Session) {
			if app == 11 {
				link = links[0]
			}
		})
		return link != nil
	})
	if n := link.Acquire(100); n != 16 {
		t.Errorf("window of %d for DELIVERs, want 16", n)
	}
	late, done := make(lateAnswer, 1), make(chan session.Outcome, 1)
	if err := link.Send([]session.Call{{PDU: &cmpp.Deliver{MsgID: 5}, Token: late, Done: func(o session.Outcome) { done <- o }}}); err != nil {
		t.Fatal(err)
	}
	hd, _ := c.receive()
	if o := <-done; !errors.Is(o.Err, session.ErrTimeout) {
		t.Fatalf("outcome %v", o.Err)
	}
	c.send(hd.Sequence, &cmpp.DeliverResp{MsgID: 5})
	eventually(t, "late answer", func() bool { return len(late) == 1 })
	if p := <-late; p.(*cmpp.DeliverResp).MsgID != 5 {
		t.Errorf("late answer %+v", p)
	}
}
