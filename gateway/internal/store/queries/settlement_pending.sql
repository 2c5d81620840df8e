-- The pending commands of messages, in their channels' queues. $1 sorted messages, $2..$3 their bounds
WITH m AS MATERIALIZED (SELECT id, channel_id, lane FROM message WHERE id = ANY($1::bigint[]) AND id BETWEEN $2 AND $3 AND state = 1)
SELECT q.id FROM m CROSS JOIN LATERAL (
  SELECT id FROM submit_outbox WHERE channel_id = m.channel_id AND lane = m.lane AND pos > m.id AND message_id = m.id AND state = 0 OFFSET 0) AS q
