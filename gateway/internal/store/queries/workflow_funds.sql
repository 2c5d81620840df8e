SELECT id, available + credit FROM account WHERE id = ANY($1::int[])
