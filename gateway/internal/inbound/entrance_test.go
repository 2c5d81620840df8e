package inbound_test

import (
	"bytes"
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"fmt"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"cmppgateway/gateway/cmpp"
	"cmppgateway/gateway/internal/store"
)

// clock stands still until it is moved.
type clock struct {
	mu sync.Mutex
	at time.Time
}

func newClock() *clock { return &clock{at: time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)} }

func (c *clock) now() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.at
}

func (c *clock) move(d time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.at = c.at.Add(d)
}

// set changes the settings and lets the server see them.
func (b *bench) set(tb testing.TB, sql string, args ...any) {
	tb.Helper()
	b.exec(tb, sql, args...)
	b.exec(tb, "UPDATE settings_version SET version = version + 1")
	b.refresh(tb)
}

// metric is the value of a counter with one label.
func (b *bench) metric(tb testing.TB, name, label string) float64 {
	tb.Helper()
	families, err := b.registry.Gather()
	if err != nil {
		tb.Fatal(err)
	}
	for _, f := range families {
		for _, m := range f.GetMetric() {
			if f.GetName() == name && len(m.GetLabel()) == 1 && m.GetLabel()[0].GetValue() == label {
				return m.GetCounter().GetValue()
			}
		}
	}
	return 0
}

func (c *client) result(p *cmpp.Submit) uint32 {
	c.t.Helper()
	want := c.submit(p)
	seq, resp := c.answer()
	if seq != want {
		c.t.Fatalf("answer to %d, want %d", seq, want)
	}
	return resp.Result
}

// Four levels, each changed while the connections live; a refusal is counted by its level and is stored nowhere.
func TestRatesAtFourLevels(t *testing.T) {
	t.Parallel()
	b := setup(t)
	clock := newClock()
	b.clock = clock.now
	b.start(t)
	one, two := b.customer(t, cmpp.V30), b.customer(t, cmpp.V20)
	other := b.customerOf(t, "12345", "s", cmpp.V30) // of another enterprise
	foreign := sms()
	foreign.MsgSrc = "12345"
	for _, c := range []struct {
		level, on, off string
		refused        *client
		submit         *cmpp.Submit
	}{
		{"link", "UPDATE application SET link_tps = 3 WHERE id = 11", "UPDATE application SET link_tps = 0", one, sms()},
		{"application", "UPDATE application SET max_tps = 3 WHERE id = 11", "UPDATE application SET max_tps = 0", two, sms()},
		{"enterprise", "UPDATE enterprise SET max_tps = 3 WHERE id = 1", "UPDATE enterprise SET max_tps = 0", two, sms()},
		{"platform", "UPDATE platform_limit SET max_tps = 3", "UPDATE platform_limit SET max_tps = 0", other, foreign},
	} {
		b.set(t, c.on)
		rows := b.count(t, "SELECT count(*) FROM inbox")
		if r := one.result(sms(numbers(3)...)); r != 0 {
			t.Errorf("%s: three recipients at a rate of three: result %d", c.level, r)
		}
		if r := c.refused.result(c.submit); r != 8 {
			t.Errorf("%s: the fourth: result %d, want 8", c.level, r)
		}
		if n := b.metric(t, "cmppgw_inbound_limited_total", c.level); n != 1 {
			t.Errorf("%s: %v refusals counted, want 1", c.level, n)
		}
		if c.level == "link" {
			if r := two.result(sms()); r != 0 {
				t.Errorf("the other link: result %d", r)
			}
			rows++
		}
		clock.move(334 * time.Millisecond)
		if r := c.refused.result(c.submit); r != 0 {
			t.Errorf("%s: a third of a second later: result %d", c.level, r)
		}
		if n := b.count(t, "SELECT count(*) FROM inbox") - rows; n != 2 {
			t.Errorf("%s: %d rows stored, want 2", c.level, n)
		}
		b.set(t, c.off)
		clock.move(time.Minute)
		for range 5 {
			if r := c.refused.result(c.submit); r != 0 {
				t.Errorf("%s: without the limit: result %d", c.level, r)
			}
		}
	}
	if !strings.Contains(b.log.String(), "faster than the rate of the enterprise") {
		t.Error("the cause is not in the log")
	}
}

// A SUBMIT that is not stored because of its window, its fields or a repetition costs nothing of the rate.
func TestRatesCountWhatIsStored(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.clock = newClock().now
	b.exec(t, "UPDATE application SET max_tps = 2 WHERE id = 11")
	b.start(t)
	b.set(t, "SELECT 1")
	c := b.customer(t, cmpp.V30)
	c.accepted(sms())
	c.send(c.seq, sms())
	if _, resp := c.answer(); resp.Result != 0 {
		t.Errorf("repetition: result %d", resp.Result)
	}
	bad := sms()
	bad.SrcID = "9"
	c.result(bad)
	c.accepted(sms())
	if r := c.result(sms()); r != 8 {
		t.Errorf("the third: result %d, want 8", r)
	}
}

func TestAddressesOfAnApplication(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.exec(t, "INSERT INTO application_address VALUES (11, '192.0.2.0/24'), (12, '127.0.0.0/8')")
	b.start(t)
	b.set(t, "SELECT 1")
	if s := b.dial(t).login("100001", "secret", cmpp.V30); s != 5 {
		t.Errorf("from elsewhere: status %d, want 5", s)
	}
	b.customerOf(t, "12345", "s", cmpp.V30)
	b.set(t, "UPDATE application SET vendor_status = true WHERE id IN (11, 17)")
	if s := b.dial(t).login("100001", "secret", cmpp.V20); s != 57 {
		t.Errorf("from elsewhere: status %d, want 57", s)
	}
	one := b.customerOf(t, "100007", "s", cmpp.V30)
	one.live()
	if s := b.dial(t).login("100007", "s", cmpp.V30); s != 56 {
		t.Errorf("a second link of an application with one: status %d, want 56", s)
	}
	b.set(t, "INSERT INTO application_address VALUES (11, '127.0.0.1')")
	c := b.customer(t, cmpp.V30)
	c.accepted(sms())
	b.set(t, "DELETE FROM application_address WHERE network = '127.0.0.1'")
	if _, p := c.receive(); p.Command() != cmpp.CmdTerminate {
		t.Errorf("%T after the address was taken from the list, want TERMINATE", p)
	}
}

func TestLoginBackoff(t *testing.T) {
	t.Parallel()
	b := setup(t)
	clock := newClock()
	b.clock = clock.now
	b.cfg.LoginFailures, b.cfg.LoginBackoff, b.cfg.LoginBackoffMax = 2, time.Second, 3*time.Second
	b.start(t)
	status := func(spID, secret string) uint32 { t.Helper(); return b.dial(t).login(spID, secret, cmpp.V30) }
	for i, want := range []uint32{3, 3, 3, 5, 5} { // two are free, the third begins the wait
		if s := status("100001", "wrong"); s != want {
			t.Errorf("failure %d: status %d, want %d", i+1, s, want)
		}
	}
	if s := status("100001", "secret"); s != 5 {
		t.Errorf("the right secret during the wait: status %d, want 5", s)
	}
	if s := status("12345", "s"); s != 0 {
		t.Errorf("another account: status %d", s)
	}
	clock.move(time.Second)
	if s := status("100001", "wrong"); s != 3 {
		t.Errorf("after the wait: status %d, want 3", s)
	}
	clock.move(time.Second)
	if s := status("100001", "secret"); s != 5 {
		t.Errorf("one second into a wait of two: status %d, want 5", s)
	}
	clock.move(time.Second)
	if s := status("100001", "secret"); s != 0 {
		t.Errorf("after two seconds: status %d", s)
	}
	// A host with an old secret does not keep out the others of the same address.
	for range 4 {
		status("100001", "old")
	}
	if s := status("100001", "secret"); s != 0 {
		t.Errorf("known address, right secret, while another host fails: status %d", s)
	}
	eventually(t, "logged cause", func() bool { // after the peer has had time to read its answer
		return strings.Contains(b.log.String(), `cause="too many refused logins" detail="again in 1s"`)
	})
}

// Logins of before the start count: an attack during a restart keeps no customer out.
func TestKnownCustomersAreKnownAfterARestart(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.clock = newClock().now
	b.cfg.LoginFailures = 1
	b.start(t)
	b.customer(t, cmpp.V30).accepted(sms()) // a stop just behind CONNECT_RESP ends the connection before it is a session
	b.stop()
	b.start(t)
	for range 3 {
		b.dial(t).login("100001", "wrong", cmpp.V30)
	}
	if s := b.dial(t).login("100001", "secret", cmpp.V30); s != 0 {
		t.Errorf("status %d", s)
	}
}

// An application at its limit: a link that answers stays, a silent one gives its place to the new login.
func TestDeadLinkIsReplaced(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.cfg.ProbeTimeout = 6 * time.Second // a link is called alive only when it answers within this
	b.cfg.LoginTimeout = time.Minute
	b.set(t, "UPDATE application SET max_connections = 2 WHERE id = 17")
	b.start(t)
	login := func() *client {
		c := b.customerOf(t, "100007", "s", cmpp.V30)
		c.send(9, &cmpp.ActiveTest{}) // a link whose login is just being answered is not asked
		if hd, _ := c.receive(); hd.Command != cmpp.CmdActiveTestResp {
			t.Fatalf("%v instead of ACTIVE_TEST_RESP", hd)
		}
		return c
	}
	live, dead := login(), login()
	live.live()
	third := login() // waits for the probe
	third.live()
	if hd, _ := dead.receive(); hd.Command != cmpp.CmdActiveTest {
		t.Errorf("%v to the silent link, want a link test", hd)
	}
	dead.closed()
	if s := b.dial(t).login("100007", "s", cmpp.V30); s != 5 {
		t.Errorf("a third link beside two live ones: status %d, want 5", s)
	}
	_ = third.conn.Close() // gone: the new one may come before the server has seen that
	b.customerOf(t, "100007", "s", cmpp.V30)
	eventually(t, "recorded", func() bool {
		return b.count(t, "SELECT count(*) FROM login_event WHERE sp_id = '100007' AND status = -1 AND cause LIKE 'the link gave no sign%'") == 1
	})
}

func TestLoginsAndRefusalsAreRecorded(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.start(t)
	b.customer(t, cmpp.V30)
	b.customer(t, cmpp.V21)
	c := b.customer(t, cmpp.V20)
	c.send(9, &cmpp.Connect{SourceAddr: "100001", Version: cmpp.V20})
	if _, p := c.receive(); p.(*cmpp.ConnectResp).Status == 0 {
		t.Error("a second CONNECT was accepted")
	}
	for range 3 {
		b.dial(t).login("100001", "wrong", cmpp.V30)
	}
	b.dial(t).login("100003", "s", cmpp.V30)
	b.dial(t).login("nobody", "s", cmpp.V30)
	scan := b.dial(t)
	scan.raw([]byte("GET / HTTP/1.1\r\n\r\n"))
	scan.closed()
	want := []string{
		"100001|-|0|3|11|", "100001|second CONNECT on a live link|5|1|11|", "100001|AuthenticatorSource does not fit the secret|3|3|11|",
		"100003|the application is disabled|5|1|13|", "nobody|unknown Source_Addr|2|1|0|", "-|not CMPP but HTTP|-1|1|0|",
	}
	var got []string
	eventually(t, "six rows", func() bool {
		rows, err := b.Query(t.Context(), "SELECT sp_id, cause, status, n, app_id, node, host(address) FROM login_event")
		if err != nil {
			t.Fatal(err)
		}
		defer rows.Close()
		got = got[:0]
		sum := int64(0)
		for rows.Next() {
			var sp, cause, addr string
			var status, app, node int
			var n int64
			if err := rows.Scan(&sp, &cause, &status, &n, &app, &node, &addr); err != nil {
				t.Fatal(err)
			}
			if sp == "" {
				sp = "-"
			}
			if cause == "" {
				cause = "-"
			}
			sum += n
			got = append(got, fmt.Sprintf("%s|%s|%d|%d|%d|", sp, cause, status, n, app))
			if addr != "127.0.0.1" || node != int(b.node.Number) {
				t.Errorf("address %s, node %d", addr, node)
			}
		}
		return sum == 10
	})
	for _, w := range want {
		if !strings.Contains(strings.Join(got, "\n"), w) {
			t.Errorf("no row %s in\n%s", w, strings.Join(got, "\n"))
		}
	}
	if n := strings.Count(b.log.String(), "AuthenticatorSource does not fit"); n != 3 {
		t.Errorf("three refusals are %d lines in the log", n)
	}
}

// The record is bounded: of each account, and of all unknown ones together, the newest rows stay.
func TestRecordIsSwept(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.exec(t, `INSERT INTO login_event (sp_id, address, status, cause, first_at, last_at, n, app_id, node, version, stamp, detail)
		SELECT CASE WHEN k = 0 THEN 'x' || i % 7 ELSE '10000' || k END, '10.0.0.0'::inet + i, 3, '', now(), now() - i * interval '1 min', 1, k, 1, 48, '', ''
		FROM generate_series(1, 30) i, generate_series(0, 2) k`)
	b.exec(t, strings.NewReplacer("$1", "10", "$2", "15").Replace(store.LoginEventSweep))
	if n := b.count(t, "SELECT count(*) FROM login_event WHERE app_id = 0 AND host(address)::inet <= '10.0.0.15'"); n != 15 {
		t.Errorf("%d rows of unknown accounts, want the newest 15", n)
	}
	if n := b.count(t, "SELECT count(*) FROM login_event WHERE app_id > 0 AND host(address)::inet <= '10.0.0.10'"); n != 20 {
		t.Errorf("%d rows of two accounts, want the newest 10 of each", n)
	}
	if n := b.count(t, "SELECT count(*) FROM login_event"); n != 35 {
		t.Errorf("%d rows left, want 35", n)
	}
}

func TestBacklogOfChannelsAndPlatform(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.set(t, `INSERT INTO channel (id, account_id, carrier, access_number, name, backlog_max) VALUES (1, 1, 1, '1', 'primary', 5), (2, 1, 1, '1', 'backup', 0);
		INSERT INTO channel_group VALUES (1, 'mobile'); INSERT INTO channel_group_member VALUES (1, 1, 0, 1), (1, 2, 1, 1);
		INSERT INTO application_route VALUES (11, 1, 1);
		INSERT INTO submit_outbox (id, pos, message_id, channel_id, enterprise_id, attempt, part, parts, lane) SELECT i, i, i, 1, 2, 1, 1, 1, 0 FROM generate_series(1, 5) i`)
	b.start(t)
	c := b.customer(t, cmpp.V30)
	eventually(t, "the channel is full", func() bool { return c.result(sms()) == 8 })
	if r := c.result(sms("13000000001")); r != 0 {
		t.Errorf("another carrier: result %d", r)
	}
	if b.metric(t, "cmppgw_inbound_limited_total", "backlog_channel") == 0 {
		t.Error("not counted as the channel's")
	}
	b.set(t, "UPDATE channel SET enabled = false WHERE id = 1")
	if r := c.result(sms()); r != 0 {
		t.Errorf("with the backup in use: result %d", r)
	}
	b.set(t, "UPDATE channel SET enabled = true WHERE id = 1")
	b.exec(t, "DELETE FROM submit_outbox")
	eventually(t, "room again", func() bool { return c.result(sms()) == 0 })
	b.set(t, "UPDATE platform_limit SET backlog_max = 1")
	eventually(t, "the platform is full", func() bool { return c.result(sms("13000000001")) == 8 })
	if b.metric(t, "cmppgw_inbound_limited_total", "backlog_platform") == 0 {
		t.Error("not counted as the platform's")
	}
}

// A revoked session may say goodbye, but not for long, and its SUBMITs are refused meanwhile.
func TestRevokedSessionIsCut(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.start(t)
	c := b.customer(t, cmpp.V30)
	c.accepted(sms())
	b.set(t, "DELETE FROM enterprise WHERE id = 1")
	if _, p := c.receive(); p.Command() != cmpp.CmdTerminate {
		t.Fatalf("%T, want TERMINATE", p)
	}
	c.closed() // although it was never answered
	eventually(t, "recorded", func() bool {
		return b.count(t, "SELECT count(*) FROM login_event WHERE sp_id = '100001' AND cause = 'session ended: the enterprise is disabled'") == 1
	})
}

// pair writes a self-signed certificate for 127.0.0.1.
func pair(t *testing.T, dir string, serial int64) {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(serial), NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour), IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)},
	}
	cert, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	if err != nil {
		t.Fatal(err)
	}
	secret, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		t.Fatal(err)
	}
	at := time.Now().Add(time.Duration(serial) * time.Hour)
	for name, block := range map[string]*pem.Block{"cert.pem": {Type: "CERTIFICATE", Bytes: cert}, "key.pem": {Type: "PRIVATE KEY", Bytes: secret}} {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, pem.EncodeToMemory(block), 0o600); err != nil {
			t.Fatal(err)
		}
		if err := os.Chtimes(path, at, at); err != nil {
			t.Fatal(err)
		}
	}
}

func TestTLS(t *testing.T) {
	t.Parallel()
	b := setup(t)
	dir := t.TempDir()
	pair(t, dir, 1)
	b.cfg.TLSListen, b.cfg.TLSCert, b.cfg.TLSKey = "127.0.0.1:0", filepath.Join(dir, "cert.pem"), filepath.Join(dir, "key.pem")
	b.start(t)
	dial := func(serial int64) *client {
		t.Helper()
		d := tls.Dialer{Config: &tls.Config{InsecureSkipVerify: true}} // its own certificate, told by its number
		conn, err := d.DialContext(context.Background(), "tcp", b.server.TLSAddr().String())
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = conn.Close() })
		if err := conn.SetDeadline(time.Now().Add(30 * time.Second)); err != nil {
			t.Fatal(err)
		}
		if got := conn.(*tls.Conn).ConnectionState().PeerCertificates[0].SerialNumber.Int64(); got != serial {
			t.Errorf("certificate %d, want %d", got, serial)
		}
		return &client{t: t, conn: conn, in: cmpp.NewReader(conn, cmpp.MaxFrame), v: cmpp.V30}
	}
	c := dial(1)
	if s := c.login("100001", "secret", cmpp.V30); s != 0 {
		t.Fatalf("status %d", s)
	}
	c.accepted(sms(numbers(99)...))
	if s := dial(1).login("100001", "wrong", cmpp.V20); s != 3 {
		t.Errorf("status %d, want 3", s)
	}
	pair(t, dir, 2) // renewed
	dial(2)
	if err := os.WriteFile(filepath.Join(dir, "key.pem"), []byte("half a file"), 0o600); err != nil {
		t.Fatal(err)
	}
	dial(2) // while it is broken, the last good one
	plain := b.dial(t)
	if s := plain.login("100001", "secret", cmpp.V30); s != 0 {
		t.Errorf("without TLS on its own port: status %d", s)
	}
	conn, err := new(net.Dialer).DialContext(t.Context(), "tcp", b.server.TLSAddr().String())
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close() // the test is over
	wrong := &client{t: t, conn: conn, in: cmpp.NewReader(conn, cmpp.MaxFrame)}
	wrong.raw(bytes.Repeat([]byte{0}, 39))
	if _, err := conn.Read(make([]byte, 64)); err == nil { // an alert, then the end
		_, _ = conn.Read(make([]byte, 64))
	}
	c.accepted(sms())
}
