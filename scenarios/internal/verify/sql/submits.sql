-- Every submit that may have left: with its result, or still without.
SELECT id, message_id, retry_of, supplier_msg_id, channel_id, account_id, result, attempt, part, state, dispatched_at, resp_at
  FROM submit
UNION ALL
SELECT o.id, o.message_id, o.retry_of, 0, o.channel_id, coalesce(c.account_id, 0), 0, o.attempt, o.part, 1, o.at, NULL
  FROM submit_outbox o LEFT JOIN channel c ON c.id = o.channel_id WHERE o.state = 1
 ORDER BY 1
