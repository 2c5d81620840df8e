package manage

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"

	"cmppgateway/gateway/internal/ledger"
	"cmppgateway/gateway/internal/store"
)

// TopUpMax is the most that one top-up may add: 10 million yuan, in 1/10,000 yuan.
const TopUpMax = 100_000_000_000

// TopUpFields is what a top-up takes.
var TopUpFields = []Field{
	{Name: "amount", Type: integer{1, TopUpMax}, Required: true, Doc: "1/10,000 yuan"},
	note(),
}

// TopUp adds money to the account of an enterprise, once for each idem: done gets the entry and the balance after it. A key that the account has an entry for
// already fails the change with ErrKeyReused. It happens behind everything else of the change: the account comes last.
func (c *Change) TopUp(ctx context.Context, enterprise int32, given Doc, idem string, done func(context.Context, Doc) error) error {
	r := &Resource{Name: "top-ups", Title: "top-up", Fields: TopUpFields}
	columns, faults := r.read(given, true)
	if idem == "" || len(idem) > 200 {
		faults = append(faults, Fault{Field: "Idempotency-Key", Value: cut(idem), Allowed: "1..200 octets, a new one for each top-up"})
	}
	if len(faults) > 0 {
		return faults
	}
	row, err := c.row(ctx, store.ManageGet, "account", map[string]any{"id": enterprise}, false)
	if err != nil {
		return err
	}
	if row == nil {
		return ErrNotFound
	}
	if c.manager.ids == nil {
		return ErrNoIDs
	}
	id, err := c.manager.ids.Next(ctx)
	if err != nil {
		return fmt.Errorf("top up account %d: %w", enterprise, err)
	}
	amount := number(columns["amount"])
	if err := c.Note(ctx, "top-up", "accounts", itoa(int64(enterprise)), nil, Doc{"entry": itoa(id), "amount": amount, "note": columns["note"]}); err != nil {
		return err
	}
	c.rows++
	c.last = append(c.last, func(ctx context.Context) error {
		balance, err := ledger.TopUpIn(ctx, c.tx, id, enterprise, amount, idem)
		if errors.Is(err, ledger.ErrKeyUsed) {
			return ErrKeyReused
		}
		if err != nil {
			return err
		}
		return done(ctx, Doc{"entry": itoa(id), "enterprise": int64(enterprise), "amount": amount, "balance": balance})
	})
	return nil
}

// CreditFields is what a change of credit takes.
var CreditFields = []Field{{Name: "credit", Type: integer{0, moneyMax}, Required: true, Doc: "1/10,000 yuan"}}

// SetCredit changes how far an account may go below 0; etag is that of the account as its editor saw it. As TopUp it comes
// last: done gets the account as it is then.
func (c *Change) SetCredit(ctx context.Context, enterprise int32, given Doc, etag string, done func(context.Context, Doc) error) error {
	r := &Resource{Name: accounts.Name, Title: accounts.Title, Fields: CreditFields}
	columns, faults := r.read(given, true)
	if len(faults) > 0 {
		return faults
	}
	row, err := c.row(ctx, store.ManageGet, accounts.Table, map[string]any{"id": enterprise}, false)
	switch {
	case err != nil:
		return err
	case row == nil:
		return ErrNotFound
	case etag != "*" && etag != accounts.ETag(accounts.show(row)):
		return ErrStale
	}
	credit, before := number(columns["credit"]), accounts.show(row)
	if credit == number(row["credit"]) {
		return done(ctx, before)
	}
	if err := c.Note(ctx, "credit", accounts.Name, itoa(int64(enterprise)), before, Doc{"credit": credit}); err != nil {
		return err
	}
	c.rows++
	c.last = append(c.last, func(ctx context.Context) error {
		var available int64
		err := c.tx.QueryRow(ctx, store.ManageCredit, enterprise, credit, number(row["credit"])).Scan(&available)
		switch {
		case errors.Is(err, pgx.ErrNoRows):
			return ErrStale
		case ledger.IsShort(err):
			return FaultsError{{Field: "credit", Value: credit, Allowed: "no less than what the account is below 0", Conflict: true}}
		case err != nil:
			return fmt.Errorf("credit of account %d: %w", enterprise, err)
		}
		return done(ctx, Doc{"enterprise": int64(enterprise), "available": available, "credit": credit})
	})
	return nil
}

// PriceFields is what a price takes.
var PriceFields = []Field{
	{Name: "price", Type: integer{0, priceMax}, Required: true, Doc: "1/10,000 yuan a unit"},
	{Name: "charge_on", Type: charges, Doc: "left out = as before"},
	{Name: "refund_on", Type: refunds, Doc: "left out = as before"},
	{Name: "unit_rule", Type: units, Doc: "left out = as before"},
	{Name: "effective_from", Type: instant{}, Doc: "left out = now; at most a year ahead. Messages frozen before keep their price"},
}

// SetPrice gives an application a price and billing rules, from now on or from a later time on. Messages that are frozen
// already keep theirs. Of several prices the one with the latest time that has come counts.
func (c *Change) SetPrice(ctx context.Context, application int32, given Doc) (Doc, error) {
	if err := c.lock(ctx); err != nil {
		return nil, err
	}
	r := &Resource{Name: prices.Name, Title: prices.Title, Fields: PriceFields}
	columns, faults := r.read(given, true)
	app, err := c.row(ctx, store.ManageGet, "application", map[string]any{"id": application}, true)
	if err != nil {
		return nil, err
	}
	if app == nil {
		return nil, ErrNotFound
	}
	var now time.Time
	if err := c.tx.QueryRow(ctx, store.ManageNow).Scan(&now); err != nil {
		return nil, err
	}
	from := now
	if s, ok := columns["effective_from"].(string); ok {
		from, _ = time.Parse(time.RFC3339Nano, s) // read has parsed it
		if from.Before(now.Add(-time.Minute)) || from.After(now.AddDate(1, 0, 0)) {
			faults = append(faults, Fault{Field: "effective_from", Value: given["effective_from"], Allowed: "now or later, at most a year ahead"})
		}
	}
	if len(faults) > 0 {
		return nil, faults
	}
	if from.Before(now) { // a caller whose clock is behind means now
		from = now
	}
	var raw []byte
	err = c.tx.QueryRow(ctx, store.ManagePrice, application, columns["price"], columns["charge_on"], columns["refund_on"], columns["unit_rule"], from, from.After(now)).Scan(&raw)
	if err != nil {
		return nil, fmt.Errorf("price of application %d: %w", application, err)
	}
	row, err := decode(raw)
	if err != nil {
		return nil, err
	}
	c.settings = true
	return c.wrote(ctx, prices, "create", nil, row)
}

// DropPrice takes back a price whose time has not come.
func (c *Change) DropPrice(ctx context.Context, key map[string]any) error {
	if err := c.lock(ctx); err != nil {
		return err
	}
	row, err := c.row(ctx, store.ManageGet, prices.Table, key, true)
	if err != nil {
		return err
	}
	if row == nil {
		return ErrNotFound
	}
	from, _ := time.Parse(time.RFC3339Nano, fmt.Sprint(row["since"])) // the zero time has come
	var now time.Time
	if err := c.tx.QueryRow(ctx, store.ManageNow).Scan(&now); err != nil {
		return err
	}
	// Batches that read the price within the last moments have committed before this transaction ends.
	if from.Before(now.Add(time.Second)) {
		return FaultsError{{Field: "effective_from", Value: row["since"], Allowed: "still to come; what was in force stays in the history", Conflict: true}}
	}
	if _, err := c.row(ctx, store.ManageDelete, prices.Table, key); err != nil {
		return err
	}
	_, err = c.wrote(ctx, prices, "delete", row, nil)
	return err
}

// ErrNoIDs says that a Manager without ids was asked to write an entry.
var ErrNoIDs = errors.New("no ids to write entries with")
