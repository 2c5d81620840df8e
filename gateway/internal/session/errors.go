package session

import (
	"errors"
	"fmt"
	"runtime/debug"

	"cmppgateway/gateway/cmpp"
)

// Outcomes of a call.
var (
	// ErrTimeout: no answer within Config.ResponseTimeout; a late one goes to Handler.OnLateResponse.
	ErrTimeout = errors.New("session: no answer in time")
	// ErrClosed: the link ended while the call was in flight. Also the cause of Close(nil).
	ErrClosed = errors.New("session: closed")
	// ErrNotSent: the peer cannot have seen the frame.
	ErrNotSent = errors.New("session: not sent")
	// ErrBadResponse: the peer answered with something that could not be decoded.
	ErrBadResponse = errors.New("session: answer not understood")
)

// Refusals of Send and Reply.
var (
	// ErrQueueFull: Config.OutQueue replies are already waiting for the writer.
	ErrQueueFull = errors.New("session: out queue full")
	// ErrWindow: more calls than slots acquired.
	ErrWindow = errors.New("session: calls exceed the slots acquired")
)

// Causes of an end, besides errors of the connection (io.EOF, *cmpp.FrameError, …).
var (
	// ErrStopped: Run's context was cancelled.
	ErrStopped = errors.New("session: stopped")
	// ErrTerminated: the peer sent TERMINATE.
	ErrTerminated = errors.New("session: terminated by the peer")
	// ErrDead: the peer stayed silent through every ACTIVE_TEST.
	ErrDead = errors.New("session: peer does not answer link tests")
	// ErrStalled: a frame was begun and not finished within Config.FrameTimeout.
	ErrStalled = errors.New("session: frame not finished in time")
	// ErrSlowPeer: the peer asks and does not read the answers.
	ErrSlowPeer = errors.New("session: peer does not read")
	// ErrSecondConnect: CONNECT on a link that is logged in.
	ErrSecondConnect = errors.New("session: second CONNECT")
)

// LoginError is a CONNECT_RESP that refuses us. Every status but 0 is a refusal.
type LoginError struct {
	Status  uint32
	Version cmpp.Version // version answered
}

func (e *LoginError) Error() string {
	return fmt.Sprintf("session: login refused with status %d (version %#02x)", e.Status, uint8(e.Version))
}

// RefusedError says that Accept answered a CONNECT with a status other than 0.
type RefusedError struct {
	Status uint32
	Err    error // why, when it was not the auth function's own choice of status
}

func (e *RefusedError) Error() string {
	if e.Err != nil {
		return fmt.Sprintf("session: refused with status %d: %v", e.Status, e.Err)
	}
	return fmt.Sprintf("session: refused with status %d", e.Status)
}

func (e *RefusedError) Unwrap() error { return e.Err }

// UnexpectedError is a frame that has no place in the handshake. The link was closed.
type UnexpectedError struct {
	Command  cmpp.Command
	Sequence uint32
}

func (e *UnexpectedError) Error() string {
	return fmt.Sprintf("session: unexpected %v, sequence %d, during the handshake", e.Command, e.Sequence)
}

// PanicError is the cause of a session ended by a panic in a callback.
type PanicError struct {
	Value any
	Stack []byte
}

func newPanicError(v any) *PanicError { return &PanicError{Value: v, Stack: debug.Stack()} }

func (e *PanicError) Error() string { return fmt.Sprintf("session: panic in a callback: %v", e.Value) }
