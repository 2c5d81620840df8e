package session_test

import (
	"context"
	"encoding/hex"
	"errors"
	"io"
	"net"
	"os"
	"testing"
	"testing/synctest"
	"time"

	"cmppgateway/gateway/cmpp"
	"cmppgateway/gateway/internal/session"
)

func login(ctx context.Context, conn net.Conn, v cmpp.Version) (*session.Session, error) {
	clock := func() time.Time { return time.Date(2026, 1, 2, 3, 4, 5, 0, cmpp.Shanghai) }
	return session.Login(ctx, conn, session.Config{},
		session.Credentials{SourceAddr: account, Secret: []byte(secret), Version: v, Now: clock})
}

// attempt runs one side of a handshake beside the script.
func attempt(do func() (*session.Session, error)) (wait func() (*session.Session, error)) {
	done := make(chan struct{})
	var s *session.Session
	var err error
	go func() {
		defer close(done)
		s, err = do()
	}()
	return func() (*session.Session, error) {
		<-done
		return s, err
	}
}

func TestLoginSendsTheSpecifiedFrame(t *testing.T) {
	t.Parallel()
	for v, want := range map[cmpp.Version]string{
		cmpp.V20: "000000270000000100000001393031323334e45edee925b9c275458dfcc54b2bebd8200614dc45",
		cmpp.V30: "000000270000000100000001393031323334e45edee925b9c275458dfcc54b2bebd8300614dc45",
	} {
		ours, theirs := net.Pipe()
		wait := attempt(func() (*session.Session, error) { return login(t.Context(), ours, v) })
		got := make([]byte, 39)
		if _, err := io.ReadFull(theirs, got); err != nil {
			t.Fatal(err)
		}
		if hex.EncodeToString(got) != want {
			t.Errorf("version %#x: got %x, want %s", v, got, want)
		}
		_ = theirs.Close()
		if _, err := wait(); !errors.Is(err, io.EOF) {
			t.Errorf("version %#x: login returned %v, want io.EOF", v, err)
		}
	}
}

func TestBothRolesAgree(t *testing.T) {
	t.Parallel()
	for _, v := range []cmpp.Version{cmpp.V20, cmpp.V21, cmpp.V30} {
		ours, theirs := net.Pipe()
		wait := attempt(func() (*session.Session, error) {
			return session.Accept(t.Context(), theirs, session.Config{Window: 5}, letIn)
		})
		c, err := login(t.Context(), ours, v)
		if err != nil {
			t.Fatalf("version %#x: login: %v", v, err)
		}
		s, err := wait()
		if err != nil {
			t.Fatalf("version %#x: accept: %v", v, err)
		}
		if c.Version() != v || s.Version() != v {
			t.Errorf("client runs %#x, server %#x, want %#x", c.Version(), s.Version(), v)
		}
		if s.Attach() != account || c.Attach() != nil || c.ID() == s.ID() || s.RemoteAddr() == nil {
			t.Errorf("attach %v and %v, ids %d and %d", s.Attach(), c.Attach(), c.ID(), s.ID())
		}
		if c.Free() != 16 || s.Free() != 5 {
			t.Errorf("windows %d and %d, want 16 and 5", c.Free(), s.Free())
		}
		c.Close(nil)
		s.Close(nil)
	}
}

func TestLoginFreezesTheAnsweredLayout(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		asked, layout, octet, want cmpp.Version
	}{
		{cmpp.V20, cmpp.V20, cmpp.V20, cmpp.V20},
		{cmpp.V30, cmpp.V30, cmpp.V30, cmpp.V30},
		{cmpp.V30, cmpp.V20, cmpp.V20, cmpp.V20},
		{cmpp.V20, cmpp.V30, cmpp.V30, cmpp.V30},
		{cmpp.V20, cmpp.V20, cmpp.V21, cmpp.V21},
		{cmpp.V21, cmpp.V20, cmpp.V30, cmpp.V21}, // "highest version supported"
		{cmpp.V30, cmpp.V20, cmpp.V30, cmpp.V20},
		{cmpp.V30, cmpp.V30, cmpp.V20, cmpp.V30},
		{cmpp.V20, cmpp.V30, cmpp.V20, cmpp.V30},
	} {
		ours, theirs := net.Pipe()
		p := newPeer(t, theirs, c.layout)
		wait := attempt(func() (*session.Session, error) { return login(t.Context(), ours, c.asked) })
		hd, _ := expect[*cmpp.Connect](p)
		p.send(hd.Sequence, &cmpp.ConnectResp{Version: c.octet, AuthenticatorISMG: [16]byte([]byte("simulator simula"))})
		s, err := wait()
		if err != nil {
			t.Errorf("%+v: %v", c, err)
			continue
		}
		if s.Version() != c.want {
			t.Errorf("%+v: got %#x", c, s.Version())
		}
		s.Close(nil)
	}
}

func TestLoginRefused(t *testing.T) {
	t.Parallel()
	for _, v := range versions {
		for _, status := range []uint32{1, 2, 3, 4, 5, 9, 55, 56, 57, 60, 255} {
			ours, theirs := net.Pipe()
			p := newPeer(t, theirs, v)
			wait := attempt(func() (*session.Session, error) { return login(t.Context(), ours, v) })
			hd, _ := expect[*cmpp.Connect](p)
			p.send(hd.Sequence, &cmpp.ConnectResp{Status: status, Version: v})
			_, err := wait()
			refused, ok := errors.AsType[*session.LoginError](err)
			if !ok || refused.Status != status || refused.Version != v {
				t.Errorf("status %d: got %v", status, err)
			}
			p.waitClose()
		}
	}
}

func TestLoginFails(t *testing.T) {
	t.Parallel()
	isUnexpected := func(err error) bool { _, ok := errors.AsType[*session.UnexpectedError](err); return ok }
	isDecode := func(err error) bool { _, ok := errors.AsType[*cmpp.DecodeError](err); return ok }
	isFrame := func(err error) bool { _, ok := errors.AsType[*cmpp.FrameError](err); return ok }
	isTimeout := func(err error) bool { return errors.Is(err, os.ErrDeadlineExceeded) }
	for name, c := range map[string]struct {
		answer func(p *peer, cancel func())
		want   func(error) bool
	}{
		"another frame":    {func(p *peer, _ func()) { p.send(1, &cmpp.ActiveTest{}) }, isUnexpected},
		"another sequence": {func(p *peer, _ func()) { p.send(2, &cmpp.ConnectResp{}) }, isUnexpected},
		"short answer": {func(p *peer, _ func()) {
			octets := encode(p.t, cmpp.V20, 1, &cmpp.ConnectResp{})[:20]
			octets[3] = 20
			p.raw(octets)
		}, isDecode},
		"not CMPP":          {func(p *peer, _ func()) { p.raw([]byte("HTTP")) }, isFrame},
		"silence":           {func(*peer, func()) {}, isTimeout},
		"silence in answer": {func(p *peer, _ func()) { p.raw([]byte{0, 0, 0, 33}) }, isTimeout},
		"cancelled":         {func(_ *peer, cancel func()) { cancel() }, func(err error) bool { return errors.Is(err, context.Canceled) }},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				ours, theirs := net.Pipe()
				p := newPeer(t, theirs, cmpp.V30)
				ctx, cancel := context.WithCancel(t.Context())
				defer cancel()
				begin := time.Now()
				wait := attempt(func() (*session.Session, error) { return login(ctx, ours, cmpp.V30) })
				expect[*cmpp.Connect](p)
				c.answer(p, cancel)
				if _, err := wait(); !c.want(err) {
					t.Errorf("got %v", err)
				}
				if waited := time.Since(begin); waited > time.Minute {
					t.Errorf("failed after %v", waited)
				}
				p.waitClose()
			})
		})
	}
}

func TestAcceptRefuses(t *testing.T) {
	t.Parallel()
	broken := errors.New("store is down")
	welcome := func(w session.Welcome, err error) session.AuthFunc {
		return func(context.Context, *cmpp.Connect, net.Addr) (session.Welcome, error) { return w, err }
	}
	for name, c := range map[string]struct {
		auth   session.AuthFunc
		status uint32
		cause  error
	}{
		"wrong secret":   {welcome(session.Welcome{Status: 3}, nil), 3, nil},
		"too many links": {welcome(session.Welcome{Status: 56}, nil), 56, nil},
		"auth fails":     {welcome(session.Welcome{}, broken), 5, broken},
		"auth panics": {func(context.Context, *cmpp.Connect, net.Addr) (session.Welcome, error) {
			panic("boom")
		}, 5, nil},
	} {
		for _, v := range versions {
			ours, theirs := net.Pipe()
			p := newPeer(t, theirs, v)
			wait := attempt(func() (*session.Session, error) {
				return session.Accept(t.Context(), ours, session.Config{}, c.auth)
			})
			p.send(9, connect(v))
			hd, resp := expect[*cmpp.ConnectResp](p)
			if hd.Sequence != 9 || resp.Status != c.status || resp.AuthenticatorISMG != [16]byte{} {
				t.Errorf("%s: answered %+v to sequence %d", name, resp, hd.Sequence)
			}
			if wide := hd.Length == 33; wide != v.Wide() {
				t.Errorf("%s: answer to version %#x has %d octets", name, v, hd.Length)
			}
			_, err := wait()
			refused, ok := errors.AsType[*session.RefusedError](err)
			if !ok || refused.Status != c.status || !errors.Is(err, c.cause) && c.cause != nil {
				t.Errorf("%s: got %v", name, err)
			}
			p.waitClose()
		}
	}
}

func TestAcceptAnswersWithTheAccountsVersion(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ sent, account, want cmpp.Version }{
		{0x01, 0, cmpp.V20}, {0x12, 0, cmpp.V20}, {0x7F, 0, cmpp.V30}, {cmpp.V20, cmpp.V30, cmpp.V30}, {cmpp.V30, cmpp.V20, cmpp.V20},
	} {
		ours, theirs := net.Pipe()
		p := newPeer(t, theirs, c.want)
		wait := attempt(func() (*session.Session, error) {
			return session.Accept(t.Context(), ours, session.Config{}, func(context.Context, *cmpp.Connect, net.Addr) (session.Welcome, error) {
				return session.Welcome{Secret: []byte(secret), Version: c.account, Window: 3}, nil
			})
		})
		request := connect(c.sent)
		p.send(1, request)
		_, resp := expect[*cmpp.ConnectResp](p)
		if resp.Version != c.want || resp.AuthenticatorISMG != cmpp.AuthISMG(0, c.want, request.AuthenticatorSource, []byte(secret)) {
			t.Errorf("%+v: answered %+v", c, resp)
		}
		s, err := wait()
		if err != nil {
			t.Fatalf("%+v: %v", c, err)
		}
		if s.Version() != c.want || s.Free() != 3 {
			t.Errorf("%+v: version %#x, window %d", c, s.Version(), s.Free())
		}
		s.Close(nil)
	}
}

// A refusal names the version the account is pinned to, in the layout of the CONNECT: the client must be able to read it.
func TestRefusalNamesTheHighestVersion(t *testing.T) {
	t.Parallel()
	ours, theirs := net.Pipe()
	p := newPeer(t, theirs, cmpp.V30)
	wait := attempt(func() (*session.Session, error) {
		return session.Accept(t.Context(), ours, session.Config{}, func(context.Context, *cmpp.Connect, net.Addr) (session.Welcome, error) {
			return session.Welcome{Status: 4, Highest: cmpp.V20}, nil
		})
	})
	p.send(1, connect(cmpp.V30))
	if hd, resp := expect[*cmpp.ConnectResp](p); hd.Length != 33 || resp.Status != 4 || resp.Version != cmpp.V20 {
		t.Errorf("answered %+v in %d octets", resp, hd.Length)
	}
	if _, err := wait(); err == nil {
		t.Error("let in")
	}
}

func TestAcceptTakesOnlyConnect(t *testing.T) {
	t.Parallel()
	isUnexpected := func(c cmpp.Command) func(error) bool {
		return func(err error) bool {
			u, ok := errors.AsType[*session.UnexpectedError](err)
			return ok && u.Command == c
		}
	}
	isFrame := func(err error) bool { _, ok := errors.AsType[*cmpp.FrameError](err); return ok }
	isTimeout := func(err error) bool { return errors.Is(err, os.ErrDeadlineExceeded) }
	none := func(*peer) {}
	for name, c := range map[string]struct {
		begin  func(p *peer, cancel func())
		answer func(p *peer)
		want   func(error) bool
	}{
		"SUBMIT":      {func(p *peer, _ func()) { p.send(1, submit("hi")) }, none, isUnexpected(cmpp.CmdSubmit)},
		"ACTIVE_TEST": {func(p *peer, _ func()) { p.send(1, &cmpp.ActiveTest{}) }, none, isUnexpected(cmpp.CmdActiveTest)},
		"an answer":   {func(p *peer, _ func()) { p.send(1, &cmpp.ConnectResp{}) }, none, isUnexpected(cmpp.CmdConnectResp)},
		"TERMINATE": {
			func(p *peer, _ func()) { p.send(4, &cmpp.Terminate{}) },
			func(p *peer) {
				if hd, _ := expect[*cmpp.TerminateResp](p); hd.Sequence != 4 {
					p.t.Errorf("sequence %d, want 4", hd.Sequence)
				}
			},
			func(err error) bool { return errors.Is(err, session.ErrTerminated) },
		},
		"short CONNECT": {
			func(p *peer, _ func()) {
				octets := encode(p.t, cmpp.V20, 1, connect(cmpp.V20))[:30]
				octets[3] = 30
				p.raw(octets)
			},
			func(p *peer) {
				if _, resp := expect[*cmpp.ConnectResp](p); resp.Status != 1 {
					p.t.Errorf("status %d, want 1", resp.Status)
				}
			},
			func(err error) bool { r, ok := errors.AsType[*session.RefusedError](err); return ok && r.Status == 1 },
		},
		"HTTP":            {func(p *peer, _ func()) { p.raw([]byte("GET ")) }, none, isFrame},
		"length 0":        {func(p *peer, _ func()) { p.raw(make([]byte, 4)) }, none, isFrame},
		"length 11":       {func(p *peer, _ func()) { p.raw([]byte{0, 0, 0, 11}) }, none, isFrame},
		"length 4097":     {func(p *peer, _ func()) { p.raw([]byte{0, 0, 0x10, 1}) }, none, isFrame},
		"silence":         {func(*peer, func()) {}, none, isTimeout},
		"half a frame":    {func(p *peer, _ func()) { p.raw([]byte{0, 0, 0, 39, 0, 0}) }, none, isTimeout},
		"end":             {func(p *peer, _ func()) { _ = p.conn.Close() }, nil, func(err error) bool { return errors.Is(err, io.EOF) }},
		"server stopping": {func(_ *peer, cancel func()) { cancel() }, none, func(err error) bool { return errors.Is(err, context.Canceled) }},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				ours, theirs := net.Pipe()
				p := newPeer(t, theirs, cmpp.V20)
				ctx, cancel := context.WithCancel(t.Context())
				defer cancel()
				begin := time.Now()
				wait := attempt(func() (*session.Session, error) {
					return session.Accept(ctx, ours, session.Config{ResponseTimeout: 5 * time.Second}, letIn)
				})
				synctest.Wait() // it is reading
				c.begin(p, cancel)
				if c.answer != nil {
					c.answer(p)
					p.waitClose()
				}
				if _, err := wait(); !c.want(err) {
					t.Errorf("got %v", err)
				}
				if waited := time.Since(begin); waited > 5*time.Second {
					t.Errorf("ended after %v, want 5s at most", waited)
				}
			})
		})
	}
}
