-- Rows whose tries are spent. $1 ids, sorted, $2 claims, $3 reasons (pairwise)
WITH gone AS (
  DELETE FROM delivery d USING unnest($1::bigint[], $2::bigint[], $3::text[]) u (id, claim, reason)
   WHERE d.id = ANY($1::bigint[]) AND d.id = u.id AND d.claim = u.claim
  RETURNING d.id, u.reason, to_jsonb(d) AS raw)
INSERT INTO dead_letter (id, kind, reason, raw) SELECT id, 'delivery', reason, convert_to(raw::text, 'UTF8') FROM gone
ON CONFLICT (id) DO UPDATE SET at = clock_timestamp(), reason = excluded.reason, raw = excluded.raw, replayed_at = NULL -- it was dead before, and replayed
