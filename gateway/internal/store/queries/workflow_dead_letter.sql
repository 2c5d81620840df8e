-- $1 id, $2 reason, $3 raw
INSERT INTO dead_letter (id, kind, reason, raw) VALUES ($1, 'inbox', $2, $3)
