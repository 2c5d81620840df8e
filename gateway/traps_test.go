package main_test

import (
	"bytes"
	"context"
	wire "encoding/binary"
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"cmppgateway/testenv"
)

// trapSQL is the customers of the traps, every account of its own so that no trap sees another's limits or waits.
const trapSQL = `
INSERT INTO enterprise (id, name) VALUES (1, 'traps'), (2, 'neighbour');
INSERT INTO account (id, available) VALUES (1, 100000000), (2, 100000000);
INSERT INTO application (id, enterprise_id, price, sp_id, secret, window_size, max_connections, version, name) VALUES
	(1, 1, 1, '901234', '1234', 256, 64, 0, 'main'),
	(2, 1, 1, '12345', '1234', 256, 64, 0, 'short id'),
	(3, 1, 1, '900003', 'x', 256, 64, 0, 'short secret'),
	(4, 1, 1, '900004', 'a secret that is much longer than the buffers of old clients', 256, 64, 0, 'long secret'),
	(5, 1, 1, '900005', 's', 256, 64, 48, 'pinned to 3.0'),
	(6, 1, 1, '900006', 's', 256, 64, 32, 'pinned to 2.0'),
	(7, 1, 1, '900007', 's', 256, 1, 0, 'one link'),
	(8, 1, 1, '900008', 's', 256, 64, 0, 'guessed at'),
	(9, 2, 1, '900009', 's', 256, 64, 0, 'neighbour'),
	(11, 1, 1, '900011', 's', 256, 64, 0, 'hostile');
INSERT INTO application (id, enterprise_id, price, sp_id, secret, status, name) VALUES (10, 1, 1, '900010', 's', 2, 'disabled');`

// customerTraps runs the traps of docs/traps.md, customer sessions, against one running program.
func customerTraps(t *testing.T, gw binary) {
	t.Helper()
	redis, db := testenv.Redis(t)
	url := testenv.DB(t)
	env := append(environment(t, url, redis, db), "CMPPGW_INBOUND_WRITE_TIMEOUT=2s", "CMPPGW_INBOUND_LOGIN_TIMEOUT=1m", "CMPPGW_INBOUND_PROBE_TIMEOUT=6s",
		"CMPPGW_INBOUND_LOGIN_FAILURES=10", "CMPPGW_INBOUND_LOGIN_BACKOFF=1m") // what is not waited for must not pass while a busy machine pauses
	conn, err := pgx.Connect(t.Context(), url)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close(context.Background()) // the test is over
	if _, err := conn.Exec(t.Context(), trapSQL); err != nil {
		t.Fatal(err)
	}
	r := start(t, gw, env)
	r.until(t, "ready", ready)
	var addr string
	for _, kv := range env {
		if a, ok := strings.CutPrefix(kv, "CMPPGW_INBOUND_LISTEN="); ok {
			addr = a
		}
	}
	before := r.goroutines(t)
	traps := []struct {
		name string
		run  func(t *testing.T, addr string)
	}{
		{"short id bare and padded", trapShortID},
		{"leading zero of the timestamp", trapTimestamp},
		{"secrets of any length", trapSecrets},
		{"version octets", trapVersions},
		{"every refusal has its status", trapRefusals},
		{"reconnects", trapReconnects},
		{"before the login", trapBeforeLogin},
		{"second CONNECT", trapSecondConnect},
		{"frames split at every octet", trapSplit},
		{"several frames in one write", trapSticky},
		{"lengths that are none", trapLengths},
		{"scanners", trapScanners},
		{"99 recipients in 3.0", trapLargest},
		{"inner lengths that lie", trapLies},
		{"tails of other sizes", trapTails},
		{"ACTIVE_TEST_RESP of 12 octets", trapShortActiveTest},
		{"unknown commands", trapUnknownCommand},
		{"dead link of the same peer", trapDeadLink},
		{"TERMINATE", trapTerminate},
		{"hostile connections beside a customer", trapHostile},
	}
	for _, trap := range traps { // one after the other: they are short, and the last one looks at what is left
		t.Run(trap.name, func(t *testing.T) { trap.run(t, addr) })
	}
	if t.Failed() {
		return
	}
	t.Run("refusals are recorded with their causes", func(t *testing.T) { trapRecorded(t, conn) })
	t.Run("nothing is left behind", func(t *testing.T) {
		deadline := time.Now().Add(limit)
		for n := r.goroutines(t); n > before+20; n = r.goroutines(t) {
			if time.Now().After(deadline) {
				t.Fatalf("%d goroutines, %d before the traps", n, before)
			}
			<-time.After(100 * time.Millisecond)
		}
	})
}

// goroutines asks the program.
func (r *running) goroutines(t *testing.T) int {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, r.url+"/metrics", nil)
	if err != nil {
		t.Fatal(err)
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close() // read here
	var text bytes.Buffer
	if _, err := text.ReadFrom(resp.Body); err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(text.String()) {
		if v, ok := strings.CutPrefix(line, "go_goroutines "); ok {
			n, err := strconv.Atoi(strings.TrimSpace(v))
			if err != nil {
				t.Fatal(err)
			}
			return n
		}
	}
	t.Fatal("no go_goroutines")
	return 0
}

func wantStatus(t *testing.T, addr, what string, want uint32, frame []byte) *rawClient {
	t.Helper()
	c := rawDial(t, addr)
	c.write(frame)
	if s := c.status(); s != want {
		t.Errorf("%s: status %d, want %d", what, s, want)
	}
	return c
}

func trapLogin(t *testing.T, addr, id, secret string, version byte) *rawClient {
	t.Helper()
	c := wantStatus(t, addr, "login of "+id, 0, rawConnectFrame(id, secret, version))
	if t.Failed() {
		t.FailNow()
	}
	return c
}

func trapShortID(t *testing.T, addr string) {
	t.Helper()
	wantStatus(t, addr, "bare", 0, rawLogin("12345", "12345", "1234", 0x20, 102030405, "0102030405"))
	wantStatus(t, addr, "padded", 0, rawLogin("12345", "12345\x00", "1234", 0x30, 102030405, "0102030405"))
	wantStatus(t, addr, "padded with spaces", 3, rawLogin("12345", "12345 ", "1234", 0x30, 102030405, "0102030405"))
}

func trapTimestamp(t *testing.T, addr string) {
	t.Helper()
	wantStatus(t, addr, "January", 0, rawLogin("901234", "901234", "1234", 0x20, 102030405, "0102030405"))
	wantStatus(t, addr, "December", 0, rawLogin("901234", "901234", "1234", 0x20, 1231235959, "1231235959"))
	wantStatus(t, addr, "zero lost", 3, rawLogin("901234", "901234", "1234", 0x20, 102030405, "102030405"))
	wantStatus(t, addr, "no time at all", 0, rawLogin("901234", "901234", "1234", 0x20, 0, "0000000000"))
}

func trapSecrets(t *testing.T, addr string) {
	t.Helper()
	trapLogin(t, addr, "900003", "x", 0x20)
	trapLogin(t, addr, "900004", "a secret that is much longer than the buffers of old clients", 0x30)
	wantStatus(t, addr, "cut secret", 3, rawConnectFrame("900004", "a secret that is muc", 0x30))
}

func trapVersions(t *testing.T, addr string) {
	t.Helper()
	for version, wide := range map[byte]bool{0x00: false, 0x01: false, 0x02: false, 0x12: false, 0x20: false, 0x21: false, 0x30: true, 0x31: true, 0x7F: true} {
		c := trapLogin(t, addr, "901234", "1234", version)
		if c.wide != wide {
			t.Errorf("version %#x: 3.0 layout %t", version, c.wide)
		}
		c.alive("901234")
	}
	if c := trapLogin(t, addr, "900005", "s", 0x01); !c.wide {
		t.Error("an odd octet on an account pinned to 3.0 is answered in 2.0")
	}
	trapLogin(t, addr, "900005", "s", 0x01).alive("900005")
	c := wantStatus(t, addr, "2.0 on an account pinned to 3.0", 4, rawConnectFrame("900005", "s", 0x20))
	if c.wide {
		t.Error("the refusal is not in the client's layout")
	}
	wantStatus(t, addr, "3.0 on an account pinned to 2.0", 4, rawConnectFrame("900006", "s", 0x30))
	trapLogin(t, addr, "900006", "s", 0x21).alive("900006")
}

func trapRefusals(t *testing.T, addr string) {
	t.Helper()
	short := rawConnectFrame("901234", "1234", 0x20)
	short = append([]byte{0, 0, 0, 35}, short[4:35]...)
	for _, c := range []struct {
		name   string
		status uint32
		frame  []byte
	}{
		{"structure", 1, short},
		{"unknown account", 2, rawConnectFrame("999999", "1234", 0x20)},
		{"wrong secret", 3, rawConnectFrame("900008", "wrong", 0x30)},
		{"disabled", 5, rawConnectFrame("900010", "s", 0x20)},
	} {
		wantStatus(t, addr, c.name, c.status, c.frame).ends()
	}
	long := rawConnectFrame("901234", "1234", 0x20)
	long = append(append([]byte{0, 0, 0, 43}, long[4:]...), 0, 0, 0, 0)
	wantStatus(t, addr, "four octets more", 0, long)
	// Back-off: beyond the free failures the account has to wait, whatever the secret.
	for range 10 {
		wantStatus(t, addr, "wrong secret", 3, rawConnectFrame("900008", "wrong", 0x30))
	}
	wantStatus(t, addr, "during the wait", 5, rawConnectFrame("900008", "s", 0x30))
}

func trapReconnects(t *testing.T, addr string) {
	t.Helper()
	for range 100 {
		c := trapLogin(t, addr, "901234", "1234", 0x30)
		if err := c.conn.Close(); err != nil {
			t.Fatal(err)
		}
	}
	trapLogin(t, addr, "901234", "1234", 0x20).alive("901234")
}

func trapBeforeLogin(t *testing.T, addr string) {
	t.Helper()
	for name, frame := range map[string][]byte{
		"SUBMIT": rawSMS(true, 1, "901234", 1, []byte("x")), "ACTIVE_TEST": rawFrame(rawActiveTest, 1), "unknown": rawFrame(0x77, 1),
		"a response": rawFrame(rawActiveTest|rawResponse, 1, []byte{0}),
	} {
		c := rawDial(t, addr)
		c.write(frame)
		t.Log(name)
		c.ends()
	}
	c := rawDial(t, addr)
	c.write(rawFrame(rawTerminate, 5))
	if command, seq, _ := c.read(); command != rawTerminate|rawResponse || seq != 5 {
		t.Errorf("command %#x, sequence %d instead of TERMINATE_RESP", command, seq)
	}
	c.ends()
}

func trapSecondConnect(t *testing.T, addr string) {
	t.Helper()
	c := trapLogin(t, addr, "901234", "1234", 0x20)
	c.alive("901234")
	c.write(rawConnectFrame("901234", "1234", 0x20))
	if s := c.status(); s == 0 {
		t.Error("accepted")
	}
	c.ends()
}

// The reader sees every cut, since each octet is its own write on a connection without delay.
func trapSplit(t *testing.T, addr string) {
	t.Helper()
	for _, wide := range []bool{false, true} {
		version := byte(0x20)
		if wide {
			version = 0x30
		}
		c := rawDial(t, addr)
		for _, b := range rawConnectFrame("901234", "1234", version) {
			c.write([]byte{b})
		}
		if s := c.status(); s != 0 {
			t.Fatalf("status %d", s)
		}
		for _, b := range rawSMS(wide, 1, "901234", 1, []byte("split")) {
			c.write([]byte{b})
		}
		if r := c.result(1); r != 0 {
			t.Errorf("result %d", r)
		}
		c.alive("901234")
	}
}

func trapSticky(t *testing.T, addr string) {
	t.Helper()
	c := rawDial(t, addr)
	frames := [][]byte{rawConnectFrame("901234", "1234", 0x30)}
	const n = 50
	for i := range uint32(n) {
		frames = append(frames, rawSMS(true, i+2, "901234", 1, fmt.Appendf(nil, "sticky %d", i)))
	}
	c.write(frames...)
	if s := c.status(); s != 0 {
		t.Fatalf("status %d", s)
	}
	seen := map[uint32]bool{}
	for range n {
		command, seq, body := c.read()
		if command != rawSubmit|rawResponse || len(body) != 12 || wire.BigEndian.Uint32(body[8:]) != 0 || seen[seq] {
			t.Fatalf("command %#x, sequence %d, body %x", command, seq, body)
		}
		seen[seq] = true
	}
	c.alive("901234")
}

func trapLengths(t *testing.T, addr string) {
	t.Helper()
	for _, length := range []uint32{0, 4, 11, 4097, 1 << 31, 1<<32 - 1} {
		bad := append(wire.BigEndian.AppendUint32(nil, length), make([]byte, 20)...)
		c := rawDial(t, addr)
		c.write(bad)
		c.ends()
		c = trapLogin(t, addr, "901234", "1234", 0x30)
		c.write(bad)
		c.ends()
	}
}

func trapScanners(t *testing.T, addr string) {
	t.Helper()
	for _, text := range []string{
		"GET / HTTP/1.1\r\nHost: x\r\n\r\n", "AMQP\x00\x00\x09\x01", "\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03", "\x03\x00\x00\x2f\x2a\xe0",
		"SSH-2.0-x\r\n", "PROXY TCP4 192.0.2.1 192.0.2.2 1 2\r\n", "h\x01\x00f",
	} {
		c := rawDial(t, addr)
		c.write([]byte(text))
		c.ends()
	}
}

func trapLargest(t *testing.T, addr string) {
	t.Helper()
	c := trapLogin(t, addr, "901234", "1234", 0x30)
	frame := rawSMS(true, 2, "901234", 99, bytes.Repeat([]byte{'x'}, 160))
	if len(frame) != 3491 {
		t.Fatalf("%d octets", len(frame))
	}
	c.write(frame)
	if r := c.result(2); r != 0 {
		t.Errorf("result %d", r)
	}
	c.write(rawSMS(true, 3, "901234", 100, []byte("x")))
	if r := c.result(3); r == 0 {
		t.Error("100 recipients were accepted")
	}
	c.alive("901234")
	c = trapLogin(t, addr, "901234", "1234", 0x20)
	c.write(rawSMS(false, 2, "901234", 99, bytes.Repeat([]byte{'x'}, 160)))
	if r := c.result(2); r != 0 {
		t.Errorf("2.0: result %d", r)
	}
}

func trapLies(t *testing.T, addr string) {
	t.Helper()
	for _, wide := range []bool{false, true} {
		c := trapLogin(t, addr, "901234", "1234", map[bool]byte{false: 0x20, true: 0x30}[wide])
		count, number := 128, 21
		if wide {
			count, number = 140, 32
		}
		content := count + 1 + number
		if wide {
			content++
		}
		for i, lie := range []struct{ at, value int }{{content, 255}, {count, 99}, {count, 255}} {
			frame := rawSMS(wide, uint32(10+i), "901234", 1, []byte("hello"))
			frame[lie.at] = byte(lie.value)
			c.write(frame)
			if r := c.result(uint32(10 + i)); r != 4 && r != 1 {
				t.Errorf("octet %d is %d: result %d, want 4 or 1", lie.at, lie.value, r)
			}
		}
		c.alive("901234")
	}
}

func trapTails(t *testing.T, addr string) {
	t.Helper()
	c := trapLogin(t, addr, "901234", "1234", 0x30)
	for i, size := range []int{0, 8, 40} {
		frame := rawSMS(true, uint32(i+2), "901234", 1, []byte("tail"))
		frame = append(frame[:len(frame)-20], make([]byte, size)...)
		wire.BigEndian.PutUint32(frame, uint32(len(frame)))
		c.write(frame)
		if r := c.result(uint32(i + 2)); r != 0 {
			t.Errorf("LinkID of %d octets: result %d", size, r)
		}
	}
	c.alive("901234")
}

func trapShortActiveTest(t *testing.T, addr string) {
	t.Helper()
	c := trapLogin(t, addr, "901234", "1234", 0x20)
	c.write(rawFrame(rawActiveTest|rawResponse, 9), rawFrame(rawActiveTest|rawResponse, 10, []byte{0}), rawFrame(rawActiveTest|rawResponse, 11, make([]byte, 5)))
	c.alive("901234")
}

func trapUnknownCommand(t *testing.T, addr string) {
	t.Helper()
	c := trapLogin(t, addr, "901234", "1234", 0x30)
	c.write(rawFrame(0x0000000A, 3), rawFrame(0x00000013, 4, make([]byte, 40)), rawFrame(0x7FFFFFFF, 5))
	c.alive("901234")
}

// The old link answers no link test, so the new login takes its place; beside one that answers it is refused.
func trapDeadLink(t *testing.T, addr string) {
	t.Helper()
	old := trapLogin(t, addr, "900007", "s", 0x20)
	old.alive("900007") // a link whose login is just being answered is not asked
	live := trapLogin(t, addr, "900007", "s", 0x20)
	if command, _, _ := old.read(); command != rawActiveTest {
		t.Errorf("command %#x to the old link, want ACTIVE_TEST", command)
	}
	old.ends()
	live.alive("900007")
	var refused sync.WaitGroup
	refused.Go(func() {
		c := rawDial(t, addr)
		_, err := c.conn.Write(rawConnectFrame("900007", "s", 0x20))
		if _, _, body, readErr := rawRead(c.conn); err != nil || readErr != nil || len(body) != 18 || body[0] != 5 {
			t.Errorf("login beside a live link: %v, %v, %x", err, readErr, body)
		}
	})
	command, seq, _ := live.read()
	if command != rawActiveTest {
		t.Errorf("command %#x to the live link, want ACTIVE_TEST", command)
	}
	live.write(rawFrame(rawActiveTest|rawResponse, seq, []byte{0}))
	refused.Wait()
	live.alive("900007")
}

func trapTerminate(t *testing.T, addr string) {
	t.Helper()
	c := trapLogin(t, addr, "901234", "1234", 0x20)
	c.write(rawFrame(rawTerminate, 5))
	if command, seq, body := c.read(); command != rawTerminate|rawResponse || seq != 5 || len(body) != 0 {
		t.Errorf("command %#x, sequence %d instead of TERMINATE_RESP", command, seq)
	}
	c.ends()
}

// 64 connections that misuse their link in every way, while a neighbour works as if they were not there.
func trapHostile(t *testing.T, addr string) {
	t.Helper()
	neighbour := trapLogin(t, addr, "900009", "s", 0x30)
	ctx, stop := context.WithCancel(t.Context())
	var hostile sync.WaitGroup
	for i := range 64 {
		c := rawDial(t, addr)
		hostile.Go(func() {
			login := rawConnectFrame("900011", "s", 0x20)
			switch i % 4 {
			case 0: // half a frame, then silence
				_, _ = c.conn.Write([]byte{0, 0, 0, 39, 0})
			case 1: // garbage
				_, _ = c.conn.Write(bytes.Repeat([]byte{0xA5}, 4000))
			case 2: // asks for answers and reads none
				_, _ = c.conn.Write(login)
				c.flood(ctx, rawFrame(rawActiveTest, 1), 8<<20)
			case 3: // the same with SUBMITs
				_, _ = c.conn.Write(login)
				c.flood(ctx, rawSMS(false, 1, "900011", 100, []byte("x")), 16<<20)
			}
			<-ctx.Done()
			_ = c.conn.Close() // it may be gone
		})
	}
	for seq := uint32(100); seq < 300; seq++ {
		neighbour.write(rawSMS(true, seq, "900009", 1, fmt.Appendf(nil, "message %d", seq)))
		if r := neighbour.result(seq); r != 0 {
			t.Fatalf("sequence %d: result %d", seq, r)
		}
	}
	stop()
	hostile.Wait()
	neighbour.alive("900009")
}

func trapRecorded(t *testing.T, conn *pgx.Conn) {
	t.Helper()
	want := map[string]bool{
		"901234|0|": false, "901234|5|second CONNECT on a live link": false,
		"|1|CONNECT is not understood": false, "999999|2|unknown Source_Addr": false, "900008|3|AuthenticatorSource does not fit the secret": false,
		"900008|5|too many refused logins": false, "900010|5|the application is disabled": false,
		"900005|4|the application is pinned to version 3.0": false, "900007|5|too many connections of the application": false,
		"900007|-1|the link gave no sign of life when a new login needed its place": false,
		"|-1|not CMPP but HTTP": false, "|-1|not CMPP but AMQP": false, "|-1|not CMPP but TLS": false,
		"|-1|another request than CONNECT before the login": false, "|-1|no CMPP: the first octets are no length of a frame": false,
	}
	deadline := time.Now().Add(limit)
	for missing := len(want); missing > 0; {
		rows, err := conn.Query(t.Context(), "SELECT sp_id || '|' || status || '|' || cause FROM login_event")
		if err != nil {
			t.Fatal(err)
		}
		got, err := pgx.CollectRows(rows, pgx.RowTo[string])
		if err != nil {
			t.Fatal(err)
		}
		for _, k := range got {
			if _, ok := want[k]; ok {
				want[k] = true
			}
		}
		missing = 0
		for k, seen := range want {
			if !seen {
				missing++
				if time.Now().After(deadline) {
					t.Errorf("no record %q in\n%s", k, strings.Join(got, "\n"))
				}
			}
		}
		if time.Now().After(deadline) {
			return
		}
		<-time.After(100 * time.Millisecond)
	}
}
