-- Submits that the reports may belong to. $1 Msg_Ids of the supplier, $2 lowest submitId. The bound is no bare comparison on purpose:
-- it would offer the primary key as a second access path, which reads all submits of the days (data §1.6).
SELECT id, message_id, retry_of, supplier_msg_id, channel_id, account_id, attempt, part, state, stat, result
  FROM submit WHERE supplier_msg_id = ANY($1::bigint[]) AND id + 0 >= $2
