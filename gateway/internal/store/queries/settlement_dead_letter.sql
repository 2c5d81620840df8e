-- $1 ids, $2 kind, $3 reasons, $4 raw
INSERT INTO dead_letter (id, kind, reason, raw)
SELECT u.id, $2, u.reason, u.raw FROM unnest($1::bigint[], $3::text[], $4::bytea[]) AS u (id, reason, raw) ON CONFLICT (id) DO NOTHING
