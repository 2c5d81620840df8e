package ismg

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"sync"
	"sync/atomic"
	"time"

	"cmppgateway/simulator/simclock"
)

const (
	wrongSeqShift = 0x40000000
	// maxRecords bounds the memory of the record by default; see Options.
	maxRecords = 20_000_000
)

// Options are the parts of a Server that do not belong in a profile.
type Options struct {
	// Log receives connection events; nil logs nothing. Recipients and texts
	// are never logged.
	Log *slog.Logger
	// Place maps a recipient to its deck and card; nil means PlaceBy(0, block).
	Place func(key uint64) Place
	// KeepContent keeps the content of every SUBMIT in its record.
	KeepContent bool
	// MaxRecords bounds the SUBMITs on record (0: 20 million). Beyond it every
	// SUBMIT is answered with result 8 and only counted, see Server.Shed.
	MaxRecords int
}

// Server is a set of supplier accounts behind one or more listeners. Make it
// with New. All methods may be called concurrently.
type Server struct {
	clock    *simclock.Clock
	log      *slog.Logger
	opts     Options
	seed     uint64
	timers   Timers
	accounts []*account
	byID     map[string]*account
	connID   atomic.Uint64
	records  atomic.Int64
	shed     atomic.Int64

	mu         sync.Mutex
	attempts   map[attemptKey]int
	logins     []Login
	violations []Violation

	controlMu  sync.Mutex
	controls   []*control
	controlled atomic.Bool
	rules      []*rule // guarded by controlMu
	ruled      atomic.Bool
}

type attemptKey struct {
	key  uint64
	part uint8
}

// New returns a server of the profile's accounts, or a FaultsError.
func New(p Profile, clock *simclock.Clock, o Options) (*Server, error) {
	if f := p.Validate(); len(f) > 0 {
		return nil, f
	}
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	if o.MaxRecords <= 0 {
		o.MaxRecords = maxRecords
	}
	s := &Server{
		clock: clock, log: o.Log, opts: o, seed: p.Seed, timers: p.Timers.withDefaults(),
		byID: map[string]*account{}, attempts: map[attemptKey]int{},
	}
	common := s.dealer(&p.Behaviour)
	for _, spec := range p.Accounts {
		if spec.MaxConnections == 0 {
			spec.MaxConnections = 64
		}
		if spec.Window == 0 {
			spec.Window = 32
		}
		a := &account{
			srv: s, spec: spec,
			ids: idSource{clock: clock, gateway: uint64(spec.GatewayCode)},
		}
		a.setRate(spec.RateLimit)
		a.deal.Store(common)
		if spec.Behaviour != nil {
			a.deal.Store(s.dealer(spec.Behaviour))
		}
		s.accounts = append(s.accounts, a)
		s.byID[spec.ID] = a
	}
	return s, nil
}

func (s *Server) dealer(b *Behaviour) *dealer {
	d := &dealer{behaviour: *b, deck: NewDeck(s.seed, b.Deck, s.opts.Place)}
	if d.behaviour.LateBy == 0 {
		d.behaviour.LateBy = 90 * time.Second
	}
	return d
}

func (s *Server) account(id string) (*account, error) {
	a, ok := s.byID[id]
	if !ok {
		return nil, fmt.Errorf("account %q: %w", id, ErrUnknown)
	}
	return a, nil
}

// Shed returns how many SUBMITs came after the record was full.
func (s *Server) Shed() int64 { return s.shed.Load() }

// Deck returns the deck an account is dealt from now.
func (s *Server) Deck(account string) (*Deck, error) {
	a, err := s.account(account)
	if err != nil {
		return nil, err
	}
	return a.deal.Load().deck, nil
}

// Serve takes connections from ln until ctx is done or ln fails. It closes ln,
// says TERMINATE on every connection, waits Timers.Drain for the answers,
// closes the rest and returns when all its goroutines have ended; nil when ctx
// ended it. Several listeners may be served at once; the record outlives it.
func (s *Server) Serve(ctx context.Context, ln net.Listener) error {
	var wg sync.WaitGroup
	defer wg.Wait()
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	stop := context.AfterFunc(ctx, func() { _ = ln.Close() })
	defer stop()
	for {
		sock, err := ln.Accept()
		switch {
		case err == nil:
			wg.Go(func() { s.serve(ctx, sock) })
		case ctx.Err() != nil:
			return nil
		case errors.Is(err, net.ErrClosed):
			return fmt.Errorf("serve suppliers: %w", err)
		default: // such as too many open files: the next one may do
			s.log.LogAttrs(ctx, slog.LevelWarn, "accept failed", slog.Any("error", err))
			select {
			case <-ctx.Done():
			case <-time.After(50 * time.Millisecond):
			}
		}
	}
}

func (s *Server) violate(v Violation) {
	s.mu.Lock()
	s.violations = append(s.violations, v)
	s.mu.Unlock()
}

// attempt counts a SUBMIT of the message part and returns how many came before.
func (s *Server) attempt(key uint64, part uint8) int {
	k := attemptKey{key, part}
	s.mu.Lock()
	n := s.attempts[k]
	s.attempts[k] = n + 1
	s.mu.Unlock()
	return n
}
