-- $1 ids, $2 kind, $3 reasons, $4 raw: JSON that names the supplier account
INSERT INTO dead_letter (id, kind, reason, raw, account)
SELECT u.id, $2, u.reason, u.raw, (convert_from(u.raw, 'UTF8')::jsonb->>'account')::int
  FROM unnest($1::bigint[], $3::text[], $4::bytea[]) AS u (id, reason, raw) ON CONFLICT (id) DO NOTHING
