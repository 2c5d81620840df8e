-- Only after an account turned out too short: it is held while the batch is cut to what can be paid.
SELECT id, available + credit FROM account WHERE id = ANY($1::int[]) ORDER BY id FOR NO KEY UPDATE
