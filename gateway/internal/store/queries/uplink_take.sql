-- Each uplink leaves the queue once. $1 event ids, sorted, $2 how many
WITH gone AS (DELETE FROM uplink_queue WHERE event_id = ANY($1::bigint[]) RETURNING 1)
SELECT must_be($2, (SELECT count(*) FROM gone))
