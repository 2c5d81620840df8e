package session

import (
	"context"
	"log/slog"
	"net"
	"time"

	"cmppgateway/gateway/cmpp"
)

// Limits that are not configured.
const (
	terminateWait = 5 * time.Second // longest wait for TERMINATE_RESP on a graceful stop
	lingerWait    = time.Second     // longest wait for the peer to read our last answer and close
	maxControls   = 1024            // ACTIVE_TEST answers queued for the writer
	maxLate       = 1 << 16         // timed-out calls remembered for a late answer
	keepBuffer    = 1 << 16         // octets; a larger out buffer is given back after its write
)

// Config holds the limits of one connection. A zero field takes its default.
type Config struct {
	// Window is the most calls of ours outstanding at once; default 16 (CMPP 3.0 §6.3, W).
	Window int
	// ResponseTimeout is how long an answer may take, counted from the write; default 60 s (T).
	// It also bounds the handshake.
	ResponseTimeout time.Duration
	// IdleInterval is how long the peer may be silent before ACTIVE_TEST is sent; default 180 s (C).
	IdleInterval time.Duration
	// Tries is how many ACTIVE_TEST go unanswered before the link is closed; default 3 (N).
	Tries int
	// WriteTimeout is how long the kernel may take to accept one write; default 10 s.
	WriteTimeout time.Duration
	// FrameTimeout is how long the rest of a frame may take after its first octet; default 10 s.
	FrameTimeout time.Duration
	// MaxFrame is the longest frame accepted, in octets; default cmpp.MaxFrame.
	MaxFrame int
	// OutQueue is the most replies queued for the writer; default 1024.
	OutQueue int
	// Log receives what no caller can learn otherwise; default: nothing is logged.
	Log *slog.Logger
}

func (c Config) withDefaults() Config {
	setDefault(&c.Window, 16)
	setDefault(&c.ResponseTimeout, 60*time.Second)
	setDefault(&c.IdleInterval, 180*time.Second)
	setDefault(&c.Tries, 3)
	setDefault(&c.WriteTimeout, 10*time.Second)
	setDefault(&c.FrameTimeout, 10*time.Second)
	setDefault(&c.MaxFrame, cmpp.MaxFrame)
	setDefault(&c.OutQueue, 1024)
	if c.Log == nil {
		c.Log = slog.New(slog.DiscardHandler)
	}
	return c
}

func setDefault[T int | time.Duration](field *T, value T) {
	if *field <= 0 {
		*field = value
	}
}

// Credentials is what a client presents to Login.
type Credentials struct {
	SourceAddr string           // SP id, at most six octets
	Secret     []byte           // shared secret, never padded
	Version    cmpp.Version     // version asked for
	Now        func() time.Time // clock for the Timestamp field; nil means time.Now
}

// Welcome is the server's decision on a CONNECT.
type Welcome struct {
	Status  uint32       // 0 lets the peer in; anything else is answered and the link closed
	Secret  []byte       // signs the answer; needed only with Status 0
	Version cmpp.Version // layout to use and to answer; 0 takes it from the CONNECT (major ≥ 3: 3.0, else 2.0)
	Highest cmpp.Version // with a refusal: the version to name in the answer, whose layout stays as above; 0 names that of the layout
	Attach  any          // returned by Session.Attach
	Window  int          // overrides Config.Window when positive
}

// AuthFunc decides on a CONNECT. An error is answered with status 5.
type AuthFunc = func(ctx context.Context, c *cmpp.Connect, remote net.Addr) (Welcome, error)

// Handler receives what the peer starts. Its methods run on the reader goroutine:
// they must not block. They may call any method of the session but Run.
type Handler interface {
	// OnRequest takes SUBMIT, QUERY and CANCEL on the server side and DELIVER on
	// the client side. p is fresh for each call and belongs to the handler.
	OnRequest(s *Session, hd cmpp.Header, p cmpp.PDU)
	// OnBadRequest takes a request whose body could not be decoded; the handler
	// answers with err.Result. The session lives on.
	OnBadRequest(s *Session, hd cmpp.Header, err *cmpp.DecodeError)
	// OnLateResponse takes an answer that came after its call had timed out, with
	// the token of that call. It is called at most once per call.
	OnLateResponse(s *Session, hd cmpp.Header, p cmpp.PDU, token any)
}

// StrayHandler is a Handler that also wants answers to no call of this session:
// some peers answer on another of their links, or once more.
type StrayHandler interface {
	Handler
	OnStrayResponse(s *Session, hd cmpp.Header, p cmpp.PDU)
}

// Call is one request of ours.
type Call struct {
	PDU   cmpp.PDU      // encoded within Send, not kept
	Token any           // handed back with the outcome
	Done  func(Outcome) // called exactly once; must not block
}

// Outcome is how a call ended.
type Outcome struct {
	Token    any
	Sequence uint32   // 0 when the call never got one
	Resp     cmpp.PDU // set when and only when Err is nil
	// Err is nil, ErrTimeout, ErrClosed, or wraps ErrNotSent (the frame could not be
	// encoded or written) or ErrBadResponse (an answer came but could not be decoded).
	Err  error
	Sent bool          // the whole frame was handed to the kernel and may have reached the peer
	RTT  time.Duration // from the write to the answer; 0 without an answer
}
