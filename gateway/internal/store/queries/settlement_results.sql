-- Dispatched commands with an answer, or known to have none, become submits (data T4, statement A). Only dispatched rows
-- move, so every submit moves once however often its result is offered.
-- $1 submitIds, sorted, $2 states, $3 results, $4 Msg_Ids of the supplier, $5 resp_at, $6 supplier accounts, $7 connections, $8 nodes
WITH d AS (
  DELETE FROM submit_outbox o
   USING unnest($1::bigint[], $2::smallint[], $3::int[], $4::bigint[], $5::timestamptz[], $6::int[], $7::int[], $8::smallint[])
      AS u (id, state, result, supplier_msg_id, resp_at, account_id, conn, node)
   WHERE o.id = ANY($1::bigint[]) AND o.id = u.id AND o.state = 1
  RETURNING o.id, o.message_id, o.retry_of, o.at, o.channel_id, o.enterprise_id, o.attempt, o.part, o.parts,
            u.state, u.result, u.supplier_msg_id, u.resp_at, u.account_id, u.conn, u.node)
INSERT INTO submit (id, message_id, retry_of, supplier_msg_id, dispatched_at, resp_at, channel_id, account_id, enterprise_id, result, conn,
  attempt, part, parts, state, node)
SELECT id, message_id, retry_of, supplier_msg_id, at, resp_at, channel_id, account_id, enterprise_id, result, conn, attempt, part, parts, state, node FROM d
RETURNING id, message_id, retry_of, channel_id, attempt, part, dispatched_at
