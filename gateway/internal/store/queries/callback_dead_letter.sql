-- $1 id, $2 kind, $3 reason, $4 raw
INSERT INTO dead_letter (id, kind, reason, raw) VALUES ($1, $2, $3, $4) ON CONFLICT (id) DO NOTHING
