package session

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"time"

	"cmppgateway/gateway/cmpp"
)

// CONNECT_RESP statuses the session gives by itself (CMPP 3.0 §7.4.1.2).
const (
	statusStructure = 1
	statusOther     = 5
)

// wideConnectResp is the length of a CONNECT_RESP in the 3.0 layout.
const wideConnectResp = 33

// Login logs in as a client within Config.ResponseTimeout or ctx, whichever ends
// first. It takes over conn and closes it on any error. A refusal is a *LoginError.
//
// The layout is frozen to the version answered. Where the answer contradicts
// itself (the version octet says 3.0 in a 2.x answer, as the field may also mean
// "highest version supported", or the reverse) its length decides.
func Login(ctx context.Context, conn net.Conn, cfg Config, l Credentials) (*Session, error) {
	return handshake(ctx, conn, cfg, func(s *Session) error { return s.login(l) })
}

func (s *Session) login(l Credentials) error {
	now := time.Now
	if l.Now != nil {
		now = l.Now
	}
	s.seq = 1
	s.version = l.Version
	timestamp := cmpp.Timestamp(now()) // read once: field and digest must agree
	connect := cmpp.Connect{
		SourceAddr:          l.SourceAddr,
		AuthenticatorSource: cmpp.AuthSource(l.SourceAddr, l.Secret, timestamp),
		Version:             l.Version,
		Timestamp:           timestamp,
	}
	if err := s.writeNow(&connect, s.seq); err != nil {
		return fmt.Errorf("session: login: %w", err)
	}
	hd, body, err := s.in.Next()
	if err != nil {
		return fmt.Errorf("session: login: %w", err)
	}
	if hd.Command != cmpp.CmdConnectResp || hd.Sequence != s.seq {
		return &UnexpectedError{Command: hd.Command, Sequence: hd.Sequence}
	}
	var resp cmpp.ConnectResp
	if err := resp.Decode(body, l.Version); err != nil {
		return fmt.Errorf("session: login: %w", err)
	}
	if resp.Status != 0 {
		return &LoginError{Status: resp.Status, Version: resp.Version}
	}
	s.freeze(hd, &resp, l.Version)
	if resp.AuthenticatorISMG != cmpp.AuthISMG(resp.Status, s.version, connect.AuthenticatorSource, l.Secret) {
		// Echoes, plain text and other widths are in use; never a reason to drop the link.
		s.log.Info("authenticator of the peer does not match", slog.Uint64("session", s.id))
	}
	return nil
}

// freeze settles the layout by what was answered.
func (s *Session) freeze(hd cmpp.Header, resp *cmpp.ConnectResp, asked cmpp.Version) {
	wide := hd.Length >= wideConnectResp
	switch {
	case resp.Version.Wide() == wide:
		s.version = resp.Version
	case asked.Wide() == wide:
		s.version = asked
	case wide:
		s.version = cmpp.V30
	default:
		s.version = cmpp.V20
	}
	if s.version != asked || s.version != resp.Version {
		s.log.Warn("versions differ", slog.Uint64("session", s.id), slog.Int("asked", int(asked)),
			slog.Int("answered", int(resp.Version)), slog.Int("used", int(s.version)))
	}
}

// Accept lets a client in, within Config.ResponseTimeout or ctx, whichever ends
// first. It takes over conn and closes it on any error. The first frame must be
// CONNECT; TERMINATE is answered, and everything else closes the link
// (*UnexpectedError). A CONNECT that cannot be decoded is refused with status 1,
// an error of auth with status 5, a Welcome with its own status (*RefusedError).
func Accept(ctx context.Context, conn net.Conn, cfg Config, auth AuthFunc) (*Session, error) {
	return handshake(ctx, conn, cfg, func(s *Session) error { return s.accept(ctx, auth) })
}

func (s *Session) accept(ctx context.Context, auth AuthFunc) error {
	s.server = true
	hd, body, err := s.in.Next()
	if err != nil {
		return fmt.Errorf("session: accept: %w", err)
	}
	if hd.Command == cmpp.CmdTerminate {
		if err := s.writeNow(&cmpp.TerminateResp{}, hd.Sequence); err != nil {
			return fmt.Errorf("session: accept: %w", err)
		}
		linger(s.conn)
		return ErrTerminated
	}
	if hd.Command != cmpp.CmdConnect {
		return &UnexpectedError{Command: hd.Command, Sequence: hd.Sequence}
	}

	var connect cmpp.Connect
	if err := connect.Decode(body, cmpp.V30); err != nil {
		s.version = cmpp.V20
		return s.refuse(hd, statusStructure, 0, err)
	}
	s.version = cmpp.V20
	if connect.Version.Wide() {
		s.version = cmpp.V30
	}
	welcome, err := s.decide(ctx, auth, &connect)
	if welcome.Version != 0 {
		s.version = welcome.Version
	}
	if err != nil {
		return s.refuse(hd, statusOther, 0, err)
	}
	if welcome.Status != 0 {
		return s.refuse(hd, welcome.Status, welcome.Highest, nil)
	}
	s.attach = welcome.Attach
	if welcome.Window > 0 {
		s.window, s.free = welcome.Window, welcome.Window
	}
	resp := cmpp.ConnectResp{
		AuthenticatorISMG: cmpp.AuthISMG(0, s.version, connect.AuthenticatorSource, welcome.Secret),
		Version:           s.version,
	}
	if err := s.writeNow(&resp, hd.Sequence); err != nil {
		return fmt.Errorf("session: accept: %w", err)
	}
	return nil
}

// decide asks the auth function; a panic in it refuses this peer only.
func (s *Session) decide(ctx context.Context, auth AuthFunc, c *cmpp.Connect) (w Welcome, err error) {
	defer func() {
		if v := recover(); v != nil {
			err = newPanicError(v)
		}
	}()
	return auth(ctx, c, s.conn.RemoteAddr())
}

// refuse answers a CONNECT with a status other than 0, naming version highest (0: that of the layout).
func (s *Session) refuse(hd cmpp.Header, status uint32, highest cmpp.Version, why error) error {
	if highest == 0 {
		highest = s.version
	}
	if err := s.writeNow(&cmpp.ConnectResp{Status: status, Version: highest}, hd.Sequence); err != nil {
		why = errors.Join(why, err)
	} else {
		linger(s.conn)
	}
	return &RefusedError{Status: status, Err: why}
}

// writeNow writes one frame from the handshake, where there is no writer yet.
func (s *Session) writeNow(p cmpp.PDU, seq uint32) error {
	octets, err := p.Append(nil, s.version, seq)
	if err != nil {
		return err
	}
	_, err = s.conn.Write(octets)
	return err
}

// handshake runs do under the deadline of the handshake and closes conn if it fails.
func handshake(ctx context.Context, conn net.Conn, cfg Config, do func(*Session) error) (*Session, error) {
	cfg = cfg.withDefaults()
	s := newSession(conn, cfg, newFrameReader(conn, cfg.MaxFrame))
	err := conn.SetDeadline(time.Now().Add(cfg.ResponseTimeout))
	if err == nil {
		stop := context.AfterFunc(ctx, func() { _ = conn.SetDeadline(time.Unix(1, 0)) })
		err = do(s)
		if !stop() { // the deadline in the past may be set at any moment
			err = errors.Join(context.Cause(ctx), err)
		}
	}
	if err == nil {
		err = conn.SetDeadline(time.Time{})
	}
	if err != nil {
		_ = conn.Close() // the handshake's error is what matters
		return nil, err
	}
	s.in.timeout = cfg.FrameTimeout
	return s, nil
}
