-- The submits of the commands that settlement_results.sql took, without a join: unnest beside a queue that is thought to be
-- empty is compared row by row (data §1.6).
INSERT INTO submit (id, message_id, retry_of, supplier_msg_id, dispatched_at, resp_at, channel_id, account_id, enterprise_id, result, conn,
  attempt, part, parts, state, node)
SELECT * FROM unnest($1::bigint[], $2::bigint[], $3::bigint[], $4::bigint[], $5::timestamptz[], $6::timestamptz[], $7::int[], $8::int[], $9::int[], $10::int[], $11::int[],
  $12::smallint[], $13::smallint[], $14::smallint[], $15::smallint[], $16::smallint[])
