-- $1 id, $2 kind, $3 reason, $4 raw, $5 supplier account
INSERT INTO dead_letter (id, kind, reason, raw, account) VALUES ($1, $2, $3, $4, $5) ON CONFLICT (id) DO NOTHING
