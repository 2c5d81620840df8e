-- Pending rows of one channel and lane that may be sent now, oldest first. The queue is read first and bounded; each row
-- then looks up its message by key. As a plain join the planner may walk all messages of the days between $4 and $5 and
-- compare each with the whole queue (data §1.6). Rows whose validity has passed come too: they must not hide those
-- behind them.
-- $1 channel, $2 floor (pos), $3 most rows, $4..$5 bounds of the message ids, $6 lane, $7 enterprises whose
-- commands wait.
WITH q AS MATERIALIZED (
  SELECT id, pos, message_id, retry_of, channel_id, enterprise_id, attempt, part, parts, lane
    FROM submit_outbox
   WHERE channel_id = $1 AND lane = $6 AND pos > $2 AND state = 0 AND (due IS NULL OR due <= clock_timestamp())
     AND enterprise_id <> ALL($7::int[])
   ORDER BY pos LIMIT $3)
SELECT q.id, q.message_id, q.retry_of, q.channel_id, q.enterprise_id, m.app_id, q.attempt, q.part, q.parts, q.lane,
       m.phone, m.fmt, m.udhi, m.pk_total, m.pk_number, m.src, m.service, m.content, m.valid_until, m.segments, m.out_fmt, m.ref
  FROM q CROSS JOIN LATERAL (
    SELECT app_id, phone, fmt, udhi, pk_total, pk_number, src, service, content, valid_until, segments, out_fmt, ref
      FROM message WHERE id = q.message_id AND id BETWEEN $4 AND $5 OFFSET 0) AS m
 ORDER BY q.pos
