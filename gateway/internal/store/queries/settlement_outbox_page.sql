-- A page of the queue in order of ids, and what is the matter with each row: expired; or dispatched by a living node and how many ms ago.
-- $1 after this id, $2 most rows, $3 lowest message id
SELECT q.id, q.message_id, q.channel_id, q.attempt, q.part, q.parts, coalesce(q.node, 0), coalesce(q.at, now()), coalesce(m.phone, 0),
       q.state = 0 AND m.valid_until <= clock_timestamp(),
       CASE WHEN q.state = 1 AND EXISTS (SELECT FROM node_lease n WHERE n.node = q.node AND n.adopter IS NULL AND n.lease_until > clock_timestamp())
            THEN (extract(epoch FROM clock_timestamp() - q.at) * 1000)::bigint ELSE 0 END
  FROM (SELECT * FROM submit_outbox WHERE id > $1 ORDER BY id LIMIT $2) q
  LEFT JOIN LATERAL (SELECT phone, valid_until FROM message WHERE id = q.message_id AND id >= $3 OFFSET 0) m ON true
 ORDER BY q.id
