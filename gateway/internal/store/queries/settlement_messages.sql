-- The messages of a transaction, locked in ascending order. $1 sorted ids, $2..$3 their bounds
SELECT id, msg_id, price, phone, accept_session, accepted_at, created_at, valid_until, receipt_overdue_at IS NOT NULL, enterprise_id, app_id, channel_id,
       units, state, bill, charge_on, refund_on, attempt, parts, acc, fin, reason, carrier, lane, registered, fmt, udhi, pk_total, pk_number,
       accept_node, stat, dest, src, service, content, coalesce(signature, ''), segments, out_fmt, ref
  FROM message WHERE id = ANY($1::bigint[]) AND id BETWEEN $2 AND $3 ORDER BY id FOR NO KEY UPDATE
