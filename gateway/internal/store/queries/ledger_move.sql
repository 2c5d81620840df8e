-- Freeze, release or refund: balance and entry in one statement, the last of its transaction. The entry takes its time
-- and the balance after it under the account's row lock, so that entries replay in the order in which they happened.
-- Raises P0001 when the account is missing, 23514 (account_funds) when it would go below its credit.
-- $1 entry id, $2 account, $3 kind, $4 n, $5 amount
WITH moved AS (
  UPDATE account SET available = available + CASE WHEN $3::smallint = 2 THEN -$5::bigint ELSE $5::bigint END
   WHERE id = $2::int RETURNING available),
entry AS (
  INSERT INTO account_entry (id, account_id, kind, n, amount, balance)
  SELECT $1::bigint, $2::int, $3::smallint, $4::int, $5::bigint, available FROM moved RETURNING 1)
SELECT must_be(1, (SELECT count(*) FROM entry))
