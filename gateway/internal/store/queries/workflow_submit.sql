-- First attempts. $1 ids, $2 messages, $3 channels, $4 enterprises, $5 lanes
INSERT INTO submit_outbox (id, pos, message_id, channel_id, enterprise_id, lane, attempt, part, parts)
SELECT u.id, u.id, u.message_id, u.channel_id, u.enterprise_id, u.lane, 1, 1, 1
  FROM unnest($1::bigint[], $2::bigint[], $3::int[], $4::int[], $5::smallint[]) AS u (id, message_id, channel_id, enterprise_id, lane)
