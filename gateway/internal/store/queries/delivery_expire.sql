-- Rows that nobody took in time; replayed ones have an old id and begin anew. $1 the first id that is young enough, $2 rows at most, $3 the time
WITH gone AS (
  DELETE FROM delivery d
   WHERE id = ANY(ARRAY(SELECT id FROM delivery WHERE id < $1 AND created_at < clock_timestamp() - $3::interval AND (claim IS NULL OR lease < clock_timestamp()) ORDER BY id LIMIT $2 FOR UPDATE SKIP LOCKED))
  RETURNING d.id, to_jsonb(d) AS raw)
INSERT INTO dead_letter (id, kind, reason, raw) SELECT id, 'delivery', 'not taken in time', convert_to(raw::text, 'UTF8') FROM gone
ON CONFLICT (id) DO UPDATE SET at = clock_timestamp(), reason = excluded.reason, raw = excluded.raw, replayed_at = NULL -- it was dead before, and replayed
