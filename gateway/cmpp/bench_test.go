package cmpp_test

import (
	"bytes"
	"runtime"
	"testing"

	"cmppgateway/gateway/cmpp"
)

// longSubmit is the common heavy case: one recipient, 140 octets.
func longSubmit() *cmpp.Submit {
	p := goldenSubmit()
	p.MsgContent = bytes.Repeat([]byte{0x4F, 0x60}, 70)
	return p
}

// TestAllocations holds the budget of architecture §8: at most one allocation to decode a SUBMIT, none to encode it.
func TestAllocations(t *testing.T) { //nolint:paralleltest // AllocsPerRun forbids parallel tests
	for _, v := range bothVersions {
		frame, err := longSubmit().Append(nil, v, 1)
		if err != nil {
			t.Fatal(err)
		}
		var p cmpp.Submit
		if n := testing.AllocsPerRun(100, func() { err = p.Decode(frame[cmpp.HeaderLen:], v) }); n > 1 || err != nil {
			t.Errorf("%v: decoding a SUBMIT allocates %v times, %v", v, n, err)
		}
		buf := make([]byte, 0, cmpp.MaxFrame)
		if n := testing.AllocsPerRun(100, func() { _, err = p.Append(buf[:0], v, 1) }); n != 0 || err != nil {
			t.Errorf("%v: encoding a SUBMIT allocates %v times, %v", v, n, err)
		}
		var d cmpp.Deliver
		frame, err = goldenDeliver(v).Append(nil, v, 1)
		if err != nil {
			t.Fatal(err)
		}
		if n := testing.AllocsPerRun(100, func() { err = d.Decode(frame[cmpp.HeaderLen:], v) }); n > 1 || err != nil {
			t.Errorf("%v: decoding a DELIVER allocates %v times, %v", v, n, err)
		}
		if n := testing.AllocsPerRun(100, func() { _, err = cmpp.ParseReport(d.MsgContent) }); n > 1 || err != nil {
			t.Errorf("%v: a report allocates %v times, %v", v, n, err)
		}
	}
}

// TestReaderAllocations: a bad length costs only the error, a good frame nothing.
func TestReaderAllocations(t *testing.T) { //nolint:paralleltest // AllocsPerRun forbids parallel tests
	const runs = 100
	r := cmpp.NewReader(bytes.NewReader(bytes.Repeat(goldens[5].frame(), runs+1)), 0)
	var err error
	if n := testing.AllocsPerRun(runs, func() { _, _, err = r.Next() }); n != 0 || err != nil {
		t.Errorf("a frame allocates %v times, %v", n, err)
	}
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	r = cmpp.NewReader(bytes.NewReader([]byte{0x3F, 0xFF, 0xFF, 0xFF}), 1<<29)
	_, _, err = r.Next()
	runtime.ReadMemStats(&after)
	if n := after.TotalAlloc - before.TotalAlloc; n > 1<<20 || err == nil {
		t.Errorf("refusing a frame of 1 GiB allocates %d octets, %v", n, err)
	}
}

func BenchmarkSubmitDecode(b *testing.B) {
	for _, v := range bothVersions {
		b.Run(v.String(), func(b *testing.B) {
			frame, err := longSubmit().Append(nil, v, 1)
			if err != nil {
				b.Fatal(err)
			}
			b.ReportAllocs()
			var p cmpp.Submit
			for b.Loop() {
				if err := p.Decode(frame[cmpp.HeaderLen:], v); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

func BenchmarkSubmitEncode(b *testing.B) {
	for _, v := range bothVersions {
		b.Run(v.String(), func(b *testing.B) {
			p, buf := longSubmit(), make([]byte, 0, cmpp.MaxFrame)
			b.ReportAllocs()
			for b.Loop() {
				if _, err := p.Append(buf[:0], v, 1); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
