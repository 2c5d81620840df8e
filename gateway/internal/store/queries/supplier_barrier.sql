-- The dispatch barrier (data §1.3): only ids returned may be written, and only by the caller that chose the batch.
-- $1 submitIds, sorted, $2 batch, $3 node. Repeating the call with the same batch gives the same ids again.
UPDATE submit_outbox SET state = 1, node = $3, batch = $2, at = clock_timestamp()
 WHERE id = ANY($1::bigint[]) AND (state = 0 OR batch = $2) RETURNING id, at
