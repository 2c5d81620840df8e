package sp_test

import (
	"bytes"
	"slices"
	"testing"
	"time"

	"cmppgateway/simulator/ismg"
	"cmppgateway/simulator/sp"
)

func TestSplit(t *testing.T) {
	t.Parallel()
	text := bytes.Repeat([]byte("ab"), 150) // 300 octets
	for _, c := range []struct {
		ref   sp.Reference
		parts int
		head  []byte
	}{
		{sp.Reference{Value: 0x1234}, 3, []byte{5, 0, 3, 0x34, 3, 2}},
		{sp.Reference{Value: 0x1234, Wide: true}, 3, []byte{6, 8, 4, 0x12, 0x34, 3, 2}},
		{sp.Reference{Value: 7, Extra: true}, 3, []byte{9, 0x24, 2, 0, 0, 0, 3, 7, 3, 2}},
	} {
		list, err := sp.Split(text, 2, c.ref)
		if err != nil || len(list) != c.parts {
			t.Fatalf("%+v: %d segments, %v", c.ref, len(list), err)
		}
		var joined []byte
		for _, b := range list {
			if len(b) > 140 || (len(b)-len(c.head))%2 != 0 {
				t.Errorf("%+v: a segment of %d octets", c.ref, len(b))
			}
			joined = append(joined, b[len(c.head):]...)
		}
		if !bytes.Equal(joined, text) || !bytes.HasPrefix(list[1], c.head) {
			t.Errorf("%+v: second segment starts with %x", c.ref, list[1][:10])
		}
	}
	if _, err := sp.Split(make([]byte, 256*140), 1, sp.Reference{}); err == nil {
		t.Error("256 segments were made")
	}
}

func TestBursts(t *testing.T) {
	t.Parallel()
	due := sp.Bursts(5, 2, 3*time.Second)
	want := []int64{0, 0, int64(time.Second), int64(time.Second), 2 * int64(time.Second)}
	if !slices.Equal(due, want) {
		t.Errorf("due %v, want %v", due, want)
	}
}

// The record says what a message was: segments are known by their header, and text
// is told apart from it.
func TestRecordOfSegments(t *testing.T) {
	t.Parallel()
	p := start(t, profile(), ismg.Options{}, sp.Config{Connections: 2})
	ctx := limit(t)
	p.ready(ctx, t, 2)
	text := bytes.Repeat([]byte("x"), 200)
	parts, err := sp.Split(text, 1, sp.Reference{Value: 9})
	if err != nil {
		t.Fatal(err)
	}
	var list []sp.Message
	for i, b := range parts {
		list = append(list, sp.Message{
			Key: firstKey, Number: "13800000000", Content: b, UDHI: 1, PkTotal: 2, PkNumber: uint8(i + 1), Registered: 1, SrcID: "1069", Tag: 5, Conn: i + 1,
		})
	}
	p.send(ctx, t, list)
	p.receipts(ctx, t, 2)
	sent := p.customer.Record().Sent
	for i, s := range sent {
		if s.Tag != 5 || s.Concat != (sp.Concat{Ref: 9, Total: 2, Number: uint8(i + 1)}) || s.Registered != 1 {
			t.Errorf("segment %d on record as %+v", i, s)
		}
		if s.Hash != ismg.ContentHash(parts[i][6:]) {
			t.Errorf("segment %d: the hash is not that of its text", i)
		}
	}
	if sent[0].Conn == sent[1].Conn {
		t.Error("both segments went over one connection")
	}
}

// A customer that reads nothing gets nothing, and all of it once it reads again;
// one that is cut off everywhere comes back.
func TestSlowReaderAndReconnects(t *testing.T) {
	t.Parallel()
	p := start(t, profile(), ismg.Options{}, sp.Config{Window: 32, MinBackoff: time.Millisecond})
	ctx := limit(t)
	p.ready(ctx, t, 1)
	p.customer.SetSlow(-1)
	all := messages(20, 0)
	p.send(ctx, t, all[:1]) // ends the read that was under way
	if err := p.customer.Send(ctx, all[1:], p.clock.Now()); err != nil {
		t.Fatal(err)
	}
	eventually(ctx, t, "the supplier has answered all", func() bool {
		n := 0
		for _, s := range p.supplier.Record().Submits {
			if s.Sent != 0 {
				n++
			}
		}
		return n == 20
	})
	if n := p.customer.Counts(); n.Answered != 1 {
		t.Errorf("%+v while nothing is read", n)
	}
	p.customer.SetSlow(5000)
	if err := p.customer.Drain(ctx); err != nil {
		t.Fatal(err)
	}
	p.customer.SetSlow(0)
	p.receipts(ctx, t, 20)
	if n := p.customer.CutAll(true); n != 1 {
		t.Errorf("%d connections were cut", n)
	}
	p.ready(ctx, t, 1)
	conns := p.customer.Record().Conns
	if len(conns) != 2 {
		t.Errorf("%d connections on record, want 2", len(conns))
	}
}
