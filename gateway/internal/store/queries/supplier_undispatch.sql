-- Takes dispatches back that were surely not written; only the process life that ran the barrier may (data §1.3).
-- $1 submitIds, sorted, $2 node, $3 batch.
UPDATE submit_outbox SET state = 0, batch = NULL, node = NULL, at = NULL
 WHERE id = ANY($1::bigint[]) AND state = 1 AND node = $2 AND batch = $3
