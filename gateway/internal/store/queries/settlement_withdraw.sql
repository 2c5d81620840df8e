-- Commands leave the queue other than by the barrier: only pending ones do, so the barrier cannot meet them. $1 sorted ids
DELETE FROM submit_outbox WHERE id = ANY($1::bigint[]) AND state = 0
RETURNING id, message_id, retry_of, channel_id, attempt, part
