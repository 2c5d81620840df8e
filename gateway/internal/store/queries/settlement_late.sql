-- Answers to submits that were unknown (data T4, statement B). In a statement of its own: one that shares the snapshot of
-- statement A does not see what a sweeper has just moved (data §1.14). The messages are locked.
-- $1 submitIds, sorted, $2..$3 their bounds, $4 states, $5 results, $6 Msg_Ids of the supplier, $7 resp_at
UPDATE submit s SET state = u.state, result = u.result, supplier_msg_id = u.supplier_msg_id, resp_at = u.resp_at
  FROM unnest($1::bigint[], $4::smallint[], $5::int[], $6::bigint[], $7::timestamptz[]) AS u (id, state, result, supplier_msg_id, resp_at)
 WHERE s.id = ANY($1::bigint[]) AND s.id BETWEEN $2 AND $3 AND s.id = u.id AND s.state = 4
RETURNING s.id, s.message_id, s.retry_of, s.channel_id, s.attempt, s.part, s.dispatched_at
