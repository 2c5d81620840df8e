-- The segments of messages that were made under keys. $1 keys, $2 lowest message id (+ 0: the key is no access path
-- beside the index on set_key)
SELECT set_key, message_id, number, hash FROM message_segment WHERE set_key = ANY($1::bigint[]) AND message_id + 0 >= $2
