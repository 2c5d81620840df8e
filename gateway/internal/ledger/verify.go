package ledger

import (
	"context"
	"fmt"
	"io"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"cmppgateway/gateway/internal/message"
	"cmppgateway/gateway/internal/store"
)

// Account is one account recomputed from its entries alone.
type Account struct {
	ID        int32 `json:"id"`
	Available int64 `json:"available"` // the running balance of the account row
	Credit    int64 `json:"credit"`
	ToppedUp  int64 `json:"toppedUp"`
	Frozen    int64 `json:"frozen"`  // freezes − charges − releases
	Charged   int64 `json:"charged"` // all charges, refunded ones included
	Released  int64 `json:"released"`
	Refunded  int64 `json:"refunded"`
	FrozenN   int64 `json:"frozenN"`
	ChargedN  int64 `json:"chargedN"`
	ReleasedN int64 `json:"releasedN"`
	RefundedN int64 `json:"refundedN"`
	Lowest    int64 `json:"lowest"` // lowest balance when the entries are replayed in ledger order
}

// Fault is one violated rule with the key it was found at.
type Fault struct {
	Rule   string `json:"rule"`
	Key    string `json:"key"`
	Detail string `json:"detail"`
}

// Report is the outcome of Verify; no faults means that the books are exact.
type Report struct {
	Accounts []Account `json:"accounts"`
	Faults   []Fault   `json:"faults"`
}

// Verify recomputes every account from its entries, every entry from the messages that point at it, and every pointer
// and billing state, in one REPEATABLE READ snapshot, so that it may run beside full load. At most 100 faults of a kind
// are listed.
func Verify(ctx context.Context, pool *pgxpool.Pool) (Report, error) {
	var r Report
	err := pgx.BeginTxFunc(ctx, pool, pgx.TxOptions{IsoLevel: pgx.RepeatableRead, AccessMode: pgx.ReadOnly}, func(tx pgx.Tx) error {
		// The hot pools forbid sequential scans; a full recount wants them.
		if _, err := tx.Exec(ctx, "SET LOCAL enable_seqscan = on; SET LOCAL statement_timeout = 0"); err != nil {
			return err
		}
		for _, step := range []func(context.Context, pgx.Tx) error{r.accounts, r.order, r.entries, r.pointers, r.bills} {
			if err := step(ctx, tx); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		return Report{}, fmt.Errorf("verify ledger: %w", err)
	}
	return r, nil
}

func (r *Report) fault(rule string, key, detail string) {
	r.Faults = append(r.Faults, Fault{Rule: rule, Key: key, Detail: detail})
}

func (r *Report) accounts(ctx context.Context, tx pgx.Tx) error {
	var a Account
	var freezes, freezeN int64
	rows, err := tx.Query(ctx, store.LedgerVerifyAccounts)
	if err != nil {
		return err
	}
	_, err = pgx.ForEachRow(rows, []any{
		&a.ID, &a.Available, &a.Credit, &a.ToppedUp, &freezes, &a.Charged, &a.Released, &a.Refunded,
		&freezeN, &a.ChargedN, &a.ReleasedN, &a.RefundedN,
	}, func() error {
		a.Frozen, a.FrozenN = freezes-a.Charged-a.Released, freezeN-a.ChargedN-a.ReleasedN
		key := fmt.Sprintf("account %d", a.ID)
		// P6: opening + top-ups = available + frozen + charged − refunded; the opening balance is a top-up.
		if want := a.ToppedUp - a.Frozen - a.Charged + a.Refunded; a.Available != want {
			r.fault("balance", key, fmt.Sprintf("available %d, entries give %d (difference %d)", a.Available, want, a.Available-want))
		}
		if a.Frozen < 0 || a.FrozenN < 0 {
			r.fault("settled more than frozen", key, fmt.Sprintf("frozen %d over %d messages", a.Frozen, a.FrozenN))
		}
		if a.Refunded > a.Charged {
			r.fault("refunded more than charged", key, fmt.Sprintf("refunded %d, charged %d", a.Refunded, a.Charged))
		}
		r.Accounts = append(r.Accounts, a)
		return nil
	})
	return err
}

func (r *Report) order(ctx context.Context, tx pgx.Tx) error {
	var id int32
	var lowest, differing int64
	rows, err := tx.Query(ctx, store.LedgerVerifyOrder)
	if err != nil {
		return err
	}
	_, err = pgx.ForEachRow(rows, []any{&id, &lowest, &differing}, func() error {
		for i := range r.Accounts {
			a := &r.Accounts[i]
			if a.ID != id {
				continue
			}
			a.Lowest = lowest
			if lowest+a.Credit < 0 {
				r.fault("below credit", fmt.Sprintf("account %d", id), fmt.Sprintf("lowest balance %d, credit %d", lowest, a.Credit))
			}
		}
		if differing > 0 {
			r.fault("replay", fmt.Sprintf("account %d", id), fmt.Sprintf("%d entries carry another balance than the replay", differing))
		}
		return nil
	})
	return err
}

func (r *Report) entries(ctx context.Context, tx pgx.Tx) error {
	var id, n, amount, gotN, gotAmount int64
	var account int32
	var kind message.EntryKind
	rows, err := tx.Query(ctx, store.LedgerVerifyEntries)
	if err != nil {
		return err
	}
	_, err = pgx.ForEachRow(rows, []any{&id, &account, &kind, &n, &amount, &gotN, &gotAmount}, func() error {
		r.fault("entry", fmt.Sprintf("entry %d", id), fmt.Sprintf("account %d, kind %d: entry has %d messages and %d, messages pointing at it %d and %d", account, kind, n, amount, gotN, gotAmount))
		return nil
	})
	return err
}

func (r *Report) pointers(ctx context.Context, tx pgx.Tx) error {
	var id, entry int64
	var kind message.EntryKind
	rows, err := tx.Query(ctx, store.LedgerVerifyPointers)
	if err != nil {
		return err
	}
	_, err = pgx.ForEachRow(rows, []any{&id, &entry, &kind}, func() error {
		r.fault("pointer", fmt.Sprintf("message %d", id), fmt.Sprintf("points at entry %d of kind %d, which its account does not have", entry, kind))
		return nil
	})
	return err
}

func (r *Report) bills(ctx context.Context, tx pgx.Tx) error {
	var id, freeze, settle, refund int64
	var bill message.Bill
	rows, err := tx.Query(ctx, store.LedgerVerifyBills)
	if err != nil {
		return err
	}
	_, err = pgx.ForEachRow(rows, []any{&id, &bill, &freeze, &settle, &refund}, func() error {
		r.fault("bill", fmt.Sprintf("message %d", id), fmt.Sprintf("%s with entries freeze %d, settle %d, refund %d", bill, freeze, settle, refund))
		return nil
	})
	return err
}

// Write prints the report for people: one line an account, one a fault.
func (r Report) Write(w io.Writer) error {
	for _, a := range r.Accounts {
		if _, err := fmt.Fprintf(w, "account %d: topped up %d = available %d + frozen %d + charged %d - refunded %d; %d frozen, %d charged, %d released, %d refunded; lowest %d\n",
			a.ID, a.ToppedUp, a.Available, a.Frozen, a.Charged, a.Refunded, a.FrozenN, a.ChargedN, a.ReleasedN, a.RefundedN, a.Lowest); err != nil {
			return err
		}
	}
	for _, f := range r.Faults {
		if _, err := fmt.Fprintf(w, "FAULT %s: %s: %s\n", f.Rule, f.Key, f.Detail); err != nil {
			return err
		}
	}
	_, err := fmt.Fprintf(w, "%d accounts, %d faults\n", len(r.Accounts), len(r.Faults))
	return err
}
