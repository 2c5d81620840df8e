package inbound

import (
	"context"
	"fmt"
	"log/slog"
	"net"
	"net/netip"
	"sync"
	"time"

	"cmppgateway/gateway/cmpp"
	"cmppgateway/gateway/internal/session"
	"cmppgateway/gateway/internal/settings"
)

// Statuses of CONNECT_RESP (CMPP 2.0 §7.4.1.2); 1, bad structure, is session's. There is none for "disabled" or "too many
// connections"; an application that asks for them gets the ones that are common among gateways.
const (
	statusOK      = 0
	statusUnknown = 2
	statusSecret  = 3
	statusVersion = 4
	statusOther   = 5

	statusSystemFull  = 55
	statusAccountFull = 56
	statusAddress     = 57
)

// attempt is one login attempt, kept for its log line and its record.
type attempt struct {
	stranger      *stranger
	addr          netip.Addr
	remote        net.Addr
	connect       *cmpp.Connect // nil: none was understood
	app           int32         // 0: none
	cause, detail string        // fixed text, and what varies
}

func newAttempt(nc net.Conn, st *stranger) *attempt {
	a := &attempt{stranger: st, remote: nc.RemoteAddr()}
	if tcp, ok := a.remote.(*net.TCPAddr); ok {
		a.addr = tcp.AddrPort().Addr().Unmap().WithZone("")
	}
	return a
}

// login decides on a CONNECT. The place among the connections that it takes is given back by places.leave.
func (s *Server) login(ctx context.Context, c *conn, a *attempt, connect *cmpp.Connect) (session.Welcome, error) {
	a.connect = connect
	snap := s.Settings.Current()
	app := snap.BySPID[connect.SourceAddr]
	var limits settings.ApplicationLimits
	var version, highest cmpp.Version // of the answer; 0: that of the CONNECT
	fits := true
	if app != nil {
		a.app, limits = app.ID, snap.Limits.Applications[app.ID]
		if version, fits = agree(app.Version, connect.Version); !fits {
			version, highest = 0, app.Version // in a layout that the client can read
		}
	}
	refuse := func(status uint32, cause, detail string) (session.Welcome, error) {
		a.cause, a.detail = cause, detail
		return session.Welcome{Status: status, Version: version, Highest: highest}, nil
	}
	vendor := func(status uint32) uint32 {
		if !limits.VendorStatus {
			return statusOther
		}
		return status
	}
	now := s.now()
	wait, known := s.guard.wait(a.addr, connect.SourceAddr, now)
	right := app != nil && cmpp.CheckAuthSource(connect.AuthenticatorSource, connect.SourceAddr, []byte(app.Secret), connect.Timestamp)
	switch {
	case wait > 0 && (!known || !right):
		return refuse(statusOther, "too many refused logins", fmt.Sprintf("again in %s", wait.Round(100*time.Millisecond)))
	case app == nil:
		s.guard.failed(a.addr, connect.SourceAddr, now)
		return refuse(statusUnknown, "unknown Source_Addr", "")
	case !limits.Allows(a.addr):
		s.guard.failed(a.addr, connect.SourceAddr, now)
		return refuse(vendor(statusAddress), "the address is none the application may log in from", "")
	case !right:
		s.guard.failed(a.addr, connect.SourceAddr, now)
		return refuse(statusSecret, "AuthenticatorSource does not fit the secret", "")
	}
	s.guard.succeeded(a.addr, connect.SourceAddr)
	s.places.vouch(a.stranger)
	if !fits {
		return refuse(statusVersion, "the application is pinned to version "+app.Version.String(), "")
	}
	if cause := barred(snap, app); cause != "" {
		return refuse(statusOther, cause, "")
	}
	id, err := s.Node.IDs.Next(ctx)
	if err != nil {
		a.cause = "no session id: the node lease is not valid"
		return session.Welcome{}, err
	}
	c.id, c.app, c.enterprise, c.spID, c.secret = id, app.ID, app.EnterpriseID, app.SPID, app.Secret
	limit, n := s.places.enter(c, s.Config.MaxConnections, app.MaxConnections)
	if limit == fullAccount && s.clear(ctx, app.ID) {
		limit, n = s.places.enter(c, s.Config.MaxConnections, app.MaxConnections)
	}
	switch limit {
	case fullSystem:
		return refuse(vendor(statusSystemFull), "too many connections in all", fmt.Sprintf("%d of %d", n, s.Config.MaxConnections))
	case fullAccount:
		return refuse(vendor(statusAccountFull), "too many connections of the application", fmt.Sprintf("%d of %d", n, app.MaxConnections))
	case vacant:
	}
	return session.Welcome{Secret: []byte(app.Secret), Version: version, Window: s.DeliverWindow}, nil
}

// clear asks all links of an application for a sign of life and closes those that give none in time: their peer has gone
// without a word, as after a power cut, and its new login must not wait for the link tests to find that out. It reports
// whether a place became free.
func (s *Server) clear(login context.Context, app int32) (freed bool) {
	ctx, cancel := context.WithTimeout(login, s.Config.ProbeTimeout)
	defer cancel()
	var mu sync.Mutex
	var probes sync.WaitGroup
	for _, c := range s.places.of(app) {
		probes.Go(func() {
			if c.session.Probe(ctx) || login.Err() != nil { // cut short, a probe says nothing
				return
			}
			c.session.Close(errReplaced)
			s.places.leave(c)
			mu.Lock()
			defer mu.Unlock()
			freed = true
		})
	}
	probes.Wait()
	return freed
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

// revoked is why a session must end under new settings, "" if it may go on.
func (c *conn) revoked(snap *settings.Snapshot) string {
	app := snap.Applications[c.app]
	switch {
	case app == nil:
		return "the application is gone"
	case app.SPID != c.spID, app.Secret != c.secret:
		return "the login was changed"
	case !snap.Limits.Applications[c.app].Allows(c.attempt.addr):
		return "the address is none the application may log in from"
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
	if a.detail != "" {
		attrs = append(attrs, slog.String("detail", a.detail))
	}
	return attrs
}
