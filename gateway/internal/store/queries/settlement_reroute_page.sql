-- Pending commands of one channel in queue order, with what their next channel depends on. $1 channel, $2 lane and $3 pos after which, $4 most rows, $5 lowest message id
SELECT q.id, q.message_id, q.retry_of, q.lane, q.pos, m.phone, m.app_id, m.carrier, m.parts, m.signature
  FROM submit_outbox q CROSS JOIN LATERAL (SELECT phone, app_id, carrier, parts, coalesce(signature, '') AS signature FROM message WHERE id = q.message_id AND id >= $5 OFFSET 0) m
 WHERE q.channel_id = $1 AND (q.lane, q.pos) > ($2::smallint, $3::bigint) AND q.state = 0
 ORDER BY q.lane, q.pos LIMIT $4
