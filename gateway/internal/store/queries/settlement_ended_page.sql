-- A page of the queue in order of ids, and why each row is to leave it: 0 it is not (or was dispatched), 1 it waited too
-- long, counted from its first time in the queue, 2 it is stopped.
-- $1 after this id, $2 most rows, $3 lowest submitIds that may still wait, by lane, $4 enterprises and $5 applications that are
-- stopped, $6 everything is, $7 lowest message id
SELECT q.id, q.message_id,
       CASE WHEN q.state <> 0 THEN 0
            WHEN coalesce(nullif(q.retry_of, 0), q.id) < ($3::bigint[])[q.lane + 1] THEN 1
            WHEN $6::boolean OR q.enterprise_id = ANY($4::int[]) OR m.app_id IS NOT NULL THEN 2
            ELSE 0 END
  FROM (SELECT id, message_id, retry_of, enterprise_id, lane, state FROM submit_outbox WHERE id > $1 ORDER BY id LIMIT $2) q
  LEFT JOIN LATERAL (SELECT app_id FROM message
                      WHERE id = q.message_id AND id >= $7 AND cardinality($5::int[]) > 0 AND app_id = ANY($5::int[]) OFFSET 0) m ON true
 ORDER BY q.id
