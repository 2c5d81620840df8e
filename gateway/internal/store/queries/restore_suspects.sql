-- A page of commands that may have been sent after the backup. A pending one was sent, if at all, soon after its message was
-- accepted: reports and statements are compared with that time. $1 most rows, $2 the node in whose name it is done
UPDATE submit_outbox q SET state = 1, node = coalesce(q.node, $2::smallint), at = coalesce(q.at, m.accepted_at)
  FROM message m
 WHERE q.id = ANY(ARRAY(SELECT id FROM submit_outbox ORDER BY id LIMIT $1)) AND m.id = q.message_id
RETURNING q.id, q.message_id, q.channel_id, q.attempt, q.part, q.parts, q.node, m.app_id, m.phone, m.src, q.at
