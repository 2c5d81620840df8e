package workflow

import (
	"encoding/json"
	"fmt"
	"slices"
	"time"

	"cmppgateway/gateway/internal/message"
	"cmppgateway/gateway/internal/segment"
	"cmppgateway/gateway/internal/settings"
	"cmppgateway/gateway/sms"
)

// joined says which SUBMITs of the customer a message was made of (column segments of inbox and scheduled).
type joined struct {
	Key    int64   `json:"key"` // segment.Key.Hash
	Total  int16   `json:"total"`
	Pieces []piece `json:"pieces"` // repeated segments too

	set int64 // segment.Set.ID; of a message joined in this transaction
}

// piece is one SUBMIT of a joined message: it has a Msg_Id and gets receipts of its own.
type piece struct {
	MsgID      int64     `json:"msg_id"`
	Session    int64     `json:"session"`
	At         time.Time `json:"at"`
	Hash       int64     `json:"hash"` // segment.ContentHash
	Number     int16     `json:"number"`
	Registered int16     `json:"registered"`
	Node       int16     `json:"node"`
}

func readJoined(raw []byte) (*joined, error) {
	if raw == nil {
		return nil, nil
	}
	j := new(joined)
	if err := json.Unmarshal(raw, j); err != nil {
		return nil, fmt.Errorf("segments of a row: %w", err)
	}
	return j, nil
}

func (j *joined) raw() (*string, error) {
	if j == nil {
		return nil, nil
	}
	b, err := json.Marshal(j)
	if err != nil {
		return nil, fmt.Errorf("segments of a row: %w", err)
	}
	text := string(b)
	return &text, nil
}

func pieceOf(r *row, number uint8) piece {
	return piece{
		MsgID: r.msgID, Session: r.session, At: r.acceptedAt, Hash: segment.ContentHash(sms.Fmt(r.fmt), r.content), Number: int16(number),
		Registered: r.registered, Node: r.node,
	}
}

// pieces are the SUBMITs of a row.
func (r *row) pieces() []piece {
	if r.joined != nil {
		return r.joined.Pieces
	}
	return []piece{{MsgID: r.msgID, Session: r.session, At: r.acceptedAt, Registered: r.registered, Node: r.node}}
}

// join makes one row of a complete set. What all segments should say alike is taken from the first; of their times, the
// earliest end and the latest At_Time count.
func join(key *segment.Key, set *segment.Set, rows map[int64]*row) *row {
	ordered := set.Ordered(key.Concat.Total)
	r := *rows[ordered[0].ID]
	parts := make([]sms.Part, len(ordered))
	var header []byte
	for i, g := range ordered {
		o := rows[g.ID]
		_, _, h, payload, _ := sms.SplitHeader(o.content) // it was a segment before
		parts[i] = sms.Part{Fmt: sms.Fmt(o.fmt), Payload: payload}
		if i == 0 {
			header = h
		}
	}
	f, udhi, content := sms.JoinContents(parts, header)
	r.fmt, r.udhi, r.content = int16(f), 0, content
	if udhi {
		r.udhi = 1
	}
	r.pkTotal, r.pkNumber = int16(key.Concat.Total), 1
	r.joined = &joined{Key: key.Hash(), Total: int16(key.Concat.Total), set: set.ID}
	for _, g := range set.Segments {
		o := rows[g.ID]
		r.id = max(r.id, g.ID) // it is as late as its last segment
		r.registered = max(r.registered, o.registered&1)
		if o.validUntil != nil && (r.validUntil == nil || o.validUntil.Before(*r.validUntil)) {
			r.validUntil = o.validUntil
		}
		if o.atTime != nil && (r.atTime == nil || o.atTime.After(*r.atTime)) {
			r.atTime = o.atTime
		}
		r.joined.Pieces = append(r.joined.Pieces, pieceOf(o, g.Number))
	}
	slices.SortStableFunc(r.joined.Pieces, func(a, b piece) int { return int(a.Number) - int(b.Number) })
	return &r
}

// cut finds the parts in which a joined message goes out through the channel of v. One that cannot be cut is refused.
func (v *verdict) cut(snap *settings.Snapshot, r *row) {
	l := sms.Long{Fmt: sms.Fmt(r.fmt), Header: r.udhi != 0, Content: r.content}
	var err error
	if v.parts, v.udhi, err = snap.Channels[v.channel].Cut(&l, r.msgID); err != nil {
		v.Reason, v.channel = message.ReasonFormat, 0
		return
	}
	v.outFmt, v.ref = int16(l.OutFmt), int32(l.Ref)
}

// partsMost is the most parts a row's message can have upstream.
func partsMost(r *row) int {
	switch {
	case r.joined == nil:
		return 1
	case r.udhi != 0:
		return 255
	}
	return min(255, len(r.content)/60+8) // ASCII that is sent as UCS2: 66 characters a part
}
