-- First attempts. $1 ids, $2 messages, $3 channels, $4 enterprises, $5 lanes, $6 parts, $7 of so many parts
INSERT INTO submit_outbox (id, pos, message_id, channel_id, enterprise_id, lane, attempt, part, parts)
SELECT u.id, u.id, u.message_id, u.channel_id, u.enterprise_id, u.lane, 1, u.part, u.parts
  FROM unnest($1::bigint[], $2::bigint[], $3::int[], $4::int[], $5::smallint[], $6::smallint[], $7::smallint[]) AS u (id, message_id, channel_id, enterprise_id, lane, part, parts)
