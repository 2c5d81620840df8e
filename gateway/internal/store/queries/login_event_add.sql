-- What happened at the entrance since the last time, one row a key; the keys sorted and each given once.
-- $1 sp_ids, $2 addresses, $3 statuses, $4 causes, $5 first_at, $6 last_at, $7 counts, $8 app_ids, $9 versions, $10 stamps, $11 details, $12 node
INSERT INTO login_event AS e (sp_id, address, status, cause, first_at, last_at, n, app_id, version, stamp, detail, node)
SELECT u.*, $12 FROM unnest($1::text[], $2::inet[], $3::smallint[], $4::text[], $5::timestamptz[], $6::timestamptz[], $7::bigint[], $8::int[], $9::smallint[],
    $10::text[], $11::text[]) u
ON CONFLICT (sp_id, address, status, cause) DO UPDATE SET n = e.n + excluded.n, last_at = greatest(e.last_at, excluded.last_at), app_id = excluded.app_id,
  version = excluded.version, stamp = excluded.stamp, detail = excluded.detail, node = excluded.node
