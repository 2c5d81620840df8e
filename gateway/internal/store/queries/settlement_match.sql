-- Submits that the reports may belong to: the id, of the days that count. $1 Msg_Ids of the supplier, $2 lowest submitId
SELECT id, message_id, retry_of, supplier_msg_id, channel_id, account_id, attempt, part, state, stat
  FROM submit WHERE supplier_msg_id = ANY($1::bigint[]) AND id >= $2
