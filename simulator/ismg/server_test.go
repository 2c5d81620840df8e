package ismg_test

import (
	"bytes"
	"context"
	"encoding/csv"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"net"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"cmppgateway/gateway/cmpp"
	"cmppgateway/simulator/internal/wire"
	"cmppgateway/simulator/ismg"
	"cmppgateway/simulator/simclock"
)

const (
	id     = "901234"
	secret = "1234"
)

func account() ismg.Account {
	return ismg.Account{ID: id, Secret: secret, Version: 0x30, MaxConnections: 4, Window: 4, GatewayCode: 1001}
}

func oneAccount(a ismg.Account) ismg.Profile {
	return ismg.Profile{Seed: 1, Accounts: []ismg.Account{a}}
}

// quiet is an account that never sends reports.
func quiet(a ismg.Account) ismg.Profile {
	p := oneAccount(a)
	p.Behaviour.Deck = ismg.DeckSpec{Block: 1, NoReceipt: 1}
	return p
}

// serve runs a server of p until the test ends.
func serve(t *testing.T, p ismg.Profile, o ismg.Options) (*ismg.Server, string) {
	t.Helper()
	s, err := ismg.New(p, simclock.New(), o)
	if err != nil {
		t.Fatal(err)
	}
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	var wg sync.WaitGroup
	wg.Go(func() {
		if err := s.Serve(ctx, ln); err != nil {
			t.Error(err)
		}
	})
	t.Cleanup(func() {
		cancel()
		wg.Wait()
	})
	return s, ln.Addr().String()
}

// peer is a scripted client.
type peer struct {
	t       *testing.T
	sock    net.Conn
	rd      *wire.Reader
	version cmpp.Version
	seq     uint32
}

func dial(t *testing.T, addr string, version cmpp.Version) *peer {
	t.Helper()
	sock, err := net.Dial("tcp", addr)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = sock.Close() })
	_ = sock.SetDeadline(time.Now().Add(30 * time.Second))
	return &peer{t: t, sock: sock, rd: wire.NewReader(sock), version: version}
}

func (p *peer) write(pdu cmpp.PDU, seq uint32) {
	p.t.Helper()
	frame, err := pdu.Append(nil, p.version, seq)
	if err != nil {
		p.t.Fatal(err)
	}
	if _, err := p.sock.Write(frame); err != nil {
		p.t.Fatal(err)
	}
}

func (p *peer) next() wire.Frame {
	p.t.Helper()
	f, err := p.rd.Next()
	if err != nil {
		p.t.Fatal(err)
	}
	f.Body = bytes.Clone(f.Body)
	return f
}

// expect reads a frame and fails unless it is the command.
func (p *peer) expect(command uint32) wire.Frame {
	p.t.Helper()
	f := p.next()
	if f.Command != command {
		p.t.Fatalf("command %08x, want %08x", f.Command, command)
	}
	return f
}

// closed fails unless the server closes the connection.
func (p *peer) closed() {
	p.t.Helper()
	if f, err := p.rd.Next(); err == nil {
		p.t.Fatalf("command %08x, want a closed connection", f.Command)
	}
}

func (p *peer) login(source, password string) wire.ConnectRespBody {
	p.t.Helper()
	const at = 102030405
	p.write(&cmpp.Connect{
		SourceAddr: source, AuthenticatorSource: cmpp.AuthSource(source, []byte(password), at), Version: p.version, Timestamp: at,
	}, 1)
	body, err := wire.DecodeConnectResp(p.expect(wire.Connect | wire.Response).Body)
	if err != nil {
		p.t.Fatal(err)
	}
	return body
}

func (p *peer) loggedIn() *peer {
	p.t.Helper()
	if got := p.login(id, secret); got.Status != 0 {
		p.t.Fatalf("login status %d", got.Status)
	}
	return p
}

func submitTo(number string) *cmpp.Submit {
	return &cmpp.Submit{
		PkTotal: 1, PkNumber: 1, RegisteredDelivery: 1, MsgSrc: id, SrcID: "10690001",
		DestTerminalID: []string{number}, MsgContent: []byte("hello"),
	}
}

func (p *peer) submit(number string) (seq uint32) {
	p.t.Helper()
	p.seq++
	p.write(submitTo(number), p.seq)
	return p.seq
}

func (p *peer) result(f wire.Frame) wire.MsgIDResult {
	p.t.Helper()
	r, err := wire.DecodeMsgIDResult(f.Body, uint8(p.version))
	if err != nil {
		p.t.Fatal(err)
	}
	return r
}

func (p *peer) answer() wire.MsgIDResult {
	p.t.Helper()
	return p.result(p.expect(wire.Submit | wire.Response))
}

// report reads a DELIVER with a status report, without answering it.
func (p *peer) report() (f wire.Frame, d wire.DeliverBody, r wire.ReportBody) {
	p.t.Helper()
	f = p.expect(wire.Deliver)
	if err := wire.DecodeDeliver(f.Body, uint8(p.version), &d); err != nil {
		p.t.Fatal(err)
	}
	r, err := wire.DecodeReport(d.Content)
	if err != nil {
		p.t.Fatal(err)
	}
	return f, d, r
}

func (p *peer) ack(f wire.Frame, d wire.DeliverBody) {
	p.t.Helper()
	p.write(&cmpp.DeliverResp{MsgID: cmpp.MsgID(d.MsgID)}, f.Sequence)
}

// eventually polls until ok says so.
func eventually(t *testing.T, what string, ok func() bool) {
	t.Helper()
	deadline := time.Now().Add(30 * time.Second)
	for !ok() {
		if time.Now().After(deadline) {
			t.Fatalf("never: %s", what)
		}
		time.Sleep(time.Millisecond)
	}
}

func kinds(s *ismg.Server) []ismg.ViolationKind {
	var list []ismg.ViolationKind
	for _, v := range s.Record().Violations {
		list = append(list, v.Kind)
	}
	return list
}

func TestLogin(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name, source, secret string
		account, peer        uint8
		status               uint32
	}{
		{"3.0", id, secret, 0x30, 0x30, 0},
		{"2.0", id, secret, 0x20, 0x20, 0},
		{"2.1 to 2.0", id, secret, 0x20, 0x21, 0},
		{"follows", id, secret, 0, 0x20, 0},
		{"unknown", "999999", secret, 0x30, 0x30, 2},
		{"secret", id, "12345", 0x30, 0x30, 3},
		{"version too high", id, secret, 0x20, 0x30, 4},
		{"version too low", id, secret, 0x30, 0x20, 4},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			a := account()
			a.Version = c.account
			s, addr := serve(t, oneAccount(a), ismg.Options{})
			p := dial(t, addr, cmpp.Version(c.peer))
			if got := p.login(c.source, c.secret); got.Status != c.status {
				t.Fatalf("status %d, want %d", got.Status, c.status)
			}
			if c.status != 0 {
				p.closed()
			}
			if r := s.Record().Logins; len(r) != 1 || r[0].Status != c.status || r[0].Account != c.source {
				t.Errorf("recorded %+v", r)
			}
		})
	}
}

// TestGoldenLogin plays the octets of the fixed vectors.
func TestGoldenLogin(t *testing.T) {
	t.Parallel()
	_, addr := serve(t, oneAccount(account()), ismg.Options{})
	p := dial(t, addr, 0x30)
	frame, err := hex.DecodeString("000000270000000100000001393031323334e45edee925b9c275458dfcc54b2bebd8300614dc45")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := p.sock.Write(frame); err != nil {
		t.Fatal(err)
	}
	got := make([]byte, 33)
	if _, err := io.ReadFull(p.sock, got); err != nil {
		t.Fatal(err)
	}
	const want = "00000021800000010000000100000000af8b00451a390b4990321de5bfca09c230"
	if hex.EncodeToString(got) != want {
		t.Errorf("got %x, want %s", got, want)
	}
}

func TestMaxConnectionsAndRefusal(t *testing.T) {
	t.Parallel()
	a := account()
	a.MaxConnections = 2
	s, addr := serve(t, oneAccount(a), ismg.Options{})
	for range 2 {
		dial(t, addr, 0x30).loggedIn()
	}
	if got := dial(t, addr, 0x30).login(id, secret); got.Status != 56 {
		t.Errorf("third connection: status %d, want 56", got.Status)
	}
	if err := s.SetLimits(id, ismg.Limits{MaxConnections: 1, Window: 4}, ismg.RST); err != nil {
		t.Fatal(err)
	}
	if n := len(s.Live()); n != 1 {
		t.Errorf("%d connections live after the shrink, want 1", n)
	}
	if err := s.SetLimits(id, ismg.Limits{MaxConnections: 3, Window: 4}, ismg.NoCut); err != nil {
		t.Fatal(err)
	}
	if err := s.RefuseLogins(id, 5); err != nil {
		t.Fatal(err)
	}
	if got := dial(t, addr, 0x30).login(id, secret); got.Status != 5 {
		t.Errorf("while refusing: status %d, want 5", got.Status)
	}
	if err := s.RefuseLogins(id, 0); err != nil {
		t.Fatal(err)
	}
	dial(t, addr, 0x30).loggedIn()
	if want := []ismg.ViolationKind{ismg.ViolatedConnections}; !slices.Equal(kinds(s), want) {
		t.Errorf("violations %v, want %v", kinds(s), want)
	}
	if _, err := s.Limits("nobody"); !errors.Is(err, ismg.ErrUnknown) {
		t.Errorf("limits of nobody: %v", err)
	}
}

func TestSubmitBeforeLogin(t *testing.T) {
	t.Parallel()
	s, addr := serve(t, oneAccount(account()), ismg.Options{})
	p := dial(t, addr, 0x30)
	p.submit("13800138000")
	p.closed()
	if r := s.Record(); len(r.Submits) != 0 || len(r.Violations) != 1 || r.Violations[0].Kind != ismg.ViolatedLogin {
		t.Errorf("recorded %d submits, %+v", len(r.Submits), r.Violations)
	}
}

// TestRecord checks every field of a SUBMIT's record in both layouts, and the
// report's way back.
func TestRecord(t *testing.T) {
	t.Parallel()
	for _, version := range []cmpp.Version{0x20, 0x30} {
		t.Run(fmt.Sprintf("%02x", uint8(version)), func(t *testing.T) {
			t.Parallel()
			a := account()
			a.Version = uint8(version)
			profile := oneAccount(a)
			profile.Behaviour.SubmitRTT = ismg.FixedAt(2 * time.Millisecond)
			profile.Behaviour.ReceiptDelay = ismg.FixedAt(3 * time.Millisecond)
			s, addr := serve(t, profile, ismg.Options{KeepContent: true})
			p := dial(t, addr, version).loggedIn()
			content := append([]byte{5, 0, 3, 0xab, 3, 2}, "0123"...)
			p.write(&cmpp.Submit{
				PkTotal: 3, PkNumber: 2, RegisteredDelivery: 1, ServiceID: "TEST", TPUDHI: 1, MsgFmt: 8, MsgSrc: id, SrcID: "10690001",
				DestTerminalID: []string{"8613800138000"}, MsgContent: content,
			}, 77)
			f := p.expect(wire.Submit | wire.Response)
			answer := p.result(f)
			if f.Sequence != 77 || answer.Result != 0 || answer.MsgID == 0 {
				t.Fatalf("answer %+v %+v", f, answer)
			}
			frame, deliver, report := p.report()
			if report.MsgID != answer.MsgID || string(report.Stat) != "DELIVRD" || string(report.Dest) != "8613800138000" ||
				string(deliver.Dest) != "10690001" || string(deliver.Source) != "8613800138000" || deliver.MsgID == answer.MsgID {
				t.Errorf("deliver %+v report %+v", deliver, report)
			}
			p.ack(frame, deliver)
			eventually(t, "report acknowledged", func() bool { return s.Record().Reports[0].Acked != 0 })

			got := s.Record().Submits[0]
			want := ismg.Submit{
				Account: id, Conn: got.Conn, Seq: 77, Recv: got.Recv, Sent: got.Sent, Hold: int64(2 * time.Millisecond),
				Number: "8613800138000", Key: 13800138000, SrcID: "10690001", MsgSrc: id, ServiceID: "TEST", Fmt: 8, UDHI: 1,
				Registered: 1, PkTotal: 3, PkNumber: 2, Concat: ismg.Concat{Ref: 0xab, Total: 3, Number: 2}, Length: 10,
				Hash: ismg.ContentHash(content), Content: content, Fate: ismg.Fate{Stat: "DELIVRD"}, MsgID: answer.MsgID, Stat: "DELIVRD",
			}
			if fmt.Sprintf("%+v", got) != fmt.Sprintf("%+v", want) {
				t.Errorf("got  %+v\nwant %+v", got, want)
			}
			if got.Sent-got.Recv < got.Hold || got.Part() != 2 {
				t.Errorf("held %d of %d, part %d", got.Sent-got.Recv, got.Hold, got.Part())
			}
			r := s.Record().Reports[0]
			if r.Tries != 1 || r.Acks != 1 || r.MsgID != answer.MsgID || r.DeliverID != deliver.MsgID ||
				r.First < got.Sent+int64(3*time.Millisecond) || r.Acked < r.First {
				t.Errorf("report %+v", r)
			}
		})
	}
}

func TestMsgIDLayout(t *testing.T) {
	t.Parallel()
	s, addr := serve(t, oneAccount(account()), ismg.Options{})
	p := dial(t, addr, 0x30).loggedIn()
	p.submit("13800138000")
	got := cmpp.MsgID(p.answer().MsgID)
	month, day, hour, minute, second, gateway, _ := got.Fields()
	sub := s.Record().Submits[0]
	now := time.Now().In(cmpp.Shanghai)
	at := time.Date(now.Year(), time.Month(month), day, hour, minute, second, 0, cmpp.Shanghai)
	if d := now.Sub(at); d < -time.Second || d > time.Minute || gateway != 1001 || sub.MsgID != uint64(got) {
		t.Errorf("id %s says %s by gateway %d", got, at, gateway)
	}
}

// TestLimits drives a peer beyond window, rate, sequence and prefixes.
func TestLimits(t *testing.T) {
	t.Parallel()
	t.Run("window", func(t *testing.T) {
		t.Parallel()
		profile := quiet(account())
		profile.Behaviour.SubmitRTT = ismg.FixedAt(200 * time.Millisecond)
		s, addr := serve(t, profile, ismg.Options{})
		p := dial(t, addr, 0x30).loggedIn()
		for i := range 5 {
			p.submit(fmt.Sprint(13800138000 + i))
		}
		// The refusal is not held; the others are.
		if f := p.next(); f.Sequence != 5 || p.result(f).Result != 8 {
			t.Errorf("first answer is to %d with result %d, want 5 with 8", f.Sequence, p.result(f).Result)
		}
		for range 4 {
			if got := p.answer(); got.Result != 0 {
				t.Errorf("result %d within the window", got.Result)
			}
		}
		r := s.Record()
		if r.Conns[0].InFlightPeak != 5 || r.Submits[4].Refusal != ismg.RefusedByWindow || !slices.Equal(kinds(s), []ismg.ViolationKind{ismg.ViolatedWindow}) {
			t.Errorf("peak %d, %+v, %v", r.Conns[0].InFlightPeak, r.Submits[4], kinds(s))
		}
	})
	t.Run("rate", func(t *testing.T) {
		t.Parallel()
		a := account()
		a.RateLimit = 20
		s, addr := serve(t, quiet(a), ismg.Options{})
		p := dial(t, addr, 0x30).loggedIn()
		results := map[uint32]int{}
		for i := range 25 {
			p.submit(fmt.Sprint(13800138000 + i))
			results[p.answer().Result]++
		}
		// 20 a second with 5 % slack; the test takes far less than a second.
		if results[0] != 21 || results[8] != 4 {
			t.Errorf("results %v, want 21 taken and 4 refused", results)
		}
		if n := len(kinds(s)); n != 4 {
			t.Errorf("%d violations, want 4", n)
		}
	})
	t.Run("sequence", func(t *testing.T) {
		t.Parallel()
		profile := quiet(account())
		profile.Behaviour.SubmitRTT = ismg.FixedAt(50 * time.Millisecond)
		s, addr := serve(t, profile, ismg.Options{})
		p := dial(t, addr, 0x30).loggedIn()
		p.write(submitTo("13800138000"), 9)
		p.write(submitTo("13800138001"), 9)
		if first, second := p.answer(), p.answer(); first.Result != 3 || second.Result != 0 {
			t.Errorf("results %d, %d, want 3, 0", first.Result, second.Result)
		}
		p.write(submitTo("13800138002"), 9) // free again
		if got := p.answer(); got.Result != 0 {
			t.Errorf("reused after its answer: result %d", got.Result)
		}
		if !slices.Equal(kinds(s), []ismg.ViolationKind{ismg.ViolatedSequence}) {
			t.Errorf("violations %v", kinds(s))
		}
	})
	t.Run("carrier", func(t *testing.T) {
		t.Parallel()
		a := account()
		a.Prefixes = []string{"1380", "1381"}
		s, addr := serve(t, quiet(a), ismg.Options{})
		p := dial(t, addr, 0x30).loggedIn()
		for _, number := range []string{"13800138000", "+8613810138000", "18900138000"} {
			p.submit(number)
			p.answer()
		}
		if v := s.Record().Violations; len(v) != 1 || v[0].Kind != ismg.ViolatedCarrier || !strings.Contains(v[0].Detail, "sequence 3") {
			t.Errorf("violations %+v", v)
		}
	})
	t.Run("records", func(t *testing.T) {
		t.Parallel()
		s, addr := serve(t, quiet(account()), ismg.Options{MaxRecords: 2})
		p := dial(t, addr, 0x30).loggedIn()
		var results []uint32
		for i := range 3 {
			p.submit(fmt.Sprint(13800138000 + i))
			results = append(results, p.answer().Result)
		}
		if !slices.Equal(results, []uint32{0, 0, 8}) || s.Shed() != 1 || len(s.Record().Submits) != 2 {
			t.Errorf("results %v, shed %d", results, s.Shed())
		}
	})
}

func TestGroupSend(t *testing.T) {
	t.Parallel()
	s, addr := serve(t, oneAccount(account()), ismg.Options{})
	p := dial(t, addr, 0x30).loggedIn()
	group := submitTo("13800138000")
	group.DestTerminalID = []string{"13800138000", "13800138001", "13800138002"}
	p.write(group, 1)
	first := p.answer().MsgID
	got := map[uint64]string{}
	for range 3 {
		f, d, r := p.report()
		p.ack(f, d)
		got[r.MsgID-first] = string(r.Dest)
	}
	if got[0] != "13800138000" || got[1] != "13800138001" || got[2] != "13800138002" {
		t.Errorf("reports by offset %v", got)
	}
	r := s.Record()
	if len(r.Submits) != 3 || r.Submits[2].MsgID != first+2 || r.Submits[2].Sent != r.Submits[0].Sent || r.Conns[0].Submits != 1 {
		t.Errorf("records %+v", r.Submits)
	}
}

// TestUnacknowledgedDeliver: the DELIVER comes again with its Msg_Id, at last
// on the connection that is left, and stops when acknowledged.
func TestUnacknowledgedDeliver(t *testing.T) {
	t.Parallel()
	profile := oneAccount(account())
	profile.Timers.DeliverTimeout = 20 * time.Millisecond
	s, addr := serve(t, profile, ismg.Options{})
	first := dial(t, addr, 0x30).loggedIn()
	first.submit("13800138000")
	first.answer()
	_, one, _ := first.report()
	_, two, _ := first.report()
	second := dial(t, addr, 0x30).loggedIn()
	if _, err := s.Cut(s.Live()[0].ID, ismg.RST); err != nil {
		t.Fatal(err)
	}
	f, three, r := second.report()
	second.ack(f, three)
	if one.MsgID != two.MsgID || one.MsgID != three.MsgID || string(r.Stat) != "DELIVRD" {
		t.Errorf("ids %d, %d, %d", one.MsgID, two.MsgID, three.MsgID)
	}
	eventually(t, "acknowledged", func() bool { return s.Record().Reports[0].Acked != 0 })
	got := s.Record().Reports
	if len(got) != 1 || got[0].Tries < 3 || got[0].Conn != s.Live()[0].ID || got[0].Last <= got[0].First {
		t.Errorf("report %+v", got)
	}
}

// TestDeliverTries bounds the transmissions; a refusal counts as no answer.
func TestDeliverTries(t *testing.T) {
	t.Parallel()
	profile := oneAccount(account())
	profile.Timers.DeliverTimeout = 5 * time.Millisecond
	profile.Timers.DeliverTries = 3
	s, addr := serve(t, profile, ismg.Options{})
	p := dial(t, addr, 0x30).loggedIn()
	p.submit("13800138000")
	p.answer()
	for range 3 {
		f, d, _ := p.report()
		p.write(&cmpp.DeliverResp{MsgID: cmpp.MsgID(d.MsgID), Result: 8}, f.Sequence)
	}
	p.write(&cmpp.ActiveTest{}, 99)
	p.expect(wire.ActiveTest | wire.Response)
	eventually(t, "three refusals", func() bool { return s.Record().Reports[0].Acks == 3 })
	if r := s.Record().Reports[0]; r.Tries != 3 || r.Acked != 0 || r.Result != 8 {
		t.Errorf("report %+v", r)
	}
}

// TestDeliverWindow: no more unanswered DELIVERs than the window.
func TestDeliverWindow(t *testing.T) {
	t.Parallel()
	s, addr := serve(t, oneAccount(account()), ismg.Options{})
	p := dial(t, addr, 0x30).loggedIn()
	for i := range 10 {
		if _, err := s.SendUplink(id, fmt.Sprint(13800138000+i), "10690001", "hi"); err != nil {
			t.Fatal(err)
		}
	}
	var frames []wire.Frame
	for range 4 {
		frames = append(frames, p.expect(wire.Deliver))
	}
	p.write(&cmpp.ActiveTest{}, 99)
	p.expect(wire.ActiveTest | wire.Response) // and no fifth DELIVER before it
	for read := len(frames); len(frames) > 0; {
		var d wire.DeliverBody
		if err := wire.DecodeDeliver(frames[0].Body, 0x30, &d); err != nil {
			t.Fatal(err)
		}
		p.ack(frames[0], d)
		frames = frames[1:]
		if read < 10 {
			frames = append(frames, p.expect(wire.Deliver))
			read++
		}
	}
	eventually(t, "all acknowledged", func() bool {
		return !slices.ContainsFunc(s.Record().Uplinks, func(u ismg.Uplink) bool { return u.Acked == 0 })
	})
	if peak := s.Record().Conns[0].DeliverPeak; peak != 4 {
		t.Errorf("peak %d, want 4", peak)
	}
}

// TestEarlyReceiptWaits: with the DELIVER window full, an early report still
// comes before its SUBMIT_RESP, which waits for it.
func TestEarlyReceiptWaits(t *testing.T) {
	t.Parallel()
	s, addr := serve(t, oneAccount(account()), ismg.Options{})
	s.Control(ismg.EarlyReceipt())
	p := dial(t, addr, 0x30).loggedIn()
	for range 4 {
		if _, err := s.SendUplink(id, "13800138000", "10690001", "hi"); err != nil {
			t.Fatal(err)
		}
	}
	var first wire.Frame
	for range 4 {
		first = p.expect(wire.Deliver)
	}
	var d wire.DeliverBody
	if err := wire.DecodeDeliver(first.Body, 0x30, &d); err != nil {
		t.Fatal(err)
	}
	p.submit("13800138001")
	for range 2 { // an answer would have come with the first or before the second
		p.write(&cmpp.ActiveTest{}, 99)
		p.expect(wire.ActiveTest | wire.Response)
	}
	p.ack(first, d)
	_, _, report := p.report()
	if got := p.answer(); got.MsgID != report.MsgID {
		t.Errorf("report on %d, answer %d", report.MsgID, got.MsgID)
	}
	if r := s.Record().Reports[0]; !r.Early || r.First == 0 {
		t.Errorf("report %+v", r)
	}
}

func TestUplinks(t *testing.T) {
	t.Parallel()
	s, addr := serve(t, oneAccount(account()), ismg.Options{})
	// Before anyone is there: it waits for the login.
	first, err := s.SendUplink(id, "13800138000", "10690001", "TD")
	if err != nil {
		t.Fatal(err)
	}
	p := dial(t, addr, 0x30).loggedIn()
	var d wire.DeliverBody
	read := func() wire.Frame {
		t.Helper()
		f := p.expect(wire.Deliver)
		if err := wire.DecodeDeliver(f.Body, 0x30, &d); err != nil {
			t.Fatal(err)
		}
		return f
	}
	f := read()
	if d.MsgID != first || string(d.Content) != "TD" || d.MsgFmt != 0 || d.Registered != 0 || string(d.Source) != "13800138000" || string(d.Dest) != "10690001" {
		t.Errorf("uplink %+v", d)
	}
	p.ack(f, d)
	if _, err := s.SendUplink(id, "13800138000", "10690001", "退订😀"); err != nil {
		t.Fatal(err)
	}
	f = read()
	if d.MsgFmt != 8 || hex.EncodeToString(d.Content) != "90008ba2d83dde00" {
		t.Errorf("UCS2 uplink %+v", d)
	}
	p.ack(f, d)
	eventually(t, "both acknowledged", func() bool {
		u := s.Record().Uplinks
		return len(u) == 2 && u[0].Acked != 0 && u[1].Acked != 0
	})
	if n, err := s.Replay(id, 1); n != 1 || err != nil {
		t.Fatalf("replay: %d, %v", n, err)
	}
	second := d.MsgID
	p.ack(read(), d)
	if d.MsgID != second {
		t.Errorf("replayed with id %d, want %d", d.MsgID, second)
	}
	eventually(t, "replay acknowledged", func() bool { return s.Record().Uplinks[1].Acks == 2 })
	if _, err := s.SendUplink(id, "13800138000", "10690001", strings.Repeat("长", 71)); err == nil {
		t.Error("71 characters fitted one message")
	}
}

func TestSmallCommands(t *testing.T) {
	t.Parallel()
	for _, version := range []cmpp.Version{0x20, 0x30} {
		t.Run(fmt.Sprintf("%02x", uint8(version)), func(t *testing.T) {
			t.Parallel()
			a := account()
			a.Version = 0
			_, addr := serve(t, oneAccount(a), ismg.Options{})
			p := dial(t, addr, version).loggedIn()
			p.write(&cmpp.Cancel{MsgID: 1}, 2)
			var cancelled cmpp.CancelResp
			if err := cancelled.Decode(p.expect(wire.Cancel|wire.Response).Body, version); err != nil || cancelled.SuccessID != 1 {
				t.Errorf("cancel: %+v, %v", cancelled, err)
			}
			p.write(&cmpp.Query{Time: "20260101", QueryType: 1, QueryCode: "TEST"}, 3)
			var counted cmpp.QueryResp
			if err := counted.Decode(p.expect(wire.Query|wire.Response).Body, version); err != nil || counted.Time != "20260101" || counted.QueryCode != "TEST" || counted.MTScs != 0 {
				t.Errorf("query: %+v, %v", counted, err)
			}
			p.write(&cmpp.Terminate{}, 4)
			if f := p.expect(wire.Terminate | wire.Response); f.Sequence != 4 {
				t.Errorf("terminate answered as %d", f.Sequence)
			}
			p.closed()
		})
	}
}

func TestBadSubmit(t *testing.T) {
	t.Parallel()
	s, addr := serve(t, oneAccount(account()), ismg.Options{})
	p := dial(t, addr, 0x30).loggedIn()
	frame, err := submitTo("13800138000").Append(nil, 0x30, 5)
	if err != nil {
		t.Fatal(err)
	}
	frame[140] = 99 // DestUsr_tl
	if _, err := p.sock.Write(frame); err != nil {
		t.Fatal(err)
	}
	if f := p.expect(wire.Submit | wire.Response); f.Sequence != 5 || p.result(f).Result != 1 {
		t.Errorf("answer %+v", f)
	}
	p.submit("13800138000") // the session lives on
	if got := p.answer(); got.Result != 0 {
		t.Errorf("next SUBMIT: result %d", got.Result)
	}
	if !slices.Equal(kinds(s), []ismg.ViolationKind{ismg.ViolatedFrame}) {
		t.Errorf("violations %v", kinds(s))
	}
}

func TestActiveTest(t *testing.T) {
	t.Parallel()
	profile := oneAccount(account())
	profile.Timers = ismg.Timers{ActiveTest: 20 * time.Millisecond, ActiveTestTimeout: 200 * time.Millisecond, ActiveTestTries: 3}
	s, addr := serve(t, profile, ismg.Options{})
	p := dial(t, addr, 0x30).loggedIn()
	f := p.expect(wire.ActiveTest)
	p.write(&cmpp.ActiveTestResp{}, f.Sequence)
	// No answer from now on: three tests, then the end.
	for range 3 {
		p.expect(wire.ActiveTest)
	}
	p.closed()
	eventually(t, "closed", func() bool { return s.Record().Conns[0].Closed != 0 })
	if c := s.Record().Conns[0]; c.Reason != "active test unanswered" {
		t.Errorf("reason %q", c.Reason)
	}
}

func TestIgnoreActiveTest(t *testing.T) {
	t.Parallel()
	s, addr := serve(t, oneAccount(account()), ismg.Options{})
	p := dial(t, addr, 0x30).loggedIn()
	if err := s.IgnoreActiveTest(id, true); err != nil {
		t.Fatal(err)
	}
	p.write(&cmpp.ActiveTest{}, 5)
	p.submit("13800138000")
	p.expect(wire.Submit | wire.Response) // and not the answer to the test
	if n := s.Live()[0].ActiveTests; n != 1 {
		t.Errorf("%d tests counted, want 1", n)
	}
}

// TestSplitWrites: the stream is the same in small pieces.
func TestSplitWrites(t *testing.T) {
	t.Parallel()
	s, addr := serve(t, oneAccount(account()), ismg.Options{})
	if err := s.SplitWrites(id, true); err != nil {
		t.Fatal(err)
	}
	p := dial(t, addr, 0x30).loggedIn()
	p.submit("13800138000")
	id := p.answer().MsgID
	f, d, r := p.report()
	p.ack(f, d)
	if r.MsgID != id {
		t.Errorf("report on %d, want %d", r.MsgID, id)
	}
}

func TestStatement(t *testing.T) {
	t.Parallel()
	profile := oneAccount(account())
	profile.Behaviour.Deck = ismg.DeckSpec{Block: 1, Results: map[uint32]int{13: 1}}
	profile.Accounts = append(profile.Accounts, ismg.Account{
		ID: "900002", Secret: secret, Version: 0x30, GatewayCode: 2,
		Behaviour: &ismg.Behaviour{Deck: ismg.DeckSpec{Block: 1, ReceiptFailed: map[string]int{"UNDELIV": 1}}},
	})
	s, addr := serve(t, profile, ismg.Options{})
	refusing := dial(t, addr, 0x30).loggedIn()
	refusing.submit("13800138000")
	refusing.answer()
	failing := dial(t, addr, 0x30)
	if got := failing.login("900002", secret); got.Status != 0 {
		t.Fatal(got.Status)
	}
	failing.submit("13800138001")
	msgID := failing.answer().MsgID
	failing.report()
	eventually(t, "report booked", func() bool { return s.Record().Submits[1].Stat != "" })
	var out bytes.Buffer
	if err := s.WriteStatement(&out); err != nil {
		t.Fatal(err)
	}
	rows, err := csv.NewReader(&out).ReadAll()
	if err != nil || len(rows) != 3 {
		t.Fatalf("%v, %v", rows, err)
	}
	for i, want := range [][]string{
		{"account", "msg_id", "number", "src_id", "submit_time", "result", "stat", "segments"},
		{id, "0", "13800138000", "10690001", rows[1][4], "13", "", "1"},
		{"900002", fmt.Sprint(msgID), "13800138001", "10690001", rows[2][4], "0", "UNDELIV", "1"},
	} {
		if !slices.Equal(rows[i], want) {
			t.Errorf("row %d: %v, want %v", i, rows[i], want)
		}
	}
	if at, err := time.Parse(time.RFC3339, rows[1][4]); err != nil || time.Since(at) > time.Minute || !strings.HasSuffix(rows[1][4], "+08:00") {
		t.Errorf("submit_time %q: %v", rows[1][4], err)
	}
}

// TestControls: one-shot and sticky controls, in order, and their removal.
func TestControls(t *testing.T) {
	t.Parallel()
	s, addr := serve(t, oneAccount(account()), ismg.Options{})
	p := dial(t, addr, 0x30).loggedIn()
	sticky := s.Control(ismg.Limit(100, ismg.Of(id), ismg.Answer(1)))
	s.Control(ismg.Limit(1, nil, ismg.Answer(13)))
	s.Control(ismg.Limit(5, ismg.Of("nobody"), ismg.Answer(99)))
	var results []uint32
	send := func() {
		t.Helper()
		p.submit("13800138000")
		results = append(results, p.answer().Result)
	}
	send() // both: the later one wins
	send() // the sticky one
	sticky()
	send()
	if !slices.Equal(results, []uint32{13, 1, 0}) {
		t.Errorf("results %v, want 13, 1, 0", results)
	}
	if r := s.Record().Submits; r[0].Refusal != ismg.RefusedByHook || r[2].Refusal != ismg.NotRefused || r[2].Attempt != 2 {
		t.Errorf("records %+v", r)
	}
}
