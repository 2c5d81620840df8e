package supplier

import (
	"testing"
	"time"

	"cmppgateway/gateway/cmpp"
	"cmppgateway/gateway/internal/outbox"
	"cmppgateway/gateway/internal/settings"
)

func TestResult8HalvesThePaceAndItRecoversInSteps(t *testing.T) {
	t.Parallel()
	var p pace
	now := time.Unix(1000, 0)
	// second sends what is allowed in steps of 10 ms, 400/s at most, and says how much that was.
	second := func() (n int) {
		for range 100 {
			now = now.Add(10 * time.Millisecond)
			got, _ := p.allow(4, now)
			p.spend(got, now)
			p.count(got, now)
			n += got
		}
		return n
	}
	near := func(what string, got, want int) {
		t.Helper()
		if got < want*85/100 || got > want*115/100 {
			t.Errorf("%s: %d/s, want about %d", what, got, want)
		}
	}
	// flowControl refuses a fifth of what a second sends.
	flowControl := func(n int) {
		for range n / 5 {
			p.refused(now)
		}
	}
	near("not slowed", second(), 400)
	for range 10 { // one in a hundred is no flow control
		for range second() / 100 {
			p.refused(now)
		}
	}
	near("not slowed by single refusals", second(), 400)
	flowControl(2 * second()) // of two seconds: a burst of refusals is one
	near("halved", second(), 200)
	for range 4 {
		second()
	}
	near("recovered", second(), 400)
	flowControl(2 * second())
	for range 3 {
		second()
	}
	n := second()
	now = p.until // the step ends, and flow control goes on
	flowControl(2 * n)
	near("halved twice", second(), 100)
	for range 4 {
		second()
	}
	near("one step back", second(), 200)
}

func TestTripsKnowTheRecentP95(t *testing.T) {
	t.Parallel()
	var x trips
	for i := range 200 {
		d := 10 * time.Millisecond
		if i%10 == 0 {
			d = time.Second
		}
		x.add(d)
	}
	if x.p95 != time.Second {
		t.Errorf("P95 %s, one in ten takes a second", x.p95)
	}
	for range 2 * recent {
		x.add(5 * time.Millisecond)
	}
	if x.p95 != 5*time.Millisecond {
		t.Errorf("P95 %s after the slow ones are gone", x.p95)
	}
}

func TestSrcID(t *testing.T) {
	t.Parallel()
	s := &settings.Snapshot{Applications: map[int32]*settings.Application{1: {AccessNumber: "1069"}, 2: {}}}
	for _, c := range []struct {
		base, customer, want string
		app                  int32
		appendIt             bool
	}{
		{"10690000", "106955", "1069000055", 1, true},
		{"10690000", "1069", "10690000", 1, true},
		{"10690000", "55", "1069000055", 2, true},
		{"10690000", "106900001234", "106900001234", 1, true}, // under the channel's number
		{"10690000", "10690000A", "10690000", 2, true},
		{"10690000", "", "10690000", 2, true},
		{"10690000", "106955", "10690000", 1, false},
		{"10690000", "ABC", "10690000", 2, true},
		{"10690000", "77", "1069000077", 9, true}, // an application that is gone
		{"10690000", "1234567890123456789", "106900001234567890123", 2, true},
		{"123456789012345678901234", "", "123456789012345678901", 2, true},
	} {
		got := SrcID(s, &settings.Channel{AccessNumber: c.base, AppendExtension: c.appendIt}, c.app, []byte(c.customer))
		if got != c.want {
			t.Errorf("base %q, customer %q: %q, want %q", c.base, c.customer, got, c.want)
		}
	}
}

func BenchmarkEncode(b *testing.B) {
	s := &settings.Snapshot{Applications: map[int32]*settings.Application{1: {AccessNumber: "1069"}}}
	ch := &settings.Channel{AccessNumber: "10690000", AppendExtension: true, ServiceID: "SVC", FeeType: "01", FeeCode: "0"}
	acct := &settings.SupplierAccount{SPID: "901234"}
	c := &outbox.Command{AppID: 1, Phone: 13800000000, PkTotal: 1, PkNumber: 1, Fmt: 8, Src: []byte("106955"), Content: make([]byte, 140)}
	var p cmpp.Submit
	var dest [1]string
	buf := make([]byte, 0, 1024)
	b.ReportAllocs()
	for b.Loop() {
		fill(&p, dest[:], c, s, ch, acct)
		var err error
		if buf, err = p.Append(buf[:0], cmpp.V30, 1); err != nil {
			b.Fatal(err)
		}
	}
}
