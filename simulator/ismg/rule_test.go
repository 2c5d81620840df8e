package ismg_test

import (
	"encoding/binary"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"cmppgateway/gateway/cmpp"
	"cmppgateway/simulator/internal/wire"
	"cmppgateway/simulator/ismg"
)

// rule puts a rule in force until the test ends.
func rule(t *testing.T, s *ismg.Server, r ismg.Rule) (remove func() int) {
	t.Helper()
	remove, err := s.AddRule(r)
	if err != nil {
		t.Fatal(err)
	}
	return remove
}

func TestRulesOfLogin(t *testing.T) {
	t.Parallel()
	other := account()
	other.ID, other.GatewayCode = "900002", 1002
	p := quiet(account())
	p.Accounts = append(p.Accounts, other)
	s, addr := serve(t, p, ismg.Options{})
	remove := rule(t, s, ismg.Rule{Command: "CONNECT", Action: ismg.Refuse, Status: 9, Count: 1})
	if got := dial(t, addr, cmpp.V30).login(id, secret); got.Status != 9 {
		t.Errorf("status %d, want 9", got.Status)
	}
	dial(t, addr, cmpp.V30).loggedIn()
	if n := remove(); n != 1 {
		t.Errorf("the rule met %d logins", n)
	}
	rule(t, s, ismg.Rule{Account: id, Command: "CONNECT", Action: ismg.Ignore, Count: 1})
	silent := dial(t, addr, cmpp.V30)
	silent.write(&cmpp.Connect{SourceAddr: id, Version: cmpp.V30}, 1)
	// Others are served while it waits. They are of another account: of two connections either may be read first.
	login := func() {
		if got := dial(t, addr, cmpp.V30).login(other.ID, secret); got.Status != 0 {
			t.Errorf("status %d of the other account", got.Status)
		}
	}
	login()
	_ = silent.sock.Close()
	rule(t, s, ismg.Rule{Command: "CONNECT", Action: ismg.Defer, Wait: 20 * time.Millisecond})
	login()
}

func TestRulesOfCommands(t *testing.T) {
	t.Parallel()
	for _, version := range []cmpp.Version{cmpp.V20, cmpp.V30} {
		a := account()
		a.Version = 0
		s, addr := serve(t, quiet(a), ismg.Options{})
		p := dial(t, addr, version).loggedIn()
		rule(t, s, ismg.Rule{Command: "ACTIVE_TEST", Action: ismg.Ignore, Skip: 1, Count: 1})
		rule(t, s, ismg.Rule{Command: "CANCEL", Action: ismg.Refuse, Status: 7})
		rule(t, s, ismg.Rule{Command: "QUERY", Action: ismg.Defer, Wait: 10 * time.Millisecond})
		remove := rule(t, s, ismg.Rule{Account: id, Command: "SUBMIT", Action: ismg.Refuse, Status: 13, Skip: 1, Count: 1})
		for seq := range uint32(3) { // the second is not answered
			p.write(&cmpp.ActiveTest{}, seq+1)
		}
		for _, want := range []uint32{1, 3} {
			if f := p.expect(wire.ActiveTest | wire.Response); f.Sequence != want {
				t.Errorf("answer to %d, want %d", f.Sequence, want)
			}
		}
		p.write(&cmpp.Cancel{MsgID: 1}, 4)
		body := p.expect(wire.Cancel | wire.Response).Body
		if status := body[len(body)-1]; status != 7 {
			t.Errorf("%s: CANCEL answered with %d", version, status)
		}
		p.write(&cmpp.Query{Time: "20261201"}, 5)
		p.expect(wire.Query | wire.Response)
		for _, want := range []uint32{0, 13, 0} {
			p.submit("13800138000")
			if got := p.answer(); got.Result != want {
				t.Errorf("result %d, want %d", got.Result, want)
			}
		}
		if n := remove(); n != 1 {
			t.Errorf("the rule met %d SUBMITs", n)
		}
	}
}

func TestBadRules(t *testing.T) {
	t.Parallel()
	s, _ := serve(t, quiet(account()), ismg.Options{})
	_, err := s.AddRule(ismg.Rule{Command: "DELIVER", Action: ismg.Defer, Wait: time.Hour, Skip: -1})
	if faults, ok := errors.AsType[ismg.FaultsError](err); !ok || len(faults) != 3 || !strings.Contains(err.Error(), "command") {
		t.Errorf("error %v, want three faults", err)
	}
	if _, err := s.AddRule(ismg.Rule{Account: "nobody", Command: "SUBMIT", Action: ismg.Ignore}); !errors.Is(err, ismg.ErrUnknown) {
		t.Errorf("an account that is not there: %v", err)
	}
}

// A report of the other version's length is what a supplier with a broken stack sends.
func TestWrongReportSize(t *testing.T) {
	t.Parallel()
	for version, want := range map[cmpp.Version]int{cmpp.V20: 71, cmpp.V30: 60} {
		a := account()
		a.Version = 0
		s, addr := serve(t, oneAccount(a), ismg.Options{})
		defer s.Control(ismg.Every(2, nil, ismg.WrongSize()))()
		p := dial(t, addr, version).loggedIn()
		p.submit("13800138000")
		id := p.answer().MsgID
		f, d, r := p.report()
		p.ack(f, d)
		if len(d.Content) != want || r.MsgID != id || string(r.Dest) != "13800138000" {
			t.Errorf("%s: %d octets about %d to %s, want %d about %d", version, len(d.Content), r.MsgID, r.Dest, want, id)
		}
		p.submit("13800138001")
		p.answer()
		f, d, _ = p.report()
		p.ack(f, d)
		if len(d.Content) == want {
			t.Errorf("%s: the second report has %d octets, too", version, want)
		}
	}
}

func TestLongUplink(t *testing.T) {
	t.Parallel()
	for _, wide := range []bool{false, true} {
		s, addr := serve(t, quiet(account()), ismg.Options{})
		p := dial(t, addr, cmpp.V30).loggedIn()
		text := strings.Repeat("退订短信", 40) // 160 characters, 3 segments
		ids, err := s.SendLongUplink(id, "13800138000", "1069", text, 0x1234, wide, []int{2, 0, 1, 0})
		if err != nil || len(ids) != 4 {
			t.Fatal(ids, err)
		}
		parts := map[uint8][]byte{}
		for range ids {
			f := p.expect(wire.Deliver)
			var d wire.DeliverBody
			if err := wire.DecodeDeliver(f.Body, 0x30, &d); err != nil {
				t.Fatal(err)
			}
			concat, ok := wire.DecodeConcat(d.TPUDHI, d.Content)
			if !ok || concat.Total != 3 || len(d.Content) > 140 {
				t.Fatalf("segment %+v of %d octets", concat, len(d.Content))
			}
			if wide != (concat.Ref == 0x1234) {
				t.Errorf("reference %x", concat.Ref)
			}
			parts[concat.Number] = slices.Clone(wire.Text(d.TPUDHI, d.Content))
			p.ack(f, d)
		}
		var units []rune
		for _, b := range slices.Concat(parts[1], parts[2], parts[3]) {
			units = append(units, rune(b))
		}
		got := make([]rune, 0, len(units)/2)
		for i := 0; i+1 < len(units); i += 2 {
			got = append(got, rune(binary.BigEndian.Uint16([]byte{byte(units[i]), byte(units[i+1])})))
		}
		if string(got) != text {
			t.Errorf("joined %q", string(got))
		}
	}
	s, _ := serve(t, quiet(account()), ismg.Options{})
	if _, err := s.SendLongUplink(id, "1", "2", "x", 1, false, []int{1}); err == nil {
		t.Error("a segment that is not there was sent")
	}
}
