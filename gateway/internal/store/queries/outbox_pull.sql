-- Pending rows of one channel and lane that may be sent now, oldest first.
-- $1 channel, $2 floor (pos), $3 most rows, $4..$5 bounds of the message ids, $6 lane.
SELECT q.id, q.message_id, q.retry_of, q.channel_id, q.enterprise_id, m.app_id, q.attempt, q.part, q.parts, q.lane,
       m.phone, m.fmt, m.udhi, m.pk_total, m.pk_number, m.src, m.service, m.content, m.valid_until
  FROM submit_outbox q JOIN message m ON m.id = q.message_id AND m.id BETWEEN $4 AND $5
 WHERE q.channel_id = $1 AND q.lane = $6 AND q.pos > $2 AND q.state = 0
   AND (q.due IS NULL OR q.due <= clock_timestamp())
   AND (m.valid_until IS NULL OR m.valid_until > clock_timestamp())
 ORDER BY q.pos LIMIT $3
