-- Rows that a node has dispatched at least $2 ago and has no result for. $1 node, $2 age, $3 most rows.
SELECT q.id, q.message_id, q.retry_of, q.channel_id, q.enterprise_id, m.app_id, q.attempt, q.part, q.parts, q.lane,
       m.phone, m.src, q.at
  FROM submit_outbox q JOIN message m ON m.id = q.message_id
 WHERE q.state = 1 AND q.node = $1 AND q.at < clock_timestamp() - $2::interval
 ORDER BY q.id LIMIT $3
