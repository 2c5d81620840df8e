-- $1 submitIds, $2..$3 their bounds
SELECT id, message_id, retry_of, supplier_msg_id, channel_id, account_id, attempt, part, state, stat, result
  FROM submit WHERE id = ANY($1::bigint[]) AND id BETWEEN $2 AND $3
