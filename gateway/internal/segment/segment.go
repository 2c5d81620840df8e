package segment

import (
	"crypto/sha256"
	"encoding/binary"
	"slices"
	"time"

	"cmppgateway/gateway/sms"
)

// Key is what the segments of one message have in common.
type Key struct {
	App    int32
	Dest   string // recipients as the customer wrote them, joined by commas
	Src    string // Src_Id as the customer wrote it
	Concat sms.Concat
}

// KeyOf is the key of a SUBMIT's content; ok is false for what is no segment of several.
func KeyOf(app int32, dest, src string, tpudhi uint8, content []byte) (k Key, number uint8, payload []byte, ok bool) {
	if !sms.HasHeader(tpudhi) {
		return k, 0, nil, false
	}
	c, concat, _, payload, err := sms.SplitHeader(content)
	if err != nil || !concat || c.Total < 2 {
		return k, 0, nil, false
	}
	number, c.Number = c.Number, 0
	return Key{App: app, Dest: dest, Src: src, Concat: c}, number, payload, true
}

// Hash is the key for an index: the same in all processes. Who finds a row by it compares the key.
func (k *Key) Hash() int64 {
	var b []byte
	b = binary.BigEndian.AppendUint32(b, uint32(k.App))
	b = binary.BigEndian.AppendUint32(b, uint32(len(k.Dest)))
	b = append(append(b, k.Dest...), k.Src...)
	b = k.Concat.Append(b)
	sum := sha256.Sum256(b)
	return int64(binary.BigEndian.Uint64(sum[:]))
}

// ContentHash is a segment's content, for comparisons: format and octets.
func ContentHash(f sms.Fmt, content []byte) int64 {
	h := sha256.New()
	_, _ = h.Write([]byte{byte(f)}) // documented to never fail, as the next
	_, _ = h.Write(content)
	return int64(binary.BigEndian.Uint64(h.Sum(nil)))
}

// Limits are the times of this package, all above 0.
type Limits struct {
	Expiry time.Duration // of a set that is not complete, from its first segment
	Doubt  time.Duration // a complete set with doubtful segments waits, from its last one
	Window time.Duration // after a message was sent, its segments may come again: N·T of the customers
}

// Segment is one SUBMIT that is a part of a long message. ID orders segments by acceptance.
type Segment struct {
	ID      int64
	Set     int64 // the set it waits in, 0 = it has just come
	Session int64
	Seq     int64
	Number  uint8     // 1..total
	Hash    int64     // ContentHash
	Repeats int64     // the message that had the same segment, or -ID of a set that Join completed; 0 = it is not doubtful
	Since   time.Time // when it began to wait
	Due     time.Time // when its set is looked at again
}

// Sent is a segment of a message that was made of the same key within Window.
type Sent struct {
	Message int64
	Number  uint8
	Hash    int64
}

// Set is a message in the making.
type Set struct {
	ID       int64
	Segments []*Segment // in order of arrival; a place may be taken several times by the same content
}

// at is the first segment in a place.
func (s *Set) at(number uint8) *Segment {
	for _, g := range s.Segments {
		if g.Number == number {
			return g
		}
	}
	return nil
}

// Ordered is the segments of a complete set by place, one for each.
func (s *Set) Ordered(total uint8) []*Segment {
	list := make([]*Segment, total)
	for i := range list {
		list[i] = s.at(uint8(i + 1))
	}
	return list
}

func (s *Set) complete(total uint8) bool {
	places := map[uint8]bool{}
	for _, g := range s.Segments {
		places[g.Number] = true
	}
	return len(places) == int(total)
}

// continues says that g's Sequence_Id continues those of the set.
func (s *Set) continues(g *Segment) bool {
	for _, o := range s.Segments {
		if o.Session == g.Session && g.Seq-o.Seq == int64(g.Number)-int64(o.Number) {
			return true
		}
	}
	return false
}

func (s *Set) last() *Segment {
	last := s.Segments[0]
	for _, g := range s.Segments {
		if g.ID > last.ID {
			last = g
		}
	}
	return last
}

// doubt says how many segments are doubtful, and the message that all of them repeat, 0 if it is not one.
func (s *Set) doubt() (n int, message int64) {
	message = s.Segments[0].Repeats
	for _, g := range s.Segments {
		if g.Repeats != 0 {
			n++
		}
		if g.Repeats != message {
			message = 0
		}
	}
	return n, message
}

// Outcome is what became of the segments of one key.
type Outcome struct {
	Complete []*Set     // to be sent; repetitions of their segments are in them
	Waiting  []*Set     // their segments have Set, Repeats and Due as they are to be stored
	Expired  []*Segment // never completed; each ends by itself
	Repeated []*Segment // repetitions of the earlier message in Repeats
}

// Join decides about the segments of one key: those that wait, and those that came, in order of acceptance. sent are the
// segments of earlier messages, newest message last. The segments are changed.
func Join(total uint8, l Limits, now time.Time, waiting, came []*Segment, sent []Sent) Outcome {
	j := joiner{total: total, sent: slices.Clone(sent)}
	for _, g := range waiting {
		j.put(g)
	}
	for _, g := range came {
		g.Since, g.Due = now, now.Add(l.Expiry)
		for _, s := range j.sent {
			if s.Number == g.Number && s.Hash == g.Hash {
				g.Repeats = s.Message
			}
		}
		j.add(g)
	}
	for _, s := range j.sets {
		j.settle(s, l, now)
	}
	return j.out
}

type joiner struct {
	total uint8
	sets  []*Set
	sent  []Sent
	out   Outcome
}

// finish is a set that is to be sent.
func (j *joiner) finish(s *Set) {
	j.out.Complete = append(j.out.Complete, s)
	for _, g := range s.Segments {
		j.sent = append(j.sent, Sent{Message: -s.ID, Number: g.Number, Hash: g.Hash})
	}
}

// repeat is a repetition: of a set that was completed just now, or of an earlier message.
func (j *joiner) repeat(g *Segment) {
	for _, s := range j.out.Complete {
		if s.ID == -g.Repeats {
			s.join(g)
			return
		}
	}
	j.out.Repeated = append(j.out.Repeated, g)
}

// put restores a waiting segment.
func (j *joiner) put(g *Segment) {
	for _, s := range j.sets {
		if s.ID == g.Set {
			s.Segments = append(s.Segments, g)
			return
		}
	}
	j.sets = append(j.sets, &Set{ID: g.Set, Segments: []*Segment{g}})
}

func (j *joiner) add(g *Segment) {
	var room, same, doubtful *Set
	for _, s := range j.sets {
		switch o := s.at(g.Number); {
		case o == nil:
			if room == nil || better(s, room, g) {
				room = s
			}
		case o.Hash == g.Hash:
			same = s
			if o.Session == g.Session && o.Seq == g.Seq { // the same SUBMIT once more
				s.join(g)
				return
			}
		case o.Repeats != 0 && g.Repeats == 0:
			doubtful = s
		}
	}
	switch {
	case same != nil: // before room: two texts must not mix
		same.join(g)
	case room != nil:
		room.join(g)
		j.turnOver(room)
	case doubtful != nil:
		j.pushOut(doubtful, g.Number)
		doubtful.join(g)
		j.turnOver(doubtful)
	case g.Repeats != 0 && len(j.sets) > 0: // its place is taken by another text
		j.repeat(g)
	default:
		s := &Set{ID: g.ID}
		s.join(g)
		j.sets = append(j.sets, s)
	}
}

// turnOver takes a set that needs nothing more out of the way of what comes behind it.
func (j *joiner) turnOver(s *Set) {
	if !s.complete(j.total) {
		return
	}
	switch n, message := s.doubt(); {
	case n == 0:
		j.finish(s)
	case message != 0:
		for _, g := range s.Segments {
			j.repeat(g)
		}
	default:
		return
	}
	for i, o := range j.sets {
		if o == s {
			j.sets = append(j.sets[:i], j.sets[i+1:]...)
			return
		}
	}
}

func (s *Set) join(g *Segment) {
	g.Set = s.ID
	s.Segments = append(s.Segments, g)
}

// better says that g rather belongs to s than to o.
func better(s, o *Set, g *Segment) bool {
	if a, b := s.continues(g), o.continues(g); a != b {
		return a
	}
	return s.last().ID > o.last().ID
}

// pushOut takes the doubtful segments of a place out of a set: they were repetitions.
func (j *joiner) pushOut(s *Set, number uint8) {
	kept := s.Segments[:0]
	for _, g := range s.Segments {
		if g.Number == number {
			j.repeat(g)
			continue
		}
		kept = append(kept, g)
	}
	s.Segments = kept
}

// settle decides about a set that is not sent yet.
func (j *joiner) settle(s *Set, l Limits, now time.Time) {
	first, last := s.Segments[0].Since, s.Segments[0].Since
	for _, g := range s.Segments {
		if g.Since.Before(first) {
			first = g.Since
		}
		if g.Since.After(last) {
			last = g.Since
		}
	}
	n, _ := s.doubt()
	whole := s.complete(j.total)
	due := first.Add(l.Expiry)
	if whole && n < len(s.Segments) && last.Add(l.Doubt).Before(due) {
		due = last.Add(l.Doubt)
	}
	switch {
	case now.Before(due):
		for _, g := range s.Segments {
			g.Due = due
		}
		j.out.Waiting = append(j.out.Waiting, s)
	case whole && n < len(s.Segments): // nothing came to push the doubtful ones out
		j.out.Complete = append(j.out.Complete, s)
	default:
		for _, g := range s.Segments {
			if g.Repeats != 0 {
				j.repeat(g)
			} else {
				j.out.Expired = append(j.out.Expired, g)
			}
		}
	}
}
