-- New commands linked to the ones they follow. $1 ids, $2 messages, $3 retry_of, $4 delays in ms (0 = at once), $5 channels, $6 enterprises, $7 attempts,
-- $8 parts, $9 of so many parts, $10 lanes
INSERT INTO submit_outbox (id, pos, message_id, retry_of, due, channel_id, enterprise_id, attempt, part, parts, lane)
SELECT u.id, u.id, u.message_id, u.retry_of, CASE WHEN u.delay > 0 THEN clock_timestamp() + u.delay * interval '1 ms' END, u.channel_id, u.enterprise_id,
       u.attempt, u.part, u.parts, u.lane
  FROM unnest($1::bigint[], $2::bigint[], $3::bigint[], $4::int[], $5::int[], $6::int[], $7::smallint[], $8::smallint[], $9::smallint[], $10::smallint[])
  AS u (id, message_id, retry_of, delay, channel_id, enterprise_id, attempt, part, parts, lane)
