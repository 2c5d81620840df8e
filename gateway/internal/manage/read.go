package manage

import (
	"context"
	"fmt"

	"github.com/jackc/pgx/v5"

	"cmppgateway/gateway/internal/store"
)

// Get is one row.
func (m *Manager) Get(ctx context.Context, r *Resource, key map[string]any) (Doc, error) {
	var raw []byte
	if err := m.pool.QueryRow(ctx, store.ManageGet, r.Table, object(key), false).Scan(&raw); err != nil {
		return nil, fmt.Errorf("get %s: %w", r.Title, err)
	}
	row, err := decode(raw)
	if err == nil && row == nil {
		err = ErrNotFound
	}
	return r.show(row), err
}

// List is up to limit rows in the order of their key, after the one named by after (nil = from the beginning), of those
// that have the columns of filter.
func (m *Manager) List(ctx context.Context, r *Resource, filter, after map[string]any, limit int) ([]Doc, error) {
	if after == nil {
		after = map[string]any{}
	}
	rows, err := m.pool.Query(ctx, store.ManageList, r.Table, r.keyColumns(), r.Newest, object(after), object(filter), limit)
	if err != nil {
		return nil, fmt.Errorf("list %s: %w", r.Name, err)
	}
	list := []Doc{}
	var raw []byte
	_, err = pgx.ForEachRow(rows, []any{&raw}, func() error {
		row, err := decode(raw)
		list = append(list, r.show(row))
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("list %s: %w", r.Name, err)
	}
	return list, nil
}
