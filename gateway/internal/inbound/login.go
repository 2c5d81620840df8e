package inbound

import (
	"context"
	"fmt"
	"log/slog"
	"net"

	"cmppgateway/gateway/cmpp"
	"cmppgateway/gateway/internal/session"
	"cmppgateway/gateway/internal/settings"
)

// Statuses of CONNECT_RESP (CMPP 2.0 §7.4.1.2); 1, bad structure, is session's. There is none for "disabled" or "too many connections".
const (
	statusOK      = 0
	statusUnknown = 2
	statusSecret  = 3
	statusVersion = 4
	statusOther   = 5
)

// attempt is one login attempt, kept for its log line.
type attempt struct {
	remote  net.Addr
	connect *cmpp.Connect // nil: none was understood
	cause   string
}

// login decides on a CONNECT. The place among the connections that it takes is given back by leave.
func (s *Server) login(ctx context.Context, c *conn, a *attempt, connect *cmpp.Connect) (session.Welcome, error) {
	a.connect = connect
	refuse := func(status uint32, cause string) (session.Welcome, error) {
		a.cause = cause
		return session.Welcome{Status: status}, nil
	}
	snap := s.Settings.Current()
	app := snap.BySPID[connect.SourceAddr]
	switch {
	case app == nil:
		return refuse(statusUnknown, "unknown Source_Addr")
	case !cmpp.CheckAuthSource(connect.AuthenticatorSource, connect.SourceAddr, []byte(app.Secret), connect.Timestamp):
		return refuse(statusSecret, "AuthenticatorSource does not fit the secret")
	}
	version, ok := agree(app.Version, connect.Version)
	if !ok {
		return refuse(statusVersion, "the application is pinned to version "+app.Version.String())
	}
	if cause := barred(snap, app); cause != "" {
		return refuse(statusOther, cause)
	}
	id, err := s.Node.IDs.Next(ctx)
	if err != nil {
		a.cause = "no session id: the node lease is not valid"
		return session.Welcome{}, err
	}
	if cause := s.enter(app); cause != "" {
		return refuse(statusOther, cause)
	}
	c.id, c.app, c.enterprise = id, app.ID, app.EnterpriseID
	return session.Welcome{Secret: []byte(app.Secret), Version: version, Window: s.DeliverWindow}, nil
}

// agree is the version of a link: the pinned one or the client's, reduced to those that exist (major 3 and above: 3.0).
// Clients send odd octets, so a pin refuses only those that name a version of the other layout.
func agree(pin, client cmpp.Version) (cmpp.Version, bool) {
	switch {
	case pin != 0 && !pin.Wide() && client.Wide(), pin.Wide() && (client == cmpp.V20 || client == cmpp.V21):
		return pin, false
	case pin != 0:
		return pin, true
	case client.Wide():
		return cmpp.V30, true
	case client == cmpp.V21:
		return cmpp.V21, true
	}
	return cmpp.V20, true
}

// barred is why an application may not be connected, "" if it may.
func barred(snap *settings.Snapshot, app *settings.Application) string {
	switch {
	case app.Status != settings.Active:
		return "the application is disabled"
	case snap.Enterprises[app.EnterpriseID].Status != settings.Active:
		return "the enterprise is disabled"
	}
	return ""
}

// enter takes a place among the connections of an application and of all.
func (s *Server) enter(app *settings.Application) (cause string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case s.loggedIn >= s.Config.MaxConnections:
		return fmt.Sprintf("too many connections: %d in all", s.loggedIn)
	case s.places[app.ID] >= app.MaxConnections:
		return fmt.Sprintf("too many connections: %d of the application", s.places[app.ID])
	}
	s.loggedIn++
	s.places[app.ID]++
	return ""
}

func (s *Server) leave(app int32) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.loggedIn--
	if s.places[app]--; s.places[app] == 0 {
		delete(s.places, app)
	}
}

// revoked is why a session must end under new settings, "" if it may go on.
func (c *conn) revoked(snap *settings.Snapshot, as login) string {
	app := snap.Applications[c.app]
	switch {
	case app == nil:
		return "the application is gone"
	case app.SPID != as.spID, app.Secret != as.secret:
		return "the login was changed"
	}
	return barred(snap, app)
}

func (a *attempt) attrs() []slog.Attr {
	attrs := []slog.Attr{slog.String("remote", a.remote.String())}
	if a.connect != nil {
		attrs = append(attrs, slog.String("source_addr", a.connect.SourceAddr), slog.String("version", a.connect.Version.String()),
			slog.String("timestamp", fmt.Sprintf("%010d", a.connect.Timestamp)))
	}
	if a.cause != "" {
		attrs = append(attrs, slog.String("cause", a.cause))
	}
	return attrs
}
