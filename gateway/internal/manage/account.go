package manage

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"

	"cmppgateway/gateway/internal/store"
)

// Login is a login or refusal of an account, with how often it came from there for that cause.
type Login struct {
	Address string
	Status  int16 // of CONNECT_RESP; 0 is a login, -1 closed without an answer
	Cause   string
	N       int64
	First   time.Time
	Last    time.Time
	Version int16 // octet of the CONNECT
	Detail  string
}

// Account is all there is about an application, for people who help its owner.
type Account struct {
	Application, Enterprise, Money, Policy, Platform Doc // Policy is nil when it has none
	Addresses, Routes, Signatures, Prices            []Doc
	Logins                                           []Login // newest first
	Inbox, Deliveries                                int64   // waiting, counted up to WaitingMost
	OldestDelivery, LastLogin                        *time.Time
}

// WaitingMost is how far Account counts what waits.
const WaitingMost = 10_000

// FindAccount finds an application by its id or SP id; an SP id goes first. ErrNotFound comes with the logins that were
// tried under the name.
func (m *Manager) FindAccount(ctx context.Context, name string) (*Account, error) {
	a := &Account{}
	var err error
	if a.Application, err = m.application(ctx, name); err != nil && !errors.Is(err, ErrNotFound) {
		return nil, err
	}
	spID := name
	if a.Application != nil {
		spID = fmt.Sprint(a.Application["sp_id"])
	}
	const events = 50
	rows, err := m.pool.Query(ctx, store.ManageLogins, spID, events)
	if err != nil {
		return nil, fmt.Errorf("logins: %w", err)
	}
	if a.Logins, err = pgx.CollectRows(rows, pgx.RowToStructByPos[Login]); err != nil {
		return nil, fmt.Errorf("logins: %w", err)
	}
	if a.Application == nil {
		return a, ErrNotFound
	}
	return a, m.fill(ctx, a)
}

func (m *Manager) application(ctx context.Context, name string) (Doc, error) {
	r := m.byName("applications")
	list, err := m.List(ctx, r, map[string]any{"sp_id": name}, nil, 1)
	if err != nil {
		return nil, err
	}
	if len(list) == 1 {
		return list[0], nil
	}
	key, err := r.ParseKey([]string{name})
	if err != nil {
		return nil, err
	}
	return m.Get(ctx, r, key)
}

func (m *Manager) fill(ctx context.Context, a *Account) (err error) {
	app, enterprise := a.Application["id"], a.Application["enterprise"]
	for _, one := range []struct {
		to       *Doc
		resource string
		key      map[string]any
	}{
		{&a.Enterprise, "enterprises", map[string]any{"id": enterprise}},
		{&a.Money, "accounts", map[string]any{"id": enterprise}},
		{&a.Policy, "application-policies", map[string]any{"app_id": app}},
		{&a.Platform, "platform-limits", map[string]any{"only_row": true}},
	} {
		*one.to, err = m.Get(ctx, m.byName(one.resource), one.key)
		if err != nil && !errors.Is(err, ErrNotFound) {
			return err
		}
	}
	const most = 1000
	for _, many := range []struct {
		to       *[]Doc
		resource string
		filter   map[string]any
	}{
		{&a.Addresses, "application-addresses", map[string]any{"app_id": app}},
		{&a.Routes, "application-routes", map[string]any{"app_id": app}},
		{&a.Signatures, "signatures", map[string]any{"enterprise_id": enterprise, "status": 2}},
		{&a.Prices, "prices", map[string]any{"app_id": app}},
	} {
		if *many.to, err = m.List(ctx, m.byName(many.resource), many.filter, nil, most); err != nil {
			return err
		}
	}
	if err := m.pool.QueryRow(ctx, store.ManageWaiting, number(app), WaitingMost).Scan(&a.Inbox, &a.Deliveries, &a.OldestDelivery, &a.LastLogin); err != nil {
		return fmt.Errorf("what waits: %w", err)
	}
	return nil
}
