package inbound

import (
	"fmt"
	"net"
	"net/netip"
	"slices"
	"sync"
	"testing"
	"time"

	"cmppgateway/gateway/internal/routing"
	"cmppgateway/gateway/internal/settings"
)

var start = time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)

func TestBucket(t *testing.T) {
	t.Parallel()
	const ms = time.Millisecond
	var b bucket
	for i, c := range []struct {
		at      time.Duration
		rate, n int
		wait    time.Duration
	}{
		{0, 0, 1000, 0}, // no limit
		{0, 10, 4, 0},   // full when the limit begins
		{0, 10, 6, 0},
		{0, 10, 1, 100 * ms},
		{50 * ms, 10, 1, 50 * ms},
		{100 * ms, 10, 1, 0},
		{90 * ms, 10, 1, 100 * ms}, // a reading from before gives nothing twice
		{10 * time.Second, 10, 10, 0},
		{10 * time.Second, 10, 1, 100 * ms}, // an idle hour is worth a second
		{20 * time.Second, 10, 99, 0},       // a group larger than the rate passes when the bucket is full …
		{21 * time.Second, 10, 1, 8 * time.Second},
		{28 * time.Second, 10, 1, time.Second}, // … and is paid off
		{29 * time.Second, 10, 1, 0},
		{29 * time.Second, 100, 1, 10 * ms}, // a changed rate holds at once
		{30 * time.Second, 5, 5, 0},
		{30 * time.Second, 5, 1, 200 * ms},
		{30 * time.Second, 0, 1, 0},
		{30 * time.Second, 5, 5, 0}, // limited anew
	} {
		got := b.wait(c.rate, c.n, start.Add(c.at))
		if diff := (got - c.wait).Abs(); diff > time.Microsecond {
			t.Fatalf("step %d: %d at %v with rate %d wait %v, want %v", i, c.n, c.at, c.rate, got, c.wait)
		}
		if got == 0 {
			b.take(c.n)
		}
	}
}

// The tightest level refuses, and then none is taken from.
func TestRatesTakeFromAllLevelsOrNone(t *testing.T) {
	t.Parallel()
	limits := &settings.Limits{
		TPS: 40, Enterprises: map[int32]int{1: 30, 2: 30},
		Applications: map[int32]settings.ApplicationLimits{11: {TPS: 20, LinkTPS: 10}, 12: {TPS: 20}, 21: {}},
	}
	r := newRates()
	links := map[string]*bucket{}
	for i, c := range []struct {
		link            string
		app, enterprise int32
		n               int
		want            string // "" passes
	}{
		{"a", 11, 1, 10, ""},
		{"a", 11, 1, 1, "link"},
		{"b", 11, 1, 8, ""},
		{"b", 11, 1, 4, "link"}, // it lacks 2 of 10 a second, the application 2 of 20: the link would wait longer
		{"f", 11, 1, 4, "application"},
		{"c", 12, 1, 12, ""}, // 30 of the enterprise
		{"d", 12, 1, 1, "enterprise"},
		{"e", 21, 2, 10, ""}, // 40 of the platform
		{"e", 21, 2, 1, "platform"},
		{"b", 11, 1, 2, "enterprise"}, // nothing was taken by the refusals
	} {
		if links[c.link] == nil {
			links[c.link] = new(bucket)
		}
		by, ok := r.take(links[c.link], c.app, c.enterprise, limits, c.n, start)
		got := ""
		if !ok {
			got = by.String()
		}
		if got != c.want {
			t.Errorf("step %d: %q refuses, want %q", i, got, c.want)
		}
	}
	if got := links["b"].tokens; got != 2 {
		t.Errorf("%v left in a bucket whose SUBMIT was refused by others, want 2", got)
	}
	if got := r.apps[12].tokens; got != 8 {
		t.Errorf("%v left in the application, want 8", got)
	}
	r.prune(&settings.Limits{Applications: map[int32]settings.ApplicationLimits{12: {TPS: 1}}})
	if len(r.apps) != 1 || len(r.enterprises) != 0 {
		t.Errorf("%d applications and %d enterprises kept", len(r.apps), len(r.enterprises))
	}
}

func TestGuard(t *testing.T) {
	t.Parallel()
	g := newGuard(3, time.Second, 10*time.Second)
	home, other := netip.MustParseAddr("192.0.2.1"), netip.MustParseAddr("::ffff:192.0.2.2")
	at := start
	want := func(what string, addr netip.Addr, account string, d time.Duration, known bool) {
		t.Helper()
		if got, k := g.wait(addr, account, at); got != d || k != known {
			t.Errorf("%s: waits %v, known %t, want %v, %t", what, got, k, d, known)
		}
	}
	for i, seconds := range []int{0, 0, 0, 1, 2, 4, 8, 10, 10} {
		d := time.Duration(seconds) * time.Second
		g.failed(home, "a", at)
		want(fmt.Sprint("failure ", i+1), home, "a", d, false)
		at = at.Add(d)
		want("after it", home, "a", 0, false)
	}
	g.failed(home, "a", at) // the tenth
	want("another account of the address", home, "b", 0, false)
	want("the account from elsewhere", other, "a", 0, false)
	// The twelve free failures of the address and of the account are counted over all pairs.
	for _, account := range []string{"b", "c", "d"} {
		g.failed(home, account, at)
	}
	want("an address that tries many accounts", home, "z", time.Second, false)
	for range 3 {
		g.failed(other, "a", at)
	}
	want("an account tried from many addresses", netip.MustParseAddr("192.0.2.3"), "a", time.Second, false)
	want("another account from elsewhere", netip.MustParseAddr("192.0.2.3"), "z", 0, false)
	// Who has logged in is known, and its own failures are forgotten.
	g.succeeded(other, "a")
	want("known, while the account waits", other, "a", time.Second, true)
	at = at.Add(time.Hour)
	want("an hour later", home, "a", 0, false)
	g.failed(home, "a", at)
	want("a failure after an hour is the first", home, "a", 0, false)
	if place(netip.MustParseAddr("2001:db8::1")) != place(netip.MustParseAddr("2001:db8::ffff:2%eth0")) {
		t.Error("two addresses of one IPv6 network are two places")
	}
}

func TestGuardIsBounded(t *testing.T) {
	t.Parallel()
	g := newGuard(1, time.Second, time.Minute)
	for i := range 3 * guardMost {
		addr := netip.AddrFrom4([4]byte{10, byte(i >> 16), byte(i >> 8), byte(i)})
		g.failed(addr, fmt.Sprint(i), start)
		g.succeeded(addr, fmt.Sprint(i))
	}
	if g.size() > guardMost || g.failures.order.Len() != g.size() || len(g.good.at) > guardMost || g.good.order.Len() != len(g.good.at) {
		t.Errorf("%d failures in a list of %d, %d known in a list of %d", g.size(), g.failures.order.Len(), len(g.good.at), g.good.order.Len())
	}
}

// A connection counts once, however often its end is reported and by whom.
func TestConnectionsCountOnce(t *testing.T) {
	t.Parallel()
	p := newPlaces()
	conns := make([]*conn, 4)
	for i := range conns {
		conns[i] = &conn{id: int64(i + 1), app: 7}
		for range 2 { // a login that asks again after a probe
			if limit, n := p.enter(conns[i], 100, 4); limit != vacant {
				t.Fatalf("connection %d: limit %d at %d", i, limit, n)
			}
		}
	}
	if limit, n := p.enter(&conn{id: 9, app: 7}, 100, 4); limit != fullAccount || n != 4 {
		t.Errorf("limit %d at %d", limit, n)
	}
	if limit, n := p.enter(&conn{id: 9, app: 8}, 4, 4); limit != fullSystem || n != 4 {
		t.Errorf("limit %d at %d", limit, n)
	}
	var ends sync.WaitGroup
	for range 8 {
		for _, c := range conns[:3] {
			ends.Go(func() { p.leave(c) })
		}
	}
	ends.Wait()
	p.leave(&conn{id: 4, app: 7}) // another one with that number
	if n, _ := p.counts(); n != 1 || len(p.byApp[7]) != 1 {
		t.Errorf("%d connections, want the one that is left", n)
	}
	p.leave(conns[3])
	if n, _ := p.counts(); n != 0 || len(p.byApp) != 0 {
		t.Errorf("%d connections of %d applications left", n, len(p.byApp))
	}
}

func TestStrangersGiveWay(t *testing.T) {
	t.Parallel()
	p := newPlaces()
	var ends []net.Conn
	arrive := func(at time.Duration) (s *stranger, evicted bool) {
		ours, theirs := net.Pipe()
		ends = append(ends, theirs)
		return p.arrive(ours, 2, start.Add(at))
	}
	a, _ := arrive(0)
	b, _ := arrive(100 * time.Millisecond)
	if s, _ := arrive(500 * time.Millisecond); s != nil {
		t.Error("a third one, although the oldest has not had its second")
	}
	p.vouch(a)
	c, evicted := arrive(1200 * time.Millisecond)
	if c == nil || !evicted || b.place != nil || a.place == nil {
		t.Fatalf("after a second: %v, evicted %t; want b out, whose secret was not seen", c, evicted)
	}
	if _, err := ends[1].Read(make([]byte, 1)); err == nil {
		t.Error("the evicted one is still connected")
	}
	p.left(b) // it notices
	p.left(b)
	if _, n := p.counts(); n != 2 {
		t.Errorf("%d strangers, want 2", n)
	}
	p.left(a)
	p.left(c)
	if _, n := p.counts(); n != 0 {
		t.Errorf("%d strangers, want none", n)
	}
}

func TestStuck(t *testing.T) {
	t.Parallel()
	table, err := routing.New([]routing.Rule{{Prefix: "13900", Carrier: routing.Telecom}})
	if err != nil {
		t.Fatal(err)
	}
	snap := &settings.Snapshot{
		Table:  table,
		Limits: settings.Limits{Channels: map[int32]int{1: 10, 2: 10, 4: 10, 5: 10}},
		Groups: map[int32]*routing.Group{
			100: {Candidates: []routing.Candidate{{ChannelID: 3, Priority: 2, Enabled: true}, {ChannelID: 9, Priority: 0}, {ChannelID: 1, Priority: 1, Weight: 1, Enabled: true}, {ChannelID: 2, Priority: 1, Enabled: true}}},
			101: {Candidates: []routing.Candidate{{ChannelID: 4, Enabled: true}}},
			102: {Candidates: []routing.Candidate{{ChannelID: 5}}},
		},
	}
	app := &settings.Application{ID: 7, Routes: map[routing.Carrier]int32{routing.Mobile: 100, routing.Telecom: 101, routing.Unicom: 102}}
	for _, c := range []struct {
		name  string
		full  map[int32]int
		dest  []string
		stuck bool
	}{
		{"the channel it goes to, the backup is free", map[int32]int{1: 10}, []string{"13800000001"}, true},
		{"another channel of the layer", map[int32]int{2: 11}, []string{"13800000001"}, false},
		{"a raised ceiling holds at once", map[int32]int{1: 9}, []string{"13800000001"}, false},
		{"another carrier's channels", map[int32]int{1: 10, 2: 10}, []string{"13300000001"}, false},
		{"one recipient of a group", map[int32]int{4: 10}, []string{"13800000001", "+8613300000001"}, true},
		{"a number rule before the table", map[int32]int{4: 10}, []string{"13900000001"}, true},
		{"all channels disabled is ROUTE's", map[int32]int{5: 10}, []string{"13000000001"}, false},
		{"no route is ROUTE's", map[int32]int{1: 10, 2: 10, 4: 10}, []string{"19200000001"}, false},
	} {
		b := &backlog{max: 5}
		b.last.Store(&waiting{channels: c.full})
		v, _ := b.full(snap, app, c.dest)
		if (v == valveChannel) != c.stuck || v != "" && !c.stuck {
			t.Errorf("%s: %q", c.name, v)
		}
	}
	b := &backlog{max: 5}
	b.last.Store(&waiting{apps: map[int32]int{7: 5}, platform: 100})
	if v, _ := b.full(snap, app, nil); v != valveApplication {
		t.Errorf("application at its ceiling: %q", v)
	}
	b.last.Store(&waiting{platform: 100})
	if v, _ := b.full(snap, app, nil); v != "" {
		t.Errorf("platform without a ceiling: %q", v)
	}
	snap.Limits.Backlog = 100
	if v, _ := b.full(snap, app, nil); v != valvePlatform {
		t.Errorf("platform at its ceiling: %q", v)
	}
}

func TestProtocolsAreRecognised(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		"GET / HTTP/1.1": "HTTP", "AMQP\x00": "AMQP", "\x16\x03\x01\x02": "TLS", "\x03\x00\x00\x2f": "remote desktop", "PROXY TCP4": "the PROXY protocol",
		"SSH-2.0": "SSH", "\x00\x00\x00\x00": "", "\x7f\xff\xff\xff": "",
	} {
		if got := protocol([4]byte([]byte(text))); got != want {
			t.Errorf("%q: %q, want %q", text, got, want)
		}
	}
	if got := printable("a\x00界\xff\n", 200); slices.ContainsFunc([]byte(got), func(c byte) bool { return c < ' ' || c > '~' }) {
		t.Errorf("%q", got)
	}
}
