SELECT id, account_id, kind, n, amount, balance, at FROM account_entry ORDER BY id
