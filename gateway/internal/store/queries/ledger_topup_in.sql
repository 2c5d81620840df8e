-- As ledger_topup, inside a transaction of others, with the balance after it.
-- $1 entry id, $2 account, $3 amount, $4 idem
WITH moved AS (UPDATE account SET available = available + $3::bigint WHERE id = $2::int RETURNING available)
INSERT INTO account_entry (id, account_id, kind, n, amount, balance, idem)
SELECT $1::bigint, $2::int, 1, 1, $3::bigint, available, $4::text FROM moved RETURNING balance
