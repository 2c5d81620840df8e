package settings

import (
	"context"
	"fmt"
	"net/netip"
	"slices"

	"github.com/jackc/pgx/v5"

	"cmppgateway/gateway/internal/store"
)

// Limits is what the customers' entrance enforces. Rates are messages a second, counted as recipients × segments; they hold
// in each process by itself. Backlogs are rows. 0 is no limit everywhere.
type Limits struct {
	TPS          int                         // of the platform
	Backlog      int                         // of the platform: inbox rows and commands together
	Enterprises  map[int32]int               // TPS of those that have one
	Applications map[int32]ApplicationLimits // of those that have any
	Channels     map[int32]int               // commands waiting for a channel, of those that have a ceiling
}

// ApplicationLimits is the entrance of one application.
type ApplicationLimits struct {
	TPS          int            // all its connections together
	LinkTPS      int            // each connection
	VendorStatus bool           // CONNECT_RESP 55, 56 and 57 where 5 is the standard's
	Networks     []netip.Prefix // it may log in from; none: from anywhere
}

// Allows says whether the application may log in from addr.
func (l ApplicationLimits) Allows(addr netip.Addr) bool {
	addr = addr.Unmap().WithZone("")
	return len(l.Networks) == 0 || slices.ContainsFunc(l.Networks, func(n netip.Prefix) bool { return n.Contains(addr) })
}

// loadLimits reads the limits of one snapshot.
func loadLimits(ctx context.Context, tx pgx.Tx) (l Limits, err error) {
	l.Enterprises, l.Applications, l.Channels = make(map[int32]int), make(map[int32]ApplicationLimits), make(map[int32]int)
	if err := tx.QueryRow(ctx, store.SettingsLimitPlatform).Scan(&l.TPS, &l.Backlog); err != nil {
		return l, fmt.Errorf("limits of the platform: %w", err)
	}
	type figure struct {
		ID    int32
		Value int
	}
	enterprises, err := rows[figure](ctx, tx, "limits of enterprises", store.SettingsLimitEnterprise)
	if err != nil {
		return l, err
	}
	for _, f := range enterprises {
		l.Enterprises[f.ID] = f.Value
	}
	channels, err := rows[figure](ctx, tx, "limits of channels", store.SettingsLimitChannel)
	if err != nil {
		return l, err
	}
	for _, f := range channels {
		l.Channels[f.ID] = f.Value
	}
	applications, err := rows[struct {
		ID           int32
		TPS, LinkTPS int
		VendorStatus bool
	}](ctx, tx, "limits of applications", store.SettingsLimitApplication)
	if err != nil {
		return l, err
	}
	for _, a := range applications {
		l.Applications[a.ID] = ApplicationLimits{TPS: a.TPS, LinkTPS: a.LinkTPS, VendorStatus: a.VendorStatus}
	}
	addresses, err := rows[struct {
		App     int32
		Network netip.Prefix
	}](ctx, tx, "addresses of applications", store.SettingsAddress)
	if err != nil {
		return l, err
	}
	for _, a := range addresses {
		app := l.Applications[a.App]
		app.Networks = append(app.Networks, a.Network)
		l.Applications[a.App] = app
	}
	return l, nil
}
