-- Refused parts that wait for their siblings. $1 sorted message ids; the messages are locked
SELECT message_id, submit_id, retry_of, channel_id, result, attempt, part FROM part_refused WHERE message_id = ANY($1::bigint[])
