package message

import (
	"context"
	"fmt"
	"sync"
	"time"
)

// Epoch is the zero of the millisecond part of every id.
var Epoch = time.Date(2024, 1, 1, 0, 0, 0, 0, time.UTC)

// An id is 41 bits of milliseconds since Epoch, 8 bits of node (1..255, leased in PostgreSQL) and 14 bits of sequence.
// Ids of one node are strictly ascending; ids of several nodes are ordered by time to the millisecond. That lets one
// column be primary key, queue order and partition key.
const (
	nodeBits = 8
	seqBits  = 14
	maxSeq   = 1<<seqBits - 1

	// MaxNode is the highest node number that can be leased.
	MaxNode = 1<<nodeBits - 1
)

// FirstID is the lowest id any node can issue at t: the lower bound of a partition or of a time range.
func FirstID(t time.Time) int64 {
	return t.Sub(Epoch).Milliseconds() << (nodeBits + seqBits)
}

// TimeOf is the millisecond in which id was issued.
func TimeOf(id int64) time.Time {
	return Epoch.Add(time.Duration(id>>(nodeBits+seqBits)) * time.Millisecond)
}

// NodeOf is the node that issued id.
func NodeOf(id int64) int16 { return int16(id >> seqBits & MaxNode) }

// IDs issues ids for one node. It never issues an id earlier than its last one, nor one whose time is not strictly
// between the bounds given by the node's lease: after a kill and a restart in the same millisecond, or a clock that
// stepped back, an id can therefore not come twice (data §1.13). Safe for concurrent use.
type IDs struct {
	node int64
	now  func() time.Time

	mu    sync.Mutex
	ms    int64 // last millisecond used
	seq   int64 // next sequence in ms
	until int64 // first millisecond that may not be used; raised by Extend
	grown chan struct{}
}

// NewIDs issues ids for node, all later than after and earlier than until.
func NewIDs(node int16, after, until time.Time, now func() time.Time) *IDs {
	return &IDs{
		node: int64(node), now: now, ms: after.Sub(Epoch).Milliseconds(), seq: maxSeq + 1,
		until: until.Sub(Epoch).Milliseconds(), grown: make(chan struct{}),
	}
}

// Extend raises the bound; the caller has written it to the node's lease first.
func (g *IDs) Extend(until time.Time) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if ms := until.Sub(Epoch).Milliseconds(); ms > g.until {
		g.until = ms
		close(g.grown)
		g.grown = make(chan struct{})
	}
}

// Next is one id; it waits while the lease does not allow one (a process cut off from PostgreSQL issues none).
func (g *IDs) Next(ctx context.Context) (int64, error) {
	ids, err := g.Take(ctx, 1)
	if err != nil {
		return 0, err
	}
	return ids[0], nil
}

// Take is n ascending ids, n in 1..16384.
func (g *IDs) Take(ctx context.Context, n int) ([]int64, error) {
	if n < 1 || n > maxSeq+1 {
		return nil, fmt.Errorf("ids: %d asked for, 1..%d allowed", n, maxSeq+1)
	}
	out := make([]int64, 0, n)
	for {
		g.mu.Lock()
		ms := max(g.ms, g.now().Sub(Epoch).Milliseconds())
		for len(out) < n {
			if ms > g.ms {
				g.ms, g.seq = ms, 0
			}
			if g.seq > maxSeq {
				ms = g.ms + 1 // a spent millisecond borrows from the next one; until bounds how far
				continue
			}
			if g.ms >= g.until {
				break
			}
			out = append(out, g.ms<<(nodeBits+seqBits)|g.node<<seqBits|g.seq)
			g.seq++
		}
		grown := g.grown
		g.mu.Unlock()
		if len(out) == n {
			return out, nil
		}
		select {
		case <-grown:
		case <-ctx.Done():
			return nil, fmt.Errorf("ids: waiting for the node lease: %w", ctx.Err())
		}
	}
}
