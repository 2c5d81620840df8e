package seed

import (
	"context"
	"fmt"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"cmppgateway/gateway/internal/ledger"
	"cmppgateway/gateway/internal/message"
	"cmppgateway/gateway/internal/store"
)

// Result counts what Apply changed.
type Result struct {
	Rows   int64 // settings rows written
	TopUps int   // opening balances booked
}

// Apply writes the file: all settings in one transaction that raises the settings version when anything changed, then
// each opening balance once. A second run with the same file changes nothing.
func Apply(ctx context.Context, pool *pgxpool.Pool, ids *message.IDs, f *File) (Result, error) {
	var res Result
	w := writer{file: f, b: &pgx.Batch{}, channel: map[string]int32{}, group: map[string]int32{}}
	w.queue()
	err := pgx.BeginFunc(ctx, pool, func(tx pgx.Tx) error {
		res.Rows = 0
		results := tx.SendBatch(ctx, w.b)
		for range w.b.Len() {
			tag, err := results.Exec()
			if err != nil {
				_ = results.Close() // the statement's error is the one to report
				return err
			}
			res.Rows += tag.RowsAffected()
		}
		if err := results.Close(); err != nil {
			return err
		}
		if res.Rows == 0 {
			return nil
		}
		_, err := tx.Exec(ctx, store.SettingsBump)
		return err
	})
	if err != nil {
		return res, fmt.Errorf("seed: settings: %w", err)
	}
	for _, e := range f.Enterprises {
		if e.V.Opening == 0 {
			continue
		}
		done, err := ledger.TopUp(ctx, pool, ids, e.V.ID, e.V.Opening, "opening")
		if err != nil {
			return res, fmt.Errorf("seed: %w", err)
		}
		if done {
			res.TopUps++
		}
	}
	return res, nil
}

type writer struct {
	file    *File
	b       *pgx.Batch
	channel map[string]int32
	group   map[string]int32
}

// queue puts the tables in the order in which their rows refer to each other. Load has checked every word.
func (w *writer) queue() {
	var none checker
	for _, e := range w.file.Enterprises {
		w.b.Queue(store.SeedEnterprise, e.V.ID, word(&none, 0, "", e.V.Status, "active", statusWords), e.V.Name)
		w.b.Queue(store.LedgerAccountCreate, e.V.ID, e.V.Credit)
	}
	suppliers := map[string]int32{}
	for _, s := range w.file.Suppliers {
		suppliers[s.V.Name] = s.V.ID
		w.b.Queue(store.SeedSupplier, s.V.ID, word(&none, 0, "", s.V.Version, "3.0", supplierWords), s.V.MaxConnections, s.V.MaxWindow, s.V.MaxTPS, s.V.Addr, s.V.SPID, s.V.Secret, s.V.Name)
	}
	for _, c := range w.file.Channels {
		w.channel[c.V.Name] = c.V.ID
		w.b.Queue(store.SeedChannel, c.V.ID, suppliers[c.V.Supplier], or(c.V.Enabled, true), int16(carrierWords[c.V.Carrier]),
			c.V.Connections, c.V.Window, c.V.RateLimit, or(c.V.WarmupSeconds, 30), or(c.V.DrainSeconds, 60), or(c.V.ResponseSeconds, 60), or(c.V.CooldownSeconds, 30),
			c.V.AccessNumber, or(c.V.AppendExtension, true), c.V.ServiceID, c.V.MsgSrc, text(c.V.FeeType, "01"), text(c.V.FeeCode, "0"), c.V.Name)
	}
	for _, g := range w.file.Groups {
		w.group[g.V.Name] = g.V.ID
		w.b.Queue(store.SeedGroup, g.V.ID, g.V.Name)
		kept := make([]int32, 0, len(g.V.Members))
		for _, m := range g.V.Members {
			kept = append(kept, w.channel[m.Channel])
			w.b.Queue(store.SeedMember, g.V.ID, w.channel[m.Channel], m.Priority, max(m.Weight, 1))
		}
		w.b.Queue(store.SeedMemberDrop, g.V.ID, kept)
	}
	for _, a := range w.file.Applications {
		w.application(a.V)
	}
	w.b.Queue(store.SeedPriceHistory)
	for _, r := range w.file.PrefixRules {
		w.b.Queue(store.SeedPrefix, r.V.Prefix, int16(carrierWords[r.V.Carrier]))
	}
	for _, r := range w.file.ResultClasses {
		w.b.Queue(store.SeedClass, w.channel[r.V.Channel], r.V.Code, int16(classWords[r.V.Class]))
	}
}

func (w *writer) application(a Application) {
	var none checker
	w.b.Queue(store.SeedApplication, a.ID, a.Enterprise, word(&none, 0, "", a.Status, "active", statusWords), word(&none, 0, "", a.Version, "any", versionWords),
		*a.Price, int16(word(&none, 0, "", a.UnitRule, "cn-70-67", unitWords)), int16(word(&none, 0, "", a.ChargeOn, "accept", chargeWords)),
		int16(word(&none, 0, "", a.RefundOn, "final_failed_receipt", refundWords)), int16(word(&none, 0, "", a.Lane, "notification", laneWords)),
		number(a.MaxConnections, 4), number(a.Window, 32), a.SPID, a.Secret, a.AccessNumber, a.Name)
	for carrier, group := range a.Routes {
		w.b.Queue(store.SeedRoute, a.ID, int16(carrierWords[carrier]), w.group[group])
	}
}

func or[T any](p *T, def T) T {
	if p == nil {
		return def
	}
	return *p
}

func text(s, def string) string {
	if s == "" {
		return def
	}
	return s
}

func number(n, def int16) int16 {
	if n == 0 {
		return def
	}
	return n
}
