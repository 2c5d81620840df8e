package settings

import (
	"context"
	"fmt"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"cmppgateway/gateway/internal/message"
	"cmppgateway/gateway/internal/routing"
	"cmppgateway/gateway/internal/store"
)

// Load reads all settings in one snapshot of the database. A prefix rule that is none is an error; a route or a group
// member that names something missing is left out.
func Load(ctx context.Context, pool *pgxpool.Pool) (*Snapshot, error) {
	tx, err := pool.BeginTx(ctx, pgx.TxOptions{IsoLevel: pgx.RepeatableRead, AccessMode: pgx.ReadOnly})
	if err != nil {
		return nil, fmt.Errorf("load settings: %w", err)
	}
	s, err := load(ctx, tx)
	if end := tx.Rollback(context.WithoutCancel(ctx)); err == nil {
		err = end
	}
	if err != nil {
		return nil, fmt.Errorf("load settings: %w", err)
	}
	return s, nil
}

func load(ctx context.Context, tx pgx.Tx) (*Snapshot, error) {
	s := &Snapshot{
		Enterprises: make(map[int32]Enterprise), Applications: make(map[int32]*Application), BySPID: make(map[string]*Application),
		Accounts: make(map[int32]*SupplierAccount), Channels: make(map[int32]*Channel), Groups: make(map[int32]*routing.Group),
		classes: make(map[classKey]message.ResultClass),
	}
	if err := tx.QueryRow(ctx, store.SettingsVersion).Scan(&s.Version); err != nil {
		return nil, fmt.Errorf("version: %w", err)
	}
	enterprises, err := rows[Enterprise](ctx, tx, "enterprises", store.SettingsEnterprise)
	if err != nil {
		return nil, err
	}
	for _, e := range enterprises {
		s.Enterprises[e.ID] = *e
	}
	applications, err := rows[Application](ctx, tx, "applications", store.SettingsApplication)
	if err != nil {
		return nil, err
	}
	for _, a := range applications {
		a.Routes = make(map[routing.Carrier]int32)
		s.Applications[a.ID], s.BySPID[a.SPID] = a, a
	}
	if err := s.loadResends(ctx, tx); err != nil {
		return nil, err
	}
	routes, err := rows[struct {
		App     int32
		Carrier routing.Carrier
		Group   int32
	}](ctx, tx, "routes", store.SettingsRoute)
	if err != nil {
		return nil, err
	}
	for _, r := range routes {
		if a, ok := s.Applications[r.App]; ok {
			a.Routes[r.Carrier] = r.Group
		}
	}
	accounts, err := rows[SupplierAccount](ctx, tx, "supplier accounts", store.SettingsAccount)
	if err != nil {
		return nil, err
	}
	for _, a := range accounts {
		s.Accounts[a.ID] = a
	}
	channels, err := rows[Channel](ctx, tx, "channels", store.SettingsChannel)
	if err != nil {
		return nil, err
	}
	for _, c := range channels {
		s.Channels[c.ID] = c
	}
	if err := s.loadCutting(ctx, tx); err != nil {
		return nil, err
	}
	if err := s.loadRouting(ctx, tx); err != nil {
		return nil, err
	}
	if err := s.loadSupplier(ctx, tx); err != nil {
		return nil, err
	}
	if err := s.loadPolicy(ctx, tx); err != nil {
		return nil, err
	}
	if s.Limits, err = loadLimits(ctx, tx); err != nil {
		return nil, err
	}
	if s.callback, err = loadCallbackModes(ctx, tx); err != nil {
		return nil, err
	}
	return s, nil
}

func (s *Snapshot) loadRouting(ctx context.Context, tx pgx.Tx) error {
	members, err := rows[struct {
		Group int32
		routing.Candidate
	}](ctx, tx, "groups", store.SettingsGroup)
	if err != nil {
		return err
	}
	for _, m := range members {
		g, ok := s.Groups[m.Group]
		if !ok {
			g = &routing.Group{ID: m.Group}
			s.Groups[m.Group] = g
		}
		if _, ok := s.Channels[m.ChannelID]; ok {
			g.Candidates = append(g.Candidates, m.Candidate)
		}
	}
	rules, err := rows[routing.Rule](ctx, tx, "prefix rules", store.SettingsPrefix)
	if err != nil {
		return err
	}
	list := make([]routing.Rule, len(rules))
	for i, r := range rules {
		list[i] = *r
	}
	if s.Table, err = routing.New(list); err != nil {
		return fmt.Errorf("prefix rules: %w", err)
	}
	classes, err := rows[struct {
		Channel, Code int32
		Class         message.ResultClass
	}](ctx, tx, "result classes", store.SettingsClass)
	if err != nil {
		return err
	}
	for _, c := range classes {
		s.classes[classKey{c.Channel, c.Code}] = c.Class
	}
	return nil
}

func rows[T any](ctx context.Context, tx pgx.Tx, what, query string) ([]*T, error) {
	r, err := tx.Query(ctx, query)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", what, err)
	}
	list, err := pgx.CollectRows(r, pgx.RowToAddrOfStructByPos[T])
	if err != nil {
		return nil, fmt.Errorf("%s: %w", what, err)
	}
	return list, nil
}
