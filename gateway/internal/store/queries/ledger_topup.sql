-- Once per (account, idem): the unique index refuses the second one (23505) and with it the balance.
-- $1 entry id, $2 account, $3 amount, $4 idem
WITH moved AS (UPDATE account SET available = available + $3::bigint WHERE id = $2::int RETURNING available),
entry AS (
  INSERT INTO account_entry (id, account_id, kind, n, amount, balance, idem)
  SELECT $1::bigint, $2::int, 1, 1, $3::bigint, available, $4::text FROM moved RETURNING 1)
SELECT must_be(1, (SELECT count(*) FROM entry))
