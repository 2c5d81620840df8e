-- $1 message ids, $2 submitIds, $3 retry_of, $4 channels, $5 results, $6 attempts, $7 parts
INSERT INTO part_refused (message_id, submit_id, retry_of, channel_id, result, attempt, part)
SELECT * FROM unnest($1::bigint[], $2::bigint[], $3::bigint[], $4::int[], $5::int[], $6::smallint[], $7::smallint[])
