-- As the ledger does it: the balance under the account's lock, and the entry that carries it. $2 amount, $3 the caller's key.
WITH moved AS (UPDATE account SET available = available + $2 WHERE id = $1 RETURNING available)
INSERT INTO account_entry (id, account_id, kind, n, amount, balance, idem)
SELECT coalesce((SELECT max(id) FROM account_entry), 0) + 1, $1, 1, 1, $2, available, $3 FROM moved
