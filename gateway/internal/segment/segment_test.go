package segment_test

import (
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"

	"cmppgateway/gateway/internal/segment"
	"cmppgateway/gateway/sms"
)

var (
	limits = segment.Limits{Expiry: 5 * time.Minute, Doubt: 5 * time.Second, Window: 3 * time.Minute}
	start  = time.Date(2026, 12, 1, 10, 0, 0, 0, time.UTC)
)

// world is what a database would keep of one key.
type world struct {
	total    uint8
	now      time.Time
	ids      int64
	waiting  map[int64]segment.Segment
	sent     []segment.Sent
	messages map[int64][]int64 // Hashes in order, by message
	repeated map[int64]int64   // message by segment
	expired  []int64
	texts    map[int64]int64 // Hash by segment
}

func newWorld(total uint8) *world {
	return &world{
		total: total, now: start, waiting: map[int64]segment.Segment{}, messages: map[int64][]int64{}, repeated: map[int64]int64{}, texts: map[int64]int64{},
	}
}

// came is a batch; each is number and hash.
func (w *world) came(batch ...[2]int64) segment.Outcome {
	list := make([]*segment.Segment, len(batch))
	for i, b := range batch {
		w.ids++
		list[i] = &segment.Segment{ID: w.ids, Session: w.ids % 3, Seq: 1000 - w.ids, Number: uint8(b[0]), Hash: b[1]}
		w.texts[w.ids] = b[1]
	}
	return w.join(list)
}

func (w *world) join(list []*segment.Segment) segment.Outcome {
	var waiting []*segment.Segment
	for _, g := range w.waiting {
		waiting = append(waiting, &g)
	}
	slices.SortFunc(waiting, func(a, b *segment.Segment) int { return int(a.ID - b.ID) })
	out := segment.Join(w.total, limits, w.now, waiting, list, w.sent)
	clear(w.waiting)
	made := map[int64]int64{}
	for _, s := range out.Complete {
		id := int64(1000 + len(w.messages))
		made[-s.ID] = id
		for _, g := range s.Ordered(w.total) {
			w.messages[id] = append(w.messages[id], g.Hash)
		}
		for _, g := range s.Segments {
			w.sent = append(w.sent, segment.Sent{Message: id, Number: g.Number, Hash: g.Hash})
		}
	}
	for _, s := range out.Waiting {
		for _, g := range s.Segments {
			if g.Repeats < 0 {
				g.Repeats = made[g.Repeats]
			}
			w.waiting[g.ID] = *g
		}
	}
	for _, g := range out.Repeated {
		w.repeated[g.ID] = g.Repeats
	}
	for _, g := range out.Expired {
		w.expired = append(w.expired, g.ID)
	}
	return out
}

// later looks at the sets again.
func (w *world) later(d time.Duration) segment.Outcome {
	w.now = w.now.Add(d)
	return w.join(nil)
}

func (w *world) want(t *testing.T, what string, messages, waiting, repeated, expired int) {
	t.Helper()
	if len(w.messages) != messages || len(w.waiting) != waiting || len(w.repeated) != repeated || len(w.expired) != expired {
		t.Errorf("%s: messages %v, waiting %v, repeated %v, expired %v; want %d, %d, %d, %d", what, w.messages, w.waiting, w.repeated, w.expired, messages, waiting, repeated, expired)
	}
}

func TestJoin(t *testing.T) {
	t.Parallel()
	w := newWorld(2)
	w.came([2]int64{2, 12})
	w.want(t, "one of two", 0, 1, 0, 0)
	w.came([2]int64{2, 12})
	w.want(t, "the same again", 0, 2, 0, 0)
	w.came([2]int64{1, 11})
	w.want(t, "complete", 1, 0, 0, 0)
	if got := w.messages[1000]; !slices.Equal(got, []int64{11, 12}) {
		t.Errorf("text %v", got)
	}

	// A late repetition alone ends with the message, not as a failure.
	w.came([2]int64{1, 11})
	w.want(t, "late repetition", 1, 1, 0, 0)
	w.later(limits.Expiry)
	w.want(t, "late repetition, later", 1, 0, 1, 0)
	if w.repeated[4] != 1000 {
		t.Errorf("repetition of %d", w.repeated[4])
	}

	// What never gets complete expires.
	w.came([2]int64{1, 21})
	w.later(limits.Expiry - time.Nanosecond)
	w.want(t, "not yet", 1, 1, 1, 0)
	w.later(time.Nanosecond)
	w.want(t, "expired", 1, 0, 1, 1)
}

func TestReferenceUsedAgain(t *testing.T) {
	t.Parallel()
	w := newWorld(2)
	w.came([2]int64{1, 11}, [2]int64{2, 12})
	// A late repetition does not mix with the next text, whatever order they come in.
	w.came([2]int64{2, 12}, [2]int64{1, 21})
	w.want(t, "doubtful", 1, 2, 0, 0)
	w.came([2]int64{2, 22})
	w.want(t, "the real one", 2, 0, 1, 0)
	if got := w.messages[1001]; !slices.Equal(got, []int64{21, 22}) {
		t.Errorf("text %v", got)
	}
	// A text that ends like one before it waits for nothing but Doubt.
	w.came([2]int64{1, 31}, [2]int64{2, 22})
	w.want(t, "same end", 2, 2, 1, 0)
	w.later(limits.Doubt - time.Nanosecond)
	w.want(t, "same end, too early", 2, 2, 1, 0)
	w.later(time.Nanosecond)
	w.want(t, "same end, sent", 3, 0, 1, 0)
	if got := w.messages[1002]; !slices.Equal(got, []int64{31, 22}) {
		t.Errorf("text %v", got)
	}
	// The whole text again is not sent again.
	w.came([2]int64{1, 31}, [2]int64{2, 22})
	w.want(t, "whole text again", 3, 0, 3, 0)
	// A text that replaces one that never got complete.
	w.came([2]int64{1, 41})
	w.came([2]int64{1, 51})
	w.came([2]int64{2, 52})
	w.want(t, "replaced", 4, 1, 3, 0)
	if got := w.messages[1003]; !slices.Equal(got, []int64{51, 52}) {
		t.Errorf("text %v", got)
	}
	w.later(limits.Expiry)
	w.want(t, "replaced, later", 4, 0, 3, 1)
}

func TestSequenceContinues(t *testing.T) {
	t.Parallel()
	seg := func(id, session, seq int64, number uint8, hash int64) *segment.Segment {
		return &segment.Segment{ID: id, Session: session, Seq: seq, Number: number, Hash: hash}
	}
	out := segment.Join(2, limits, start, nil, []*segment.Segment{seg(1, 7, 100, 1, 11), seg(2, 8, 500, 1, 21), seg(3, 7, 101, 2, 12), seg(4, 8, 501, 2, 22)}, nil)
	if len(out.Complete) != 2 || out.Complete[0].ID != 1 || out.Complete[0].Segments[1].ID != 3 || out.Complete[1].Segments[1].ID != 4 {
		t.Errorf("two texts with one reference at once: %+v", out)
	}
}

// Whatever the order, the repetitions, the connections and the batches: each text is joined once, of its own segments.
func TestEveryTextIsJoinedOnce(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		total := rapid.IntRange(2, 5).Draw(t, "total")
		texts := rapid.IntRange(1, 4).Draw(t, "texts")
		w := newWorld(uint8(total))
		var batch, before [][2]int64
		flush := func() {
			w.came(batch...)
			w.now = w.now.Add(time.Millisecond)
			batch = nil
		}
		count := 0
		for text := range texts {
			numbers := rapid.Permutation(seq(total)).Draw(t, "order")
			for _, n := range numbers {
				for range rapid.IntRange(0, 2).Draw(t, "repetitions") {
					if len(before) > 0 {
						batch = append(batch, before[rapid.IntRange(0, len(before)-1).Draw(t, "which")])
						count++
					}
				}
				s := [2]int64{int64(n), int64(100*text + n)}
				batch, before = append(batch, s), append(before, s)
				count++
				if rapid.Bool().Draw(t, "batch ends") {
					flush()
				}
			}
		}
		flush()
		w.later(limits.Expiry)
		if len(w.messages) != texts || len(w.expired) > 0 || len(w.waiting) > 0 {
			t.Fatalf("%d texts became %v, expired %v, waiting %v", texts, w.messages, w.expired, w.waiting)
		}
		for id, got := range w.messages {
			for i, h := range got {
				if h/100 != got[0]/100 || h%100 != int64(i+1) {
					t.Fatalf("message %d is a mixture: %v", id, got)
				}
			}
		}
		if n := len(w.sent) + len(w.repeated); n != count {
			t.Fatalf("%d segments, %d accounted for", count, n)
		}
	})
}

func seq(n int) []int {
	list := make([]int, n)
	for i := range list {
		list[i] = i + 1
	}
	return list
}

func TestKeys(t *testing.T) {
	t.Parallel()
	base := func() (int32, string, string, uint8, []byte) {
		return 11, "13800000001", "106912", 1, []byte{5, 0, 3, 7, 3, 2, 'x'}
	}
	app, dest, src, udhi, content := base()
	k, number, payload, ok := segment.KeyOf(app, dest, src, udhi, content)
	if !ok || number != 2 || string(payload) != "x" || k.Concat != (sms.Concat{Ref: 7, Total: 3}) {
		t.Fatalf("%+v, %d, %q, %t", k, number, payload, ok)
	}
	same, _, _, _ := segment.KeyOf(app, dest, src, 0x40, []byte{9, 0x70, 2, 1, 2, 0, 3, 7, 3, 1, 'y'})
	if same != k || same.Hash() != k.Hash() {
		t.Errorf("other elements make another key: %+v", same)
	}
	seen := map[int64]string{k.Hash(): "first"}
	for name, other := range map[string]segment.Key{
		"application": {12, k.Dest, k.Src, k.Concat}, "recipient": {11, "13800000002", k.Src, k.Concat}, "src": {11, k.Dest, "1069", k.Concat},
		"border": {11, k.Dest + "1", "06912", k.Concat}, "reference": {11, k.Dest, k.Src, sms.Concat{Ref: 8, Total: 3}},
		"width": {11, k.Dest, k.Src, sms.Concat{Ref: 7, Wide: true, Total: 3}}, "total": {11, k.Dest, k.Src, sms.Concat{Ref: 7, Total: 4}},
	} {
		if was, ok := seen[other.Hash()]; ok {
			t.Errorf("%s has the hash of %s", name, was)
		}
		seen[other.Hash()] = name
	}
	for name, c := range map[string][]byte{
		"one of one": {5, 0, 3, 7, 1, 1, 'x'}, "three of two": {5, 0, 3, 7, 2, 3}, "none": {5, 0, 3, 7, 2, 0}, "header that lies": {9, 0, 3, 7, 2, 1}, "other elements": {3, 0x70, 1, 1, 'x'},
	} {
		if _, _, _, ok := segment.KeyOf(app, dest, src, udhi, c); ok {
			t.Errorf("%s is taken for a segment", name)
		}
	}
	if segment.ContentHash(0, []byte("a")) == segment.ContentHash(8, []byte("a")) || segment.ContentHash(0, []byte("a")) == segment.ContentHash(0, []byte("b")) {
		t.Error("contents that differ have one hash")
	}
}
