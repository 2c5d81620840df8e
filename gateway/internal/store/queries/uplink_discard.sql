-- Nobody's uplinks that need nothing more; they stay in uplink. $1 event ids, sorted
WITH gone AS (DELETE FROM uplink_unmatched WHERE event_id = ANY($1::bigint[]) RETURNING event_id)
UPDATE uplink SET outcome = 6 WHERE event_id = ANY(ARRAY(SELECT event_id FROM gone))
