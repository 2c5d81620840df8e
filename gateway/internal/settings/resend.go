package settings

import (
	"context"
	"fmt"

	"github.com/jackc/pgx/v5"

	"cmppgateway/gateway/internal/store"
)

// loadResends reads how many more submits applications allow after failed receipts, 0..2.
func (s *Snapshot) loadResends(ctx context.Context, tx pgx.Tx) error {
	r, err := tx.Query(ctx, store.SettingsResend)
	if err != nil {
		return fmt.Errorf("resends: %w", err)
	}
	var id int32
	var n int16
	_, err = pgx.ForEachRow(r, []any{&id, &n}, func() error {
		if a := s.Applications[id]; a != nil {
			a.ResendFailed = n
		}
		return nil
	})
	if err != nil {
		return fmt.Errorf("resends: %w", err)
	}
	return nil
}
