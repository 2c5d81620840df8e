-- The customer's segments of messages. $1 sorted ids, $2..$3 their bounds
SELECT message_id, msg_id, accept_session, accepted_at, registered, accept_node
  FROM message_segment WHERE message_id = ANY($1::bigint[]) AND message_id BETWEEN $2 AND $3 ORDER BY message_id, number, msg_id
