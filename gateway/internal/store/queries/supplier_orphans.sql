-- Rows that a dead node has dispatched. $1 node, $2 most rows.
SELECT q.id, q.message_id, q.retry_of, q.channel_id, q.enterprise_id, m.app_id, q.attempt, q.part, q.parts, q.lane,
       m.phone, m.src, q.at
  FROM submit_outbox q JOIN message m ON m.id = q.message_id
 WHERE q.state = 1 AND q.node = $1
 ORDER BY q.id LIMIT $2
