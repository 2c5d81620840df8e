package inbound_test

import (
	"strings"
	"testing"
	"time"

	"cmppgateway/gateway/cmpp"
)

func TestLogin(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.start(t)
	for _, c := range []struct {
		name, spID, secret string
		version            cmpp.Version
		status             uint32
		cause              string // in the log
	}{
		{"3.0", "100001", "secret", cmpp.V30, 0, "layout=3.0"},
		{"2.0", "100001", "secret", cmpp.V20, 0, "layout=2.0"},
		{"2.1", "100001", "secret", cmpp.V21, 0, "layout=2.1"},
		{"odd octets of old clients", "100001", "secret", 0x01, 0, "layout=2.0"},
		{"short id", "12345", "s", cmpp.V30, 0, "source_addr=12345"},
		{"unknown id", "999999", "s", cmpp.V30, 2, "unknown Source_Addr"},
		{"unknown id, narrow answer", "999998", "s", cmpp.V20, 2, "source_addr=999998"},
		{"wrong secret", "100001", "sesame", cmpp.V30, 3, "AuthenticatorSource does not fit"},
		{"disabled application", "100003", "s", cmpp.V30, 5, "the application is disabled"},
		{"disabled application, wrong secret", "100003", "x", cmpp.V30, 3, "AuthenticatorSource does not fit"},
		{"disabled enterprise", "100004", "s", cmpp.V20, 5, "the enterprise is disabled"},
		{"pinned to 2.0, 3.0 asked", "100005", "s", cmpp.V30, 4, "pinned to version 2.0"},
		{"pinned to 2.0, 2.1 asked", "100005", "s", cmpp.V21, 0, "layout=2.0"},
		{"pinned to 3.0, 2.0 asked", "100006", "s", cmpp.V20, 4, "pinned to version 3.0"},
		{"pinned to 3.0", "100006", "s", cmpp.V30, 0, "layout=3.0"},
	} {
		before := len(b.log.String())
		if status := b.dial(t).login(c.spID, c.secret, c.version); status != c.status {
			t.Errorf("%s: status %d, want %d", c.name, status, c.status)
		}
		eventually(t, c.name+": "+c.cause, func() bool { return strings.Contains(b.log.String()[before:], c.cause) })
		if n := strings.Count(b.log.String()[before:], "login refused"); c.status != 0 && n != 1 {
			t.Errorf("%s: refusal logged %d times", c.name, n)
		}
	}
	if strings.Contains(b.log.String(), "sesame") {
		t.Error("a secret in the log")
	}
}

func TestStructurallyBrokenConnect(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.start(t)
	c := b.dial(t)
	octets, err := (&cmpp.Connect{SourceAddr: "100001"}).Append(nil, cmpp.V20, 7)
	if err != nil {
		t.Fatal(err)
	}
	octets[3] -= 4
	c.v = cmpp.V20
	c.raw(octets[:len(octets)-4])
	if _, p := c.receive(); p.(*cmpp.ConnectResp).Status != 1 {
		t.Errorf("answer %+v, want status 1", p)
	}
}

func TestWhatIsNoLogin(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.cfg.LoginTimeout = 500 * time.Millisecond
	b.start(t)
	submit, err := sms().Append(nil, cmpp.V30, 1)
	if err != nil {
		t.Fatal(err)
	}
	var all []*client
	for _, octets := range map[string][]byte{
		"HTTP": []byte("GET / HTTP/1.1\r\nHost: x\r\n\r\n"), "TLS": {22, 3, 1, 2, 0, 1, 0, 1, 252, 3, 3}, "AMQP": []byte("AMQP\x00\x00\x09\x01"),
		"length 0": make([]byte, 12), "SUBMIT": submit, "half a frame": {0, 0, 0, 39, 0, 0}, "silence": nil,
	} {
		c := b.dial(t)
		c.raw(octets)
		all = append(all, c)
	}
	for _, c := range all {
		c.closed()
	}
	if n := b.count(t, "SELECT count(*) FROM inbox"); n != 0 {
		t.Errorf("%d rows from connections that never logged in", n)
	}
	if n := strings.Count(b.log.String(), "without a login"); n == 0 || n == len(all) {
		t.Errorf("%d lines in the log for %d connections at once, want one a second", n, len(all))
	}
}

func TestConnectionLimits(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.cfg.MaxConnections, b.cfg.MaxUnauthenticated = 3, 2
	b.start(t)
	one := b.customerOf(t, "100007", "s", cmpp.V30)
	one.live()
	if status := b.dial(t).login("100007", "s", cmpp.V30); status != 5 {
		t.Errorf("second connection of an application with one: status %d", status)
	}
	eventually(t, "logged cause", func() bool {
		return strings.Contains(b.log.String(), "too many connections of the application\" detail=\"1 of 1\"")
	})
	b.customer(t, cmpp.V30)
	b.customer(t, cmpp.V30)
	var status uint32
	eventually(t, "places given back", func() bool { // by connections just refused, which may hold an unauthenticated place
		status = b.dial(t).login("100001", "secret", cmpp.V30)
		return status == 5
	})
	eventually(t, "logged cause", func() bool {
		return strings.Contains(b.log.String(), "too many connections in all\" detail=\"3 of 3\"")
	})
	// A connection that ends gives its place back.
	_ = one.conn.Close()
	eventually(t, "place given back", func() bool { return b.dial(t).login("100007", "s", cmpp.V30) == 0 })
	// Connections that do not log in have places of their own, and more are closed at once.
	eventually(t, "two strangers", func() bool {
		b.dial(t)
		return strings.Contains(b.log.String(), "too many that have not logged in")
	})
}

func TestSessionsEndWithTheirPermission(t *testing.T) {
	t.Parallel()
	for name, sql := range map[string]string{
		"application disabled": "UPDATE application SET status = 2 WHERE id = 11",
		"enterprise disabled":  "UPDATE enterprise SET status = 2 WHERE id = 1",
		"secret changed":       "UPDATE application SET secret = 'new' WHERE id = 11",
		"application deleted":  "DELETE FROM application WHERE id = 11",
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := setup(t)
			b.start(t)
			c, other := b.customer(t, cmpp.V30), b.customerOf(t, "12345", "s", cmpp.V20)
			c.accepted(sms())
			b.exec(t, sql)
			b.exec(t, "UPDATE settings_version SET version = version + 1")
			b.refresh(t)
			hd, p := c.receive()
			if _, ok := p.(*cmpp.Terminate); !ok {
				t.Fatalf("%T, want TERMINATE", p)
			}
			c.send(hd.Sequence, &cmpp.TerminateResp{})
			c.closed()
			other.send(9, &cmpp.ActiveTest{})
			if _, p := other.receive(); p.Command() != cmpp.CmdActiveTestResp {
				t.Errorf("%T from another customer's session", p)
			}
		})
	}
}
