-- Nobody's uplinks go back into the queue. $1 event ids, sorted
WITH gone AS (DELETE FROM uplink_unmatched WHERE event_id = ANY($1::bigint[]) RETURNING event_id),
again AS (UPDATE uplink SET outcome = 0 WHERE event_id = ANY(ARRAY(SELECT event_id FROM gone)) RETURNING event_id)
INSERT INTO uplink_queue (event_id, pos) SELECT event_id, event_id FROM again ON CONFLICT DO NOTHING
