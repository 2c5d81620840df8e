package hostile

import (
	"context"
	"encoding/binary"
	"io"
	"math/rand/v2"
	"net"
	"sync"
	"sync/atomic"
	"time"
)

// Kind is a way to be hostile.
type Kind int

// The kinds, in the order in which connections get them.
const (
	Garbage  Kind = iota // random octets without an end
	HTTP                 // a request of another protocol
	TLS                  // a ClientHello
	HugeSize             // a Total_Length of 2³¹
	ZeroSize             // a Total_Length of 0
	Half                 // half a CONNECT, then nothing
	Dribble              // a CONNECT octet by octet
	BadLogin             // a whole CONNECT that is wrong
	Silent               // nothing at all
	Deaf                 // SUBMITs without a login, and no answer is read
	kinds
)

// Attack is a number of hostile connections.
type Attack struct {
	Addr        string // host:port
	Connections int
	Seed        uint64
	// Pause between the end of a connection and the next one in its place; 0: 250 ms.
	Pause time.Duration
	// Hold is how long a connection that is not cut off is kept; 0: 2 s.
	Hold time.Duration

	open, opened, failed, cut atomic.Int64
}

// Counts are what became of an attack's connections.
type Counts struct {
	Open   int64 // now
	Opened int64 // in all
	Failed int64 // could not be opened
	Cut    int64 // ended by the server
}

// Counts returns the counts of this moment.
func (a *Attack) Counts() Counts {
	return Counts{Open: a.open.Load(), Opened: a.opened.Load(), Failed: a.failed.Load(), Cut: a.cut.Load()}
}

// Run keeps the connections coming until ctx is done.
func (a *Attack) Run(ctx context.Context) {
	var wg sync.WaitGroup
	for i := range a.Connections {
		wg.Go(func() { a.keep(ctx, Kind(i)%kinds, rand.New(rand.NewPCG(a.Seed, uint64(i)))) })
	}
	wg.Wait()
}

func (a *Attack) keep(ctx context.Context, kind Kind, rng *rand.Rand) {
	pause, hold := a.Pause, a.Hold
	if pause <= 0 {
		pause = 250 * time.Millisecond
	}
	if hold <= 0 {
		hold = 2 * time.Second
	}
	dialer := net.Dialer{Timeout: 2 * time.Second}
	for ctx.Err() == nil {
		sock, err := dialer.DialContext(ctx, "tcp", a.Addr)
		if err != nil {
			a.failed.Add(1)
		} else {
			a.opened.Add(1)
			a.open.Add(1)
			a.one(ctx, sock, kind, rng, hold)
			a.open.Add(-1)
		}
		rest(ctx, pause)
	}
}

func rest(ctx context.Context, d time.Duration) {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-ctx.Done():
	}
}

// one is a connection from its opening to its end.
func (a *Attack) one(ctx context.Context, sock net.Conn, kind Kind, rng *rand.Rand, hold time.Duration) {
	limited, cancel := context.WithTimeout(ctx, hold)
	defer cancel()
	stop := context.AfterFunc(limited, func() { _ = sock.Close() })
	defer stop()
	defer sock.Close()
	var wg sync.WaitGroup
	defer wg.Wait()
	if kind != Deaf {
		wg.Go(func() {
			_, _ = io.Copy(io.Discard, sock)
			if limited.Err() == nil {
				a.cut.Add(1)
			}
			cancel()
		})
	}
	for limited.Err() == nil {
		piece, pause := octets(kind, rng)
		if piece == nil {
			<-limited.Done()
			return
		}
		if kind == Dribble {
			for i := range piece {
				if _, err := sock.Write(piece[i : i+1]); err != nil {
					return
				}
				rest(limited, 50*time.Millisecond)
			}
			continue
		}
		if _, err := sock.Write(piece); err != nil {
			if kind == Deaf && limited.Err() == nil {
				a.cut.Add(1)
			}
			return
		}
		if pause > 0 {
			rest(limited, pause)
		}
	}
}

// octets are what a connection of the kind writes next, and how long it then
// waits; nil is nothing any more.
func octets(kind Kind, rng *rand.Rand) (b []byte, pause time.Duration) {
	const forever = time.Hour
	switch kind {
	case Garbage:
		b = make([]byte, 512)
		for i := range b {
			b[i] = byte(rng.Uint32())
		}
		return b, 10 * time.Millisecond
	case HTTP:
		return []byte("GET / HTTP/1.1\r\nHost: gateway\r\n\r\n"), forever
	case TLS:
		return append([]byte{0x16, 3, 1, 0, 200, 1, 0, 0, 196, 3, 3}, make([]byte, 194)...), forever
	case HugeSize:
		return header(1<<31, 1), forever
	case ZeroSize:
		return header(0, 1), forever
	case Half:
		return connect(rng)[:20], forever
	case Dribble, BadLogin:
		return connect(rng), forever
	case Deaf:
		return append(header(200, 4), make([]byte, 188)...), 5 * time.Millisecond
	case Silent, kinds:
	}
	return nil, 0
}

func header(length, command uint32) []byte {
	b := binary.BigEndian.AppendUint32(nil, length)
	b = binary.BigEndian.AppendUint32(b, command)
	return binary.BigEndian.AppendUint32(b, 1)
}

// connect is a CONNECT of an account that is not there.
func connect(rng *rand.Rand) []byte {
	b := append(header(39, 1), "999999"...)
	for range 16 {
		b = append(b, byte(rng.Uint32()))
	}
	b = append(b, 0x30)
	return binary.BigEndian.AppendUint32(b, 1201000000)
}
