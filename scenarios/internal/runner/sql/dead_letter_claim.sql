INSERT INTO dead_letter (id, kind, reason, raw, account) VALUES ($1, 'scenario', 'claimed by the harness', '', 0)
