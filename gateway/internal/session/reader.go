package session

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"os"
	"time"

	"cmppgateway/gateway/cmpp"
)

// frameReader reads frames from a connection with one rule on time: between
// frames it waits for ever (the link tests end a dead link), but once an octet
// of a frame is there the rest must follow within a timeout.
type frameReader struct {
	*cmpp.Reader
	conn    net.Conn
	timeout time.Duration // 0: leave the connection's deadline alone
	armed   armed
}

// armed says for which frame the connection's read deadline is set.
type armed uint8

const (
	armedNone armed = iota // no deadline
	armedThis              // for the frame being read
	armedOld               // for a frame read since
)

func newFrameReader(conn net.Conn, maxFrame int) *frameReader {
	r := &frameReader{conn: conn}
	r.Reader = cmpp.NewReader(r, maxFrame)
	return r
}

// Next returns the next frame; its body is valid until the next call.
func (r *frameReader) Next() (cmpp.Header, []byte, error) {
	hd, body, err := r.Reader.Next()
	if r.armed == armedThis {
		r.armed = armedOld
	}
	if err != nil && errors.Is(err, os.ErrDeadlineExceeded) && r.timeout > 0 {
		err = ErrStalled
	}
	return hd, body, err
}

// Read is called by cmpp.Reader when it needs more octets.
func (r *frameReader) Read(p []byte) (int, error) {
	if r.timeout > 0 {
		if err := r.arm(); err != nil {
			return 0, err
		}
	}
	return r.conn.Read(p)
}

func (r *frameReader) arm() error {
	switch {
	case r.InFrame() && r.armed != armedThis:
		r.armed = armedThis
		return r.conn.SetReadDeadline(time.Now().Add(r.timeout))
	case !r.InFrame() && r.armed != armedNone:
		r.armed = armedNone
		return r.conn.SetReadDeadline(time.Time{})
	}
	return nil
}

// read is the reader goroutine.
func (s *Session) read(h Handler) {
	for {
		hd, body, err := s.in.Next()
		if err != nil {
			s.Close(s.unlessStopping(fmt.Errorf("session: read: %w", err)))
			return
		}
		s.seen.Store(int64(s.now()))
		if s.probing.Load() {
			s.heard()
		}
		var final bool
		if hd.Command.IsResponse() {
			s.takeResponse(h, hd, body)
		} else {
			final = s.takeRequest(h, hd, body)
		}
		if final {
			<-s.done // the writer ends the session after our last answer
			linger(s.conn)
			return
		}
	}
}

// unlessStopping returns cause, or ErrStopped when we are about to end the link
// ourselves: peers answer our TERMINATE by closing, or with one of their own.
func (s *Session) unlessStopping(cause error) error {
	if s.isStopping() {
		return ErrStopped
	}
	return cause
}

// linger lets the peer read our last answer: octets of its own that we have not
// read would otherwise make the kernel reset the connection and drop the answer.
func linger(conn net.Conn) {
	half, ok := conn.(interface{ CloseWrite() error })
	if !ok || half.CloseWrite() != nil || conn.SetReadDeadline(time.Now().Add(lingerWait)) != nil {
		return
	}
	_, _ = io.Copy(io.Discard, conn) // ends at the peer's close or the deadline, both of which are fine
}

// takeRequest handles a frame the peer started. It reports whether the reader
// has nothing more to do because the final answer is queued.
func (s *Session) takeRequest(h Handler, hd cmpp.Header, body []byte) (final bool) {
	switch {
	case hd.Command == cmpp.CmdActiveTest:
		if err := s.control(frame{kind: control}, &cmpp.ActiveTestResp{}, hd.Sequence); err != nil {
			s.Close(err)
		}
		return false
	case hd.Command == cmpp.CmdTerminate:
		return s.finalAnswer(&cmpp.TerminateResp{}, hd.Sequence, s.unlessStopping(ErrTerminated))
	case hd.Command == cmpp.CmdConnect:
		return s.finalAnswer(&cmpp.ConnectResp{Status: statusOther, Version: s.version}, hd.Sequence, ErrSecondConnect)
	case !s.serves(hd.Command):
		if !s.oddCommand {
			s.oddCommand = true
			s.log.Warn("command not served, further ones are not logged",
				slog.Uint64("session", s.id), slog.String("command", hd.Command.String()))
		}
		return false
	}

	defer s.contain()
	p, err := cmpp.Decode(hd, body, s.version)
	if err != nil {
		bad, ok := errors.AsType[*cmpp.DecodeError](err)
		if !ok {
			bad = &cmpp.DecodeError{Command: hd.Command, Detail: err.Error(), Result: 1}
		}
		h.OnBadRequest(s, hd, bad)
		return false
	}
	// The content aliases the read buffer; the handler keeps the PDU.
	switch p := p.(type) {
	case *cmpp.Submit:
		p.MsgContent = bytes.Clone(p.MsgContent)
	case *cmpp.Deliver:
		p.MsgContent = bytes.Clone(p.MsgContent)
	}
	h.OnRequest(s, hd, p)
	return false
}

// serves says which requests go to the handler in our role.
func (s *Session) serves(c cmpp.Command) bool {
	if s.server {
		return c == cmpp.CmdSubmit || c == cmpp.CmdQuery || c == cmpp.CmdCancel
	}
	return c == cmpp.CmdDeliver
}

// finalAnswer queues an answer after which the session ends with cause.
func (s *Session) finalAnswer(p cmpp.PDU, seq uint32, cause error) bool {
	if err := s.control(frame{kind: last, cause: cause}, p, seq); err != nil {
		s.Close(cause)
	}
	return true
}

// takeResponse matches a frame with the call of ours it answers.
func (s *Session) takeResponse(h Handler, hd cmpp.Header, body []byte) {
	if hd.Command == cmpp.CmdActiveTestResp {
		return // having arrived is all it has to say
	}
	if hd.Command == cmpp.CmdTerminateResp && s.isStopping() {
		s.Close(ErrStopped)
		return
	}

	k := keyOf(hd.Command.Request(), hd.Sequence)
	now := s.now()
	s.mu.Lock()
	c := s.pending[k]
	if c != nil && c.state == queued {
		c = nil // nobody can answer what was not written
	}
	var token any
	var isLate bool
	if c != nil {
		if c.state == inFlight {
			s.inFlight.remove(c)
		}
		c.state = finished
		delete(s.pending, k)
		s.free++
	} else {
		token, isLate = s.late.take(k)
	}
	notify := s.onWindow
	s.mu.Unlock()

	switch {
	case c != nil:
		o := Outcome{Token: c.token, Sequence: hd.Sequence, Sent: true, RTT: now - c.sentAt}
		resp, err := cmpp.Decode(hd, body, s.version)
		if err != nil {
			o.Err = fmt.Errorf("%w: %w", ErrBadResponse, err)
		} else {
			o.Resp = resp
		}
		s.tell(c, o)
		s.signal(notify)
	case isLate:
		resp, err := cmpp.Decode(hd, body, s.version)
		if err != nil {
			s.logOddAnswer(hd, err)
			return
		}
		defer s.contain()
		h.OnLateResponse(s, hd, resp, token)
	default:
		s.logOddAnswer(hd, errors.New("no such call"))
		strays, ok := h.(StrayHandler)
		if !ok {
			return
		}
		if resp, err := cmpp.Decode(hd, body, s.version); err == nil {
			defer s.contain()
			strays.OnStrayResponse(s, hd, resp)
		}
	}
}

func (s *Session) logOddAnswer(hd cmpp.Header, err error) {
	if s.oddAnswer {
		return
	}
	s.oddAnswer = true
	s.log.Warn("answer dropped, further ones are not logged", slog.Uint64("session", s.id),
		slog.String("command", hd.Command.String()), slog.Uint64("sequence", uint64(hd.Sequence)),
		slog.String("error", err.Error()))
}
