-- The oldest deliveries of an application that has more than it may. $1 application, $2 how many may stay, $3 rows at most
WITH gone AS (
  DELETE FROM delivery d WHERE id = ANY(ARRAY(
    SELECT x.id FROM delivery x
     WHERE x.app_id = $1 AND x.pos <= (SELECT y.pos FROM delivery y WHERE y.app_id = $1 ORDER BY y.pos DESC OFFSET $2 LIMIT 1) AND (x.claim IS NULL OR x.lease < clock_timestamp())
     ORDER BY x.pos LIMIT $3 FOR UPDATE SKIP LOCKED))
  RETURNING d.id, to_jsonb(d) AS raw)
INSERT INTO dead_letter (id, kind, reason, raw) SELECT id, 'delivery', 'too many wait for the customer', convert_to(raw::text, 'UTF8') FROM gone
ON CONFLICT (id) DO UPDATE SET at = clock_timestamp(), reason = excluded.reason, raw = excluded.raw, replayed_at = NULL -- it was dead before, and replayed
