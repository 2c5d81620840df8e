-- Rows that nobody took in time. $1 the first id that is young enough, $2 rows at most
WITH gone AS (
  DELETE FROM delivery d
   WHERE id = ANY(ARRAY(SELECT id FROM delivery WHERE id < $1 AND (claim IS NULL OR lease < clock_timestamp()) ORDER BY id LIMIT $2 FOR UPDATE SKIP LOCKED))
  RETURNING d.id, to_jsonb(d) AS raw)
INSERT INTO dead_letter (id, kind, reason, raw) SELECT id, 'delivery', 'not taken in time', convert_to(raw::text, 'UTF8') FROM gone
