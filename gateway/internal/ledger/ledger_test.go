package ledger_test

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"golang.org/x/sync/errgroup"

	"cmppgateway/gateway/internal/ledger"
	"cmppgateway/gateway/internal/message"
	"cmppgateway/gateway/internal/store"
	"cmppgateway/testenv"
)

func TestMain(m *testing.M) {
	testenv.Migrated(store.Migrate)
	testenv.Main(m)
}

type bench struct {
	*pgxpool.Pool

	ids *message.IDs
}

func setup(t *testing.T, accounts ...int32) bench {
	t.Helper()
	pool, err := pgxpool.New(t.Context(), testenv.DB(t))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(pool.Close)
	b := bench{Pool: pool, ids: message.NewIDs(1, time.Now().Add(-time.Second), time.Now().Add(time.Hour), time.Now)}
	for _, a := range accounts {
		b.exec(t, store.LedgerAccountCreate, a, int64(0))
	}
	return b
}

func (b bench) exec(t *testing.T, sql string, args ...any) {
	t.Helper()
	if _, err := b.Exec(t.Context(), sql, args...); err != nil {
		t.Fatalf("%s: %v", sql, err)
	}
}

func (b bench) id(t *testing.T) int64 {
	t.Helper()
	id, err := b.ids.Next(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return id
}

// apply queues the entries in one transaction, as the flows do.
func (b bench) apply(ctx context.Context, entries ...ledger.Entry) error {
	return pgx.BeginFunc(ctx, b.Pool, func(tx pgx.Tx) error {
		var batch pgx.Batch
		ledger.Queue(&batch, entries)
		return tx.SendBatch(ctx, &batch).Close()
	})
}

const insertMessage = `INSERT INTO message (id, msg_id, freeze_entry, settle_entry, refund_entry, price, phone, accept_session, accepted_at, created_at, enterprise_id, app_id, units,
  price_version, state, bill, charge_on, refund_on, registered, fmt, udhi, pk_total, pk_number, accept_node, dest, src, service, content)
  VALUES ($1, $1, $2, $3, $4, 325, 13800000000, 1, now(), now(), $5, 1, 1, 1, 2, $6, 1, 1, 1, 0, 0, 1, 1, 1, '', '', '', '')`

// books writes ten messages frozen by one entry, of which four are charged, three released, two of the charged refunded.
func books(t *testing.T, b bench) {
	t.Helper()
	if _, err := ledger.TopUp(t.Context(), b.Pool, b.ids, 1, 10_000, "opening"); err != nil {
		t.Fatal(err)
	}
	freeze, charge, release, refund := b.id(t), b.id(t), b.id(t), b.id(t)
	for _, e := range []ledger.Entry{
		{ID: freeze, Account: 1, Kind: message.Freeze, N: 10, Amount: 3250},
		{ID: charge, Account: 1, Kind: message.Charge, N: 4, Amount: 1300},
		{ID: release, Account: 1, Kind: message.Release, N: 3, Amount: 975},
		{ID: refund, Account: 1, Kind: message.Refund, N: 2, Amount: 650},
	} {
		if err := b.apply(t.Context(), e); err != nil {
			t.Fatal(err)
		}
	}
	for i := range 10 {
		settle, back, bill := int64(0), int64(0), message.Frozen
		switch {
		case i < 2:
			settle, back, bill = charge, refund, message.Refunded
		case i < 4:
			settle, bill = charge, message.Charged
		case i < 7:
			settle, bill = release, message.Released
		}
		b.exec(t, insertMessage, b.id(t), freeze, settle, back, int32(1), int16(bill))
	}
}

func TestVerifyExactBooks(t *testing.T) {
	t.Parallel()
	b := setup(t, 1)
	books(t, b)
	r, err := ledger.Verify(t.Context(), b.Pool)
	if err != nil {
		t.Fatal(err)
	}
	if len(r.Faults) > 0 {
		t.Fatalf("faults in exact books: %v", r.Faults)
	}
	want := ledger.Account{
		ID: 1, Available: 10_000 - 3250 + 975 + 650, ToppedUp: 10_000, Frozen: 975, Charged: 1300, Released: 975, Refunded: 650,
		FrozenN: 3, ChargedN: 4, ReleasedN: 3, RefundedN: 2, Lowest: 6750,
	}
	if len(r.Accounts) != 1 || r.Accounts[0] != want {
		t.Fatalf("accounts %+v, want %+v", r.Accounts, want)
	}
}

// Each damage is one a program or a person can do; exactly the named rules must see it.
func TestVerifyFindsDamage(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ name, damage, rules string }{
		{"balance changed by hand", `UPDATE account SET available = available + 1`, "balance"},
		{"double charge", `INSERT INTO account_entry (id, account_id, kind, n, amount) SELECT 77, account_id, kind, n, amount FROM account_entry WHERE kind = 3`, "entry, settled more than frozen"},
		{"double refund booked and paid", `WITH e AS (INSERT INTO account_entry (id, account_id, kind, n, amount) SELECT 77, account_id, kind, n, amount FROM account_entry WHERE kind = 5 RETURNING amount) UPDATE account SET available = available + (SELECT amount FROM e)`, "entry"},
		{"lost entry", `DELETE FROM account_entry WHERE kind = 4`, "balance, pointer, replay"},
		{"charged without an entry", `UPDATE message SET bill = 2 WHERE id = (SELECT min(id) FROM message WHERE bill = 1)`, "bill"},
		{"swapped enterprise", `UPDATE message SET enterprise_id = 2 WHERE id = (SELECT min(id) FROM message WHERE bill = 1)`, "entry, pointer"},
		{"message settled twice", `UPDATE message SET settle_entry = (SELECT id FROM account_entry WHERE kind = 4) WHERE id = (SELECT min(id) FROM message WHERE bill = 2)`, "entry, pointer"},
		{"units changed after the freeze", `UPDATE message SET units = 2 WHERE id = (SELECT min(id) FROM message WHERE bill = 1)`, "entry"},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			b := setup(t, 1)
			books(t, b)
			b.exec(t, c.damage)
			r, err := ledger.Verify(t.Context(), b.Pool)
			if err != nil {
				t.Fatal(err)
			}
			found := map[string]bool{}
			for _, f := range r.Faults {
				found[f.Rule] = true
			}
			for rule := range strings.SplitSeq(c.rules, ", ") {
				if !found[rule] {
					t.Errorf("rule %q did not fire: %v", rule, r.Faults)
				}
				delete(found, rule)
			}
			if len(found) > 0 {
				t.Errorf("rules beyond %s fired: %v", c.rules, r.Faults)
			}
		})
	}
}

func TestAccountNeverGoesBelowItsCredit(t *testing.T) {
	t.Parallel()
	b := setup(t, 1)
	b.exec(t, `UPDATE account SET credit = 100`)
	if _, err := ledger.TopUp(t.Context(), b.Pool, b.ids, 1, 900, "opening"); err != nil {
		t.Fatal(err)
	}
	// Forty batches of 50 race for 1,000: exactly twenty can be paid, whatever the order.
	paid, short := make(chan struct{}, 40), make(chan struct{}, 40)
	var g errgroup.Group
	for range 40 {
		id := b.id(t)
		g.Go(func() error {
			err := b.apply(t.Context(), ledger.Entry{ID: id, Account: 1, Kind: message.Freeze, N: 1, Amount: 50})
			switch {
			case err == nil:
				paid <- struct{}{}
			case ledger.IsShort(err):
				short <- struct{}{}
			default:
				return err
			}
			return nil
		})
	}
	if err := g.Wait(); err != nil {
		t.Fatal(err)
	}
	var available, entries int64
	if err := b.QueryRow(t.Context(), `SELECT available, (SELECT count(*) FROM account_entry WHERE kind = 2) FROM account`).Scan(&available, &entries); err != nil {
		t.Fatal(err)
	}
	if len(paid) != 20 || len(short) != 20 || available != -100 || entries != 20 {
		t.Fatalf("%d paid, %d short, available %d, %d freeze entries; want 20, 20, -100, 20", len(paid), len(short), available, entries)
	}
}

func TestQueueIsFreeOfDeadlocks(t *testing.T) {
	t.Parallel()
	b := setup(t, 1, 2, 3, 4)
	var g errgroup.Group
	for w := range 8 {
		g.Go(func() error {
			for i := range 50 {
				var entries []ledger.Entry
				for k := range int32(4) { // every worker lists the accounts in another order
					id, err := b.ids.Next(t.Context())
					if err != nil {
						return err
					}
					entries = append(entries, ledger.Entry{ID: id, Account: (k+int32(w+i))%4 + 1, Kind: message.Release, N: 1, Amount: 1})
				}
				if err := b.apply(t.Context(), entries...); err != nil {
					return err
				}
			}
			return nil
		})
	}
	if err := g.Wait(); err != nil {
		t.Fatal(err)
	}
	var total int64
	if err := b.QueryRow(t.Context(), `SELECT sum(available) FROM account`).Scan(&total); err != nil {
		t.Fatal(err)
	}
	if total != 8*50*4 {
		t.Fatalf("accounts hold %d, want %d", total, 8*50*4)
	}
}

func TestMissingAccountFailsTheTransaction(t *testing.T) {
	t.Parallel()
	b := setup(t)
	err := b.apply(t.Context(), ledger.Entry{ID: 1, Account: 9, Kind: message.Freeze, N: 1, Amount: 1})
	if store.Code(err) != store.CodeGuard {
		t.Fatalf("error %v, want the guard's %s", err, store.CodeGuard)
	}
}

func TestTopUpOncePerKey(t *testing.T) {
	t.Parallel()
	b := setup(t, 1)
	applied := 0
	for i := range 6 {
		ok, err := ledger.TopUp(t.Context(), b.Pool, b.ids, 1, 100, fmt.Sprintf("order-%d", i/2))
		if err != nil {
			t.Fatal(err)
		}
		if ok {
			applied++
		}
	}
	var available int64
	if err := b.QueryRow(t.Context(), `SELECT available FROM account`).Scan(&available); err != nil {
		t.Fatal(err)
	}
	if applied != 3 || available != 300 {
		t.Fatalf("%d applied, available %d; want 3 and 300", applied, available)
	}
	if _, err := ledger.TopUp(t.Context(), b.Pool, b.ids, 1, 0, "zero"); err == nil {
		t.Fatal("a top-up of 0 was taken")
	}
}
