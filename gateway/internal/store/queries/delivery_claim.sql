-- T7 (data §1.12). $1 apps, $2 claim, $3 floors, $4 node, $5 lease, $6 rooms, $7 hold: how long after its SUBMIT a receipt is the accepting node's alone,
-- unless that node has ended or is being adopted. A claim whose lease is over counts as none, and so does the same claim: its answer was lost.
UPDATE delivery SET claim = $2, owner = $4, lease = clock_timestamp() + $5::interval, not_before = NULL,
       attempts = attempts + CASE WHEN claim = $2 THEN 0 ELSE 1 END
 WHERE id = ANY(ARRAY(
   SELECT x.id FROM unnest($1::int[], $3::bigint[], $6::int[]) a (app, floor, room)
    CROSS JOIN LATERAL (
      SELECT q.id FROM delivery q
       WHERE q.app_id = a.app AND q.pos > a.floor
         AND (q.claim IS NULL OR q.claim = $2 OR q.lease < clock_timestamp())
         AND (q.not_before IS NULL OR q.not_before <= clock_timestamp())
         AND (q.kind = 2 OR q.accept_node = $4 OR q.accepted_at < clock_timestamp() - $7::interval
              OR q.accept_node <> ALL(ARRAY(SELECT node FROM node_lease WHERE node BETWEEN 1 AND 255 AND instance IS NOT NULL AND adopter IS NULL)))
       ORDER BY q.pos LIMIT a.room FOR UPDATE SKIP LOCKED) x))
RETURNING id, app_id, kind, msg_id, accept_node, attempts, accepted_at, created_at, done_at, fmt, udhi, stat, dest, src, service, body
